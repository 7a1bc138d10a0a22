//! Errors of schemas: what is wrong, where, and what may help.

use std::{borrow::Cow, fmt};

use super::{
    document::{Documents, NodeId},
    leaf::LeafError,
    resolve::shown_address,
};
use crate::{
    grammar::{GrammarError, GrammarErrorKind, Location, source::Source},
    ids::as_index,
    limits::LimitExceeded,
};

/// The keywords of strings, ordered by how hard their languages are, the hardest first.
const STRINGS: [&str; 10] = [
    "pattern",
    "format",
    "patternProperties",
    "propertyNames",
    "maxLength",
    "minLength",
    "allOf",
    "not",
    "oneOf",
    "anyOf",
];

/// Limit on the characters shown of a pointer or a reason.
const MOST_SHOWN: usize = 300;

/// The kind of a [`SchemaError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaErrorKind {
    /// The text is not JSON.
    NotJson,
    /// A keyword has a value that the draft does not allow.
    Invalid,
    /// A reference that leads nowhere, or out of the given documents.
    Reference,
    /// References that lead back to where they began without describing anything.
    Loop,
    /// No value is valid.
    NoInstance,
    /// Something that cannot be translated exactly.
    Unsupported,
    /// A budget is used up.
    Limit,
    /// Somebody has ended the reading by its [`Cancel`](crate::Cancel), or the time of that is over.
    Cancelled,
}

impl SchemaErrorKind {
    /// The kind of a budget that is used up, or of work that was cancelled, which lenient mode must not
    /// answer by allowing more.
    fn of_limit(limit: &LimitExceeded) -> Self {
        if limit.is_cancelled() { Self::Cancelled } else { Self::Limit }
    }
}

/// A schema that cannot be used. `Display` prints the place, what is wrong, the line of the text, and a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaError {
    kind: SchemaErrorKind,
    pointer: String,
    keyword: Option<String>,
    shown: Box<GrammarError>,
}

impl SchemaError {
    /// The kind of the mistake.
    #[must_use]
    pub fn kind(&self) -> &SchemaErrorKind {
        &self.kind
    }

    /// The JSON pointer of the place, as a URI fragment: `#/properties/a`. In another document than the
    /// schema's own, it stands behind that document's address.
    #[must_use]
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// The keyword that the error is about.
    #[must_use]
    pub fn keyword(&self) -> Option<&str> {
        self.keyword.as_deref()
    }

    /// The mistake, in one line of words.
    #[must_use]
    pub fn message(&self) -> &str {
        self.shown.message()
    }

    /// A hint that may help.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.shown.hint()
    }

    /// True if somebody has ended the reading by its [`Cancel`](crate::Cancel), or the time of that is over.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.kind == SchemaErrorKind::Cancelled
    }

    /// Makes it an error of another document than the schema.
    pub(super) fn in_document(mut self, address: &str) -> Self {
        self.shown = Box::new(self.shown.in_document(shown_address(address)));
        self
    }

    /// Wraps an error about the text, which is shown as in other notations.
    pub(super) fn of_text(shown: GrammarError) -> Self {
        let kind = match shown.kind() {
            GrammarErrorKind::Limit(limit) => SchemaErrorKind::of_limit(limit),
            _ => SchemaErrorKind::NotJson,
        };
        Self { kind, pointer: "#".to_owned(), keyword: None, shown: Box::new(shown) }
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.shown, f)
    }
}

impl std::error::Error for SchemaError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.shown.source()
    }
}

impl From<SchemaError> for GrammarError {
    fn from(error: SchemaError) -> Self {
        *error.shown
    }
}

/// Something that was allowed though the schema does not, because [`SchemaOptions::lenient`] asked for it.
///
/// [`SchemaOptions::lenient`]: super::SchemaOptions::lenient
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relaxed {
    /// The place, as a URI fragment.
    pub pointer: String,
    /// The keyword that was relaxed.
    pub keyword: String,
    /// The reason why it could not be had exactly.
    pub why: String,
}

/// The names of a schema's documents, by number.
#[derive(Debug)]
pub(super) struct DocumentNames(Vec<String>);

impl DocumentNames {
    /// The schema itself has the empty name.
    pub(super) fn new(names: Vec<String>) -> Self {
        Self(names)
    }

    /// The name of a document; `None` for the schema itself.
    fn of(&self, document: u32) -> Option<&str> {
        self.0.get(as_index(document)).map(String::as_str).filter(|name| !name.is_empty())
    }

    /// The JSON pointer of a node as a URI fragment, behind the name of its document.
    pub(super) fn pointer(&self, documents: &Documents, node: NodeId) -> String {
        let name = self.of(documents.document(node)).unwrap_or_default();
        format!("{name}{}", documents.pointer(node))
    }
}

/// A [`SchemaError`] under construction: places are still nodes.
#[derive(Debug, Clone)]
pub(super) struct PendingError {
    pub(super) kind: SchemaErrorKind,
    pub(super) node: NodeId,
    pub(super) keyword: Option<&'static str>,
    pub(super) reason: String,
    pub(super) hint: Option<String>,
    /// Further places, with the labels shown there.
    pub(super) more: Vec<(NodeId, String)>,
    pub(super) limit: Option<LimitExceeded>,
}

/// A result whose error is a problem of the schema.
pub(super) type Checked<T> = Result<T, Box<PendingError>>;

impl PendingError {
    pub(super) fn new(
        kind: SchemaErrorKind,
        node: NodeId,
        keyword: Option<&'static str>,
        reason: impl Into<String>,
    ) -> Box<Self> {
        let reason = reason.into();
        Box::new(Self { kind, node, keyword, reason, hint: None, more: Vec::new(), limit: None })
    }

    pub(super) fn invalid(node: NodeId, keyword: &'static str, reason: impl Into<String>) -> Box<Self> {
        Self::new(SchemaErrorKind::Invalid, node, Some(keyword), reason)
    }

    pub(super) fn unsupported(node: NodeId, keyword: &'static str, reason: impl Into<String>) -> Box<Self> {
        Self::new(SchemaErrorKind::Unsupported, node, Some(keyword), reason)
    }

    /// The problem of a schema of a draft that is no longer read.
    pub(super) fn too_old(node: NodeId) -> Box<Self> {
        let reason = "drafts 3 and before are not supported: there, a property says whether it is required";
        Self::unsupported(node, "$schema", reason).with_hint(
            "name a later draft, list the names of required properties under `required` of the object, and \
             write `multipleOf` for `divisibleBy`, `not` for `disallow`, `allOf` for `extends`",
        )
    }

    /// The problem of a keyword that restricts values and is not translated: refused rather than dropped.
    pub(super) fn not_read(node: NodeId, keyword: &str) -> Box<Self> {
        let reason = format!("the keyword `{keyword}` is not supported");
        Self::new(SchemaErrorKind::Unsupported, node, None, reason)
    }

    /// The problem of a keyword of strings or numbers whose language cannot be made.
    pub(super) fn of_leaf(node: NodeId, keyword: Option<&'static str>, error: LeafError) -> Box<Self> {
        let kind = match &error {
            LeafError::Syntax { .. } | LeafError::Number(_) => SchemaErrorKind::Invalid,
            LeafError::Unsupported { .. } => SchemaErrorKind::Unsupported,
            LeafError::Budget { .. } => SchemaErrorKind::Limit,
            LeafError::Limit(limit) => SchemaErrorKind::of_limit(limit),
        };
        let mut problem = Self::new(kind, node, keyword, error.to_string()).with_hint(error.hint());
        if let LeafError::Limit(limit) = error {
            problem.limit = Some(limit);
        }
        problem
    }

    /// The problem of a budget of the grammar that is used up, or of work that was cancelled.
    pub(super) fn of_limit(node: NodeId, limit: LimitExceeded) -> Box<Self> {
        let kind = SchemaErrorKind::of_limit(&limit);
        let mut problem = Self::new(kind, node, None, limit.to_string()).with_hint(limit.hint());
        problem.limit = Some(limit);
        problem
    }

    /// The problem of a set of strings that cannot be made, reported at the hardest of its schema's keywords.
    pub(super) fn of_strings(documents: &Documents, node: NodeId, error: LeafError) -> Box<Self> {
        let is_said = |keyword: &&'static str| documents.member(node, keyword).is_some();
        let said: Vec<&'static str> = STRINGS.into_iter().filter(is_said).collect();
        let mut problem = Self::of_leaf(node, said.first().copied(), error);
        if said.len() > 1 && problem.kind == SchemaErrorKind::Limit {
            let others: Vec<String> = said[1..].iter().map(|keyword| format!("`{keyword}`")).collect();
            problem.reason = format!("{}, together with {}", problem.reason, others.join(" and "));
        }
        problem
    }

    pub(super) fn with_hint(mut self: Box<Self>, hint: impl Into<String>) -> Box<Self> {
        self.hint = Some(hint.into());
        self
    }

    /// Reports the problem as something that was allowed all the same.
    pub(super) fn relaxed(&self, documents: &Documents, names: &DocumentNames) -> Relaxed {
        Relaxed {
            pointer: names.pointer(documents, self.node),
            keyword: self.keyword.unwrap_or_default().to_owned(),
            why: self.reason.clone(),
        }
    }

    /// Turns the problem into an error, with its places in the text.
    pub(super) fn finish(self, documents: &Documents, names: &DocumentNames) -> SchemaError {
        let pointer = names.pointer(documents, self.node);
        let about = self.keyword.map_or_else(String::new, |keyword| format!("`{keyword}`: "));
        let message = format!("{}: {about}{}", shortened(&pointer), shortened(&self.reason));
        let kind = match (&self.kind, self.limit) {
            (_, Some(limit)) => GrammarErrorKind::Limit(limit),
            (SchemaErrorKind::Unsupported | SchemaErrorKind::Limit, None) => GrammarErrorKind::Unsupported,
            _ => GrammarErrorKind::Syntax,
        };
        let mut shown = GrammarError::new(kind, message);
        for (node, label) in std::iter::once((self.node, String::new())).chain(self.more) {
            let source = Source::new(documents.text(documents.document(node)));
            let place = self.keyword.filter(|_| label.is_empty());
            let place = place.and_then(|keyword| documents.member(node, keyword)).unwrap_or(node);
            let place = || Location::new(source, documents.span(place), shortened(&label));
            shown = shown.at_place(|| place().in_document(names.of(documents.document(node))));
        }
        if let Some(hint) = self.hint {
            shown = shown.with_hint(hint);
        }
        let keyword = self.keyword.map(str::to_owned);
        SchemaError { kind: self.kind, pointer, keyword, shown: Box::new(shown) }
    }
}

/// Cuts a text to a length that people read.
pub(super) fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => Cow::Owned(format!("{}\u{2026}", &text[..end])),
        None => Cow::Borrowed(text),
    }
}
