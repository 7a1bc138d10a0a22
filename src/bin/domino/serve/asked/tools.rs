//! `tools` of a request -> structural tags: which functions may or must be called.

use std::collections::HashSet;

use domino::grammar::tools::{Calling, Choice, Spelling, Tools, calls};
use domino::{GrammarError, Limits};
use serde_json::{Map, Value, json, value::RawValue};

use super::{
    super::problem::Problem, fields, fields::Endpoint, grammar::GrammarAsked, grammar::GrammarWhat,
    schemas::OptionsAsked,
};
use crate::grammar::{compiler, notation::Notation, warned::Reports};

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
    /// The way to write calls.
    pub(crate) fn spelling(&self) -> Spelling {
        self.calling.spelling
    }

    /// The structural tags of the answer, in JSON, and the reader of its calls.
    pub(crate) fn tags(&self) -> Result<(String, calls::Reader), Problem> {
        let tools = Tools::parse(&self.list).map_err(wrong)?;
        let calling = &self.calling;
        let tags = match &self.format {
            None => tools.structural_tag(calling).map_err(wrong)?,
            Some(format) => {
                let calling = calling.clone().choice(Choice::Required);
                or_format(&tools.structural_tag(&calling).map_err(wrong)?, format)?
            }
        };
        Ok((tags, calls::Reader::new(calling.spelling, &tools)))
    }

    /// The grammar that these tags are of.
    pub(crate) fn grammar(&self, tags: String) -> GrammarAsked {
        GrammarAsked::new(GrammarWhat::Text(Notation::StructuralTag, tags), "tools", &self.options)
    }

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
        let error = tools.grammar_by(&self.calling, &options, limits, compiler::automata()).err()?;
        (!error.is_cancelled()).then(|| wrong(error))
    }
}

/// Makes structural tags of calls or of an instance of a schema.
fn or_format(calls: &str, schema: &str) -> Result<String, Problem> {
    let wrong = |_| Problem::engine("the structural tags of the functions cannot be read");
    let mut tags: Value = serde_json::from_str(calls).map_err(wrong)?;
    let schema: Value = serde_json::from_str(schema)
        .map_err(|error| Problem::invalid("response_format", format!("the schema is not JSON: {error}")))?;
    let answer = &mut tags["format"];
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
    let schema = match grammar.as_ref().map(|asked| (asked.param, &asked.what)) {
        Some(("response_format", GrammarWhat::Text(Notation::JsonSchema, schema))) => schema.clone(),
        Some(("response_format", GrammarWhat::JsonObject)) => r#"{"type": "object"}"#.to_owned(),
        _ => return Ok((grammar, tools)),
    };
    match tools {
        Some(tools) => Ok((None, Some(tools.or_an_instance_of(schema)?))),
        None => Ok((grammar, None)),
    }
}

/// A mistake in the list.
fn wrong(error: GrammarError) -> Problem {
    Problem::grammar("tools", &error).param("tools")
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
    let mut list = as_sent(bytes).unwrap_or_default();
    let choice = match body.shift_remove("tool_choice") {
        None => Choice::Auto,
        Some(choice) => match choice.get("allowed_tools") {
            Some(allowed) => allow(&mut list, allowed)?,
            None => read_choice(&choice)?,
        },
    };
    let parallel = match body.shift_remove("parallel_tool_calls") {
        None => true,
        Some(Value::Bool(parallel)) => parallel,
        Some(other) => {
            let message = format!("`parallel_tool_calls` is {other}; it must be true or false");
            return Err(Problem::invalid("parallel_tool_calls", message));
        }
    };
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

/// Reads `allowed_tools`: leaves the functions in the list that may be called. The template shows them all.
fn allow(list: &mut String, allowed: &Value) -> Result<Choice, Problem> {
    const FIELD: &str = "tool_choice";
    let wrong = |message: &str| Problem::invalid(FIELD, message);
    let named = |tool: &Value| {
        let name = tool.get("function").unwrap_or(tool).get("name").and_then(Value::as_str);
        name.map(str::to_owned)
    };
    let names = allowed.get("tools").and_then(Value::as_array);
    let names: Option<HashSet<String>> = names.and_then(|tools| tools.iter().map(named).collect());
    let mut names =
        names.ok_or_else(|| wrong("`allowed_tools` has `tools`, a list of functions by their names"))?;
    let sent: Vec<&RawValue> = serde_json::from_str(list).unwrap_or_default();
    let name_of = |tool: &&RawValue| serde_json::from_str(tool.get()).ok().and_then(|tool| named(&tool));
    let kept: Vec<&str> = sent
        .into_iter()
        .filter(|tool| name_of(tool).is_some_and(|name| names.remove(&name)))
        .map(RawValue::get)
        .collect();
    if let Some(name) = names.iter().next() {
        return Err(wrong(&format!("there is no function {name:?} in `tools`")));
    }
    *list = format!("[{}]", kept.join(","));
    match allowed.get("mode").and_then(Value::as_str) {
        Some("auto") => Ok(Choice::Auto),
        Some("required") => Ok(Choice::Required),
        _ => Err(wrong("the `mode` of `allowed_tools` is auto or required")),
    }
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
mod tests;
