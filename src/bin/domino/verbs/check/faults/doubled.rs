//! The search for a key that comes twice in an object, which a parsed value of JSON no longer shows.

use std::{collections::HashSet, fmt};

use serde::Deserializer;
use serde::de::{self, DeserializeSeed};

/// Finds the first object in a whole JSON text in which a key comes twice; gives its pointer and the key.
pub(super) fn doubled(text: &str) -> Option<(String, String)> {
    let mut found = None;
    let mut reader = serde_json::Deserializer::from_str(text);
    Seek { pointer: String::new(), found: &mut found }.deserialize(&mut reader).ok()?;
    found
}

/// A search in the value at a pointer.
struct Seek<'f> {
    pointer: String,
    found: &'f mut Option<(String, String)>,
}

impl Seek<'_> {
    /// The search in a member or an item of the value.
    fn inside(&mut self, step: &str) -> Seek<'_> {
        let pointer = format!("{}/{}", self.pointer, step.replace('~', "~0").replace('/', "~1"));
        Seek { pointer, found: self.found }
    }
}

impl<'de> DeserializeSeed<'de> for Seek<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> de::Visitor<'de> for Seek<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: de::SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        for index in 0_usize.. {
            if list.next_element_seed(self.inside(&index.to_string()))?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: de::MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = members.next_key::<String>()? {
            members.next_value_seed(self.inside(&key))?;
            if keys.contains(&key) {
                let pointer = self.pointer.clone();
                self.found.get_or_insert((pointer, key));
            } else {
                keys.insert(key);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubled_keys_are_found_with_their_pointer() {
        let found = |text: &str| doubled(text).map(|(pointer, key)| format!("{pointer} {key}"));
        assert_eq!(found(r#"{"a": 1, "b": {"a": 2}, "c": [null, 1.5, -1, "a", true]}"#), None);
        assert_eq!(found(r#"{"a": 1, "\u0061": 2}"#).as_deref(), Some(" a"));
        assert_eq!(found(r#"[1, {"x/y": {"k": 1, "k": 1}}]"#).as_deref(), Some("/1/x~1y k"));
        assert_eq!(found(r#"{"a": 1, "a": "#), None);
    }
}
