//! The keys of rows, the commands that read or write them, and the members of a row, each with its own text,
//! so that numbers keep their digits.

use std::fmt;

use domino::grammar::suggest;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{error::Category, value::RawValue};

use crate::flags::schema::LowSchema;
use crate::terminal::{failure::BadInput, lists};

/// A command that reads rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowReader {
    /// `domino generate --batch`.
    Generate,
    /// `domino check --batch`.
    Check,
    /// `domino trace --batch`.
    #[cfg_attr(not(feature = "experiments"), expect(dead_code, reason = "for commands that measure"))]
    Trace,
}

/// Keys of any row, without the options of schemas.
const ANY: &str = "\
    id meta grammar syntax regex schema tools tool_choice tool_spelling one_tool_call reasoning \
    thought_marks";

/// Keys that `generate` reads, beside those about the drawing of texts.
const OF_GENERATE: &str = "prompt messages n";

/// Keys about the drawing of texts, under the names of the flags.
pub(super) const DRAWING: &str = "\
    temperature top_k top_p min_p repeat_penalty repeat_last_n presence_penalty frequency_penalty seed \
    mask max_tokens reasoning_tokens stop trailing_space finish logprobs";

/// Keys that `check` and `trace` read.
const OF_TEXTS: &str = "text token_ids prefix report";

/// Keys of the lines that `generate` writes, and does not read.
const BY_GENERATE: &str = "\
    index tokens value content tool_calls reasoning_content tokens_per_second interventions mask_seconds \
    seconds complete finished_by prompt_tokens masks passes model_seconds error hint drafted accepted \
    acceptance tokens_per_pass draft_seconds draft_model prior compare forced_bytes forced_share captures \
    captures_error appended appended_bytes appended_token_ids grammar_warnings relaxed canonical redraws \
    thought_tokens";

/// Further keys of the lines that `check` writes.
const BY_CHECK: &str = "\
    accepted message offset line column character expected more_expected terminals rules pointer \
    schema_errors schema_report";

impl RowReader {
    /// The command's name.
    fn name(self) -> &'static str {
        match self {
            Self::Generate => "generate",
            Self::Check => "check",
            Self::Trace => "trace",
        }
    }

    /// True for a key that the command writes itself, so that a row cannot have it copied.
    fn writes(self, key: &str) -> bool {
        match self {
            Self::Generate => lists(BY_GENERATE, key),
            Self::Check => lists(BY_CHECK, key),
            Self::Trace => false,
        }
    }

    /// True for a key that the command reads, or ignores since it is another command's.
    fn knows(self, key: &str) -> bool {
        let written = self != Self::Generate && lists(BY_GENERATE, key);
        written || asked(key)
    }

    /// Chooses the columns to copy from what is left of a row; with `keep`, all unknown ones but those that
    /// are nearly known, which are mistakes.
    pub(super) fn columns(
        self,
        members: ObjectMembers<'_>,
        keep: bool,
    ) -> Result<Vec<(String, &str)>, BadInput> {
        let mut columns = Vec::new();
        for (key, text) in members.rest() {
            // `accepted` is a count of drafted tokens in what `generate` writes, which `check` reads.
            if self.knows(&key) {
                continue;
            }
            if self.writes(&key) {
                let error = format!("`{key}` is a column that {} writes itself", self.name());
                return Err(BadInput::new(error).hint("give it another name, or put it in `meta`"));
            }
            if let Some(near) = suggest::did_you_mean(&key, requests()) {
                return Err(unknown(&key).hint(format!("{near} A column of that name can be put in `meta`")));
            }
            if !keep {
                let hint = "--keep-fields copies columns that are not known, and `meta` holds anything";
                return Err(unknown(&key).hint(hint));
            }
            columns.push((key, text));
        }
        Ok(columns)
    }
}

/// True for a key that some command reads.
fn asked(key: &str) -> bool {
    requests().any(|known| known == key)
}

fn requests() -> impl Iterator<Item = &'static str> {
    [ANY, OF_GENERATE, DRAWING, OF_TEXTS, LowSchema::NAMES].into_iter().flat_map(|keys| keys.split(' '))
}

fn unknown(key: &str) -> BadInput {
    BadInput::new(format!("unknown key `{key}`"))
}

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
        let RawMembers(list) = serde_json::from_str(line).map_err(|error| match error.classify() {
            Category::Data => {
                let hint = "a row looks like {\"id\": \"a\", \"prompt\": \"..\"}";
                BadInput::new("not an object").hint(hint)
            }
            _ => BadInput::new(format!("not JSON: {error}")),
        })?;
        let twice = (1..list.len()).find(|&at| list[..at].iter().any(|(known, _)| *known == list[at].0));
        match twice {
            Some(at) => Err(BadInput::new(format!("the key `{}` stands twice", list[at].0))),
            None => Ok(Self { list }),
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

/// The members of an object of JSON, each with the text of its value.
pub(crate) struct RawMembers<'l>(pub(crate) Vec<(String, &'l str)>);

impl<'l> Deserialize<'l> for RawMembers<'l> {
    fn deserialize<D: Deserializer<'l>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RawVisitor)
    }
}

struct RawVisitor;

impl<'l> Visitor<'l> for RawVisitor {
    type Value = RawMembers<'l>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'l>>(self, mut members: A) -> Result<RawMembers<'l>, A::Error> {
        let mut list = Vec::new();
        while let Some((key, value)) = members.next_entry::<String, &RawValue>()? {
            list.push((key, value.get()));
        }
        Ok(RawMembers(list))
    }
}

/// Says what is wrong with the value of a key, without the place in the value, which is of no use in a line.
pub(super) fn wrong(key: &str, error: &serde_json::Error) -> BadInput {
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

    fn columns(reader: RowReader, line: &str, keep: bool) -> Result<Vec<String>, BadInput> {
        let columns = reader.columns(ObjectMembers::read(line).unwrap(), keep)?;
        Ok(columns.into_iter().map(|(key, _)| key).collect())
    }

    #[test]
    fn every_key_stands_in_one_list() {
        let mut all: Vec<&str> = requests().chain(BY_GENERATE.split(' ')).collect();
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn unknown_keys_are_kept_on_request_and_mistakes_refused_with_the_nearest() {
        use crate::terminal::failure::told;
        for (key, near) in [
            ("promt", "`prompt`"),
            ("Temperature", "`temperature`"),
            ("max-tokens", "`max_tokens`"),
            ("sead", "`seed`"),
            ("tool_choise", "`tool_choice`"),
            ("shema", "`schema`"),
            ("whitspace", "`whitespace`"),
            ("colour", "--keep-fields"),
        ] {
            let line = format!("{{\"{key}\": 1}}");
            let is_mistake = key != "colour";
            for keep in [false, true] {
                if keep && !is_mistake {
                    assert_eq!(columns(RowReader::Check, &line, true).unwrap(), [key]);
                    continue;
                }
                let error = columns(RowReader::Generate, &line, keep).unwrap_err();
                let told = told(&error).line();
                assert!(told.contains(key) && told.contains(near), "{told}");
            }
        }
    }

    #[test]
    fn keys_that_a_command_writes_itself_cannot_be_carried() {
        for keep in [false, true] {
            assert!(columns(RowReader::Generate, r#"{"tokens": 1}"#, keep).is_err());
            assert!(columns(RowReader::Check, r#"{"expected": 1}"#, keep).is_err());
            // Keys that `generate` wrote, and keys of other commands, are ignored.
            let line = r#"{"tokens": 1, "accepted": 3, "prompt": 7, "finish": "stop"}"#;
            assert!(columns(RowReader::Check, line, keep).unwrap().is_empty());
            assert!(columns(RowReader::Generate, r#"{"text": "a", "prefix": 7}"#, keep).unwrap().is_empty());
        }
    }

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
