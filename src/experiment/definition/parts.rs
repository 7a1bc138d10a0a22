//! Parts of a definition: grammars with their prompts and answers, functions in place of a grammar, draft
//! models, programs, and the order of turns.

use std::{fmt, path::Path};

use serde_json::{Value, json};

use super::source::DefinitionSource;
use crate::experiment::{error::ExperimentError, methods::MethodName};
use crate::grammar::Syntax;
use crate::grammar::tools::{Calling, Choice, Spelling, Tools, calls::Reader};

/// Source of a draft model.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct DraftSource {
    /// The name, as one of [`Definition::models`](super::Definition::models).
    pub model: String,
    /// The format that its weights are quantised to while it is loaded, as `--quantize` names it.
    pub quantize: Option<String>,
    /// The format of its keys and values, as `--kv` names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv: Option<String>,
}

/// A program that writes texts itself, as a method of its name.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct ExternalProgram {
    /// The method's name.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Does it constrain texts to the grammar? Otherwise it writes without one.
    pub grammar: bool,
}

/// A method of a definition, with its own settings.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MethodChoice {
    /// The method.
    pub name: MethodName,
    /// Most tokens of the thought before its texts, if one comes first.
    pub think: Option<usize>,
}

impl MethodChoice {
    /// Returns the method as JSON: its name, or a table if it has settings.
    pub(super) fn to_json(&self) -> Value {
        match self.think {
            None => json!(self.name.to_string()),
            Some(think) => json!({ "name": self.name.to_string(), "think": think }),
        }
    }

    /// Reads the method of a record back; `None` if it is not in that form.
    pub(super) fn of_record(value: &Value, programs: &[ExternalProgram]) -> Option<Self> {
        let name = value.as_str().or_else(|| value.get("name")?.as_str())?;
        let think = value.get("think").map(|think| serde_json::from_value(think.clone()).ok());
        Some(Self {
            name: MethodName::of_record(name, programs).ok()?,
            think: if let Some(think) = think { Some(think?) } else { None },
        })
    }
}

impl fmt::Display for MethodChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)?;
        self.think.map_or(Ok(()), |think| write!(f, ", think {think}"))
    }
}

/// Order in which the methods of a prompt and seed take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Turns {
    /// Another method is first each time, so that drifts of a machine's speed fall on all alike.
    #[default]
    Rotate,
    /// Turns are in the order of the definition.
    Fixed,
}

/// A grammar and its prompts.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Task {
    /// The grammar's name in rows.
    pub name: String,
    /// The notation.
    pub syntax: Syntax,
    /// The grammar.
    pub grammar: String,
    /// The functions that it is made of, if it is one of calls. Chat templates show them to the model.
    pub functions: Option<Functions>,
    /// The same grammar in other notations, for engines that do not read the first one.
    pub also: Vec<(Syntax, String)>,
    /// Prompts that texts go on from.
    pub prompts: Vec<Prompt>,
    /// Prompts of warm-ups, one after the other; without any, the measured ones.
    pub warm_up_prompts: Vec<String>,
    /// Place of the answer in a text.
    pub answer: Option<AnswerPlace>,
}

impl Task {
    /// Returns the task as JSON, with grammars by their hashes.
    pub(super) fn to_json(&self) -> Value {
        let prompts: Vec<Value> = self
            .prompts
            .iter()
            .map(|Prompt { text, answer }| match answer {
                Some(answer) => json!({ "prompt": text, "answer": answer }),
                None => json!({ "prompt": text }),
            })
            .collect();
        let answer = match &self.answer {
            Some(AnswerPlace::Pointer(pointer)) => Some(pointer.as_str()),
            Some(AnswerPlace::LastNumber) => Some("last_number"),
            Some(AnswerPlace::Call(_)) => Some("call"),
            None => None,
        };
        let hash = |text: &str| blake3::hash(text.as_bytes()).to_hex().to_string();
        let mut value = json!({
            "name": self.name, "syntax": self.syntax.name(), "prompts": prompts, "answer": answer,
            "grammar": hash(&self.grammar),
        });
        if !self.warm_up_prompts.is_empty() {
            value["warm_up_prompts"] = json!(self.warm_up_prompts);
        }
        if let Some(functions) = &self.functions {
            value["functions"] = json!([functions.spelling.to_string(), hash(&functions.list)]);
        }
        if !self.also.is_empty() {
            let also: Vec<Value> =
                self.also.iter().map(|(syntax, text)| json!([syntax.name(), hash(text)])).collect();
            value["also"] = json!(also);
        }
        value
    }

    /// Iterates over the grammar in all given notations, the one that this library reads first.
    pub fn notations(&self) -> impl Iterator<Item = (Syntax, &str)> {
        let also = self.also.iter().map(|(syntax, text)| (*syntax, text.as_str()));
        std::iter::once((self.syntax, self.grammar.as_str())).chain(also)
    }
}

/// A prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prompt {
    /// Text that a model continues.
    pub text: String,
    /// The right answer, if there is one.
    pub answer: Option<String>,
}

/// Place of the answer in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerPlace {
    /// The value at a JSON pointer.
    Pointer(String),
    /// The last number in the text.
    LastNumber,
    /// All of the text: a call of one of these functions.
    Call(Functions),
}

/// Prompts that warm-ups continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WarmUpPrompts {
    /// Prompts of their own, which are never measured.
    Apart,
    /// The measured prompts, with other seeds: the paper's way, and that of records that do not say.
    #[default]
    Measured,
}

/// Sets the last prompts of a list apart for `warm_ups` warm-ups: one of five, and no more than there are
/// warm-ups. A single prompt is never set apart.
pub(super) fn set_apart(prompts: &mut Vec<Prompt>, warm_ups: usize) -> Vec<String> {
    /// One prompt of this many is set apart.
    const OF: usize = 5;
    let most = prompts.len().saturating_sub(1);
    let apart = prompts.len().div_ceil(OF).min(warm_ups).min(most);
    prompts.drain(prompts.len() - apart..).map(|prompt| prompt.text).collect()
}

impl Prompt {
    /// Is the answer of `text` at `place` right? `None` if there is no right answer. Numbers are compared by
    /// value.
    #[must_use]
    pub fn is_answered(&self, place: &AnswerPlace, text: &str) -> Option<bool> {
        let right = self.answer.as_ref()?.trim();
        let found = match place {
            AnswerPlace::Pointer(pointer) => {
                let value: Option<Value> = serde_json::from_str(text).ok();
                value.as_ref().and_then(|value| value.pointer(pointer)).map(|value| match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                })
            }
            AnswerPlace::LastNumber => last_number(text),
            AnswerPlace::Call(functions) => return Some(functions.are_called(text, right)),
        };
        let number = |text: &str| text.trim().parse::<f64>().ok();
        Some(found.is_some_and(|found| match (number(&found), number(right)) {
            (Some(found), Some(right)) => (found - right).abs() <= 1e-9 * right.abs().max(1.0),
            _ => found.trim() == right,
        }))
    }
}

/// Returns the last number in a text, without thousands' commas.
fn last_number(text: &str) -> Option<String> {
    let mut found = None;
    let mut number = String::new();
    for c in text.chars().chain([' ']) {
        match c {
            '0'..='9' => number.push(c),
            '.' if !number.is_empty() && !number.contains('.') => number.push(c),
            ',' if number.ends_with(|c: char| c.is_ascii_digit()) => {}
            _ => {
                if number.ends_with(|c: char| c.is_ascii_digit() || c == '.') {
                    found = Some(number.trim_end_matches('.').to_owned());
                }
                number.clear();
                if c == '-' {
                    number.push(c);
                }
            }
        }
    }
    found
}

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
    fn are_called(&self, text: &str, right: &str) -> bool {
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
