//! The syntax tree of structural tags.

use std::borrow::Cow;

use crate::grammar::{
    document::NodeId,
    json_schema::{Order, SchemaOptions, WhiteSpace},
    source::Span,
};

/// A node of the tree: a format, and its place in the JSON.
#[derive(Debug)]
pub(super) struct TagFormat {
    pub(super) kind: FormatKind,
    pub(super) span: Span,
}

/// The kind of a [`TagFormat`].
#[derive(Debug)]
pub(super) enum FormatKind {
    /// Exactly this text.
    Text(String),
    /// The special token of this name.
    Special(String),
    /// JSON of a schema that stands there.
    Schema(Span, JsonForm),
    /// Arguments of a schema's properties between XML tags, as Qwen3-Coder writes them.
    Parameters(NodeId, JsonForm),
    /// Free text without these strings.
    Free { excluded: Vec<String>, most_chars: Option<u32> },
    /// XGrammar's EBNF.
    Grammar(String),
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
pub(super) struct JsonForm {
    /// True if members come in any order, also if the options keep that of the schema.
    pub(super) any_order: bool,
    /// The greatest number of characters in a run of white space.
    pub(super) most_space: Option<u8>,
}

impl JsonForm {
    /// The options for the schema. White space that the options forbid, or write in one way, stays so.
    pub(super) fn options(self, options: &SchemaOptions) -> Cow<'_, SchemaOptions> {
        let mut options = Cow::Borrowed(options);
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
pub(super) struct Tag {
    pub(super) begin: String,
    pub(super) content: TagFormat,
    /// The strings of which one ends it; at least one.
    pub(super) ends: Vec<String>,
}

/// Free text in which triggers begin tags.
#[derive(Debug)]
pub(super) struct Dispatch {
    pub(super) triggers: Vec<Trigger>,
    /// The strings that free text may not hold.
    pub(super) excluded: Vec<String>,
    /// True if the text must begin with a tag.
    pub(super) some: bool,
    /// True if it ends after the first tag.
    pub(super) once: bool,
}

/// A string that ends free text, with its continuations.
#[derive(Debug)]
pub(super) struct Trigger {
    pub(super) text: String,
    pub(super) follows: Vec<Following>,
}

/// A continuation of a trigger.
#[derive(Debug)]
pub(super) enum Following {
    /// A tag, without the trigger at its beginning.
    Tag(Tag),
    /// A format.
    Format(TagFormat),
}
