//! The value that an unfinished text of JSON has begun, and the search for a key that comes twice in an
//! object, which a parsed value no longer shows.

use std::collections::HashSet;

use serde_json::{Value, value::RawValue};

use super::escaped;
use crate::rows::RawMembers;

/// A value that a text has begun.
#[derive(Debug)]
pub(super) struct BegunText {
    /// The value, with every open array and object closed.
    pub(super) value: Value,
    /// The JSON pointers to the open values, the outermost first, each with its kind.
    pub(super) open: Vec<(String, &'static str)>,
}

/// An array or an object that is open.
struct Level {
    is_object: bool,
    /// The key of the value to come, or the number of the item.
    key: String,
    item: usize,
    /// True if the next string is a value, as after a colon.
    valued: bool,
    /// The place where a cut ends the text behind its last whole member.
    cut: usize,
}

/// Reads the value that a text has begun; `None` where the text is no beginning of JSON. A text that is whole
/// has no open value. Linear.
pub(super) fn begun(text: &str) -> Option<BegunText> {
    if let Ok(value) = serde_json::from_str(text) {
        return Some(BegunText { value, open: Vec::new() });
    }
    let mut levels: Vec<Level> = Vec::new();
    let mut at = 0;
    let bytes = text.as_bytes();
    let mut scalar = None;
    while at < bytes.len() {
        match bytes[at] {
            byte @ (b'{' | b'[') => {
                let is_object = byte == b'{';
                let (key, cut) = (String::new(), at + 1);
                levels.push(Level { is_object, key, item: 0, valued: !is_object, cut });
                at += 1;
            }
            b'}' | b']' => {
                levels.pop()?;
                at += 1;
                set_cut(&mut levels, at);
            }
            b',' => {
                let level = levels.last_mut()?;
                level.item += 1;
                level.valued = !level.is_object;
                at += 1;
            }
            b'"' => {
                let Some(end) = end_of_string(text, at) else {
                    scalar = Some(at);
                    break;
                };
                // A string of an object is a key until a colon has come.
                match levels.last_mut().filter(|level| !level.valued) {
                    Some(level) => level.key = serde_json::from_str(&text[at..end]).ok()?,
                    None => set_cut(&mut levels, end),
                }
                at = end;
            }
            b':' => {
                levels.last_mut()?.valued = true;
                at += 1;
            }
            b' ' | b'\n' | b'\r' | b'\t' => at += 1,
            _ => {
                let rest = &bytes[at..];
                let length = rest.iter().position(|byte| b",]} \n\r\t".contains(byte));
                // A word or a number at the end of the text may go on.
                let Some(length) = length else {
                    scalar = Some(at);
                    break;
                };
                at += length;
                set_cut(&mut levels, at);
            }
        }
    }
    closed(text, &levels, scalar)
}

/// Notes that the innermost open level has a whole member or item before `at`.
fn set_cut(levels: &mut [Level], at: usize) {
    if let Some(level) = levels.last_mut() {
        level.cut = at;
    }
}

/// Parses the text with every open value closed.
fn closed(text: &str, levels: &[Level], scalar: Option<usize>) -> Option<BegunText> {
    let brackets: String = levels.iter().rev().map(|level| if level.is_object { '}' } else { ']' }).collect();
    let cut = levels.last()?.cut;
    // A number or a word at the end may be whole; a string is made whole, where it is no key.
    let with_scalar = scalar.and_then(|_| {
        let value = serde_json::from_str(&format!("{text}{brackets}"));
        value.or_else(|_| serde_json::from_str(&format!("{text}\"{brackets}"))).ok()
    });
    let has_scalar = with_scalar.is_some();
    let value = match with_scalar {
        Some(value) => value,
        None => serde_json::from_str(&format!("{}{brackets}", &text[..cut])).ok()?,
    };
    let mut open = Vec::new();
    let mut pointer = String::new();
    for level in levels {
        open.push((pointer.clone(), if level.is_object { "object" } else { "array" }));
        let step = match level.is_object {
            true => escaped(&level.key),
            false => level.item.to_string(),
        };
        pointer = format!("{pointer}/{step}");
    }
    if has_scalar {
        open.push((pointer, "value"));
    }
    Some(BegunText { value, open })
}

/// The place behind the quote that ends the string at `start`.
fn end_of_string(text: &str, start: usize) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(start + 1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Finds the first object in a whole JSON text in which a key comes twice; gives its pointer and the key.
pub(super) fn doubled(text: &str) -> Option<(String, String)> {
    let inside = |step: &str, text: &str| {
        let (pointer, key) = doubled(text)?;
        Some((format!("/{}{pointer}", escaped(step)), key))
    };
    match text.trim_start().as_bytes().first()? {
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            items.iter().enumerate().find_map(|(index, item)| inside(&index.to_string(), item.get()))
        }
        b'{' => {
            let RawMembers(members) = serde_json::from_str(text).ok()?;
            let mut keys = HashSet::new();
            let found = |(key, value): &(String, &str)| {
                let again = !keys.insert(key.clone());
                inside(key, value).or_else(|| again.then(|| (String::new(), key.clone())))
            };
            members.iter().find_map(found)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_unfinished_json_text_has_the_value_it_has_begun() {
        for (text, value, open) in [
            ("{\"a\": 1", json!({"a": 1}), &["", "/a"][..]),
            ("{\"a\": 1,", json!({"a": 1}), &[""]),
            ("{\"a\": 1, \"b\"", json!({"a": 1}), &[""]),
            ("{\"a\": 1, \"b\":", json!({"a": 1}), &[""]),
            ("{\"a\": [1, {\"b/c\": [", json!({"a": [1, {"b/c": []}]}), &["", "/a", "/a/1", "/a/1/b~1c"]),
            ("[\"x", json!(["x"]), &["", "/0"]),
            ("[tr", json!([]), &[""]),
            ("[true", json!([true]), &["", "/0"]),
            ("[[1], 2, ", json!([[1], 2]), &[""]),
            ("[", json!([]), &[""]),
            ("{\"a\": {}}", json!({"a": {}}), &[]),
        ] {
            let begun = begun(text).unwrap_or_else(|| panic!("{text}"));
            let pointers: Vec<&str> = begun.open.iter().map(|(pointer, _)| pointer.as_str()).collect();
            assert_eq!((&begun.value, &*pointers), (&value, open), "{text}");
        }
        for text in ["", "tr", "]", "{]", "[1}", "\"a"] {
            assert!(begun(text).is_none(), "{text}");
        }
    }

    #[test]
    fn doubled_keys_are_found_with_their_pointer() {
        let found = |text: &str| doubled(text).map(|(pointer, key)| format!("{pointer} {key}"));
        assert_eq!(found(r#"{"a": 1, "b": {"a": 2}, "c": [null, 1.5, -1, "a", true]}"#), None);
        assert_eq!(found(r#"{"a": 1, "\u0061": 2}"#).as_deref(), Some(" a"));
        assert_eq!(found(r#"[1, {"x/y": {"k": 1, "k": 1}}]"#).as_deref(), Some("/1/x~1y k"));
        assert_eq!(found(r#"{"a": 1, "a": "#), None);
    }
}
