//! Detects equal items of arrays (`uniqueItems`): a reader of JSON beside the parser, like that of keys.
//!
//! The parser cannot know which items have come without a parser set for each combination. So this reader
//! interns the items of each open array by value: numbers by their decimals, strings decoded, objects
//! whatever the order of keys. It reports an item that ends and equals an earlier one, and whether the item
//! at hand still may.
//!
//! It also keeps the parts of each item, each with its path. As soon as an item has a part that no earlier
//! item has, it equals none of them, whatever comes. Values and parts are byte strings: the path (a hash, in
//! which all places of an array are equal), a letter for the kind, and what the kind needs.
//!
//! An array whose items need not be distinct is dropped at its first comma ([`ArrayItems::decide`]).

mod ahead;
mod facts;
mod scalars;

use std::sync::Arc;

use self::{
    facts::{ItemFacts, fact},
    scalars::{Escape, ends_number, number_value, plain_number},
};
use super::behind_thought;
use crate::{
    grammar::thought::ThoughtReader,
    limits::{Budget, ITEM_BYTES, LimitExceeded},
    split_mix::mixed,
};

/// Length up to which strings are compared in full, in bytes; of longer ones the rest is hashed.
const LONG: usize = 256;
/// Marks the hash behind the beginning of a long string; no text has this byte.
const IS_LONG: u8 = 0xFF;
/// Number of digits of a number that are compared; past them, only their count is.
const MOST_DIGITS: usize = 400;

/// The reader's position in its JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
enum ItemPhase {
    #[default]
    Between,
    /// The text is in a number or a word.
    Bare,
    /// In a string that is a value.
    Text,
    /// The text is in a key.
    Key,
}

/// What may come between values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
enum Awaits {
    #[default]
    Value,
    Key,
    /// A comma, colon or bracket, as a value has ended.
    Mark,
}

/// The reason why the reader stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// The end of the bytes.
    End,
    /// An item that may end here and equals one before it.
    Repeat,
    /// The first comma of an array: [`ArrayItems::decide`] wants to be called.
    Comma,
}

/// An open object or array.
#[derive(Debug, Clone)]
struct ItemFrame {
    is_object: bool,
    /// Are the items of this array compared?
    is_watched: bool,
    /// Is `is_watched` known to be final?
    is_decided: bool,
    /// Values of the items, and their parts.
    used: ItemFacts,
    /// Facts (path, kind and value) of what it holds; the arrays around it file them with their items.
    parts: Vec<Arc<[u8]>>,
    /// Number of the parts that are in `used`.
    filed: usize,
    /// Bytes of `used` and `parts`.
    bytes: usize,
    /// The path of the items, or of the member at hand.
    path: u64,
    /// The path of the object itself.
    base: u64,
    /// Hash of all contents, and hash of the key at hand.
    hash: [u64; 2],
    key: [u64; 2],
    below: Option<Arc<ItemFrame>>,
}

impl Drop for ItemFrame {
    /// Drops the frames in a loop, as recursion would overflow the stack on deeply nested texts.
    fn drop(&mut self) {
        let mut below = self.below.take();
        while let Some(mut frame) = below.and_then(Arc::into_inner) {
            below = frame.below.take();
        }
    }
}

/// The items of all open arrays of a JSON text, as read so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct ArrayItems {
    phase: ItemPhase,
    awaits: Awaits,
    /// The string so far, decoded, up to [`LONG`] bytes; the text of a number or a word.
    scalar: Vec<u8>,
    /// Length and hash of the rest of a string past that.
    rest: (usize, [u64; 2]),
    escape: Escape,
    top: Option<Arc<ItemFrame>>,
    /// Number of watched frames.
    watched: u32,
    /// A bit for each watched frame, the outermost first: does the item at hand differ from all before it?
    novel: u64,
    /// Bytes of all values and parts.
    bytes: usize,
    /// Number of digits of the longest number.
    digits: usize,
    /// The thought before the JSON, if there may still be one.
    thought: Option<Box<ThoughtReader>>,
}

fn hashed(hash: [u64; 2], bytes: &[u8]) -> [u64; 2] {
    let [one, other] = bytes
        .iter()
        .fold(hash, |[one, other], &byte| [mixed(one, byte.into()), mixed(other, u64::from(byte) | 0x5500)]);
    [mixed(one, bytes.len() as u64), mixed(other, bytes.len() as u64 | 1 << 40)]
}

fn joined(hash: [u64; 2], more: [u64; 2]) -> [u64; 2] {
    [mixed(hash[0], more[0]), mixed(hash[1], more[1])]
}

impl ArrayItems {
    /// Creates a reader before any text.
    pub(in crate::json_readers) fn new(thought: Option<ThoughtReader>) -> Self {
        Self { thought: thought.map(Box::new), ..Self::default() }
    }

    /// Reads bytes up to an event. Returns how many were read.
    pub(in crate::json_readers) fn read(&mut self, bytes: &[u8]) -> Result<(usize, Event), LimitExceeded> {
        match behind_thought(&mut self.thought, bytes) {
            Some(json) => {
                let (read, event) = self.read_json(&json)?;
                Ok(((read + bytes.len()).saturating_sub(json.len()), event))
            }
            None => self.read_json(bytes),
        }
    }

    fn read_json(&mut self, bytes: &[u8]) -> Result<(usize, Event), LimitExceeded> {
        for (at, &byte) in bytes.iter().enumerate() {
            let event = match self.phase {
                ItemPhase::Between => self.between(byte)?,
                ItemPhase::Bare if ends_number(byte) => {
                    if let Some(fact) = self.bare_fact() {
                        self.end_value(&fact)?;
                    }
                    self.phase = ItemPhase::Between;
                    self.awaits = Awaits::Mark;
                    self.between(byte)?
                }
                ItemPhase::Bare => self.bare(byte),
                ItemPhase::Text | ItemPhase::Key => self.inside(byte)?,
            };
            if event != Event::End {
                return Ok((at + 1, event));
            }
        }
        Ok((bytes.len(), Event::End))
    }

    /// Decides whether the items of the array whose first comma was read are compared.
    pub(in crate::json_readers) fn decide(&mut self, is_watched: bool) {
        let Some(top) = &mut self.top else { return };
        let top = Arc::make_mut(top);
        top.is_decided = true;
        if !is_watched && top.is_watched {
            top.is_watched = false;
            self.bytes -= top.used.bytes();
            top.bytes -= top.used.bytes();
            top.used = ItemFacts::default();
            self.watched -= 1;
            self.novel &= !level_bit(self.watched);
        }
    }

    fn between(&mut self, byte: u8) -> Result<Event, LimitExceeded> {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => {}
            b':' => self.awaits = Awaits::Value,
            b',' => {
                let top = self.top.as_deref();
                let is_object = top.is_some_and(|top| top.is_object);
                self.awaits = if is_object { Awaits::Key } else { Awaits::Value };
                if top.is_some_and(|top| top.is_watched && !top.is_decided) {
                    return Ok(Event::Comma);
                }
            }
            b'"' => {
                self.phase = if self.awaits == Awaits::Key { ItemPhase::Key } else { ItemPhase::Text };
                self.scalar.clear();
                self.rest = (0, [0, 1]);
            }
            b'{' | b'[' => self.open(byte == b'{'),
            b'}' | b']' => return self.close(),
            _ => {
                self.phase = ItemPhase::Bare;
                self.scalar.clear();
                return Ok(self.bare(byte));
            }
        }
        Ok(Event::End)
    }

    fn bare(&mut self, byte: u8) -> Event {
        if self.watched == 0 {
            return Event::End;
        }
        self.scalar.push(byte);
        let repeats = self.bare_fact().is_some_and(|fact| self.is_repeated(&fact));
        if repeats { Event::Repeat } else { Event::End }
    }

    /// The number or word at hand, encoded, if it is complete.
    fn bare_fact(&self) -> Option<Vec<u8>> {
        match &*self.scalar {
            word @ (b"true" | b"false" | b"null") => Some(fact(self.path(), word[0], &[])),
            [b'-' | b'0'..=b'9', ..] => {
                number_value(&self.scalar).map(|value| fact(self.path(), b'0', &value))
            }
            _ => None,
        }
    }

    /// Reads a byte of a string.
    fn inside(&mut self, byte: u8) -> Result<Event, LimitExceeded> {
        if self.escape.is_open() {
            if let Some(character) = self.escape.push(byte) {
                self.add(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        } else if byte == b'\\' {
            self.escape.open();
        } else if byte == b'"' {
            return self.end_string();
        } else {
            self.add(&[byte]);
        }
        Ok(Event::End)
    }

    fn add(&mut self, bytes: &[u8]) {
        if self.watched == 0 {
            return;
        }
        for &byte in bytes {
            if self.scalar.len() < LONG {
                self.scalar.push(byte);
            } else {
                self.rest.0 += 1;
                self.rest.1 = joined(self.rest.1, [byte.into(), u64::from(byte) | 0xAA00]);
            }
        }
    }

    /// The string at hand, encoded as a value or part.
    fn string(&self, kind: u8) -> Vec<u8> {
        let mut fact = fact(self.path(), kind, &self.scalar);
        if self.rest.0 > 0 {
            fact.push(IS_LONG);
            fact.extend_from_slice(&self.rest.0.to_be_bytes());
            self.rest.1.iter().for_each(|half| fact.extend_from_slice(&half.to_be_bytes()));
        }
        fact
    }

    fn end_string(&mut self) -> Result<Event, LimitExceeded> {
        let is_key = self.phase == ItemPhase::Key;
        self.phase = ItemPhase::Between;
        self.awaits = Awaits::Mark;
        if self.watched == 0 {
            return Ok(Event::End);
        }
        if !is_key {
            return self.end_value(&self.string(b's'));
        }
        if let Some(base) = self.top.as_ref().map(|top| top.base)
            && let Some(top) = self.top.as_mut().map(Arc::make_mut)
        {
            top.path = base;
        }
        let key = self.string(b'k');
        self.note(&key);
        let Some(top) = self.top.as_mut().map(Arc::make_mut) else { return Ok(Event::End) };
        top.key = hashed([2, 3], &key);
        top.path = mixed(top.base, top.key[0]);
        let bytes = top.tell([key.into()]);
        self.charge(bytes)?;
        Ok(Event::End)
    }

    fn open(&mut self, is_object: bool) {
        let base = mixed(self.path(), if is_object { 1 } else { 2 });
        let kind = if is_object { b'{' } else { b'[' };
        let part = (self.watched > 0).then(|| fact(self.path(), kind, &[]));
        if let Some(part) = &part {
            self.note(part);
        }
        let frame = ItemFrame {
            is_object,
            is_watched: !is_object,
            is_decided: is_object,
            used: ItemFacts::default(),
            filed: usize::from(part.is_some()),
            bytes: part.as_ref().map_or(0, |part| part.len() + 1),
            parts: part.into_iter().map(Arc::from).collect(),
            path: base,
            base,
            hash: [u64::from(kind), 0],
            key: [0, 0],
            below: self.top.take(),
        };
        self.bytes += frame.bytes;
        self.top = Some(Arc::new(frame));
        if !is_object {
            self.novel &= !level_bit(self.watched);
            self.watched += 1;
        }
        self.awaits = if is_object { Awaits::Key } else { Awaits::Value };
    }

    fn close(&mut self) -> Result<Event, LimitExceeded> {
        let Some(top) = self.top.take() else { return Ok(Event::End) };
        self.awaits = Awaits::Mark;
        self.top = top.below.clone();
        if top.is_watched {
            self.watched -= 1;
            self.novel &= !level_bit(self.watched);
        }
        self.bytes -= top.bytes;
        if self.watched == 0 {
            return Ok(Event::End);
        }
        let hash = top.hash.map(u64::to_be_bytes).concat();
        let whole = fact(self.path(), b'h', &hash);
        let below = self.top.as_mut().map(Arc::make_mut);
        let bytes = below.map_or(0, |below| below.tell(top.parts.iter().cloned()));
        self.charge(bytes)?;
        self.end_value(&whole)
    }

    /// The path of the value at hand.
    fn path(&self) -> u64 {
        self.top.as_ref().map_or(0, |top| top.path)
    }

    /// Does this value equal an earlier item of the array that it would be an item of?
    fn is_repeated(&self, fact: &[u8]) -> bool {
        self.top.as_ref().is_some_and(|top| top.is_watched && top.used.contains(fact))
    }

    /// Iterates over the watched frames and their bits, the innermost first.
    fn watched_frames(&self) -> impl Iterator<Item = (&ItemFrame, u64)> {
        let frames = std::iter::successors(self.top.as_deref(), |frame| frame.below.as_deref());
        let watched = frames.filter(|frame| frame.is_watched).take(self.watched as usize);
        watched.zip((0..self.watched).rev().map(level_bit))
    }

    /// Is the value at hand a direct item of this frame?
    fn is_innermost(&self, frame: &ItemFrame) -> bool {
        self.top.as_deref().is_some_and(|top| std::ptr::eq(top, frame))
    }

    /// Adds a part to the items at hand of the enclosing arrays.
    fn note(&mut self, part: &[u8]) {
        let outer = self.watched_frames().filter(|(frame, _)| !self.is_innermost(frame));
        let new = outer.filter(|(frame, _)| !frame.used.contains(part));
        self.novel |= new.fold(0, |bits, (_, bit)| bits | bit);
    }

    /// Files a value that has ended.
    fn end_value(&mut self, value: &[u8]) -> Result<Event, LimitExceeded> {
        if self.watched == 0 {
            return Ok(Event::End);
        }
        self.note(value);
        let is_repeated = self.is_repeated(value);
        let outer = self.watched > 1 || self.top.as_ref().is_some_and(|top| !top.is_watched);
        let level = self.watched - 1;
        let Some(top) = self.top.as_mut().map(Arc::make_mut) else { return Ok(Event::End) };
        // The order of members does not matter, that of items does.
        let hash = hashed([5, 7], value);
        if top.is_object {
            let member = joined(top.key, hash);
            top.hash = [top.hash[0].wrapping_add(member[0]), top.hash[1].wrapping_add(member[1])];
        } else {
            top.hash = joined(top.hash, hash);
        }
        let value: Arc<[u8]> = value.into();
        let (before, mut event) = (top.bytes, Event::End);
        if top.is_watched {
            if is_repeated {
                event = Event::Repeat;
            } else {
                top.file(&value);
            }
            self.novel &= !level_bit(level);
        }
        if outer {
            top.tell([value]);
            top.filed = top.parts.len();
        } else {
            top.forget_parts();
        }
        let after = top.bytes;
        self.digits = self.digits.max(self.scalar.len().min(MOST_DIGITS));
        self.bytes = self.bytes + after - before;
        self.charge(0)?;
        Ok(event)
    }

    /// Counts bytes that are kept against the budget.
    fn charge(&mut self, bytes: usize) -> Result<(), LimitExceeded> {
        self.bytes += bytes;
        if self.bytes > ITEM_BYTES {
            return Err(LimitExceeded::new(Budget::Fixed, "bytes of the items of open arrays", ITEM_BYTES));
        }
        Ok(())
    }
}

impl ItemFrame {
    /// Adds parts for the enclosing arrays. Returns their bytes.
    fn tell(&mut self, parts: impl IntoIterator<Item = Arc<[u8]>>) -> usize {
        let from = self.parts.len();
        self.parts.extend(parts);
        let bytes = self.parts[from..].iter().map(|part| part.len() + 1).sum();
        self.bytes += bytes;
        bytes
    }

    /// Files an item and its parts.
    fn file(&mut self, value: &Arc<[u8]>) {
        let before = self.used.bytes();
        self.used.insert(Arc::clone(value));
        if value[8] == b'0'
            && let Some(plain) = plain_number(&value[9..])
        {
            self.used.insert(fact(self.path, b'#', &plain).into());
        }
        for part in &self.parts[self.filed..] {
            self.used.insert(Arc::clone(part));
        }
        self.bytes += self.used.bytes() - before;
    }

    /// Drops the parts, as no enclosing array needs them.
    fn forget_parts(&mut self) {
        self.bytes -= self.parts.iter().map(|part| part.len() + 1).sum::<usize>();
        self.parts.clear();
        self.filed = 0;
    }
}

/// Returns the bit of the watched frame that has `level` others below it. Frames past the 64th have none:
/// their items count as possibly equal.
fn level_bit(level: u32) -> u64 {
    1_u64.checked_shl(level).unwrap_or(0)
}
