//! Keys of a row about its grammar, which go before the flags.

use std::path::Path;

use domino::grammar::json_schema::SchemaOptions;
use domino::grammar::tools::{Calling, Choice};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::flags::{grammar::UsualGrammar, schema::LowSchema, tools::CallingParts};
use crate::grammar::source::{GrammarSource, GrammarText};
use crate::grammar::thinking::{Thinking, WantedReasoning, WantedThought};
use crate::{
    grammar::notation::Notation,
    rows::keys::{ObjectMembers, wrong},
    terminal::failure::BadInput,
};

/// A grammar; equal ones are compiled once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct WantedGrammar {
    what: What,
    options: SchemaOptions,
    calling: Option<Calling>,
    thought: Option<WantedThought>,
}

/// The source of a grammar.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum What {
    /// The command line.
    Usual,
    /// A file, or a grammar of the program.
    Named(String),
    /// A text in this notation.
    Text(Notation, String),
    /// A list of functions.
    Tools(String),
}

/// The keys of a row about its grammar.
#[derive(Debug, Default)]
pub(crate) struct RowGrammar {
    what: Option<What>,
    options: LowSchema,
    /// The keys that the options came from.
    keys: Vec<&'static str>,
    calling: CallingParts,
    thinking: Thinking,
}

impl RowGrammar {
    /// Takes the keys.
    pub(super) fn take(members: &mut ObjectMembers<'_>) -> Result<Self, BadInput> {
        let keys = ["grammar", "regex", "schema", "tools"];
        let mut given = keys.into_iter().filter(|key| members.has(key));
        if let (Some(one), Some(other)) = (given.next(), given.next()) {
            return Err(BadInput::new(format!("a row has one grammar, and this has `{one}` and `{other}`")));
        }
        let syntax: Option<String> = members.take("syntax")?;
        let syntax = syntax.map(|name| Notation::by_name(&name)).transpose()?;
        let mut what = None;
        if let Some(regex) = members.take("regex")? {
            what = Some(What::Text(Notation::Regex, regex));
        } else if let Some(schema) = text(members, "schema")? {
            what = Some(What::Text(Notation::JsonSchema, schema));
        } else if let Some(tools) = text(members, "tools")? {
            what = Some(What::Tools(tools));
        }
        match (syntax, what.is_some() || !members.has("grammar")) {
            (None, true) => {}
            (Some(_), true) => {
                return Err(BadInput::new("`syntax` says how `grammar` is read, and there is none"));
            }
            (Some(Notation::JsonSchema | Notation::StructuralTag), false) => {
                what = text(members, "grammar")?.zip(syntax).map(|(text, syntax)| What::Text(syntax, text));
            }
            (Some(syntax), false) => what = members.take("grammar")?.map(|text| What::Text(syntax, text)),
            (None, false) => {
                let name = members.take("grammar").map_err(|error| {
                    error.hint("it is a name or a file, or with `syntax` a text; `schema` takes an object")
                })?;
                what = name.map(What::Named);
            }
        }
        let (options, keys) = options(members)?;
        Ok(Self { what, options, keys, calling: calling(members)?, thinking: thinking(members)? })
    }

    /// The functions that the row brings, in JSON.
    pub(crate) fn tools(&self) -> Option<&str> {
        match &self.what {
            Some(What::Tools(list)) => Some(list),
            _ => None,
        }
    }

    /// True if the row says anything about its grammar.
    #[cfg_attr(not(feature = "experiments"), expect(dead_code, reason = "for commands that measure"))]
    pub(crate) fn is_own(&self) -> bool {
        let says = !self.keys.is_empty() || !self.calling.is_empty() || !self.thinking.is_nothing();
        self.what.is_some() || says
    }

    /// Finds the grammar of the row and its source; the flags hold where the row says nothing. `None` if
    /// neither has a grammar. `thought` finds the thought before its texts.
    pub(crate) fn resolve(
        &self,
        usual: &UsualGrammar,
        thought: impl FnOnce(&Thinking, &GrammarSource) -> Option<WantedThought>,
    ) -> Result<Option<(WantedGrammar, GrammarSource)>, BadInput> {
        let options = self.options.over(&usual.options);
        let calling = || self.calling.beside(&usual.calling).calling();
        let (mut wanted, source) = match (&self.what, &usual.source) {
            (None, None) => return self.nothing().map(|()| None),
            (None, Some(source)) => {
                let wanted = WantedGrammar::new(What::Usual, &options);
                let calling = source.calling.is_some().then(calling).transpose()?;
                let source = GrammarSource { options, calling, ..source.clone() };
                (wanted, source)
            }
            (Some(what), _) => {
                let wanted = WantedGrammar::new(what.clone(), &options);
                let source = match what {
                    What::Tools(list) => {
                        let text = GrammarText::of_tools("tools", list.clone(), &calling()?, options)?;
                        GrammarSource::of_text(text)
                    }
                    What::Text(notation, text) => {
                        GrammarSource::of_text(GrammarText::inline(*notation, text.clone(), options))
                    }
                    What::Named(name) => GrammarSource::resolve(Path::new(name), None, options)?,
                    What::Usual => return self.nothing().map(|()| None),
                };
                (wanted, source)
            }
        };
        wanted.calling.clone_from(&source.calling);
        self.refuse_idle(&source)?;
        wanted.thought = thought(&self.thinking.beside(&usual.thinking), &source);
        let source = source.behind(wanted.thought.clone());
        Ok(Some((wanted, source)))
    }

    /// Refuses keys for a grammar where there is none.
    fn nothing(&self) -> Result<(), BadInput> {
        let hint = "give the row a `schema`, a `grammar` or `tools`, or the command --grammar or --tools";
        match (self.keys.first(), self.calling.is_empty()) {
            (None, true) => Ok(()),
            (Some(key), _) => {
                Err(BadInput::new(format!("`{key}` is for a schema, and there is none")).hint(hint))
            }
            (None, false) => Err(BadInput::new("there are no `tools` to be called").hint(hint)),
        }
    }

    /// Refuses keys that the grammar does not take.
    fn refuse_idle(&self, source: &GrammarSource) -> Result<(), BadInput> {
        if source.calling.is_none() && !self.calling.is_empty() {
            return Err(BadInput::new("there are no `tools` to be called")
                .hint("the row has another grammar: leave out `tool_choice` and the like"));
        }
        let Some(taken) = source.schema_flags() else { return Ok(()) };
        let takes = |key: &str| taken.iter().any(|flag| flag[2..].replace('-', "_") == key);
        match self.keys.iter().find(|key| !takes(key)) {
            None => Ok(()),
            Some(key) if taken.is_empty() => {
                Err(BadInput::new(format!("`{key}` is for a JSON Schema, and the row's grammar is none")))
            }
            Some(key) => {
                Err(BadInput::new(format!("`{key}` is for a JSON Schema that is a grammar by itself"))
                    .hint(format!("schemas inside of this grammar take {}", taken.join(" and "))))
            }
        }
    }
}

impl WantedGrammar {
    fn new(what: What, options: &SchemaOptions) -> Self {
        Self { what, options: options.clone(), calling: None, thought: None }
    }

    /// Makes the grammar of the command line, as the flags give it, without a thought before its texts.
    pub(crate) fn usual(usual: &UsualGrammar) -> Option<Self> {
        let row = RowGrammar::default().resolve(usual, |_, _| None).ok()??;
        Some(row.0)
    }
}

/// Takes a text that is a string, or the text of an object itself.
fn text(members: &mut ObjectMembers<'_>, key: &str) -> Result<Option<String>, BadInput> {
    let Some(text) = members.take_text(key) else { return Ok(None) };
    match text.as_bytes().first() {
        Some(b'"') => {
            serde_json::from_str(text).map(Some).map_err(|error| BadInput::new(format!("`{key}`: {error}")))
        }
        Some(b'{' | b'[' | b't' | b'f') => Ok(Some(text.to_owned())),
        _ => Err(BadInput::new(format!("`{key}` is {text}, and no object or text"))),
    }
}

/// Takes the options of schemas, and the keys that were there.
fn options(members: &mut ObjectMembers<'_>) -> Result<(LowSchema, Vec<&'static str>), BadInput> {
    let (mut keys, mut all) = (Vec::new(), Map::new());
    for key in LowSchema::NAMES.split(' ') {
        let Some(value) = members.take::<Value>(key)? else { continue };
        // Each option is read by itself, so that a mistake is told with its name.
        let one = Map::from_iter([(key.to_owned(), value.clone())]);
        LowSchema::deserialize(Value::Object(one)).map_err(|error| wrong(key, &error))?;
        keys.push(key);
        all.insert(key.to_owned(), value);
    }
    let options = LowSchema::deserialize(Value::Object(all));
    Ok((options.map_err(|error| BadInput::new(error.to_string()))?, keys))
}

/// Reads the settings of calls: under the names of the flags, `tool_choice` also as OpenAI's API has it.
fn calling(members: &mut ObjectMembers<'_>) -> Result<CallingParts, BadInput> {
    let mut parts = CallingParts::default();
    if let Some(name) = members.take::<String>("tool_spelling")? {
        parts.spelling = Some(crate::flags::tools::spelling(&name)?);
    }
    if let Some(choice) = members.take::<Value>("tool_choice")? {
        let name = choice.pointer("/function/name").or_else(|| choice.get("name")).and_then(Value::as_str);
        parts.choice = Some(match (choice.as_str(), name) {
            (Some(choice), _) => crate::flags::tools::choice(choice),
            (None, Some(name)) => Choice::Named(name.to_owned()),
            (None, None) => {
                return Err(BadInput::new("`tool_choice` names no function")
                    .hint("it is auto, none, required or a function's name"));
            }
        });
    }
    parts.one = members.take("one_tool_call")?;
    Ok(parts)
}

/// Reads the settings of thoughts, under the names of the flags.
fn thinking(members: &mut ObjectMembers<'_>) -> Result<Thinking, BadInput> {
    let place = members.take::<String>("reasoning")?.map(|name| WantedReasoning::named(&name));
    let marks = members.take::<Vec<String>>("thought_marks")?.map(|marks| Thinking::marks_of(&marks));
    Ok(Thinking { place: place.transpose()?, marks: marks.transpose()? })
}
