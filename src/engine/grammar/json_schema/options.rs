//! Options for reading a schema.

use super::{
    AutomataCache, Escapes, Numbers, Outline, SchemaError, SchemaGrammar, SchemaReport, ValueSpelling,
    ValueStyle,
};
use crate::limits::Limits;

/// A version of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Draft {
    /// Draft 4: `id`, boolean `exclusiveMinimum`, and `1.0` is not an integer.
    Draft4,
    /// Draft 6.
    Draft6,
    /// Draft 7.
    Draft7,
    /// Draft 2019-09.
    Draft201909,
    /// Draft 2020-12.
    Draft202012,
}

impl Draft {
    /// All drafts, oldest first, with the names that options use.
    pub const NAMED: [(&'static str, Self); 5] = [
        ("4", Self::Draft4),
        ("6", Self::Draft6),
        ("7", Self::Draft7),
        ("2019-09", Self::Draft201909),
        ("2020-12", Self::Draft202012),
    ];
}

/// The effect of the keyword `format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Format {
    /// A string must be of its format. What is written also keeps the lengths of RFC 1035 and 5321 (of the
    /// formats `email`, `idn-email` and `idn-hostname`) and, for numbers, the ranges of `int8` to `int64` and
    /// `uint8` to `uint64`. Those are remarks wherever values are told apart, as in `oneOf` and `not`, so
    /// what is written is valid without them too.
    #[default]
    Bounded,
    /// A string must be of its format.
    Assert,
    /// Formats are remarks.
    Annotate,
}

/// The white space between the parts of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum WhiteSpace {
    /// The white space that people and programs write: after commas, colons and opening brackets, and before
    /// closing ones, nothing, one blank, or one or two line breaks and then at most 32 blanks or 8 tabs.
    /// There is none before commas and colons and around the value. Models that may write more get stuck.
    #[default]
    Flexible,
    /// Runs of at most two line breaks and then 80 blanks or tabs, also before commas and colons, and none
    /// around the value.
    Wide,
    /// No white space.
    Compact,
    /// Line breaks, and this many blanks for each level, as `json.dumps(indent=N)` writes them.
    Pretty(u8),
    /// Runs of at most this many characters of white space, and none around the value.
    UpTo(u8),
    /// All white space that JSON allows, also around the value. For texts that others wrote.
    Any,
}

/// The order of an object's members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Order {
    /// The order in which the schema mentions them.
    #[default]
    Schema,
    /// Any order.
    Any,
}

/// The rule for objects with equal keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DuplicateKeys {
    /// No key comes twice.
    #[default]
    Refuse,
    /// Keys that the schema does not list may repeat, and each counts for `minProperties`. Then a session
    /// need not remember the keys that have come.
    Allow,
}

/// A schema of strings with and without bounds and patterns, numbers, arrays with and without equal items,
/// objects with and without other keys, and any value.
const KINDS_OF_VALUES: &str = r#"{
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "named": {"type": "string", "minLength": 1},
        "brief": {"type": "string", "minLength": 1, "maxLength": 20},
        "short": {"type": "string", "minLength": 1, "maxLength": 200},
        "word": {"type": "string", "pattern": "^[a-z]+$"},
        "visible": {"type": "string", "pattern": "\\S"},
        "maybe": {"type": ["string", "null"]},
        "count": {"type": "integer"},
        "size": {"type": "integer", "minimum": 0},
        "number": {"type": "number"},
        "share": {"type": ["number", "null"], "minimum": 0},
        "flag": {"type": "boolean"},
        "names": {"type": "array", "items": {"type": "string"}},
        "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": true},
        "open": {"type": "object"},
        "closed": {"type": "object", "properties": {"id": {"type": "string"}}, "additionalProperties": false},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "anything": {}
    }
}"#;

/// Options for reading a schema. The defaults are those for generating text.
///
/// # Examples
/// ```
/// use domino::{Limits, grammar::json_schema::{SchemaOptions, WhiteSpace}};
///
/// let options = SchemaOptions::default().with_white_space(WhiteSpace::Compact);
/// let schema = options.parse(r#"{"type": "boolean", "title": "Yes or no"}"#, &Limits::default())?;
/// assert_eq!(schema.ignored, ["title"]);
/// # Ok::<(), domino::grammar::json_schema::SchemaError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct SchemaOptions {
    /// The draft of schemas that name none in `$schema`; `None` reads them as 2020-12 with the older
    /// spellings.
    pub draft: Option<Draft>,
    /// The effect of the keyword `format`.
    pub format: Format,
    /// The white space between the parts of a value.
    pub white_space: WhiteSpace,
    /// The order of an object's members.
    pub order: Order,
    /// The rule for objects with equal keys.
    pub duplicate_keys: DuplicateKeys,
    /// The escapes that characters may be written with.
    pub escapes: Escapes,
    /// The spellings that numbers may have.
    pub numbers: Numbers,
    /// True forbids keys that a schema does not mention, unless it says something of additional keys. `None`
    /// is false, but true for types of programs: arguments of functions, structural tags,
    /// `Grammar::of_type`.
    pub closed: Option<bool>,
    /// The number of levels that values may be nested; `None` for any number.
    pub max_depth: Option<u32>,
    /// Allows more than the schema does where it cannot be had exactly, and reports it in
    /// [`SchemaGrammar::relaxed`].
    pub lenient: bool,
    /// The documents that references may lead to: the address and the text of each. Nothing is ever fetched.
    pub documents: Vec<(String, String)>,
    /// True if the grammar becomes a part of another one, so that nothing can be said of whole texts.
    pub(super) part: bool,
    /// The style of values.
    pub(super) style: ValueStyle,
    /// True if no alternatives of objects are multiplied out as a trial, so that all are conditions.
    pub(super) untried: bool,
}

impl SchemaOptions {
    /// Keeps alternatives of objects as conditions where they would be few enough to be multiplied out. For
    /// tests: grammars have the same texts either way.
    #[cfg(feature = "oracle")]
    #[doc(hidden)]
    #[must_use]
    pub fn with_conditions_alone(mut self) -> Self {
        self.untried = true;
        self
    }

    /// Sets whether the grammar becomes a part of another one.
    pub(in crate::grammar) fn of_part(mut self, part: bool) -> Self {
        self.part = part;
        self
    }

    /// Sets the style of values.
    pub(in crate::grammar) fn written_in(mut self, style: ValueStyle) -> Self {
        self.style = style;
        self
    }

    /// The spellings of values.
    pub(super) fn spelling(&self) -> ValueSpelling {
        ValueSpelling { escapes: self.escapes, numbers: self.numbers, style: self.style }
    }

    /// True if any white space may stand around arguments between tags.
    pub(in crate::grammar) fn spaces_arguments(&self) -> bool {
        matches!(self.white_space, WhiteSpace::Wide | WhiteSpace::Any)
    }

    /// Sets [`draft`](Self::draft).
    #[must_use]
    pub fn with_draft(mut self, draft: Draft) -> Self {
        self.draft = Some(draft);
        self
    }

    /// Sets [`format`](Self::format).
    #[must_use]
    pub fn with_format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// Sets [`white_space`](Self::white_space).
    #[must_use]
    pub fn with_white_space(mut self, white_space: WhiteSpace) -> Self {
        self.white_space = white_space;
        self
    }

    /// Sets [`order`](Self::order).
    #[must_use]
    pub fn with_order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Sets [`duplicate_keys`](Self::duplicate_keys).
    #[must_use]
    pub fn with_duplicate_keys(mut self, duplicate_keys: DuplicateKeys) -> Self {
        self.duplicate_keys = duplicate_keys;
        self
    }

    /// Sets [`escapes`](Self::escapes).
    #[must_use]
    pub fn with_escapes(mut self, escapes: Escapes) -> Self {
        self.escapes = escapes;
        self
    }

    /// Sets [`numbers`](Self::numbers).
    #[must_use]
    pub fn with_numbers(mut self, numbers: Numbers) -> Self {
        self.numbers = numbers;
        self
    }

    /// Sets [`closed`](Self::closed).
    #[must_use]
    pub fn with_closed(mut self, closed: bool) -> Self {
        self.closed = Some(closed);
        self
    }

    /// True if keys that a schema does not mention are forbidden.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.unwrap_or(false)
    }

    /// The options for the schemas of types, which have no further keys unless the options say otherwise.
    pub(in crate::grammar) fn of_types(mut self) -> Self {
        self.closed.get_or_insert(true);
        self
    }

    /// Sets [`max_depth`](Self::max_depth).
    #[must_use]
    pub fn with_max_depth(mut self, levels: Option<u32>) -> Self {
        self.max_depth = levels;
        self
    }

    /// Sets [`lenient`](Self::lenient).
    #[must_use]
    pub fn with_lenient(mut self, lenient: bool) -> Self {
        self.lenient = lenient;
        self
    }

    /// Adds one of the [`documents`](Self::documents).
    #[must_use]
    pub fn with_document(mut self, address: impl Into<String>, text: impl Into<String>) -> Self {
        self.documents.push((address.into(), text.into()));
        self
    }

    /// Reads a schema with a value of each kind: what most schemas share, to
    /// [prepare](crate::Compiler::prepare) a compiler for.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), if a [document](Self::documents) cannot be read.
    pub fn kinds_of_values(&self, limits: &Limits) -> Result<SchemaGrammar, SchemaError> {
        self.kinds_of_values_with(limits, &AutomataCache::of_one_call())
    }

    /// Reads the same schema with a cache of automata, which it fills.
    ///
    /// # Errors
    /// As [`kinds_of_values`](Self::kinds_of_values).
    pub fn kinds_of_values_with(
        &self,
        limits: &Limits,
        automata: &AutomataCache,
    ) -> Result<SchemaGrammar, SchemaError> {
        self.parse_with(KINDS_OF_VALUES, limits, automata)
    }

    /// Reads a schema.
    ///
    /// Linear in the text for schemas without combinators; where these are multiplied out, budgets bound the
    /// time.
    ///
    /// # Errors
    /// If the text is not a schema, allows no value, asks for something that cannot be had exactly, or uses
    /// up a budget.
    pub fn parse(&self, text: &str, limits: &Limits) -> Result<SchemaGrammar, SchemaError> {
        self.parse_with(text, limits, &AutomataCache::of_one_call())
    }

    /// Reads a schema with a cache of automata that other schemas share, such as that of a
    /// [compiler](crate::Compiler::automata).
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_with(
        &self,
        text: &str,
        limits: &Limits,
        automata: &AutomataCache,
    ) -> Result<SchemaGrammar, SchemaError> {
        super::parse(self, text, limits, automata)
    }

    /// Reports what becomes of each keyword of a schema: whether it is enforced, a remark, unknown, relaxed
    /// or refused. A schema that cannot be used has a report too. Costs about as much as
    /// [`parse`](Self::parse), twice as much if that fails.
    ///
    /// # Errors
    /// If a text is not JSON.
    ///
    /// # Examples
    /// ```
    /// use domino::{Limits, grammar::json_schema::{KeywordStatus, SchemaOptions}};
    ///
    /// let schema = r#"{"title": "Two", "type": "array", "minItem": 2}"#;
    /// let report = SchemaOptions::default().report(schema, &Limits::default())?;
    /// let status: Vec<KeywordStatus> = report.keywords.iter().map(|keyword| keyword.status).collect();
    /// assert_eq!(status, [KeywordStatus::Annotation, KeywordStatus::Enforced, KeywordStatus::Unknown]);
    /// assert_eq!(report.keywords[2].pointer, "#/minItem");
    /// assert_eq!(report.keywords[2].note.as_deref(), Some("did you mean `minItems`?"));
    /// assert!(report.error.is_none());
    /// # Ok::<(), domino::grammar::json_schema::SchemaError>(())
    /// ```
    pub fn report(&self, text: &str, limits: &Limits) -> Result<SchemaReport, SchemaError> {
        super::report::report(self, text, limits)
    }

    /// Describes the sets of values of a schema in words, up to `most`, outer ones first; true if these are
    /// all. Reads the schema as [`parse`](Self::parse) does.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    ///
    /// # Examples
    /// ```
    /// use domino::{Limits, grammar::json_schema::SchemaOptions};
    ///
    /// let schema = r#"{"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}}"#;
    /// let (sets, all) = SchemaOptions::default().outline(schema, &Limits::default(), 10)?;
    /// assert_eq!(sets[0].shapes, ["an object {age?: #/properties/age}, open"]);
    /// assert_eq!(sets[1].pointer, "#/properties/age");
    /// assert_eq!(sets[1].shapes, ["an integer from 0"]);
    /// assert!(all);
    /// # Ok::<(), domino::grammar::json_schema::SchemaError>(())
    /// ```
    pub fn outline(
        &self,
        text: &str,
        limits: &Limits,
        most: usize,
    ) -> Result<(Vec<Outline>, bool), SchemaError> {
        super::outline(self, text, limits, most)
    }
}
