//! Tokens of the model in grammars: front ends ask for them, and a grammar tells which ones it asks for.

use std::borrow::Cow;

use super::{builder::GrammarBuilder, grammar::Grammar, pattern::Pattern};
use crate::{
    grammar::{
        errors::Location,
        source::{Source, Span},
    },
    ids::ExprId,
    limits::LimitExceeded,
    special::{self, Picked, TokenClass},
};

impl Grammar {
    /// The names of the special tokens that the grammar asks for, sorted. Such a token stands for itself; a
    /// text may contain its name as well.
    #[must_use]
    pub fn specials(&self) -> &[String] {
        &self.asked.specials
    }

    /// True if the token of this name may also be an ordinary one, which then is text elsewhere in the
    /// grammar.
    pub(crate) fn is_by_text(&self, name: &str) -> bool {
        self.asked.by_text.contains(name)
    }

    /// The classes of tokens that the grammar asks for, sorted.
    pub(crate) fn classes(&self) -> impl ExactSizeIterator<Item = TokenClass> {
        self.asked.classes.iter().copied()
    }

    /// The tokens that the grammar picks, sorted.
    pub(crate) fn picked(&self) -> impl ExactSizeIterator<Item = &Picked> {
        self.asked.picked.iter()
    }

    /// The first place that asks for a token of this name, or for [picked](Picked::marked) ones, if it is
    /// known.
    pub(crate) fn asked_at(&self, name: &str) -> Option<&Location> {
        self.asked.places.get(name)
    }

    /// Replaces the names of [special tokens](Self::specials) in a text by the bytes that
    /// [`Constraint::advance_bytes`](crate::Constraint::advance_bytes) takes for them: each name between two
    /// bytes `0xFF`. Linear in the text, for each name.
    #[must_use]
    pub fn spell<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        match self.specials() {
            [] => text.into(),
            names => special::spell(text, names).into(),
        }
    }
}

impl GrammarBuilder {
    /// The special token of this name, which the vocabulary must have. The name must not be empty.
    ///
    /// # Errors
    /// See [`rule_ref`](Self::rule_ref).
    pub fn special(&mut self, name: &str, span: Span) -> Result<ExprId, LimitExceeded> {
        debug_assert!(!name.is_empty());
        self.asked.add_special(name);
        self.pattern(Pattern::literal(&special::spelled(name)), span)
    }

    /// Asks for a token like [`special`](Self::special), with a place for errors.
    pub(in crate::grammar) fn special_at(
        &mut self,
        name: &str,
        source: Source<'_>,
        span: Span,
    ) -> Result<ExprId, LimitExceeded> {
        self.asked.add_place(name, source, span);
        self.special(name, span)
    }

    /// The one token with this text: the special token of this name, else an ordinary token, which is text in
    /// the rest of the grammar.
    ///
    /// # Errors
    /// See [`rule_ref`](Self::rule_ref).
    pub(in crate::grammar) fn token_of_text(
        &mut self,
        text: &str,
        source: Source<'_>,
        span: Span,
    ) -> Result<ExprId, LimitExceeded> {
        self.asked.by_text.insert(text.to_owned());
        self.special_at(text, source, span)
    }

    /// One of the tokens that are picked.
    ///
    /// # Errors
    /// See [`rule_ref`](Self::rule_ref).
    pub(in crate::grammar) fn picked(
        &mut self,
        picked: Picked,
        source: Source<'_>,
        span: Span,
    ) -> Result<ExprId, LimitExceeded> {
        let marked = picked.marked();
        self.asked.add_place(&marked, source, span);
        self.asked.picked.insert(picked);
        self.pattern(Pattern::literal(&special::spelled(&marked)), span)
    }

    /// Declares that patterns contain the tokens that another grammar asks for, as that grammar's builder
    /// made them.
    pub(super) fn with_asked(&mut self, grammar: &Grammar) {
        self.asked.add(&grammar.asked);
    }
}
