//! The grammar that a request asks for: its `grammar` or its `response_format`, or in vLLM's words
//! `guided_json` and its kin, and `structured_outputs`, which took their place.
//!
//! Invariant: a body asks for one of them at most, and what stands beside it has its effect or is refused by
//! name.

use domino::grammar::Thought;
use domino::grammar::json_schema::{SchemaOptions, WhiteSpace};
use serde_json::{Map, Value};

use super::{super::args::SchemaRules, super::problem::Problem, fields, schemas, schemas::OptionsAsked};
use crate::grammar::{compiler::Reach, notation::Notation};

/// Fields of a grammar of type `structural_tag`.
const TAGS: [&str; 6] = ["type", "value", "order", "whitespace", "escapes", "numbers"];

/// A grammar as a request names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GrammarAsked {
    pub(crate) what: GrammarWhat,
    /// The field of the body that asks for it.
    pub(crate) param: &'static str,
    /// Options for its schemas.
    pub(crate) options: OptionsAsked,
    /// The reach of its masks; `None`: the server's.
    pub(crate) reach: Option<Reach>,
    /// The thought before its texts.
    pub(crate) thought: Option<Thought>,
}

/// The source of a grammar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GrammarWhat {
    /// A text, and its notation.
    Text(Notation, String),
    /// The name of a grammar that the server has.
    Named(String),
    /// Any object in JSON.
    JsonObject,
}

impl GrammarAsked {
    /// A grammar that the field `param` asks for, whose schemas are read by these options.
    pub(crate) fn new(what: GrammarWhat, param: &'static str, options: &OptionsAsked) -> Self {
        Self { what, param, options: options.clone(), reach: None, thought: None }
    }

    /// The notation of its text; `None` where that is known only when the file is read.
    fn notation(&self) -> Option<Notation> {
        match &self.what {
            GrammarWhat::Text(notation, _) => Some(*notation),
            GrammarWhat::JsonObject => Some(Notation::Gbnf),
            GrammarWhat::Named(_) => None,
        }
    }

    /// Returns its text, as far as the request has one.
    pub(crate) fn text(&self) -> &str {
        match &self.what {
            GrammarWhat::Text(_, text) => text,
            GrammarWhat::Named(_) | GrammarWhat::JsonObject => "",
        }
    }
}

/// Checks that the schemas of a request take its options; those of a named grammar are looked at when it is
/// found.
///
/// # Errors
/// If they do not.
pub(crate) fn check_options(
    options: &OptionsAsked,
    grammar: Option<&GrammarAsked>,
    tools: bool,
) -> Result<(), Problem> {
    match grammar {
        _ if tools => options.check(Some(Notation::StructuralTag)),
        None => options.check(None),
        Some(grammar) => match grammar.notation() {
            Some(notation) => options.check(Some(notation)),
            None => Ok(()),
        },
    }
}

/// A reader of the grammar in the body of a request.
pub(crate) struct Reading<'a> {
    /// The body as it came.
    pub(crate) bytes: &'a [u8],
    /// Bytes of a grammar's text at most.
    pub(crate) most: usize,
    pub(crate) schemas: &'a SchemaRules,
    /// Options for schemas that say nothing themselves.
    pub(crate) options: &'a OptionsAsked,
}

impl Reading<'_> {
    /// Takes the grammar that `grammar`, `response_format` or a field of vLLM asks for out of the body.
    pub(crate) fn grammar(&self, body: &mut Map<String, Value>) -> Result<Option<GrammarAsked>, Problem> {
        let guided = GuidedAsked::take(body)?.map(|guided| self.guided(&guided)).transpose()?;
        let grammar = body.shift_remove("grammar").map(|grammar| self.direct(&grammar)).transpose()?;
        let format = body.shift_remove("response_format");
        let format = format.map(|format| self.response_format(&format)).transpose()?.flatten();
        let mut all = [guided, grammar, self.json_schema(body)?, format].into_iter().flatten();
        match (all.next(), all.next()) {
            (Some(first), Some(second)) => Err(two(first.param, second.param)),
            (one, _) => Ok(one),
        }
    }

    /// Reads the schema of llama.cpp's field of that name.
    fn json_schema(&self, body: &mut Map<String, Value>) -> Result<Option<GrammarAsked>, Problem> {
        const FIELD: &str = "json_schema";
        let Some(value) = body.shift_remove(FIELD) else { return Ok(None) };
        let text = schemas::text_of(&value, self.bytes, &[FIELD]);
        let text = text.ok_or_else(|| Problem::invalid(FIELD, "`json_schema` must be a JSON Schema"))?;
        let what = GrammarWhat::Text(Notation::JsonSchema, self.bounded(text, FIELD)?);
        Ok(Some(GrammarAsked::new(what, FIELD, self.options)))
    }

    /// Reads a grammar in vLLM's words.
    fn guided(&self, asked: &GuidedAsked) -> Result<GrammarAsked, Problem> {
        let GuidedAsked { param, guide, value, .. } = asked;
        let options = asked.options(self.options.options());
        let sent = || schemas::text_of(value, self.bytes, &asked.path());
        let string = || value.as_str().map(str::to_owned);
        let (text, must) = match guide {
            Guide::Json => (sent(), "a JSON Schema, or its text"),
            Guide::Tags => (sent(), "structural tags, or their text"),
            Guide::Choice => (value.as_array().and_then(|texts| one_of(texts)), "a list of strings"),
            Guide::JsonObject => ((*value == true).then(String::new), "true or false"),
            Guide::Regex | Guide::Grammar => (string(), "a string"),
        };
        let text = text.ok_or_else(|| Problem::invalid(param, format!("`{param}` must be {must}")))?;
        let text = self.bounded(text, param)?;
        let what = match guide {
            Guide::Json => GrammarWhat::Text(Notation::JsonSchema, text),
            Guide::Tags => GrammarWhat::Text(Notation::StructuralTag, text),
            Guide::JsonObject => GrammarWhat::JsonObject,
            Guide::Regex => GrammarWhat::Text(Notation::Regex, text),
            Guide::Grammar if !text.contains("::=") => GrammarWhat::Text(Notation::Lark, text),
            Guide::Choice | Guide::Grammar => GrammarWhat::Text(Notation::Gbnf, text),
        };
        Ok(GrammarAsked::new(what, param, &self.options.with(options)))
    }

    /// Reads `{"type": .., "value": ..}`, or a text in GBNF, as llama.cpp has it.
    fn direct(&self, grammar: &Value) -> Result<GrammarAsked, Problem> {
        if let Value::String(text) = grammar {
            let what = GrammarWhat::Text(Notation::Gbnf, self.bounded(text.clone(), "grammar")?);
            return Ok(GrammarAsked::new(what, "grammar", self.options));
        }
        let wrong = |message: String| Problem::invalid("grammar", message);
        let kind = grammar.get("type").and_then(Value::as_str);
        let (Some(object), Some(kind), Some(value)) = (grammar.as_object(), kind, grammar.get("value"))
        else {
            return Err(wrong("`grammar` must be an object {\"type\": .., \"value\": ..}".to_owned()));
        };
        let schemas = match kind {
            "json_schema" => Some((Notation::JsonSchema, "a JSON Schema, or its text")),
            "structural_tag" => {
                fields::of_object(object, "grammar", &TAGS)?;
                Some((Notation::StructuralTag, "structural tags, or their text"))
            }
            _ => None,
        };
        if let Some((notation, must)) = schemas {
            let options = schemas::options(object, "grammar", &["type", "value"], self.options.options())?;
            let text = schemas::text_of(value, self.bytes, &["grammar", "value"])
                .ok_or_else(|| wrong(format!("`grammar.value` must be {must}")))?;
            let what = GrammarWhat::Text(notation, self.bounded(text, "grammar")?);
            return Ok(GrammarAsked::new(what, "grammar", &self.options.with(options)));
        }
        fields::of_object(object, "grammar", &["type", "value"])?;
        let text = || {
            let text = value
                .as_str()
                .ok_or_else(|| wrong(format!("`grammar.value` of type {kind} must be a string")))?;
            self.bounded(text.to_owned(), "grammar")
        };
        let what = match kind {
            "gbnf" => GrammarWhat::Text(Notation::Gbnf, text()?),
            "regex" => GrammarWhat::Text(Notation::Regex, text()?),
            "lark" => GrammarWhat::Text(Notation::Lark, text()?),
            "lark_greedy" => GrammarWhat::Text(Notation::LarkGreedy, text()?),
            "ebnf" => GrammarWhat::Text(Notation::Ebnf, text()?),
            "named" => GrammarWhat::Named(text()?),
            "llguidance" => {
                let message = "lists of llguidance's grammars are not served; write it as one of type lark";
                return Err(Problem::unsupported("grammar", message));
            }
            _ => {
                let message = format!(
                    "no grammar type {kind:?}; there are gbnf, regex, lark, lark_greedy, ebnf, json_schema, \
                     structural_tag and named"
                );
                return Err(Problem::unsupported("grammar", message));
            }
        };
        Ok(GrammarAsked::new(what, "grammar", self.options))
    }

    fn response_format(&self, format: &Value) -> Result<Option<GrammarAsked>, Problem> {
        const PARAM: &str = "response_format";
        let (Some(object), Some(kind)) = (format.as_object(), format.get("type").and_then(Value::as_str))
        else {
            return Err(Problem::invalid(PARAM, "`response_format` must be an object {\"type\": ..}"));
        };
        match kind {
            "text" | "json_object" => {
                fields::of_object(object, PARAM, &["type"])?;
                let any = || GrammarAsked::new(GrammarWhat::JsonObject, PARAM, self.options);
                Ok((kind == "json_object").then(any))
            }
            "json_schema" => {
                fields::of_object(object, PARAM, &["type", "json_schema"])?;
                let asked = object.get("json_schema").unwrap_or(&Value::Null);
                let schema = schemas::of_format(asked, self.schemas.lenient_strict)?;
                let path = ["response_format", "json_schema", "schema"];
                let text = schemas::text_of(schema, self.bytes, &path).unwrap_or_default();
                let what = GrammarWhat::Text(Notation::JsonSchema, self.bounded(text, PARAM)?);
                Ok(Some(GrammarAsked::new(what, PARAM, self.options)))
            }
            "structural_tag" => {
                let text = schemas::text_of(format, self.bytes, &[PARAM]).unwrap_or_default();
                let what = GrammarWhat::Text(Notation::StructuralTag, self.bounded(text, PARAM)?);
                Ok(Some(GrammarAsked::new(what, PARAM, self.options)))
            }
            other => {
                let message = format!(
                    "no response format {other:?}; there are text, json_object, json_schema and \
                     structural_tag"
                );
                Err(Problem::unsupported(PARAM, message))
            }
        }
    }

    /// A grammar's text, if it is not too long.
    fn bounded(&self, text: String, param: &str) -> Result<String, Problem> {
        match text.len() > self.most {
            true => {
                let message = format!("the grammar has {} bytes; {} are allowed", text.len(), self.most);
                Err(Problem::bad_request("grammar_too_large", message).param(param))
            }
            false => Ok(text),
        }
    }
}

/// A kind of grammar that vLLM has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Guide {
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
struct GuidedAsked {
    /// The place in the body.
    param: &'static str,
    guide: Guide,
    value: Value,
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
    fn take(body: &mut Map<String, Value>) -> Result<Option<Self>, Problem> {
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
    fn path(&self) -> Vec<&'static str> {
        self.param.split('.').collect()
    }

    /// Options for its schema, where `usual` are those of the request.
    fn options(&self, usual: &SchemaOptions) -> SchemaOptions {
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
fn two(first: &str, second: &str) -> Problem {
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
fn one_of(texts: &[Value]) -> Option<String> {
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

#[cfg(test)]
mod tests;
