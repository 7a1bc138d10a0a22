//! The tokens of the model that a grammar asks for: special tokens by their names, classes, and tokens picked
//! by number. In expressions each is a byte string that no text contains ([`special`](crate::special)); they
//! are resolved to tokens when the grammar is compiled for a vocabulary.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    grammar::{
        errors::Location,
        source::{Source, Span},
    },
    special::{Picked, TokenClass},
};

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

    pub(super) fn add_place(&mut self, name: &str, source: Source<'_>, span: Span) {
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
