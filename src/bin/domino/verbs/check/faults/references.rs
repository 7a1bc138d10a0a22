//! References inside a schema.

use serde_json::Value;

/// A schema, and the rules by which its references are read.
pub(super) struct References<'a> {
    pub(super) root: &'a Value,
    /// True if all keywords beside `$ref` are ignored, as in drafts 4 to 7.
    pub(super) alone: bool,
    /// True if schemas inside have names of their own, to which references may be relative.
    named: bool,
}

impl<'a> References<'a> {
    pub(super) fn new(root: &'a Value, alone: bool) -> Self {
        Self { root, alone, named: children(root).any(has_name) }
    }

    /// Finds the schema at an address in this document, with its JSON pointer; `None` where that is
    /// uncertain.
    pub(super) fn find(&self, address: &str) -> Option<(&'a Value, String)> {
        let fragment = address.strip_prefix('#').filter(|_| !self.named)?;
        let pointer = decoded(fragment)?;
        if pointer.is_empty() || pointer.starts_with('/') {
            return Some((self.root.pointer(&pointer)?, pointer));
        }
        None
    }
}

/// The values directly inside a value.
fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => Box::new(std::iter::empty()),
    }
}

/// True if the value, or any value inside, has a name that references are relative to.
fn has_name(value: &Value) -> bool {
    let named = ["$id", "id"].into_iter().any(|key| value.get(key).is_some_and(Value::is_string));
    named || children(value).any(has_name)
}

/// Decodes the percent signs of a fragment.
fn decoded(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = behind;
    }
    String::from_utf8(bytes).ok()
}
