//! The drafts' metaschemas, which references may lead to although no document is ever fetched.

use super::address::split_fragment;

/// The metaschemas of a draft: an array of documents, and the beginning of their addresses.
struct Published {
    begins: &'static str,
    text: &'static str,
}

/// The metaschemas that json-schema.org publishes, without their comments.
const PUBLISHED: [Published; 5] = [
    Published { begins: "draft-04/", text: include_str!("draft-04.json") },
    Published { begins: "draft-06/", text: include_str!("draft-06.json") },
    Published { begins: "draft-07/", text: include_str!("draft-07.json") },
    Published { begins: "draft/2019-09/", text: include_str!("2019-09.json") },
    Published { begins: "draft/2020-12/", text: include_str!("2020-12.json") },
];

/// The part of an address behind the host, if the host is json-schema.org.
fn path(address: &str) -> Option<&str> {
    let plain = split_fragment(address).0;
    let rest = plain.strip_prefix("https://").or_else(|| plain.strip_prefix("http://"))?;
    rest.strip_prefix("json-schema.org/")
}

/// The position of the draft whose metaschemas may have this address.
pub(super) fn draft_of(address: &str) -> Option<usize> {
    let path = path(address)?;
    PUBLISHED.iter().position(|published| path.starts_with(published.begins))
}

/// The text of a draft's metaschemas: an array of documents.
pub(super) fn text(draft: usize) -> &'static str {
    PUBLISHED[draft].text
}

/// Swaps `https` and `http` in an address.
pub(super) fn other_scheme(address: &str) -> Option<String> {
    let plain = split_fragment(address).0;
    plain
        .strip_prefix("https://")
        .map(|rest| format!("http://{rest}"))
        .or_else(|| plain.strip_prefix("http://").map(|rest| format!("https://{rest}")))
}
