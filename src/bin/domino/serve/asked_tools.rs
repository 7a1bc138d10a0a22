//! `tools` of a request -> structural tags: which functions may or must be called.

use domino::{
    GrammarError, Limits, TokenId, Vocabulary,
    grammar::tools::{Calling, Choice, Reasoning, Spelling, Tools, calls},
};
use serde_json::{Map, Value, json, value::RawValue};

use super::{
    asked::options::OptionsAsked, asked_grammar::GrammarAsked, endpoint::Endpoint, fields, problem::Problem,
};
use crate::grammar::{budgets, keywords::Reports, notation::Notation};

/// Tokens at the end of a prompt that may open a block of thinking, white space after it included.
const LONGEST_OPENING: usize = 8;

/// Functions as a request names them.
#[derive(Debug, Clone)]
pub(crate) struct ToolsAsked {
    /// The list as it was sent.
    list: String,
    calling: Calling,
    /// A schema of an answer without calls, if it must have one.
    format: Option<String>,
    /// Options for the schemas of arguments.
    options: OptionsAsked,
}

impl ToolsAsked {
    /// The structural tags of the answer, in JSON, and the reader of its calls. What the answer may begin
    /// with is known only when the prompt is.
    pub(crate) fn tags(&self, reasoning: Reasoning) -> Result<(String, calls::Reader), Problem> {
        let tools = Tools::parse(&self.list).map_err(wrong)?;
        let calling = self.calling.clone().reasoning(reasoning);
        let tags = match &self.format {
            None => tools.structural_tag(&calling).map_err(wrong)?,
            Some(format) => {
                let calling = calling.clone().choice(Choice::Required);
                or_format(&tools.structural_tag(&calling).map_err(wrong)?, format)?
            }
        };
        let reader = calls::Reader::new(calling.spelling, &tools);
        Ok((tags, if reasoning == Reasoning::Open { reader.open() } else { reader }))
    }

    /// The grammar that these tags are of.
    pub(crate) fn grammar(&self, tags: String) -> GrammarAsked {
        GrammarAsked::Tools(tags).read_by(&self.options)
    }
}

impl ToolsAsked {
    /// Requires that an answer without calls is an instance of `schema`. Where a function must be called, no
    /// answer is without calls.
    fn or_an_instance_of(mut self, schema: String) -> Result<Self, Problem> {
        let unlike = matches!(self.calling.spelling, Spelling::Llama | Spelling::Harmony);
        match &self.calling.choice {
            Choice::Required | Choice::Named(_) => {}
            _ if unlike => {
                let spelling = self.calling.spelling;
                let message =
                    format!("`response_format` beside `tools` is not served for calls like {spelling}'s");
                return Err(Problem::unsupported("response_format", message));
            }
            _ => self.format = Some(schema),
        }
        Ok(self)
    }

    /// Reports what becomes of the keywords of the functions' schemas; `None` if the list cannot be read.
    pub(crate) fn reports(&self, limits: &Limits) -> Option<Reports> {
        let tools = Tools::parse(&self.list).ok()?;
        let reports = tools.reports(limits).ok()?.into_iter();
        Some(Reports { list: reports.map(|(name, report)| (Some(name.to_owned()), report)).collect() })
    }

    /// Finds the mistake in a schema of the list, with its place in the list: an error of the structural tags
    /// that are made of it names a place in those. Reads all schemas once more.
    pub(crate) fn mistake(&self, limits: &Limits) -> Option<Problem> {
        let tools = Tools::parse(&self.list).ok()?;
        let options = Notation::StructuralTag.options_inside(self.options.options());
        let error = tools.grammar_by(&self.calling, &options, limits, budgets::automata()).err()?;
        (!error.is_cancelled()).then(|| wrong(error))
    }
}

/// Makes structural tags of calls or of an instance of a schema. Where the model thinks, it does so before
/// either.
fn or_format(calls: &str, schema: &str) -> Result<String, Problem> {
    let wrong = |_| Problem::engine("the structural tags of the functions cannot be read");
    let mut tags: Value = serde_json::from_str(calls).map_err(wrong)?;
    let schema: Value = serde_json::from_str(schema)
        .map_err(|error| Problem::invalid("response_format", format!("the schema is not JSON: {error}")))?;
    let format = &mut tags["format"];
    let thinks =
        format["type"] == "sequence" && format["elements"].as_array().is_some_and(|all| all.len() == 2);
    let answer = if thinks { &mut format["elements"][1] } else { format };
    let instance = json!({ "type": "json_schema", "json_schema": schema });
    *answer = json!({ "type": "or", "elements": [instance, answer.take()] });
    Ok(tags.to_string())
}

/// Merges the grammar and the functions of a request, where both were asked for by `response_format` and
/// `tools`.
pub(crate) fn together(
    grammar: Option<GrammarAsked>,
    tools: Option<ToolsAsked>,
) -> Result<(Option<GrammarAsked>, Option<ToolsAsked>), Problem> {
    match (grammar, tools) {
        (Some(GrammarAsked::Format(schema, _)), Some(tools)) => {
            Ok((None, Some(tools.or_an_instance_of(schema)?)))
        }
        (Some(GrammarAsked::JsonObject), Some(tools)) => {
            Ok((None, Some(tools.or_an_instance_of(r#"{"type": "object"}"#.to_owned())?)))
        }
        other => Ok(other),
    }
}

/// A mistake in the list.
fn wrong(error: GrammarError) -> Problem {
    Problem::grammar("tools", &error).param("tools")
}

/// What the answer to this prompt may begin with, where the model may think.
pub(crate) fn reasoning(vocabulary: &Vocabulary, prompt: &[TokenId], thinks: bool) -> Reasoning {
    let tail = &prompt[prompt.len().saturating_sub(LONGEST_OPENING)..];
    let spelt = |&token: &TokenId| {
        let name = || vocabulary.name(token).unwrap_or_default().as_bytes();
        vocabulary.bytes(token).unwrap_or_else(name).to_vec()
    };
    let tail: Vec<u8> = tail.iter().flat_map(spelt).collect();
    match tail.trim_ascii_end().ends_with(b"<think>") {
        true => Reasoning::Open,
        false if thinks => Reasoning::Optional,
        false => Reasoning::Off,
    }
}

/// The functions that a chat may call, if the server knows how its model writes calls (`spelling`); otherwise
/// the chat template alone shows them. What is read leaves the body but for `tools`, which the chat
/// template shows the model. At most `most` bytes.
pub(crate) fn read(
    body: &mut Map<String, Value>,
    bytes: &[u8],
    endpoint: Endpoint,
    spelling: Option<Spelling>,
    most: usize,
    options: &OptionsAsked,
) -> Result<Option<ToolsAsked>, Problem> {
    let some = body.get("tools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty());
    let (Endpoint::Chat, Some(spelling), true) = (endpoint, spelling, some) else { return Ok(None) };
    let choice = match body.shift_remove("tool_choice") {
        None => Choice::Auto,
        Some(choice) => read_choice(&choice)?,
    };
    let parallel = match body.shift_remove("parallel_tool_calls") {
        None => true,
        Some(Value::Bool(parallel)) => parallel,
        Some(other) => {
            let message = format!("`parallel_tool_calls` is {other}; it must be true or false");
            return Err(Problem::invalid("parallel_tool_calls", message));
        }
    };
    let list = as_sent(bytes).unwrap_or_default();
    if list.len() > most {
        let message = format!("the tools have {} bytes; {most} are allowed", list.len());
        return Err(Problem::bad_request("grammar_too_large", message).param("tools"));
    }
    let tools = Tools::parse(&list).map_err(wrong)?;
    if let Choice::Named(name) = &choice
        && tools.names().all(|known| known != name)
    {
        return Err(Problem::invalid("tool_choice", format!("there is no function {name:?} in `tools`")));
    }
    let calling = Calling::new(spelling).choice(choice).parallel(parallel);
    Ok(Some(ToolsAsked { list, calling, format: None, options: options.clone() }))
}

/// The list as it was sent, with all digits of its numbers.
fn as_sent(bytes: &[u8]) -> Option<String> {
    let body: std::collections::HashMap<String, &RawValue> = serde_json::from_slice(bytes).ok()?;
    Some(body.get("tools")?.get().to_owned())
}

fn read_choice(choice: &Value) -> Result<Choice, Problem> {
    let wrong = |message: &str| Err(Problem::invalid("tool_choice", message));
    match choice {
        Value::String(text) => match text.as_str() {
            "none" => Ok(Choice::None),
            "auto" => Ok(Choice::Auto),
            "required" => Ok(Choice::Required),
            _ => wrong("`tool_choice` is none, auto, required or {\"type\": \"function\", ..}"),
        },
        Value::Object(object) if object.get("type").is_some_and(|kind| kind == "function") => {
            fields::of_object(object, "tool_choice", &["type", "function", "name"])?;
            let function = object.get("function").unwrap_or(choice);
            match function.get("name").and_then(Value::as_str) {
                Some(name) => Ok(Choice::Named(name.to_owned())),
                None => wrong("`tool_choice` names no function"),
            }
        }
        Value::Object(_) => {
            Err(Problem::unsupported("tool_choice", "`tool_choice` of this type is not served"))
        }
        _ => wrong("`tool_choice` must be a string or an object"),
    }
}

#[cfg(test)]
mod tests {
    use domino::{
        Grammar, Limits, Syntax,
        grammar::json_schema::{SchemaOptions, WhiteSpace},
    };

    use super::{super::args::SchemaRules, *};

    fn asked(more: &Value) -> Result<Option<ToolsAsked>, Problem> {
        let mut body = json!({ "tools": [
            { "type": "function", "function": { "name": "add", "parameters": { "type": "object" } } },
            { "type": "function", "function": { "name": "now" } },
        ] });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let bytes = body.to_string();
        let mut body = body.as_object().unwrap().clone();
        let options = OptionsAsked::read(&mut body, &SchemaRules::default())?;
        read(&mut body, bytes.as_bytes(), Endpoint::Chat, Some(Spelling::Hermes), 1_000, &options)
    }

    fn problem(more: &Value) -> (String, String) {
        let error = asked(more).expect_err(&more.to_string()).to_json()["error"].clone();
        let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
        (text("code"), text("param"))
    }

    #[test]
    fn choices_in_all_their_forms() {
        let tags = |more: Value| asked(&more).unwrap().unwrap().tags(Reasoning::Off).unwrap().0;
        let (auto, one) = (tags(json!({})), json!({ "name": "now" }));
        let calls = |tags: &str, name: &str| tags.contains(&format!(r#"\"{name}\""#));
        assert!(calls(&auto, "add") && calls(&auto, "now") && auto.contains("triggered_tags"));
        assert_eq!(tags(json!({ "tool_choice": "auto", "parallel_tool_calls": true })), auto);
        assert!(tags(json!({ "tool_choice": "required" })).contains("\"at_least_one\":true"));
        assert!(!tags(json!({ "tool_choice": "none" })).contains("arguments"));
        let named = tags(json!({ "tool_choice": { "type": "function", "function": one } }));
        assert!(calls(&named, "now") && !calls(&named, "add"));
        assert!(tags(json!({ "parallel_tool_calls": false })).contains("\"stop_after_first\":true"));
        assert!(asked(&json!({ "tools": [] })).unwrap().is_none());
    }

    #[test]
    fn an_answer_without_calls_is_an_instance_of_its_format() {
        let schema = r#"{"type": "object", "properties": {"x": {"enum": [1]}}, "required": ["x"]}"#;
        let format = || Some(GrammarAsked::Format(schema.to_owned(), SchemaOptions::default()));
        let tools = |more: Value| together(format(), asked(&more).unwrap()).unwrap();
        for reasoning in [Reasoning::Off, Reasoning::Optional, Reasoning::Open] {
            let (grammar, tools) = tools(json!({}));
            assert!(grammar.is_none());
            let (tags, _) = tools.unwrap().tags(reasoning).unwrap();
            Grammar::parse(Syntax::StructuralTag, &tags, &Limits::default()).unwrap();
            assert!(tags.contains("\"or\"") && tags.contains("\"x\"") && tags.contains("now"), "{tags}");
            assert!(!tags.contains("triggered_tags"), "no free text: {tags}");
        }
        // Where a function must be called there is no such answer.
        let required = tools(json!({ "tool_choice": "required" })).1.unwrap();
        assert!(!required.tags(Reasoning::Off).unwrap().0.contains("\"or\""));
        let (grammar, none) = together(format(), None).unwrap();
        assert!(grammar.is_some() && none.is_none());
    }

    /// Options reach the schemas of arguments, and mistakes are looked for under them.
    #[test]
    fn options_of_the_request_are_those_of_the_arguments() {
        let asked = |more: Value| asked(&more).unwrap().unwrap();
        let GrammarAsked::ReadBy(inner, options) =
            asked(json!({ "grammar_options": { "whitespace": "compact" } })).grammar("tags".to_owned())
        else {
            panic!("the options are lost");
        };
        assert_eq!(*inner, GrammarAsked::Tools("tags".to_owned()));
        assert_eq!(*options.options(), SchemaOptions::default().with_white_space(WhiteSpace::Compact));
        let plain = asked(json!({})).grammar("tags".to_owned());
        assert_eq!(plain, GrammarAsked::Tools("tags".to_owned()));
        // A number that only one of the spellings has.
        let huge = json!([{ "name": "f", "parameters": { "properties": { "x": { "const": 1e300 } } } }]);
        let integer = json!([{ "name": "f", "parameters": { "properties": { "x": { "enum": [1.5, 2] } } } }]);
        for tools in [huge, integer] {
            for numbers in ["plain", "any"] {
                let asked = asked(json!({ "tools": tools, "grammar_options": { "numbers": numbers } }));
                let (tags, _) = asked.tags(Reasoning::Off).unwrap();
                let options = Notation::StructuralTag.options_inside(asked.options.options());
                let read = Notation::StructuralTag.read(tags.as_bytes(), &options, &Limits::default());
                assert_eq!(read.is_err(), asked.mistake(&Limits::default()).is_some(), "{tools} {numbers}");
            }
        }
    }

    #[test]
    fn prompts_that_open_thinking() {
        let words = ["<thi", "nk>", "\n", "a"].iter().zip(0..);
        let builder =
            words.fold(Vocabulary::builder(), |builder, (word, id)| builder.token(TokenId::new(id), word));
        let builder = builder.special(TokenId::new(4), "<think>");
        let vocabulary = builder.end_of_text(TokenId::new(5)).build().unwrap();
        let of = |prompt: &[u32], thinks| {
            let prompt: Vec<TokenId> = prompt.iter().copied().map(TokenId::new).collect();
            reasoning(&vocabulary, &prompt, thinks)
        };
        assert_eq!(of(&[3, 0, 1, 2], true), Reasoning::Open);
        assert_eq!(of(&[3, 4], false), Reasoning::Open);
        assert_eq!(of(&[4, 3], true), Reasoning::Optional);
        assert_eq!(of(&[], false), Reasoning::Off);
    }

    #[test]
    fn what_is_refused_names_its_field() {
        let invalid = |param: &str| ("invalid_value".to_owned(), param.to_owned());
        assert_eq!(problem(&json!({ "tool_choice": "any" })), invalid("tool_choice"));
        let other = json!({ "type": "function", "function": { "name": "sub" } });
        assert_eq!(problem(&json!({ "tool_choice": other })), invalid("tool_choice"));
        assert_eq!(problem(&json!({ "parallel_tool_calls": 1 })), invalid("parallel_tool_calls"));
        let allowed = problem(&json!({ "tool_choice": { "type": "allowed_tools" } }));
        assert_eq!(allowed, ("unsupported".to_owned(), "tool_choice".to_owned()));
        let twice = json!([{ "name": "f" }, { "name": "f" }]);
        assert_eq!(problem(&json!({ "tools": twice })).1, "tools");
        let long = json!([{ "name": "f", "description": "x".repeat(1_000) }]);
        assert_eq!(problem(&json!({ "tools": long })).0, "grammar_too_large");
    }
}
