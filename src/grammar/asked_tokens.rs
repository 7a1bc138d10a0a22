//! Tokens of the model that a grammar asks for: special tokens by their names, classes, and tokens picked by
//! number. In expressions each is a byte string that no text has ([`special`](crate::special)); which tokens
//! they are is found out when the grammar is compiled for a vocabulary.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    error::Place,
    source::{Source, Span},
};
use crate::special::{Picked, TokenClass};

/// What a grammar asks for.
#[derive(Debug, Clone, Default)]
pub(super) struct AskedTokens {
    /// Names of special tokens, sorted.
    pub(super) specials: Vec<String>,
    /// Those of them that may also be the text of an ordinary token, which then stays text elsewhere.
    pub(super) by_text: BTreeSet<String>,
    pub(super) classes: BTreeSet<TokenClass>,
    pub(super) picked: BTreeSet<Picked>,
    /// Where a name, or a [`Picked::marked`], stands first.
    pub(super) places: BTreeMap<String, Place>,
}

impl AskedTokens {
    pub(super) fn add_special(&mut self, name: &str) {
        if let Err(at) = self.specials.binary_search_by(|known| known.as_str().cmp(name)) {
            self.specials.insert(at, name.to_owned());
        }
    }

    pub(super) fn add_place(&mut self, name: &str, source: Source<'_>, span: Span) {
        if !self.places.contains_key(name) {
            self.places.insert(name.to_owned(), Place::new(source, span, ""));
        }
    }

    /// Adds what another grammar asks for.
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
