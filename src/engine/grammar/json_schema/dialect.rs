//! Dialects: the keywords that a schema has, by its draft; and the drafts' metaschemas.

use super::{document::Value, options::Draft, resolve::split_fragment};

/// The rules by which a schema document is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Dialect {
    /// The rules of this draft.
    Of(Draft),
    /// The rules of a draft before draft 4, which are refused: there, a property says itself whether it is
    /// required.
    TooOld,
    /// The rules of 2020-12, with the spellings of older drafts that 2020-12 lacks: for the half of all
    /// schemas that name no draft.
    Tolerant,
}

/// The keywords that only some drafts have, with the first and the last of these.
const SOME: &[(&str, Draft, Draft)] = &[
    ("const", Draft::Draft6, Draft::Draft202012),
    ("contains", Draft::Draft6, Draft::Draft202012),
    ("propertyNames", Draft::Draft6, Draft::Draft202012),
    ("$id", Draft::Draft6, Draft::Draft202012),
    ("id", Draft::Draft4, Draft::Draft4),
    ("if", Draft::Draft7, Draft::Draft202012),
    ("then", Draft::Draft7, Draft::Draft202012),
    ("else", Draft::Draft7, Draft::Draft202012),
    ("dependencies", Draft::Draft4, Draft::Draft7),
    ("dependentRequired", Draft::Draft201909, Draft::Draft202012),
    ("dependentSchemas", Draft::Draft201909, Draft::Draft202012),
    ("minContains", Draft::Draft201909, Draft::Draft202012),
    ("maxContains", Draft::Draft201909, Draft::Draft202012),
    ("unevaluatedItems", Draft::Draft201909, Draft::Draft202012),
    ("unevaluatedProperties", Draft::Draft201909, Draft::Draft202012),
    ("$anchor", Draft::Draft201909, Draft::Draft202012),
    ("$recursiveRef", Draft::Draft201909, Draft::Draft201909),
    ("$recursiveAnchor", Draft::Draft201909, Draft::Draft201909),
    ("prefixItems", Draft::Draft202012, Draft::Draft202012),
    ("$dynamicRef", Draft::Draft202012, Draft::Draft202012),
    ("$dynamicAnchor", Draft::Draft202012, Draft::Draft202012),
    ("additionalItems", Draft::Draft4, Draft::Draft201909),
];

impl Dialect {
    /// The dialect that `$schema` names, if it is one of the drafts.
    pub(super) fn by_address(address: &str) -> Option<Self> {
        let address = address.trim().trim_end_matches('#').trim_end_matches('/');
        if is_too_old(address) {
            return Some(Self::TooOld);
        }
        let path = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"))?;
        let draft = match path {
            "json-schema.org/draft-04/schema" => Draft::Draft4,
            "json-schema.org/draft-06/schema" => Draft::Draft6,
            "json-schema.org/draft-07/schema" => Draft::Draft7,
            "json-schema.org/draft/2019-09/schema" => Draft::Draft201909,
            "json-schema.org/draft/2020-12/schema" => Draft::Draft202012,
            _ => return None,
        };
        Some(Self::Of(draft))
    }

    /// The name of the draft in options; schemas that name no draft have that of the newest.
    pub(super) fn name(self) -> &'static str {
        let Self::Of(draft) = self else { return "2020-12" };
        Draft::NAMED.iter().find(|&&(_, named)| named == draft).map_or("", |&(name, _)| name)
    }

    /// True if the keyword, which is one of some draft, has a meaning in this dialect.
    pub(super) fn knows(self, keyword: &str) -> bool {
        let Self::Of(draft) = self else { return true };
        SOME.iter()
            .find(|&&(name, ..)| name == keyword)
            .is_none_or(|&(_, first, last)| first <= draft && draft <= last)
    }

    /// True if `$ref` makes the keywords beside it meaningless.
    pub(super) fn ref_stands_alone(self) -> bool {
        matches!(self, Self::Of(Draft::Draft4 | Draft::Draft6 | Draft::Draft7))
    }

    /// True if an array under `items` has a schema for each position.
    pub(super) fn has_item_lists(self) -> bool {
        self != Self::Of(Draft::Draft202012)
    }

    /// True if `exclusiveMinimum` and `exclusiveMaximum` may be booleans.
    pub(super) fn has_boolean_bounds(self) -> bool {
        matches!(self, Self::Of(Draft::Draft4) | Self::Tolerant)
    }
}

/// True if an address names one of drafts 0 to 3, or their hyper-schema. All spellings count, since drafts
/// that are refused must not slip through.
fn is_too_old(address: &str) -> bool {
    let address = address.to_ascii_lowercase();
    let address = address.split_once("://").map_or(&*address, |(_, path)| path);
    let path = address.trim_start_matches("www.").strip_prefix("json-schema.org/");
    let number = path.and_then(|path| path.strip_prefix("draft-")).map(|path| path.split(['/', '#']).next());
    matches!(number.flatten(), Some("0" | "00" | "01" | "02" | "03" | "1" | "2" | "3"))
}

/// The kind of value under a keyword that has schemas below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// A schema, or an array of them.
    Schemas,
    /// An object whose values are schemas.
    Named,
}

/// The schemas below a keyword, if it holds any in some draft.
pub(super) fn holds(keyword: &str, value: &Value) -> Option<Holds> {
    Some(match keyword {
        "properties" | "patternProperties" | "definitions" | "$defs" | "dependentSchemas"
        | "dependencies"
            if matches!(value, Value::Object(_)) =>
        {
            Holds::Named
        }
        "allOf"
        | "anyOf"
        | "oneOf"
        | "prefixItems"
        | "items"
        | "additionalItems"
        | "contains"
        | "not"
        | "if"
        | "then"
        | "else"
        | "additionalProperties"
        | "propertyNames"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Holds::Schemas,
        _ => return None,
    })
}

// References may lead to metaschemas, although no document is ever fetched.

/// The metaschemas of a draft: an array of documents, and the beginning of their addresses.
struct Published {
    begins: &'static str,
    text: &'static str,
}

/// The metaschemas that json-schema.org publishes, without their comments.
const PUBLISHED: [Published; 5] = [
    Published { begins: "draft-04/", text: include_str!("metaschemas/draft-04.json") },
    Published { begins: "draft-06/", text: include_str!("metaschemas/draft-06.json") },
    Published { begins: "draft-07/", text: include_str!("metaschemas/draft-07.json") },
    Published { begins: "draft/2019-09/", text: include_str!("metaschemas/2019-09.json") },
    Published { begins: "draft/2020-12/", text: include_str!("metaschemas/2020-12.json") },
];

/// The part of an address behind the host, if the host is json-schema.org.
fn metaschema_path(address: &str) -> Option<&str> {
    let plain = split_fragment(address).0;
    let rest = plain.strip_prefix("https://").or_else(|| plain.strip_prefix("http://"))?;
    rest.strip_prefix("json-schema.org/")
}

/// The position of the draft whose metaschemas may have this address.
pub(super) fn draft_of(address: &str) -> Option<usize> {
    let path = metaschema_path(address)?;
    PUBLISHED.iter().position(|published| path.starts_with(published.begins))
}

/// The text of a draft's metaschemas: an array of documents.
pub(super) fn metaschema(draft: usize) -> &'static str {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drafts_are_known_by_their_addresses() {
        for (address, want) in [
            ("http://json-schema.org/draft-03/schema#", Some(Dialect::TooOld)),
            ("http://json-schema.org/draft-03/schema", Some(Dialect::TooOld)),
            ("https://json-schema.org/draft-03/schema#", Some(Dialect::TooOld)),
            ("https://json-schema.org/draft-02/schema", Some(Dialect::TooOld)),
            ("http://json-schema.org/draft-01/schema#", Some(Dialect::TooOld)),
            ("http://json-schema.org/draft-00/schema", Some(Dialect::TooOld)),
            ("http://json-schema.org/draft-03/hyper-schema#", Some(Dialect::TooOld)),
            ("HTTP://www.JSON-Schema.org/draft-03/schema/#", Some(Dialect::TooOld)),
            ("json-schema.org/draft-03/schema", Some(Dialect::TooOld)),
            ("http://json-schema.org/draft-04/schema#", Some(Dialect::Of(Draft::Draft4))),
            ("https://json-schema.org/draft/2020-12/schema", Some(Dialect::Of(Draft::Draft202012))),
            ("http://json-schema.org/schema#", None),
            ("https://example.org/draft-03/schema", None),
        ] {
            assert_eq!(Dialect::by_address(address), want, "{address}");
        }
    }
}
