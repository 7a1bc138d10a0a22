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
use std::{borrow::Cow, collections::VecDeque, sync::Arc};

use crate::grammar::{Thought, ThoughtPlace, thought::ThoughtReader};
use crate::limits::{LimitExceeded, Work};
use crate::{ids::StateId, machine::StateAutomaton, program::Program, special};

pub(crate) use array_items::ArrayItems;
pub(crate) use item_search::SearchState;
pub(crate) use object_keys::{KeyChange, KeyPrefix, ObjectKeys, has_key_twice};

/// The state of the readers of keys and of items that must be distinct, and of the thought before.
#[derive(Debug, Clone, Default)]
pub(crate) struct JsonReaders {
    /// Behind a pointer, as are items.
    pub(crate) thought: Option<Arc<ThoughtProgress>>,
    pub(crate) keys: Option<ObjectKeys>,
    /// The reader of items is behind a pointer: few grammars need it, and all sessions move this value at
    /// each step.
    pub(crate) items: Option<Arc<ArrayItems>>,
}

impl JsonReaders {
    /// Creates the readers that a grammar asks for, before any text.
    pub(crate) fn new(program: &Program) -> Self {
        let lowered = &program.lowered;
        let thought = lowered.thought.clone().map(ThoughtReader::new);
        let keys = lowered.keys.map(|_| ObjectKeys::new(program.scarce_keys().cloned(), thought.clone()));
        let items = lowered.items.map(|_| Arc::new(ArrayItems::new(thought.clone())));
        Self { thought: thought.map(|reader| Arc::new(ThoughtProgress::new(reader))), keys, items }
    }

    /// Is there nothing to read in the rest of the text?
    pub(crate) fn are_none(&self) -> bool {
        self.keys.is_none() && self.items.is_none() && !self.are_in_thought()
    }

    /// Are there readers whose steps are logged?
    pub(crate) fn are_logged(&self) -> bool {
        self.keys.is_some() || self.items.is_some() || self.thought.is_some()
    }

    /// Reads a step of the thought, if the text may still be in one.
    pub(crate) fn read_thought(&mut self, bytes: &[u8]) {
        if let Some(thought) = self.thought.as_mut().filter(|thought| thought.is_open()) {
            Arc::make_mut(thought).read(bytes);
        }
    }

    /// May the text still be in its thought?
    pub(crate) fn are_in_thought(&self) -> bool {
        self.thought.as_ref().is_some_and(|thought| thought.is_open())
    }

    /// Returns a hash of the readers' position, without the keys and items that have come. Inside of a
    /// thought the machine's state is all.
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

/// The thought of a text, as read so far.
#[derive(Debug, Clone)]
pub(crate) struct ThoughtProgress {
    reader: ThoughtReader,
    /// Steps in the thought so far.
    steps: usize,
    /// Bytes that are missing of the last character.
    missing: u8,
    /// Bytes of the thought and its marks so far, as they are shown.
    pub(crate) bytes: usize,
}

impl ThoughtProgress {
    pub(crate) fn new(reader: ThoughtReader) -> Self {
        Self { reader, steps: 0, missing: 0, bytes: 0 }
    }

    /// Is the text before its thought or inside of it?
    fn is_open(&self) -> bool {
        self.place() != ThoughtPlace::Behind
    }

    pub(crate) fn place(&self) -> ThoughtPlace {
        self.reader.place()
    }

    pub(crate) fn thought(&self) -> &Thought {
        self.reader.thought()
    }

    /// Reads one step.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        self.read_shown(bytes, shown(bytes));
    }

    /// Reads one step, of which this many bytes are shown.
    pub(crate) fn read_shown(&mut self, bytes: &[u8], length: usize) {
        if self.is_open() {
            let behind = shown(&self.reader.read(bytes));
            self.bytes = (self.bytes + length).saturating_sub(behind);
            self.steps += 1;
            self.missing = bytes.iter().fold(self.missing, |missing, byte| match byte {
                0x80..=0xBF => missing.saturating_sub(1),
                0xC0..=0xDF => 1,
                0xE0..=0xEF => 2,
                0xF0..=0xF7 => 3,
                _ => 0,
            });
        }
    }

    /// Number of bytes at the end that may be the beginning of the closing mark, as they are shown.
    pub(crate) fn held(&self) -> usize {
        shown(self.reader.begun_mark())
    }

    /// What must come, where the thought has had as many steps as it may.
    pub(crate) fn closing(&self, most: Option<usize>) -> Option<ThoughtEnd<'_>> {
        let left = self.reader.left_of_mark();
        let must = most.is_some_and(|most| self.steps >= most) && !left.is_empty();
        // A mark that has begun in the middle of a character goes on there.
        let inside = self.missing > 0 && self.reader.begun_mark().is_empty();
        must.then_some(if inside { ThoughtEnd::Character } else { ThoughtEnd::Mark(left) })
    }
}

/// What must come next in a thought that is as long as it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThoughtEnd<'a> {
    /// The rest of a character: the mark cannot begin inside of it.
    Character,
    /// The rest of the closing mark.
    Mark(&'a [u8]),
}

impl ThoughtEnd<'_> {
    /// May these bytes come, which are a text's?
    pub(crate) fn takes(self, bytes: &[u8]) -> bool {
        !bytes.is_empty()
            && match self {
                Self::Character => bytes.iter().all(|byte| matches!(byte, 0x80..=0xBF)),
                Self::Mark(left) => left.starts_with(bytes),
            }
    }
}

/// Number of bytes that are shown of these.
fn shown(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte != special::MARK).count()
}

/// Reads a thought, if there may be one, and returns the JSON behind it.
fn behind_thought<'b>(thought: &mut Option<Box<ThoughtReader>>, bytes: &'b [u8]) -> Option<Cow<'b, [u8]>> {
    let reader = thought.as_mut()?;
    let json = reader.read(bytes);
    if reader.place() == ThoughtPlace::Behind {
        *thought = None;
    }
    Some(json)
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
        readers.read_thought(&[byte]);
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
