//! XGrammar's structural tags in JSON, text -> grammar: free text, interrupted by tags whose content has a
//! grammar.
//!
//! `reader` makes a tree of the JSON, `translate` writes it as rules, with `free` for text that may not hold
//! certain strings, `parameters` for arguments between XML tags and `tokens` for special tokens. A trigger is
//! found where it is first complete, by an automaton, so free text is as exact as everything else.
//! `docs/structural-tags.md` has the table.

mod free;
mod parameters;
mod reader;
#[cfg(test)]
mod tests;
mod tokens;
mod translate;

use std::borrow::Cow;

use super::{
    Grammar, GrammarError, Syntax,
    document::NodeId,
    json_schema::{
        AutomataCache, Order, SchemaOptions, WhiteSpace,
        arguments::{ArgumentMarks, Readings, readings_of},
        leaf::ValueStyle,
    },
    source::Span,
};
use crate::limits::Limits;

pub(super) use self::translate::options as schema_options;

/// Reads structural tags of at most 4 GiB. Linear, but for schemas and for strings that free text may not
/// hold.
pub(super) fn parse(
    text: &str,
    schemas: &SchemaOptions,
    limits: &Limits,
    automata: &AutomataCache,
) -> Result<Grammar, GrammarError> {
    let read = reader::read(text)?;
    translate::translate(text, &read, &schema_options(schemas), limits, automata)
}

/// The style of values, by the name of one without tags around arguments.
pub(super) fn value_style(style: &str) -> Option<ValueStyle> {
    match style {
        "" | "json" => Some(ValueStyle::Json),
        "gemma_4" => Some(ValueStyle::Delimited("<|\"|>")),
        "function_gemma" => Some(ValueStyle::Delimited("<escape>")),
        "python" => Some(ValueStyle::Python),
        _ => None,
    }
}

/// The readings of arguments between tags, by the schema of all of them; `None` if the schema cannot be used.
pub(super) fn readings(schema: &str) -> Option<Readings> {
    readings_of(&schema_options(&SchemaOptions::default()), schema, &Limits::default()).ok()
}

/// A node of the tree: a format, and its place in the JSON.
#[derive(Debug)]
struct TagFormat {
    kind: FormatKind,
    span: Span,
}

/// The kind of a [`TagFormat`].
#[derive(Debug)]
enum FormatKind {
    /// Exactly this text.
    Text(String),
    /// The special token of this name.
    Special(String),
    /// JSON of a schema that stands there.
    Schema(Span, JsonForm),
    /// Arguments of a schema's properties between XML tags of a style.
    Parameters(NodeId, JsonForm, &'static ArgumentMarks),
    /// Free text without these strings.
    Free { excluded: Vec<String>, most_chars: Option<u32> },
    /// A grammar in a notation, XGrammar's EBNF where none is named. If it is escaped, it is of what stands
    /// between the quotes of a JSON string.
    Grammar { text: String, syntax: Syntax, is_escaped: bool },
    /// A regular expression.
    Regex(String),
    /// The parts, one after the other.
    Sequence(Vec<TagFormat>),
    /// One of the parts.
    Choice(Vec<TagFormat>),
    /// A tag with its content.
    Tag(Box<Tag>),
    /// Free text with tags in it.
    Dispatch(Dispatch),
    /// Tags with a separator between them.
    Separated { tags: Vec<Tag>, separator: String, some: bool, once: bool },
    /// The part, `min` to `max` times (`None`: any number).
    Repeat { part: Box<TagFormat>, min: u32, max: Option<u32> },
}

/// The rules of a format for the JSON of its schema, beside the options for all schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct JsonForm {
    /// True if members come in any order, also if the options keep that of the schema.
    any_order: bool,
    /// The greatest number of characters in a run of white space.
    most_space: Option<u8>,
    /// The style of its values.
    style: ValueStyle,
}

impl JsonForm {
    /// The options for the schema. White space that the options forbid, or write in one way, stays so.
    fn options(self, options: &SchemaOptions) -> Cow<'_, SchemaOptions> {
        let mut options = match self.style {
            ValueStyle::Json => Cow::Borrowed(options),
            style => Cow::Owned(options.clone().written_in(style)),
        };
        if self.any_order {
            options.to_mut().order = Order::Any;
        }
        let is_free =
            matches!(options.white_space, WhiteSpace::Flexible | WhiteSpace::Wide | WhiteSpace::Any);
        if let Some(most) = self.most_space.filter(|_| is_free) {
            options.to_mut().white_space = WhiteSpace::UpTo(most);
        }
        options
    }
}

/// A begin, a content and an end.
#[derive(Debug)]
struct Tag {
    begin: String,
    content: TagFormat,
    /// The strings of which one ends it; at least one.
    ends: Vec<String>,
}

/// Free text in which triggers begin tags.
#[derive(Debug)]
struct Dispatch {
    triggers: Vec<Trigger>,
    /// The strings that free text may not hold.
    excluded: Vec<String>,
    /// True if the text must begin with a tag.
    some: bool,
    /// True if it ends after the first tag.
    once: bool,
}

/// A string that ends free text, with its continuations.
#[derive(Debug)]
struct Trigger {
    text: String,
    follows: Vec<Following>,
}

/// A continuation of a trigger.
#[derive(Debug)]
enum Following {
    /// A tag, without the trigger at its beginning.
    Tag(Tag),
    /// A format.
    Format(TagFormat),
}
