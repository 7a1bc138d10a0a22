//! Sets of object keys: the subjects of `patternProperties`, `additionalProperties` and `propertyNames`.

use std::rc::Rc;

use hashbrown::HashMap;

use super::{
    super::{
        LeafError, StringSet,
        error::{Checked, PendingError},
    },
    Algebra,
};
use crate::ids::Numbered;

impl Algebra<'_> {
    /// Turns an exceeded budget of a set of strings into a problem of the schema at work, by its keyword.
    pub(in super::super) fn fitting_strings<T>(&self, result: Result<T, LeafError>) -> Checked<T> {
        self.look()?;
        result.map_err(|error| PendingError::of_strings(&self.resolver.documents, self.here(), error))
    }
}

/// The id of a set of keys in the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in super::super) struct KeysId(u32);

/// A set of keys.
#[derive(Debug, Clone)]
pub(in super::super) enum Keys {
    /// The keys of a language of strings.
    Strings(Rc<StringSet>),
    /// All keys but these names and the keys of these sets.
    Rest { names: Rc<[Rc<str>]>, sets: Rc<[KeysId]> },
}

/// The names and the sets that a set leaves out.
type LeftOut = (Rc<[Rc<str>]>, Rc<[KeysId]>);

/// The arena of all sets of keys. Sets made of equal patterns, or that leave out the same, have equal ids.
#[derive(Debug, Default)]
pub(in super::super) struct KeySets {
    sets: Numbered<Keys>,
    by_pattern: HashMap<Box<str>, KeysId>,
    by_rest: HashMap<LeftOut, KeysId>,
}

impl KeySets {
    pub(in super::super) fn get(&self, id: KeysId) -> &Keys {
        &self.sets[id.0 as usize]
    }

    /// The number of sets.
    pub(in super::super) fn len(&self) -> usize {
        self.sets.len()
    }

    fn push(&mut self, keys: Keys) -> KeysId {
        // Past the last number the first set stands in. Long before, the limit on sets ends the work.
        KeysId(self.sets.push(keys, "sets of keys").unwrap_or(0))
    }

    /// The set that was made for a pattern.
    pub(in super::super) fn known(&self, pattern: &str) -> Option<KeysId> {
        self.by_pattern.get(pattern).copied()
    }

    /// The keys that a pattern matches.
    pub(in super::super) fn pattern(&mut self, pattern: &str, strings: StringSet) -> KeysId {
        let id = self.strings(Rc::new(strings));
        self.by_pattern.insert(pattern.into(), id);
        id
    }

    /// The keys of a language.
    pub(in super::super) fn strings(&mut self, strings: Rc<StringSet>) -> KeysId {
        self.push(Keys::Strings(strings))
    }

    /// All keys but these.
    pub(in super::super) fn rest(&mut self, names: Vec<Rc<str>>, mut sets: Vec<KeysId>) -> KeysId {
        sets.sort_unstable();
        sets.dedup();
        let key: LeftOut = (names.into(), sets.into());
        if let Some(&known) = self.by_rest.get(&key) {
            return known;
        }
        let id = self.push(Keys::Rest { names: key.0.clone(), sets: key.1.clone() });
        self.by_rest.insert(key, id);
        id
    }

    /// True if the key is in the set. Sets left out are languages of strings, so this recurses once.
    pub(in super::super) fn contains(&self, id: KeysId, key: &str) -> bool {
        match self.get(id) {
            Keys::Strings(strings) => strings.contains(key),
            Keys::Rest { names, sets } => {
                names.iter().all(|name| **name != *key) && sets.iter().all(|&set| !self.contains(set, key))
            }
        }
    }
}
