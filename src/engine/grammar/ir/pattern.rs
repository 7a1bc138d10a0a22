//! A terminal's byte language: a regular expression without look-around, or an automaton, over bytes.
//!
//! Invariant: a [`Hir`] inside has no look-around, so every pattern is a regular language of byte strings. It
//! may be empty or contain the empty string.

use std::sync::Arc;

use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind};

use super::{automaton::Automaton, length_bounded::LengthBounded};
use crate::{
    grammar::spelled::Spelled,
    limits::PATTERN_NESTING,
    special::{self, TokenClass},
};

/// The byte language of a leaf of a grammar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    kind: PatternKind,
    after_new_item: bool,
}

/// The form in which a [`Pattern`] is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternKind {
    /// A regular expression without look-around, matched as a whole.
    Expression(Hir),
    /// An automaton, which stays a terminal of its own.
    Automaton(Automaton),
    /// All substrings of a text, in whole characters, the empty one included. It stays a terminal of its own,
    /// whose states are made lazily, as texts reach them.
    Substrings(Arc<str>),
    /// The JSON strings of an automaton with a bounded number of characters. It stays a terminal of its own,
    /// whose states are made lazily.
    LengthBounded(LengthBounded),
    /// The JSON strings of an automaton over characters. It stays a terminal of its own, whose states are
    /// made lazily.
    Spelled(Spelled),
}

/// The reason why a regular expression cannot be a [`Pattern`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// The expression looks around; holds the assertion as written.
    #[error("look-around such as {0} asks about text outside the match, which a terminal cannot do")]
    LookAround(&'static str),
    /// The expression is nested more deeply than this many levels.
    #[error("the expression is nested more than {0} levels deep")]
    TooDeep(usize),
}

impl Pattern {
    /// The language of exactly these bytes.
    #[must_use]
    pub fn literal(bytes: &[u8]) -> Self {
        Self::expression(Hir::literal(bytes))
    }

    /// One character of the class, in UTF-8.
    #[must_use]
    pub fn class(class: ClassUnicode) -> Self {
        Self::expression(Hir::class(Class::Unicode(class)))
    }

    /// One character, in UTF-8, or one byte of the class.
    pub(crate) fn byte_class(class: Class) -> Self {
        Self::expression(Hir::class(class))
    }

    /// The language of an automaton.
    #[must_use]
    pub fn automaton(automaton: Automaton) -> Self {
        Self { kind: PatternKind::Automaton(automaton), after_new_item: false }
    }

    /// All substrings of a text of any length, in whole characters, the empty one included. For a short text,
    /// an [`Automaton`] is made at once where one is wanted.
    #[must_use]
    pub fn substrings(text: &str) -> Self {
        Self { kind: PatternKind::Substrings(text.into()), after_new_item: false }
    }

    /// The texts of `automaton` with `min` to `max` characters between quotes, where an escape or a pair of
    /// escaped surrogates is one character, or between two `>`, where each stands for itself. `None` if there
    /// is no such text, if some text of the automaton has neither form, or if states times `max` exceed some
    /// millions: then an [`Automaton`] that counts is needed.
    #[must_use]
    pub fn length_bounded(automaton: &Automaton, min: u32, max: u32) -> Option<Self> {
        LengthBounded::new(automaton, min, max).map(Self::bounded)
    }

    pub(in crate::grammar) fn bounded(bounded: LengthBounded) -> Self {
        Self { kind: PatternKind::LengthBounded(bounded), after_new_item: false }
    }

    /// The strings of an automaton over characters.
    pub(crate) fn spelled(spelled: Spelled) -> Self {
        Self { kind: PatternKind::Spelled(spelled), after_new_item: false }
    }

    fn expression(hir: Hir) -> Self {
        Self { kind: PatternKind::Expression(hir), after_new_item: false }
    }

    /// The language of `hir`, matched as a whole. Linear in its size.
    ///
    /// # Errors
    /// If `hir` has look-around, or is nested deeper than automata can be built of.
    pub fn from_hir(hir: Hir) -> Result<Self, PatternError> {
        use regex_syntax::hir::Look;
        let name = match hir.properties().look_set().iter().next() {
            None if nested_within(&hir, PATTERN_NESTING) => return Ok(Self::expression(hir)),
            None => return Err(PatternError::TooDeep(PATTERN_NESTING)),
            Some(Look::Start | Look::End) => "`^`, `$`, `\\A` or `\\z`",
            Some(Look::StartLF | Look::EndLF | Look::StartCRLF | Look::EndCRLF) => "multi-line `^` or `$`",
            Some(_) => "a word boundary `\\b` or `\\B`",
        };
        Err(PatternError::LookAround(name))
    }

    /// Restricts the language to places directly after an item of a JSON array that equals none before it in
    /// the array: a comma or a closing bracket, with the white space around it. Has no effect unless
    /// [`GrammarBuilder::distinct_items`](super::GrammarBuilder::distinct_items) is called, and only on
    /// automata, since an expression may become a part of another terminal.
    #[must_use]
    pub fn after_new_item(self) -> Self {
        let after_new_item = matches!(self.kind, PatternKind::Automaton(_));
        Self { after_new_item, ..self }
    }

    /// True if it may only follow an [item that is new](Self::after_new_item).
    #[must_use]
    pub fn is_after_new_item(&self) -> bool {
        self.after_new_item
    }

    /// The form in which it is given.
    #[must_use]
    pub fn kind(&self) -> &PatternKind {
        &self.kind
    }

    /// The expression, if it is given as one.
    #[must_use]
    pub fn hir(&self) -> Option<&Hir> {
        match &self.kind {
            PatternKind::Expression(hir) => Some(hir),
            PatternKind::Automaton(_)
            | PatternKind::Substrings(_)
            | PatternKind::LengthBounded(_)
            | PatternKind::Spelled(_) => None,
        }
    }

    /// The classes of tokens in the pattern; automata have none. Linear.
    pub(crate) fn classes(&self) -> Vec<TokenClass> {
        let mut found = Vec::new();
        let mut open: Vec<&Hir> = self.hir().into_iter().collect();
        while let Some(hir) = open.pop() {
            match hir.kind() {
                HirKind::Literal(literal) if literal.0.contains(&special::MARK) => {
                    let has = |class: &TokenClass| {
                        let spelled = special::spelled(class.marked());
                        literal.0.windows(spelled.len()).any(|part| part == spelled)
                    };
                    found.extend(TokenClass::ALL.into_iter().filter(has));
                }
                HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => {}
                HirKind::Repetition(repetition) => open.push(&repetition.sub),
                HirKind::Capture(capture) => open.push(&capture.sub),
                HirKind::Concat(parts) | HirKind::Alternation(parts) => open.extend(parts),
            }
        }
        found
    }

    /// True if the byte that [marks](special::MARK) special tokens occurs outside of these tokens' spellings,
    /// even in a part that matches nothing. Linear.
    pub(crate) fn mentions_mark(&self, spelled: &[Vec<u8>]) -> bool {
        let mark = &special::MARK;
        let hir = match &self.kind {
            PatternKind::Expression(hir) => hir,
            PatternKind::Automaton(automaton) => return edges_have(automaton, *mark),
            PatternKind::LengthBounded(bounded) => return edges_have(bounded.automaton(), *mark),
            // These are strings of characters, and no character is written with that byte.
            PatternKind::Spelled(_) => return false,
            PatternKind::Substrings(text) => return text.as_bytes().contains(mark),
        };
        let mut open = vec![hir];
        while let Some(hir) = open.pop() {
            match hir.kind() {
                HirKind::Literal(literal) if special::without(&literal.0, spelled).contains(mark) => {
                    return true;
                }
                HirKind::Class(Class::Bytes(class))
                    if class.iter().any(|range| (range.start()..=range.end()).contains(mark)) =>
                {
                    return true;
                }
                HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => {}
                HirKind::Repetition(repetition) => open.push(&repetition.sub),
                HirKind::Capture(capture) => open.push(&capture.sub),
                HirKind::Concat(parts) | HirKind::Alternation(parts) => open.extend(parts),
            }
        }
        false
    }

    /// The bytes, if the language is written as one literal.
    #[must_use]
    pub fn as_literal(&self) -> Option<&[u8]> {
        match self.hir()?.kind() {
            HirKind::Literal(literal) => Some(&literal.0),
            HirKind::Empty => Some(&[]),
            _ => None,
        }
    }
}

/// True if the byte is on an edge.
fn edges_have(automaton: &Automaton, byte: u8) -> bool {
    let mut edges = automaton.states().iter().flat_map(|state| &state.edges);
    edges.any(|edge| (edge.first..=edge.last).contains(&byte))
}

/// True if `hir` is nested at most `depth` levels deep. Does not recurse.
fn nested_within(hir: &Hir, depth: usize) -> bool {
    let mut open = vec![(hir, 1)];
    while let Some((hir, level)) = open.pop() {
        if level > depth {
            return false;
        }
        match hir.kind() {
            HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => {}
            HirKind::Repetition(repetition) => open.push((&repetition.sub, level + 1)),
            HirKind::Capture(capture) => open.push((&capture.sub, level + 1)),
            HirKind::Concat(parts) | HirKind::Alternation(parts) => {
                open.extend(parts.iter().map(|part| (part, level + 1)));
            }
        }
    }
    true
}
