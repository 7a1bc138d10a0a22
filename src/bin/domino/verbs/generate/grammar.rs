//! The grammar of the command line, compiled for a text, and the meaning of the text beside its characters: a
//! value of JSON, or calls of functions.

use std::rc::Rc;

use domino::grammar::tools::{Tools, calls};
use domino::{CompiledGrammar, Compiler, Vocabulary, decode::Generation, store::CacheFolder};
use serde_json::{Value, json};

use super::args::Generate;
use crate::grammar::compiled::{self, Capturing};
use crate::grammar::notation::{Notation, Parsed};
use crate::grammar::thinking::WantedThought;
use crate::{
    grammar::source::{GrammarPlace, GrammarSource},
    grammar::warned,
    terminal::{extend, failure::BadInput},
};

/// Makes the compiler of grammars.
pub(super) fn compiler(command: &Generate, vocabulary: &Vocabulary, cache: &CacheFolder) -> Compiler {
    command.reach.compiler(vocabulary.clone(), cache)
}

/// Compiles the grammar of the command line, if there is one, and finds the captures of its texts. Its trees
/// are read from a file, or grow while the model is loaded and reads the prompt; so do the masks of the
/// places where texts begin.
pub(super) fn grammar_by(
    command: &Generate,
    compiler: &Compiler,
    (healed, thought): (&[u8], Option<WantedThought>),
) -> Result<Option<(CompiledGrammar, Option<Capturing>)>, BadInput> {
    let grammar = command.usual.source.clone().map(|grammar| grammar.behind(thought));
    let Some(grammar) = &grammar else {
        let anything = GrammarSource::regex("(?s:.)*".to_owned());
        return match healed {
            [] => Ok(None),
            _ => after(&anything, compiler, healed).map(|(compiled, _)| Some((compiled, None))),
        };
    };
    let (compiled, parsed) = match healed {
        [] => grammar.read_and_compile(compiler)?,
        _ => after(grammar, compiler, healed)?,
    };
    warned::tell_open(&grammar.name(), &parsed.open_objects);
    compiled::give_advice(grammar, &compiled);
    if let Some(file) = &command.flags.trees {
        compiled::attach_trees(&compiled, file, &grammar.name())?;
    }
    compiled.explore_in_background();
    // Only JSON shows captures.
    let capturing = match command.json || command.flags.batch.is_some() {
        true => Capturing::of(&grammar.name(), parsed.grammar, &command.flags.capture.rules)?,
        false => None,
    };
    Ok(Some((compiled, capturing)))
}

/// Compiles the grammar of the command line as [`grammar_by`] does, by a compiler for it alone.
pub(super) fn grammar(
    command: &Generate,
    (vocabulary, cache): (&Vocabulary, &CacheFolder),
    before: (&[u8], Option<WantedThought>),
) -> Result<Option<(CompiledGrammar, Option<Capturing>)>, BadInput> {
    grammar_by(command, &compiler(command, vocabulary, cache), before)
}

/// Compiles the grammar with the end of the prompt before its texts, and returns it as it was read too.
fn after(
    source: &GrammarSource,
    compiler: &Compiler,
    healed: &[u8],
) -> Result<(CompiledGrammar, Parsed), BadInput> {
    let text = source.load()?;
    let parsed = text.read()?;
    text.warn(&parsed.relaxed);
    let grammar = parsed.grammar.after(healed).ok_or_else(|| {
        BadInput::new(format!("{}: --heal does not go with objects whose keys are free", source.name()))
            .hint("close the objects (additionalProperties: false, or --closed), or leave --heal out")
    })?;
    Ok((text.compile_parsed(&grammar, compiler)?, parsed))
}

/// Grammars of the program whose texts are documents in JSON.
const JSON: [&str; 3] = ["json", "rfc8259", "paper/json"];

/// The reader of a grammar's texts.
#[derive(Debug, Clone)]
pub(super) enum TextKind {
    /// Reads a text as JSON if it is an object or a list.
    Text,
    /// Reads every text as JSON.
    Json,
    /// Takes texts apart as answers that may call functions.
    Calls(Rc<calls::Reader>),
}

impl TextKind {
    /// Finds the reader of the grammar's texts.
    pub(super) fn of(source: Option<&GrammarSource>) -> Self {
        let Some(source) = source else { return Self::Text };
        if let Some(calling) = &source.calling
            && let Ok(text) = source.load()
            && let Some((list, _)) = text.tools()
            && let Ok(tools) = Tools::parse(list)
        {
            return Self::Calls(Rc::new(calls::Reader::new(calling.spelling, &tools)));
        }
        match &source.place {
            GrammarPlace::Shipped(shipped) if JSON.contains(&shipped.name) => Self::Json,
            _ if source.notation == Notation::JsonSchema => Self::Json,
            _ => Self::Text,
        }
    }

    /// Makes the fields about the meaning of a text. `value` is the value of a complete text in JSON;
    /// `content`, `reasoning_content` and `tool_calls` are the parts of an answer that may call functions, as
    /// in a message of OpenAI's API, as far as it goes.
    fn fields(&self, text: &[u8], complete: bool) -> Value {
        let text = String::from_utf8_lossy(text);
        let read = || serde_json::from_str::<Value>(&text).ok().filter(|_| complete);
        let is_structure = |value: &Value| value.is_object() || value.is_array();
        let value: Option<Value> = match self {
            Self::Calls(reader) => return calls_of(reader, &text),
            Self::Json => read(),
            Self::Text => read().filter(is_structure),
        };
        value.map_or_else(|| json!({}), |value| json!({ "value": value }))
    }
}

fn calls_of(reader: &calls::Reader, text: &str) -> Value {
    let answer = reader.read(text, true);
    let mut fields = json!({ "content": answer.content });
    if !answer.reasoning.is_empty() {
        fields["reasoning_content"] = answer.reasoning.into();
    }
    let call = |(number, call): (usize, &calls::Call)| {
        json!({
            "id": format!("call_{number}"), "type": "function",
            "function": { "name": call.name, "arguments": call.arguments },
        })
    };
    fields["tool_calls"] = answer.calls.iter().enumerate().map(call).collect();
    fields
}

/// Makes the fields about the meaning of a text, and about its captures.
pub(super) fn fields(reading: &TextKind, capturing: Option<&Capturing>, generation: &Generation) -> Value {
    let mut fields = reading.fields(&generation.text, generation.complete);
    extend(&mut fields, capturing.map(|capturing| capturing.fields(&generation.text)));
    fields
}
