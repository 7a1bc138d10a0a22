//! Functions in place of a grammar, and whether a call is one of those that are right.

use std::path::Path;

use serde_json::Value;

use super::source::DefinitionSource;
use crate::{
    experiment::error::ExperimentError,
    grammar::tools::{Calling, Choice, Spelling, Tools, calls::Reader},
};

/// Functions of which each text calls one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Functions {
    /// The list, as OpenAI's API has it.
    pub list: String,
    /// Spelling of the calls.
    pub spelling: Spelling,
}

impl Functions {
    /// Reads the list in a file. `spelling`: a name as `--tool-spelling` takes it.
    pub(super) fn read(
        source: DefinitionSource<'_>,
        path: &Path,
        spelling: Option<&str>,
        grammar: &str,
    ) -> Result<Self, ExperimentError> {
        let names = || Spelling::all().map(|spelling| spelling.to_string()).collect::<Vec<_>>().join(", ");
        let name = spelling.ok_or_else(|| {
            source
                .wrong(format!("grammar {grammar:?} has `tools`, and no `spelling` of their calls"))
                .with_hint(format!("say how the model writes calls: {}", names()))
        })?;
        let spelling = Spelling::named(name).ok_or_else(|| {
            source
                .wrong(format!("`spelling` of grammar {grammar:?} is {name:?}"))
                .with_hint(format!("use one of {}", names()))
        })?;
        let list = std::fs::read_to_string(path).map_err(ExperimentError::io("read", path))?;
        Ok(Self { list: list.trim_start_matches('\u{FEFF}').to_owned(), spelling })
    }

    /// The structural tag of texts that are one call and nothing else.
    pub(super) fn tag(&self, grammar: &str) -> Result<String, ExperimentError> {
        let calling = Calling::new(self.spelling).choice(Choice::Required).parallel(false);
        let tag = Tools::parse(&self.list).and_then(|tools| tools.structural_tag(&calling));
        tag.map_err(|source| ExperimentError::Grammar { name: grammar.to_owned(), source })
    }

    /// The functions, as chat templates take them.
    pub(in crate::experiment) fn values(&self) -> Vec<Value> {
        let list: Value = serde_json::from_str(&self.list).unwrap_or_default();
        list.get("tools").unwrap_or(&list).as_array().cloned().unwrap_or_default()
    }

    /// Is the text one call that is among the right ones? `right`: calls by name, each argument with the
    /// values that it may have; where the empty string is among these it may be missing. Texts are compared
    /// without case, blanks and punctuation. All of that is as the checker of BFCL has it.
    pub(super) fn are_called(&self, text: &str, right: &str) -> bool {
        let Ok(tools) = Tools::parse(&self.list) else { return false };
        let answer = Reader::new(self.spelling, &tools).read(text, true);
        let [call] = &answer.calls[..] else { return false };
        let Ok(Value::Object(given)) = serde_json::from_str(&call.arguments) else { return false };
        let right: Value = serde_json::from_str(right).unwrap_or_default();
        let one_of = match &right {
            Value::Array(several) => several.iter().collect(),
            one => vec![one],
        };
        let same = |right: &Value| right.get(&call.name).is_some_and(|allowed| members(&given, allowed));
        one_of.into_iter().any(same)
    }
}

/// Has each member one of its allowed values, and is each that must be there?
fn members(given: &serde_json::Map<String, Value>, allowed: &Value) -> bool {
    let Some(allowed) = allowed.as_object() else { return false };
    let may_miss = |values: &Value| values.as_array().is_none_or(|values| values.contains(&"".into()));
    given.iter().all(|(name, value)| allowed.get(name).is_some_and(|values| is_one(value, values)))
        && allowed.iter().all(|(name, values)| given.contains_key(name) || may_miss(values))
}

/// Is the value among the allowed ones?
fn is_one(value: &Value, allowed: &Value) -> bool {
    match allowed {
        Value::Array(several) => several.iter().any(|one| same(value, one)),
        one => same(value, one),
    }
}

fn same(given: &Value, right: &Value) -> bool {
    match (given, right) {
        (Value::String(given), Value::String(right)) => plain(given) == plain(right),
        (Value::Number(given), Value::Number(right)) => given.as_f64() == right.as_f64(),
        (Value::Array(given), Value::Array(right)) => {
            given.len() == right.len() && given.iter().zip(right).all(|(given, right)| same(given, right))
        }
        (Value::Object(given), right @ Value::Object(_)) => members(given, right),
        (given, right) => given == right,
    }
}

/// A text without what does not count.
fn plain(text: &str) -> String {
    let counts = |c: &char| !c.is_whitespace() && !",./-_*^".contains(*c);
    text.chars()
        .filter(counts)
        .flat_map(char::to_lowercase)
        .map(|c| if c == '\'' { '"' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn functions() -> Functions {
        let list = r#"[{"type": "function", "function": {"name": "find", "parameters": {"type": "object",
            "properties": {"city": {"type": "string"}, "seats": {"type": "integer"}}}}},
            {"name": "buy", "parameters": {"type": "object"}}]"#;
        Functions { list: list.to_owned(), spelling: Spelling::Hermes }
    }

    fn call(name: &str, arguments: &str) -> String {
        format!("<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {arguments}}}\n</tool_call>")
    }

    #[test]
    fn a_call_is_right_if_all_of_it_is() {
        let right = r#"[{"find": {"city": ["New York, NY", "NYC"], "seats": ["", 2], "on": ["", {"day": [1]}],
            "tags": ["", ["A", "b"]]}}]"#;
        for (name, arguments, is_right) in [
            ("find", r#"{"city": "NYC"}"#, true),
            ("find", r#"{"city": "new york NY", "seats": 2}"#, true),
            ("find", r#"{"seats": 2.0, "city": "nyc"}"#, true),
            ("find", r#"{"city": "NYC", "on": {"day": 1}, "tags": ["a", "B"]}"#, true),
            ("find", r#"{"city": "NYC", "on": {"day": 2}}"#, false),
            ("find", r#"{"city": "NYC", "on": {}}"#, false),
            ("find", r#"{"city": "NYC", "tags": ["a"]}"#, false),
            ("find", r#"{"city": "Boston"}"#, false),
            ("find", r#"{"city": "NYC", "seats": 3}"#, false),
            ("find", r#"{"city": "NYC", "seats": "2"}"#, false),
            ("find", r#"{"city": "NYC", "more": 1}"#, false),
            ("find", r#"{"seats": 2}"#, false),
            ("buy", r#"{"city": "NYC"}"#, false),
            ("find", "[]", false),
        ] {
            assert_eq!(functions().are_called(&call(name, arguments), right), is_right, "{name} {arguments}");
        }
        let once = call("find", r#"{"city": "NYC"}"#);
        assert!(!functions().are_called(&format!("{once}\n{once}"), right), "two calls are not the one");
        assert!(!functions().are_called("It is in NYC.", right));
        assert!(!functions().are_called("", right));
        assert!(functions().are_called(&once, &right[1..right.len() - 1]), "one right call without a list");
    }
}
