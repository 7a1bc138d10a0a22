//! Readers of JSON beside the parser: what no grammar can say, that no key of an object and no item of an
//! array comes twice.
//!
//! If parser sets knew which keys and items have come, every mask would depend on them. So each text has
//! readers of its own, which read it once more, say which tokens would repeat something, and whether what is
//! at hand can only become a repeat (a dead end). *Invariant:* a reader's answer follows from the text so
//! far; stepping readers and undoing the steps leads back to where they were. A step moves the machine and
//! the readers, or, on an error, neither.
//!
//! Below them is the machine: searches for dead ends step it. Above them are the sessions, which take from
//! masks what readers refuse.

mod array_items;
mod item_search;
mod object_keys;
mod repeat_candidates;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::{collections::VecDeque, sync::Arc};

use crate::limits::{LimitExceeded, Work};
use crate::{ids::StateId, machine::StateAutomaton, program::Program};

pub(crate) use array_items::ArrayItems;
pub(crate) use item_search::SearchState;
pub(crate) use object_keys::{KeyChange, KeyPrefix, ObjectKeys, has_key_twice};

/// The state of the readers of keys and of items that must be distinct.
#[derive(Debug, Clone, Default)]
pub(crate) struct JsonReaders {
    pub(crate) keys: Option<ObjectKeys>,
    /// The reader of items is behind a pointer: few grammars need it, and all sessions move this value at
    /// each step.
    pub(crate) items: Option<Arc<ArrayItems>>,
}

impl JsonReaders {
    /// Creates the readers that a grammar asks for, before any text.
    pub(crate) fn new(program: &Program) -> Self {
        let lowered = &program.lowered;
        let keys = lowered.keys.map(|_| ObjectKeys::new(program.scarce_keys().cloned()));
        Self { keys, items: lowered.items.map(|_| Arc::default()) }
    }

    pub(crate) fn are_none(&self) -> bool {
        self.keys.is_none() && self.items.is_none()
    }

    /// Returns a hash of the readers' position, without the keys and items that have come.
    pub(crate) fn place(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.keys.as_ref().map(ObjectKeys::spelt).hash(&mut hasher);
        self.items.as_ref().map(|items| items.place()).hash(&mut hasher);
        hasher.finish()
    }

    /// Memory on the heap that is not shared, in bytes.
    fn own_bytes(&self) -> usize {
        self.keys.as_ref().map_or(0, ObjectKeys::own_bytes)
            + self.items.as_ref().map_or(0, |items| items.own_bytes())
    }
}

/// An undo record for one step of the readers.
#[derive(Debug, Clone)]
pub(crate) enum Undo {
    Same,
    /// The step added this many bytes to the key that is being written.
    Shorter(usize),
    Other(JsonReaders),
}

impl Undo {
    pub(crate) fn is_same(&self) -> bool {
        matches!(self, Self::Same)
    }

    /// Restores the readers to their earlier state.
    pub(crate) fn put_back(self, readers: &mut JsonReaders) {
        match self {
            Self::Same => {}
            Self::Shorter(bytes) => {
                if let Some(keys) = &mut readers.keys {
                    keys.shorten(bytes);
                }
            }
            Self::Other(before) => *readers = before,
        }
    }

    fn own_bytes(&self) -> usize {
        if let Self::Other(readers) = self { readers.own_bytes() } else { 0 }
    }
}

/// An undo log of the readers, a record for each step of the history.
#[derive(Debug, Clone, Default)]
pub(crate) struct UndoLog {
    steps: VecDeque<Undo>,
}

impl UndoLog {
    /// Adds a record, and drops the oldest ones past `kept`.
    pub(crate) fn push(&mut self, before: Undo, kept: usize) {
        self.steps.push_back(before);
        self.forget(kept);
    }

    /// Drops all but the last `kept` records.
    pub(crate) fn forget(&mut self, kept: usize) {
        while self.steps.len() > kept {
            self.steps.pop_front();
        }
    }

    /// Undoes steps, the last one first, until `kept` records are left.
    pub(crate) fn back(&mut self, kept: usize, readers: &mut JsonReaders) {
        let undone = self.steps.drain(kept.min(self.steps.len())..);
        undone.rev().for_each(|before| before.put_back(readers));
    }

    /// Memory beside what is shared, in bytes.
    pub(crate) fn own_bytes(&self) -> usize {
        self.steps.capacity() * size_of::<Undo>() + self.steps.iter().map(Undo::own_bytes).sum::<usize>()
    }
}

impl StateAutomaton {
    /// Returns the place after a byte, unless it ends a key or an item that has come before.
    pub(crate) fn step_with_readers(
        &mut self,
        program: &Program,
        (state, before): (StateId, &JsonReaders),
        byte: u8,
        work: &mut Work,
    ) -> Result<Option<(StateId, JsonReaders)>, LimitExceeded> {
        let mut readers = before.clone();
        if let Some(keys) = &mut readers.keys
            && keys.read(&[byte])? == 0
        {
            return Ok(None);
        }
        let Some(items) = readers.items.take() else {
            return Ok(self.step(program, state, byte, work)?.map(|to| (to, readers)));
        };
        let led = self.walk_items(program, (state, Arc::unwrap_or_clone(items)), &[byte], work)?;
        Ok(led.ok().map(|(to, items)| {
            readers.items = Some(Arc::new(items));
            (to, readers)
        }))
    }
}
