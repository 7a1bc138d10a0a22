//! Functions that a model may call (`tools` in OpenAI's API) -> a grammar of its answers.
//!
//! [`Tools`] reads the list of functions. [`Calling`] says which of them may or must be called, and how the
//! model writes calls ([`Spelling`]). The grammar is made of structural tags ([`Tools::structural_tag`] shows
//! them), so free text and arguments are as exact as those. [`calls`] reads the calls of an answer back. Both
//! go by one table of the texts that each spelling has.

pub mod calls;

mod places;
mod spelling;
mod tags;

use std::borrow::Cow;

use hashbrown::HashSet;
use serde_json::Value as Json;

pub use self::spelling::Spelling;

use self::{places::TagPlaces, spelling::CallLayout};
use super::{
    Grammar, GrammarError, Syntax,
    document::{Documents, NodeId, Value},
    errors::quoted,
    json_schema::{AutomataCache, SchemaError, SchemaOptions, SchemaReport},
    source::{Source, Span},
    structural,
};
use crate::limits::Limits;

/// The names for the schema of a function's arguments in OpenAI's API, in MCP, and in Anthropic's API.
const SCHEMA_NAMES: [&str; 3] = ["parameters", "inputSchema", "input_schema"];

/// Greatest length of a function's name, as in OpenAI's API.
const LONGEST_NAME: usize = 64;

/// True for the characters of functions' names.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-.".contains(c)
}

/// The functions that an answer calls.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Choice {
    /// No function.
    None,
    /// Any functions, or none.
    #[default]
    Auto,
    /// At least one function.
    Required,
    /// The function of this name.
    Named(String),
}

/// The rules for calling functions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Calling {
    /// The way in which the model writes calls.
    pub spelling: Spelling,
    /// The functions that are called.
    pub choice: Choice,
    /// True if more than one call may come.
    pub parallel: bool,
}

impl Calling {
    /// Rules that allow any function or none, several at once.
    #[must_use]
    pub fn new(spelling: Spelling) -> Self {
        Self { spelling, choice: Choice::Auto, parallel: true }
    }

    /// Sets the functions that are called.
    #[must_use]
    pub fn choice(mut self, choice: Choice) -> Self {
        self.choice = choice;
        self
    }

    /// Sets whether more than one call may come.
    #[must_use]
    pub fn parallel(mut self, parallel: bool) -> Self {
        self.parallel = parallel;
        self
    }
}

/// The functions that a model may call, from a list in JSON.
#[derive(Debug, Clone)]
pub struct Tools<'t> {
    text: &'t str,
    tools: Vec<Tool<'t>>,
}

/// A function.
#[derive(Debug, Clone)]
struct Tool<'t> {
    name: String,
    /// The schema of its arguments, and its place; a function without a schema has no arguments.
    parameters: Option<(&'t str, Span)>,
    /// The text that it takes in place of arguments.
    input: Option<ToolInput>,
}

/// A text that a tool takes: any, or one of a grammar.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ToolInput {
    Any,
    Regex(String),
    Lark(String),
}

impl Tool<'_> {
    /// The schema of its arguments; those of a tool that takes a text are an object with that text.
    fn parameters(&self) -> Json {
        if let Some(input) = &self.input {
            let mut text = serde_json::json!({ "type": "string" });
            if let ToolInput::Regex(pattern) = input {
                text["pattern"] = format!("^(?:{pattern})$").into();
            }
            return serde_json::json!({
                "type": "object", "properties": { "input": text }, "required": ["input"],
                "additionalProperties": false,
            });
        }
        let schema = self.parameters.and_then(|(schema, _)| serde_json::from_str(schema).ok());
        schema.unwrap_or_else(|| serde_json::json!({ "type": "object", "additionalProperties": false }))
    }
}

impl<'t> Tools<'t> {
    /// Reads a list of functions.
    ///
    /// The form is that of OpenAI's chat completions (`{"type": "function", "function": {"name": ...,
    /// "parameters": ...}}`), or of its responses, where name and parameters are members of the tool itself.
    /// The schema may also be called `inputSchema`, as in MCP, or `input_schema`, as in Anthropic's API. The
    /// list may be the member `tools` of an object. A tool of the type `custom` of OpenAI's responses takes a
    /// text, which a call has as its argument `input`: any, or one of a `grammar` whose `syntax` is `lark` or
    /// `regex`. Linear.
    ///
    /// # Errors
    /// If the text is not such a list, or if two functions have one name; with the place.
    pub fn parse(text: &'t str) -> Result<Self, GrammarError> {
        let mut documents = Documents::default();
        let root = documents.read(text).map_err(|wrong| wrong.shown(text))?;
        let reader = ToolListReader { text, documents: &documents };
        let list = documents.member(root, "tools").unwrap_or(root);
        let Value::Array(items) = documents.value(list) else {
            return Err(reader.wrong(list, "a list of functions must stand here"));
        };
        let mut names = HashSet::new();
        let mut tools = Vec::with_capacity(items.len());
        for &item in items {
            let (tool, at) = reader.tool(item)?;
            if !names.insert(tool.name.clone()) {
                return Err(reader.wrong(at, format!("two functions are called {}", quoted(&tool.name))));
            }
            tools.push(tool);
        }
        Ok(Self { text, tools })
    }

    /// The names of the functions, in the list's order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name.as_str())
    }

    /// The structural tag of the answers, as JSON that [`Syntax::StructuralTag`] reads.
    ///
    /// # Errors
    /// If the function that must be called is not in the list, or if one must be called and there is none.
    pub fn structural_tag(&self, calling: &Calling) -> Result<String, GrammarError> {
        match &calling.choice {
            Choice::Named(name) if self.names().all(|known| known != name) => {
                let error = GrammarError::syntax(format!("there is no function {}", quoted(name)));
                let near = super::suggest::nearest(name, self.names());
                return Err(match near {
                    Some(near) => error.with_hint(format!("did you mean `{near}`?")),
                    None => error,
                });
            }
            Choice::Required if self.tools.is_empty() => {
                return Err(GrammarError::syntax("a function must be called, and there is none"));
            }
            _ => {}
        }
        let in_lark = |tool: &&Tool<'_>| matches!(tool.input, Some(ToolInput::Lark(_)));
        if let Some(tool) = self.tools.iter().find(in_lark)
            && !CallLayout::of(calling.spelling).style.is_empty()
        {
            let message = format!("the text of {} cannot be held to Lark", quoted(&tool.name));
            let hint = format!("{} writes arguments in no JSON; `regex` can be had", calling.spelling);
            return Err(GrammarError::unsupported(message).with_hint(hint));
        }
        Ok(tags::structural_tag(&self.tools, calling).to_string())
    }

    /// The grammar of the answers.
    ///
    /// # Errors
    /// As [`structural_tag`](Self::structural_tag); also if a schema cannot be read, with its place in the
    /// list.
    pub fn grammar(&self, calling: &Calling, limits: &Limits) -> Result<Grammar, GrammarError> {
        self.grammar_with(calling, limits, &AutomataCache::of_one_call())
    }

    /// The grammar of the answers, made with a cache of automata that other schemas share, such as that of a
    /// [compiler](crate::Compiler::automata).
    ///
    /// # Errors
    /// As [`grammar`](Self::grammar).
    pub fn grammar_with(
        &self,
        calling: &Calling,
        limits: &Limits,
        automata: &AutomataCache,
    ) -> Result<Grammar, GrammarError> {
        self.grammar_by(calling, &SchemaOptions::default(), limits, automata)
    }

    /// The grammar of the answers, with these options for the schemas of arguments, as [`Grammar::parse_by`]
    /// reads them.
    ///
    /// # Errors
    /// As [`grammar`](Self::grammar).
    pub fn grammar_by(
        &self,
        calling: &Calling,
        schemas: &SchemaOptions,
        limits: &Limits,
        automata: &AutomataCache,
    ) -> Result<Grammar, GrammarError> {
        let tag = self.structural_tag(calling)?;
        let mut called: Vec<&Tool<'_>> = tags::called(&self.tools, calling);
        // The others have no schema in the tag.
        called.retain(|tool| !matches!(tool.input, Some(ToolInput::Lark(_))));
        let places = || TagPlaces::new(self.text, &called, &tag);
        match Grammar::parse_by(Syntax::StructuralTag, &tag, schemas, limits, automata) {
            Ok(grammar) if grammar.warnings().is_empty() => Ok(grammar),
            Ok(grammar) => {
                let places = places();
                Ok(grammar.with_warnings(|warning| places.of_warning(warning)))
            }
            Err(error) => Err(places().of_error(error)),
        }
    }
}

/// A reader of the list.
struct ToolListReader<'t, 'd> {
    text: &'t str,
    documents: &'d Documents,
}

impl<'t> ToolListReader<'t, '_> {
    /// Reads a function; returns it with the place of its name.
    fn tool(&self, node: NodeId) -> Result<(Tool<'t>, NodeId), GrammarError> {
        let kind = self.documents.member(node, "type").and_then(|kind| self.documents.string(kind));
        let is_custom = kind == Some("custom") && self.documents.member(node, "custom").is_none();
        if let Some(kind) = kind.filter(|&kind| kind != "function" && !is_custom) {
            let message = format!("tools of type {} are not supported", quoted(kind));
            return Err(self.place(GrammarError::unsupported(message), node));
        }
        let function = self.documents.member(node, "function").unwrap_or(node);
        let Some(at) = self.documents.member(function, "name") else {
            return Err(self.wrong(function, "a function must stand here, with a name"));
        };
        let name = self.documents.string(at).ok_or_else(|| self.wrong(at, "a string must stand here"))?;
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_plain) {
            let error = self.wrong(at, format!("{} is no name of a function", quoted(name)));
            return Err(error.with_hint("names have up to 64 letters, digits, `_`, `-` and `.`"));
        }
        let schema = if is_custom { None } else { self.schema(function)? };
        let parameters = schema.map(|schema| {
            let span = self.documents.span(schema);
            (&self.text[span.range()], span)
        });
        let input = is_custom.then(|| self.input(node)).transpose()?;
        Ok((Tool { name: name.to_owned(), parameters, input }, at))
    }

    /// The text that a `custom` tool takes.
    fn input(&self, node: NodeId) -> Result<ToolInput, GrammarError> {
        let Some(format) = self.documents.member(node, "format") else { return Ok(ToolInput::Any) };
        let text = |key| self.documents.member(format, key).and_then(|node| self.documents.string(node));
        match (text("type"), text("syntax"), text("definition")) {
            (Some("text"), ..) => Ok(ToolInput::Any),
            (Some("grammar"), Some("regex"), Some(text)) => Ok(ToolInput::Regex(text.to_owned())),
            (Some("grammar"), Some("lark"), Some(text)) => Ok(ToolInput::Lark(text.to_owned())),
            _ => Err(self.wrong(format, "the type is `text`, or `grammar` with a syntax and a definition")),
        }
    }

    /// The schema of a function's arguments, under any of its names.
    fn schema(&self, function: NodeId) -> Result<Option<NodeId>, GrammarError> {
        let is_there = |node: &NodeId| !matches!(self.documents.value(*node), Value::Null);
        let mut found = SCHEMA_NAMES
            .iter()
            .filter_map(|name| Some((name, self.documents.member(function, name).filter(is_there)?)));
        match (found.next(), found.next()) {
            (Some((name, _)), Some((other, second))) => {
                Err(self.wrong(second, format!("the arguments have two schemas, `{name}` and `{other}`")))
            }
            (first, _) => Ok(first.map(|(_, schema)| schema)),
        }
    }

    fn wrong<'m>(&self, node: NodeId, message: impl Into<Cow<'m, str>>) -> GrammarError {
        self.place(GrammarError::syntax(message.into()), node)
    }

    fn place(&self, error: GrammarError, node: NodeId) -> GrammarError {
        let pointer = self.documents.pointer(node);
        error.at(Source::new(self.text), self.documents.span(node), pointer)
    }
}

impl Tools<'_> {
    /// Reports what becomes of each keyword of the schemas of arguments, with the names of their functions,
    /// in the list's order. Functions without arguments are left out. Schemas are read as in
    /// [`grammar`](Self::grammar).
    ///
    /// # Errors
    /// As [`SchemaOptions::report`](crate::grammar::json_schema::SchemaOptions::report).
    pub fn reports(&self, limits: &Limits) -> Result<Vec<(&str, SchemaReport)>, SchemaError> {
        let mut reports = Vec::with_capacity(self.tools.len());
        let options = structural::schema_options(&SchemaOptions::default());
        for tool in &self.tools {
            if let Some((schema, _)) = tool.parameters {
                reports.push((tool.name.as_str(), options.report(schema, limits)?));
            }
        }
        Ok(reports)
    }
}
