//! The members of an object in JSON, each with its own text, so that numbers keep their digits. A key that
//! comes twice is an error.

use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};

use crate::terminal::failure::BadInput;

/// Pairs of a phrase of serde's about the type that it expected, and one for users.
const WORDS: [(&str, &str); 6] = [
    ("expected f64", "expected a number"),
    ("expected u64", "expected a whole number"),
    ("expected u32", "expected a whole number"),
    ("expected usize", "expected a whole number"),
    ("expected nonzero usize", "expected a whole number, 1 or more"),
    ("expected a nonzero usize", "expected a whole number, 1 or more"),
];

/// The members that were not taken yet, in their order.
#[derive(Debug)]
pub(crate) struct ObjectMembers<'l> {
    list: Vec<(String, &'l str)>,
}

impl<'l> ObjectMembers<'l> {
    /// Reads an object. The time is linear in its length and quadratic in its number of members.
    pub(crate) fn read(line: &'l str) -> Result<Self, BadInput> {
        // The whole line is parsed first, so that what follows can rely on its syntax.
        serde_json::from_str::<IgnoredAny>(line)
            .map_err(|error| BadInput::new(format!("not JSON: {error}")))?;
        let mut rest = line.trim_start().strip_prefix('{').ok_or_else(|| {
            BadInput::new("not an object").hint("a row looks like {\"id\": \"a\", \"prompt\": \"..\"}")
        })?;
        let mut list: Vec<(String, &'l str)> = Vec::new();
        loop {
            rest = rest.trim_start().trim_start_matches(',').trim_start();
            if rest.is_empty() || rest.starts_with('}') {
                return Ok(Self { list });
            }
            let key: String = next(&mut rest).map_err(|error| BadInput::new(format!("a key: {error}")))?;
            rest = rest.trim_start().trim_start_matches(':').trim_start();
            let value = rest;
            next::<IgnoredAny>(&mut rest).map_err(|error| wrong(&key, &error))?;
            if list.iter().any(|(known, _)| *known == key) {
                return Err(BadInput::new(format!("the key `{key}` stands twice")));
            }
            list.push((key, &value[..value.len() - rest.len()]));
        }
    }

    /// Takes the value of a key, if it is there and not null.
    pub(crate) fn take<T: DeserializeOwned>(&mut self, key: &str) -> Result<Option<T>, BadInput> {
        let read = |text| serde_json::from_str(text).map_err(|error| wrong(key, &error));
        self.take_text(key).map(read).transpose()
    }

    /// Takes the text of the value of a key, if it is there and not null.
    pub(crate) fn take_text(&mut self, key: &str) -> Option<&'l str> {
        let at = self.list.iter().position(|(name, _)| name == key)?;
        let (_, text) = self.list.remove(at);
        (text != "null").then_some(text)
    }

    /// True if the key is there, whatever its value.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.list.iter().any(|(name, _)| name == key)
    }

    /// The members that were not taken.
    pub(crate) fn rest(self) -> Vec<(String, &'l str)> {
        self.list
    }
}

/// Reads the value that the text begins with, and leaves the text behind it.
fn next<'l, T: Deserialize<'l>>(rest: &mut &'l str) -> serde_json::Result<T> {
    let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<T>();
    let value = stream.next().unwrap_or_else(|| serde_json::from_str(""))?;
    *rest = &rest[stream.byte_offset()..];
    Ok(value)
}

/// Says what is wrong with the value of a key, without the place in the value, which is of no use in a line.
fn wrong(key: &str, error: &serde_json::Error) -> BadInput {
    let message = error.to_string();
    let mut said = message.split(" at line ").next().unwrap_or_default().to_owned();
    for (word, better) in WORDS {
        said = said.replace(word, better);
    }
    BadInput::new(format!("`{key}`: {said}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<(String, String)> {
        let members = ObjectMembers::read(line).unwrap().rest();
        members.into_iter().map(|(key, text)| (key, text.to_owned())).collect()
    }

    #[test]
    fn member_values_keep_the_text_they_were_written_in() {
        let line =
            " {\"a\" : 1e400 ,\"b\\u0063\":[1, {\"}\": \",\"}],\"d\":\"\\ud800\", \"e\":-0.50\t,\"f\":null} ";
        let found = texts(line);
        let expected = [
            ("a", "1e400"),
            ("bc", "[1, {\"}\": \",\"}]"),
            ("d", "\"\\ud800\""),
            ("e", "-0.50"),
            ("f", "null"),
        ];
        assert_eq!(found, expected.map(|(key, text)| (key.to_owned(), text.to_owned())));
        assert!(texts("{}").is_empty());
        let mut members = ObjectMembers::read(line).unwrap();
        assert!(members.take::<f64>("a").is_err() && members.take::<String>("d").is_err());
        assert_eq!(members.take::<f64>("e").unwrap(), Some(-0.5));
        assert_eq!(members.take::<f64>("f").unwrap(), None);
        assert_eq!(members.rest().len(), 1);
    }

    #[test]
    fn lines_without_an_object_or_with_a_key_twice_are_errors() {
        for line in ["", "x", "[1]", "7", "{", "{\"a\":1,}", "{\"a\" 1}", "{\"a\":1} x", "{\"a\":1,\"a\":2}"]
        {
            assert!(ObjectMembers::read(line).is_err(), "{line}");
        }
        let mut members = ObjectMembers::read("{\"n\": -1, \"t\": \"hot\"}").unwrap();
        let said = |error: BadInput| error.to_string();
        assert!(said(members.take::<u64>("n").unwrap_err()).ends_with("expected a whole number"));
        assert!(said(members.take::<f64>("t").unwrap_err()).starts_with("`t`: invalid type: string"));
    }

    proptest::proptest! {
        /// The members are those that a parser of whole documents finds.
        #[test]
        fn members_are_those_that_a_parser_of_whole_documents_finds(
            keys in proptest::collection::hash_set(".{0,6}", 0..6), seed in proptest::num::u64::ANY,
        ) {
            let values = [
                serde_json::json!(null), serde_json::json!(seed), serde_json::json!([{}, "]"]),
                serde_json::json!("\"\\,:{"), serde_json::json!({"a": {"b": [1.5, true]}}),
            ];
            let object: serde_json::Map<String, serde_json::Value> = keys
                .into_iter()
                .enumerate()
                .map(|(at, key)| (key, values[at % values.len()].clone()))
                .collect();
            for text in [serde_json::to_string(&object), serde_json::to_string_pretty(&object)] {
                let text = text.unwrap();
                let found: serde_json::Map<String, serde_json::Value> = ObjectMembers::read(&text)
                    .unwrap()
                    .rest()
                    .into_iter()
                    .map(|(key, text)| (key, serde_json::from_str(text).unwrap()))
                    .collect();
                proptest::prop_assert_eq!(&found, &object);
            }
        }
    }
}
