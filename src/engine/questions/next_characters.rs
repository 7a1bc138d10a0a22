//! Finds the characters that may follow, for messages: UTF-8 sequences through the constraint.
//!
//! Depth-first search over the bytes of characters, memoised on the place in the grammar. Equal places have
//! equal characters, so that a class such as `[^"]` costs a dozen places instead of a million characters.

use std::{ops::RangeInclusive, rc::Rc};

use hashbrown::HashMap;

use crate::{
    ids::StateId,
    session::{Constraint, StepError},
};

/// Characters that may follow a text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NextChars {
    /// Ascending; between two of them is at least one character that cannot follow.
    pub ranges: Vec<RangeInclusive<char>>,
    /// Are these all of them? Otherwise the bound was reached, and more characters may follow.
    pub complete: bool,
}

/// Bytes that begin characters of two bytes and more.
const LEADS: RangeInclusive<u8> = 0xC2..=0xF4;
const CONTINUATIONS: RangeInclusive<u8> = 0x80..=0xBF;
/// Bits of a code point in a continuation byte.
const BITS: u32 = 6;
/// The code points that are no characters.
const SURROGATES: RangeInclusive<u32> = 0xD800..=0xDFFF;

impl Constraint {
    /// The characters that may follow as a whole, ascending; none where the text ends inside a character.
    /// Looks at no more than `places` places of the grammar, and at 256 bytes in each.
    ///
    /// # Errors
    /// When a budget is used up.
    pub fn next_chars(&mut self, places: usize) -> Result<NextChars, StepError> {
        let mut found = CodePoints { ranges: Vec::new() };
        let mut search = Search { known: HashMap::new(), room: places };
        if search.enter().is_none() {
            return Ok(found.into_chars(false));
        }
        for byte in self.next_bytes()? {
            if byte.is_ascii() {
                found.add(u32::from(byte), u32::from(byte));
            }
            if !LEADS.contains(&byte) {
                continue;
            }
            // 110xxxxx, 1110xxxx and 11110xxx begin characters of two, three and four bytes.
            let (length, first, prefix) = match byte {
                ..0xE0 => (1, 0x80, byte & 0x1F),
                0xE0..0xF0 => (2, 0x800, byte & 0x0F),
                0xF0.. => (3, 0x1_0000, byte & 0x07),
            };
            let base = u32::from(prefix) << (BITS * length);
            let Some(tails) = search.after(self, byte, length)? else {
                return Ok(found.into_chars(false));
            };
            for &(start, end) in tails.iter() {
                found.add_chars((base + start).max(first), base + end);
            }
        }
        Ok(found.into_chars(true))
    }
}

/// Code points as ranges, ascending and merged.
struct CodePoints {
    ranges: Vec<(u32, u32)>,
}

impl CodePoints {
    /// Adds a range past all others, if it is one.
    fn add(&mut self, start: u32, end: u32) {
        match self.ranges.last_mut() {
            _ if start > end => {}
            Some((_, last)) if *last + 1 == start => *last = end,
            _ => self.ranges.push((start, end)),
        }
    }

    /// Adds the characters of a range; encodings that are not UTF-8 may spell other code points.
    fn add_chars(&mut self, start: u32, end: u32) {
        self.add(start, end.min(SURROGATES.start() - 1));
        self.add(start.max(SURROGATES.end() + 1), end.min(u32::from(char::MAX)));
    }

    /// Converts the ranges to characters.
    fn into_chars(self, complete: bool) -> NextChars {
        let range = |&(start, end): &(u32, u32)| Some(char::from_u32(start)?..=char::from_u32(end)?);
        let mut ranges: Vec<RangeInclusive<char>> = Vec::new();
        for range in self.ranges.iter().filter_map(range) {
            match ranges.last_mut() {
                // Only surrogates are between them, which are no characters.
                Some(last)
                    if u32::from(*last.end()) + 1 == *SURROGATES.start()
                        && u32::from(*range.start()) == SURROGATES.end() + 1 =>
                {
                    *last = *last.start()..=*range.end();
                }
                _ => ranges.push(range),
            }
        }
        NextChars { ranges, complete }
    }
}

/// A place, and the number of continuation bytes to come. Each machine numbers its own states, and a session
/// may move to another machine, hence the address.
type CharacterKey = (usize, StateId, u32);

/// Values of some continuation bytes, ascending and merged.
type Tails = Rc<Vec<(u32, u32)>>;

struct Search {
    /// Known tails, each with a session in that place, which keeps its machine and so the address alive.
    known: HashMap<CharacterKey, (Tails, Constraint)>,
    /// Places that may still be looked at.
    room: usize,
}

impl Search {
    /// Counts one more place, if the bound allows.
    fn enter(&mut self) -> Option<()> {
        self.room = self.room.checked_sub(1)?;
        Some(())
    }

    /// Values of the `length` continuation bytes that may follow `byte`; `None` past the bound.
    fn after(&mut self, place: &Constraint, byte: u8, length: u32) -> Result<Option<Tails>, StepError> {
        let mut next = place.fork();
        if next.advance_bytes(&[byte])? == 0 {
            return Ok(Some(Rc::default()));
        }
        let key = |place: &Constraint| {
            place.look(|_, machine, state| Some((std::ptr::from_ref(machine).addr(), state?, length)))
        };
        if let Some((tails, _)) = key(&next).and_then(|key| self.known.get(&key)) {
            return Ok(Some(Rc::clone(tails)));
        }
        let Some(tails) = self.tails(&mut next, length)? else { return Ok(None) };
        if let Some(key) = key(&next) {
            self.known.insert(key, (Rc::clone(&tails), next));
        }
        Ok(Some(tails))
    }

    /// Values of the `length` continuation bytes that may follow; `None` past the bound.
    fn tails(&mut self, place: &mut Constraint, length: u32) -> Result<Option<Tails>, StepError> {
        if self.enter().is_none() {
            return Ok(None);
        }
        let mut found = CodePoints { ranges: Vec::new() };
        for byte in place.next_bytes()?.into_iter().filter(|byte| CONTINUATIONS.contains(byte)) {
            let value = u32::from(byte & 0x3F);
            if length == 1 {
                found.add(value, value);
                continue;
            }
            let base = value << (BITS * (length - 1));
            let Some(tails) = self.after(place, byte, length - 1)? else { return Ok(None) };
            for &(start, end) in tails.iter() {
                found.add(base + start, base + end);
            }
        }
        Ok(Some(Rc::new(found.ranges)))
    }
}

#[cfg(test)]
mod tests;
