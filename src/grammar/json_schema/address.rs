//! Addresses of schemas: URI references, split and resolved as RFC 3986, section 5.2 says.
//!
//! Schemas in use hold addresses that are no URIs at all, so nothing is refused here: an address that cannot
//! be split is a path.

/// The address of a document that has no other: the folder of all documents.
pub(super) const NOWHERE: &str = "schema:///";

/// An address for people: one in the folder of documents without the name of that folder.
pub(super) fn shown_address(address: &str) -> &str {
    address.strip_prefix(NOWHERE).filter(|path| !path.is_empty()).unwrap_or(address)
}

/// A reference without its fragment, and the fragment.
pub(super) fn split_fragment(reference: &str) -> (&str, &str) {
    reference.split_once('#').unwrap_or((reference, ""))
}

/// The scheme with its colon, the authority with its slashes, and the rest.
fn split(address: &str) -> (&str, &str, &str) {
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    let colon = address.find(':').filter(|&colon| is_scheme(&address[..colon]));
    let (scheme, rest) = address.split_at(colon.map_or(0, |colon| colon + 1));
    if !rest.starts_with("//") {
        return (scheme, "", rest);
    }
    let end = rest[2..].find(['/', '?']).map_or(rest.len(), |end| end + 2);
    (scheme, &rest[..end], &rest[end..])
}

/// Resolves `reference`, which has no fragment, in a document at `base`.
pub(super) fn resolve(base: &str, reference: &str) -> String {
    if reference.is_empty() {
        return base.to_owned();
    }
    let (scheme, authority, path) = split(reference);
    if !scheme.is_empty() {
        return format!("{scheme}{authority}{}", without_dots(path));
    }
    let (base_scheme, base_authority, base_path) = split(base);
    if !authority.is_empty() {
        return format!("{base_scheme}{authority}{}", without_dots(path));
    }
    let base_path = base_path.split('?').next().unwrap_or_default();
    let merged = if path.starts_with('/') {
        path.to_owned()
    } else if path.starts_with('?') {
        format!("{base_path}{path}")
    } else {
        let folder = base_path.rfind('/').map_or("", |slash| &base_path[..=slash]);
        let slash = if folder.is_empty() && !base_authority.is_empty() { "/" } else { "" };
        format!("{slash}{folder}{path}")
    };
    format!("{base_scheme}{base_authority}{}", without_dots(&merged))
}

/// Removes `.` and `..` from a path.
fn without_dots(path: &str) -> String {
    let (path, query) = path.split_at(path.find('?').unwrap_or(path.len()));
    let rooted = path.starts_with('/');
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." if last => kept.push(""),
            "." => {}
            ".." => {
                if kept.len() > usize::from(rooted) {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            _ => kept.push(segment),
        }
    }
    format!("{}{query}", kept.join("/"))
}

/// Decodes percent-encoded text; bytes that are not UTF-8 are replaced.
pub(super) fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let escaped = match (first, tail) {
            (b'%', [high, low, ..]) => digit(*high).zip(digit(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 3986, section 5.4.
    #[test]
    fn references_are_resolved_as_rfc_3986_says() {
        for (reference, want) in [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("g;x=1/../y", "http://a/b/c/y"),
        ] {
            assert_eq!(resolve("http://a/b/c/d;p?q", reference), want, "{reference}");
        }
        assert_eq!(resolve("http://a", "b"), "http://a/b");
        assert_eq!(resolve("urn:uuid:1", ""), "urn:uuid:1");
    }

    #[test]
    fn percent_encoding_is_decoded() {
        assert_eq!(percent_decoded("a%25b%2Fc%zz%"), "a%b/c%zz%");
    }
}
