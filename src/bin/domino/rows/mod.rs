//! Rows: the lines of JSON that `generate`, `check` and `trace` read with `--batch`, in one format
//! (docs/batch.md).
//!
//! [`row`] is that format, with the columns that go from a row into its answer. [`keys`] lists the keys and
//! their readers, and takes a line apart; [`grammar`] has a row's keys about its grammar. Right here are the
//! lines of an input as they come, a first look at all of them if the input is a file, and an LRU cache for
//! compiled grammars.

mod grammar;
pub(crate) mod keys;
mod row;

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::{collections::HashMap, hash::Hash, io, time::Duration};

use anyhow::Context;

pub(crate) use self::grammar::{RowGrammar, WantedGrammar};
pub(crate) use self::keys::{ObjectMembers, RawMembers, RowReader};
pub(crate) use self::row::{Carried, Row, RowReading, key_of};
use crate::files::{Input, lines};
use crate::terminal::failure::BadInput;

/// Interval at which an idle program looks for Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(100);

/// The lines of an input. A thread of their own reads them, since their writer may wait for answers first.
#[derive(Debug)]
pub(crate) struct Lines {
    lines: Receiver<io::Result<(usize, Vec<u8>)>>,
    name: String,
}

/// The state of the input at the moment.
#[derive(Debug)]
pub(crate) enum NextLine {
    /// A line and its number, from 1.
    Line(usize, Vec<u8>),
    NotYet,
    End,
}

impl Lines {
    /// Starts to read, up to `ahead` lines before they are asked for.
    pub(crate) fn read(input: &Input, ahead: usize) -> Result<Self, BadInput> {
        // Standard input is locked by the thread that reads it.
        if let Input::File(_) = input {
            drop(input.open()?);
        }
        let (sender, lines) = mpsc::sync_channel(ahead);
        let (source, name) = (input.clone(), input.name());
        std::thread::spawn(move || match source.open() {
            // Until the receiver is gone.
            Ok(reader) => drop(lines::numbered(reader).try_for_each(|line| sender.send(line))),
            Err(error) => drop(sender.send(Err(io::Error::other(error)))),
        });
        Ok(Self { lines, name })
    }

    /// The next line; with `idle` it is waited for a little.
    pub(crate) fn next(&self, idle: bool) -> anyhow::Result<NextLine> {
        let patience = if idle { PATIENCE } else { Duration::ZERO };
        match self.lines.recv_timeout(patience) {
            Ok(Ok((number, line))) => Ok(NextLine::Line(number, line)),
            Ok(Err(error)) => Err(error).with_context(|| format!("cannot read {}", self.name)),
            Err(RecvTimeoutError::Timeout) => Ok(NextLine::NotYet),
            Err(RecvTimeoutError::Disconnected) => Ok(NextLine::End),
        }
    }
}

/// The ids that rows had so far, with their lines.
#[derive(Debug, Default)]
pub(crate) struct SeenIds {
    lines: HashMap<String, usize>,
}

impl SeenIds {
    /// Notes the id of the row of line `number`. A second line with the same id is an error that names both.
    pub(crate) fn note(&mut self, key: String, name: &str, number: usize) -> Result<(), BadInput> {
        match self.lines.insert(key, number) {
            None => Ok(()),
            Some(first) => Err(BadInput::new(format!("lines {first} and {number} have the same {name}"))
                .hint("an id names one row; a row without one has the number of its line as its id")),
        }
    }
}

/// Counts the texts that the rows of a file ask for, and refuses a file in which two rows have one id. `None`
/// for an input that can be read only once. Reads the whole file, and holds the ids in memory.
pub(crate) fn survey(input: &Input, reading: RowReading) -> Result<Option<usize>, BadInput> {
    let Input::File(path) = input else { return Ok(None) };
    if !path.is_file() {
        return Ok(None);
    }
    let (mut seen, mut texts) = (SeenIds::default(), 0_usize);
    for line in lines::numbered(input.open()?) {
        let unread = |error| BadInput::new(format!("cannot read {}: {error}", input.name()));
        let (number, line) = line.map_err(unread)?;
        let (carried, row) = reading.row(&line, number);
        texts = texts.saturating_add(row.map_or(1, |row| row.texts()));
        seen.note(carried.key(), &carried.name(), number).map_err(|error| error.about(&input.name()))?;
    }
    Ok(Some(texts))
}

/// An LRU cache: values by key.
#[derive(Debug)]
pub(crate) struct LastUsed<K, V> {
    /// Values with the time of their last use, counted in uses.
    values: HashMap<K, (u64, V)>,
    uses: u64,
}

impl<K: Eq + Hash, V> LastUsed<K, V> {
    pub(crate) fn new() -> Self {
        Self { values: HashMap::new(), uses: 0 }
    }

    /// Returns the value, and counts that as a use.
    pub(crate) fn get(&mut self, key: &K) -> Option<&V> {
        self.uses += 1;
        let (used, value) = self.values.get_mut(key)?;
        *used = self.uses;
        Some(value)
    }

    /// Inserts a value, and counts that as a use.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        self.uses += 1;
        self.values.insert(key, (self.uses, value));
    }

    /// The value of a key, made if it is not there; then only the `most` values used last stay.
    pub(crate) fn get_or_make(&mut self, most: usize, key: K, make: impl FnOnce(&K) -> V) -> V
    where
        V: Clone,
    {
        if let Some(value) = self.get(&key) {
            return value.clone();
        }
        let value = make(&key);
        self.insert(key, value.clone());
        self.trim(most, |_| 1);
        value
    }

    pub(crate) fn remove(&mut self, key: &K) {
        self.values.remove(key);
    }

    /// Evicts the least recently used values until the rest weigh at most `most`, but never the value used
    /// last. Weighs every value anew, since weights may change. Returns how many went.
    pub(crate) fn trim(&mut self, most: usize, weigh: impl Fn(&V) -> usize) -> usize {
        let mut weights: Vec<(u64, usize)> =
            self.values.values().map(|(used, value)| (*used, weigh(value))).collect();
        weights.sort_unstable();
        let mut total = weights.iter().fold(0_usize, |sum, (_, weight)| sum.saturating_add(*weight));
        // The last one stays.
        weights.pop();
        let before = self.values.len();
        for (used, weight) in weights {
            if total <= most {
                break;
            }
            self.values.retain(|_, (of, _)| *of != used);
            total = total.saturating_sub(weight);
        }
        before - self.values.len()
    }

    /// All values, in no order.
    pub(crate) fn values(&self) -> impl ExactSizeIterator<Item = &V> {
        self.values.values().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_value_is_evicted() {
        let mut kept = LastUsed::new();
        let mut made = Vec::new();
        for key in [1, 2, 1, 3, 1, 2, 3, 3] {
            assert_eq!(
                kept.get_or_make(2, key, |&key| {
                    made.push(key);
                    key * 10
                }),
                key * 10
            );
        }
        assert_eq!(made, [1, 2, 3, 2, 3]);
    }
}
