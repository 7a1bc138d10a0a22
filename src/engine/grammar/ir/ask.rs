//! Tokens of the model in grammars: front ends ask for them, and a grammar tells which ones it asks for.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use super::{Grammar, GrammarBuilder, pattern::Pattern};
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

// A grammar asks for special tokens by their names, classes of them, and tokens picked by number. In
// expressions each is a byte string that no text contains (`special`); they are resolved to tokens when the
// grammar is compiled for a vocabulary.

/// The tokens that a grammar asks for.
#[derive(Debug, Clone, Default)]
pub(super) struct AskedTokens {
    /// The names of special tokens, sorted.
    pub(super) specials: Vec<String>,
    /// The names that may also be the text of an ordinary token, which then stays text elsewhere.
    pub(super) by_text: BTreeSet<String>,
    pub(super) classes: BTreeSet<TokenClass>,
    pub(super) picked: BTreeSet<Picked>,
    /// The first place of each name, or of each [`Picked::marked`].
    pub(super) places: BTreeMap<String, Location>,
}

impl AskedTokens {
    pub(super) fn add_special(&mut self, name: &str) {
        if let Err(at) = self.specials.binary_search_by(|known| known.as_str().cmp(name)) {
            self.specials.insert(at, name.to_owned());
        }
    }

    fn add_place(&mut self, name: &str, source: Source<'_>, span: Span) {
        if !self.places.contains_key(name) {
            self.places.insert(name.to_owned(), Location::new(source, span, ""));
        }
    }

    /// Adds the tokens that another grammar asks for.
    pub(super) fn add(&mut self, other: &Self) {
        other.specials.iter().for_each(|name| self.add_special(name));
        self.by_text.extend(other.by_text.iter().cloned());
        self.classes.extend(&other.classes);
        self.picked.extend(other.picked.iter().cloned());
        for (name, place) in &other.places {
            self.places.entry(name.clone()).or_insert_with(|| place.clone());
        }
    }
}
