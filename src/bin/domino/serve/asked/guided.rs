//! Grammars in vLLM's words: `guided_json` and its kin, and `structured_outputs`, which took their place.
//!
//! Invariant: a body asks for one of them at most, and what stands beside it has its effect or is refused by
//! name.

use domino::grammar::json_schema::{SchemaOptions, WhiteSpace};
use serde_json::{Map, Value};

use super::super::problem::Problem;

/// A kind of grammar that vLLM has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guide {
    /// A JSON Schema, or its text.
    Json,
    /// Any object in JSON, if the value is true.
    JsonObject,
    Regex,
    /// A list of texts, one of which is the answer.
    Choice,
    /// A grammar in GBNF or Lark.
    Grammar,
    /// Structural tags, or their text.
    Tags,
}

/// The field that holds the grammar.
const OUTPUTS: &str = "structured_outputs";

/// The places of grammars in a body.
const PLACES: [(&str, Guide); 11] = [
    ("guided_json", Guide::Json),
    ("guided_json_object", Guide::JsonObject),
    ("guided_regex", Guide::Regex),
    ("guided_choice", Guide::Choice),
    ("guided_grammar", Guide::Grammar),
    ("structured_outputs.json", Guide::Json),
    ("structured_outputs.json_object", Guide::JsonObject),
    ("structured_outputs.regex", Guide::Regex),
    ("structured_outputs.choice", Guide::Choice),
    ("structured_outputs.grammar", Guide::Grammar),
    ("structured_outputs.structural_tag", Guide::Tags),
];

/// Fields about vLLM's own engines of grammars, without effect here.
const IGNORED: [&str; 3] =
    ["guided_decoding_backend", "structured_outputs.backend", "structured_outputs.disable_fallback"];

/// Fields that are refused, since another one says it here.
const REFUSED: [&str; 2] = ["guided_whitespace_pattern", "structured_outputs.whitespace_pattern"];

/// A grammar that a body asks for in vLLM's words.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct GuidedAsked {
    /// The place in the body.
    pub(super) param: &'static str,
    pub(super) guide: Guide,
    pub(super) value: Value,
    /// Objects have no keys beside those that are named.
    closed: bool,
    /// No white space stands between the parts of JSON.
    compact: bool,
}

impl GuidedAsked {
    /// Takes the grammar out of a body.
    ///
    /// # Errors
    /// If there are several, or something beside it that is not served.
    pub(super) fn take(body: &mut Map<String, Value>) -> Result<Option<Self>, Problem> {
        if body.get(OUTPUTS).is_some_and(|outputs| !outputs.is_object()) {
            let message = format!("`{OUTPUTS}` must be an object, such as {{\"json\": SCHEMA}}");
            return Err(Problem::invalid(OUTPUTS, message));
        }
        IGNORED.into_iter().for_each(|place| drop(taken(body, place)));
        if let Some(param) = REFUSED.into_iter().find(|place| taken(body, place).is_some()) {
            let message = format!("`{param}` is not served");
            let hint = "say how white space is written by \"grammar_options\": {\"whitespace\": ..}";
            return Err(Problem::unsupported(param, message).with("hint", hint));
        }
        let mut flag = |name: &str| match taken(body, &format!("{OUTPUTS}.{name}")) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(_) => {
                let param = format!("{OUTPUTS}.{name}");
                Err(Problem::invalid(&param, format!("`{param}` must be true or false")))
            }
        };
        let (compact, closed) = (flag("disable_any_whitespace")?, flag("disable_additional_properties")?);
        let asks = |guide, value: &Value| guide != Guide::JsonObject || *value != Value::Bool(false);
        let mut found = PLACES.into_iter().filter_map(|(param, guide)| {
            let value = taken(body, param).filter(|value| asks(guide, value))?;
            Some(Self { param, guide, value, closed, compact })
        });
        let first = found.next();
        if let (Some(first), Some(second)) = (&first, found.next()) {
            return Err(two(first.param, second.param));
        }
        match body
            .shift_remove(OUTPUTS)
            .as_ref()
            .and_then(Value::as_object)
            .and_then(|left| left.keys().next())
        {
            Some(name) => {
                let param = format!("{OUTPUTS}.{name}");
                let message = format!("this server takes no field `{param}`");
                Err(Problem::bad_request("unknown_parameter", message).param(&param))
            }
            None => Ok(first),
        }
    }

    /// The keys that lead to the value in the body as it was sent.
    pub(super) fn path(&self) -> Vec<&'static str> {
        self.param.split('.').collect()
    }

    /// Options for its schema, where `usual` are those of the request.
    pub(super) fn options(&self, usual: &SchemaOptions) -> SchemaOptions {
        let mut options = usual.clone();
        if self.closed {
            options.closed = Some(true);
        }
        if self.compact {
            options.white_space = WhiteSpace::Compact;
        }
        options
    }
}

/// The refusal of a body that asks for two grammars.
pub(super) fn two(first: &str, second: &str) -> Problem {
    let message = format!("`{first}` and `{second}` were both given: each says what the text must be");
    Problem::bad_request("invalid_value", message).param(second)
}

/// Takes the value at a place out of a body; null says nothing.
fn taken(body: &mut Map<String, Value>, place: &str) -> Option<Value> {
    let value = match place.split_once('.') {
        None => body.shift_remove(place),
        Some((outer, name)) => body.get_mut(outer)?.as_object_mut()?.shift_remove(name),
    };
    value.filter(|value| !value.is_null())
}

/// A grammar in GBNF whose texts are these.
pub(super) fn one_of(texts: &[Value]) -> Option<String> {
    let literal = |text: &Value| {
        let escaped = text.as_str()?.chars().map(|c| match c {
            '"' | '\\' => format!("\\{c}"),
            c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
            c => c.to_string(),
        });
        Some(format!("\"{}\"", escaped.collect::<String>()))
    };
    let texts: Vec<String> = texts.iter().map(literal).collect::<Option<_>>()?;
    (!texts.is_empty()).then(|| format!("root ::= {}", texts.join(" | ")))
}
