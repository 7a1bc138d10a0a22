//! Questions about the item at hand: can it still equal one that came before?

use super::{ArrayItems, Awaits, IS_LONG, ItemFrame, ItemPhase, LONG, fact, scalars::number_place};
use crate::machine::{Fingerprint, with_bytes, with_number};

impl ArrayItems {
    /// Is no array open whose items are compared?
    pub(in crate::json_readers) fn is_idle(&self) -> bool {
        self.watched == 0
    }

    /// Has an item come that may not come again?
    pub(in crate::json_readers) fn is_any(&self) -> bool {
        self.watched_frames().any(|(frame, _)| !frame.used.is_empty())
    }

    /// Is the text in a string?
    pub(in crate::json_readers) fn is_in_string(&self) -> bool {
        matches!(self.phase, ItemPhase::Text | ItemPhase::Key)
    }

    /// May a value begin here?
    pub(in crate::json_readers) fn is_before_value(&self) -> bool {
        self.phase == ItemPhase::Between && self.awaits == Awaits::Value
    }

    /// Is the text inside an escape?
    pub(in crate::json_readers) fn is_in_escape(&self) -> bool {
        self.is_in_string() && self.escape.is_open()
    }

    /// Is the text in an escape, or in a string that `more` bytes make long enough to be compared by a hash?
    pub(in crate::json_readers) fn is_in_part(&self, more: usize) -> bool {
        self.is_in_string() && (self.escape.is_open() || self.scalar.len() + more >= LONG)
    }

    /// Do all items at hand differ from those before them in their arrays, whatever comes? An item that has
    /// not begun does where there is always another value, that is, unless `runs_out`.
    pub(crate) fn are_settled(&self, runs_out: bool) -> bool {
        self.watched_frames().all(|(frame, bit)| {
            if frame.used.is_empty() || self.novel & bit != 0 {
                return true;
            }
            match (self.phase, self.is_innermost(frame)) {
                // What is open in the item goes on in endlessly many ways.
                (_, false) if !runs_out => true,
                (ItemPhase::Between, true) => self.awaits != Awaits::Value || !runs_out,
                (ItemPhase::Between, false) => false,
                (ItemPhase::Text, _) => !frame.used.has_beginning(&self.begun(b's')),
                (ItemPhase::Key, _) => !frame.used.has_beginning(&self.begun(b'k')),
                (ItemPhase::Bare, _) => match self.scalar.first() {
                    Some(word @ (b't' | b'f' | b'n')) => !frame.used.contains(&fact(self.path(), *word, &[])),
                    _ => !frame.used.has_beginning(&fact(self.path(), b'0', &[])),
                },
            }
        })
    }

    /// Would all items at hand differ if the number or word at hand ended here? False if it is not whole, or
    /// if there is none.
    pub(in crate::json_readers) fn are_settled_by_end(&self) -> bool {
        if self.phase != ItemPhase::Bare {
            return false;
        }
        let Some(value) = self.bare_fact() else { return false };
        self.watched_frames().all(|(frame, bit)| self.novel & bit != 0 || !frame.used.contains(&value))
    }

    /// Returns the rests of earlier items' strings that begin like the string at hand, or, between values,
    /// like a string that may come. Long strings give only their beginning.
    pub(in crate::json_readers) fn rests(&self) -> Vec<&[u8]> {
        let is_key = match self.phase {
            ItemPhase::Key => true,
            ItemPhase::Between => self.awaits == Awaits::Key,
            ItemPhase::Text | ItemPhase::Bare => false,
        };
        let path = match &self.top {
            Some(top) if is_key => top.base,
            _ => self.path(),
        };
        let begun = if self.is_in_string() { &self.scalar[..] } else { &[] };
        let begun = fact(path, if is_key { b'k' } else { b's' }, begun);
        let mut rests = Vec::new();
        self.watched_frames().for_each(|(frame, _)| frame.used.rests(&begun, &mut rests));
        rests.into_iter().map(|rest| rest.split(|&byte| byte == IS_LONG).next().unwrap_or_default()).collect()
    }

    /// Returns the digits that earlier integer items have after the digits at hand. `None` unless these are,
    /// or may be, an item of the only array whose items are compared, and also after a decimal point.
    pub(in crate::json_readers) fn digits_ahead(&self) -> Option<Vec<&[u8]>> {
        let top = self.top.as_ref().filter(|_| self.is_flat())?;
        let begun = match self.phase {
            ItemPhase::Bare => &self.scalar[..],
            ItemPhase::Between if self.awaits == Awaits::Value => &[],
            _ => return None,
        };
        let digits = begun.strip_prefix(b"-").unwrap_or(begun);
        let mut rests = Vec::new();
        top.used.rests(&fact(top.path, b'#', begun), &mut rests);
        digits.iter().all(u8::is_ascii_digit).then_some(rests)
    }

    /// Is the value at hand, or the one that may come, an item of an array whose items are compared?
    pub(in crate::json_readers) fn is_item(&self) -> bool {
        self.top.as_ref().is_some_and(|top| top.is_watched)
    }

    /// Is the value at hand, or the one that may come, an item of the only array whose items are compared?
    pub(in crate::json_readers) fn is_flat(&self) -> bool {
        self.watched == 1 && self.top.as_ref().is_some_and(|top| top.is_watched)
    }

    /// Do fewer than `ways` strings of earlier items begin like the string at hand?
    pub(in crate::json_readers) fn are_fewer_than(&self, ways: usize) -> bool {
        if self.phase != ItemPhase::Text || self.escape.is_open() || self.scalar.len() >= LONG {
            return false;
        }
        let begun = self.begun(b's');
        let count = |(frame, bit): (&ItemFrame, u64)| match self.novel & bit {
            0 => frame.used.count(&begun, ways),
            _ => 0,
        };
        self.watched_frames().map(count).sum::<usize>() < ways
    }

    /// Are all strings that the one at hand may become items already? Counts the items that begin like it
    /// and whose rest `is_one` accepts, against `all`, the number of such strings. `false` unless the string
    /// is an item of the only array whose items are compared.
    pub(in crate::json_readers) fn have_all(&self, all: usize, is_one: impl Fn(&[u8]) -> bool) -> bool {
        if self.phase != ItemPhase::Text || self.escape.is_open() || self.rest.0 > 0 || self.novel > 0 {
            return false;
        }
        let Some(top) = self.top.as_ref().filter(|_| self.is_flat()) else { return false };
        let mut rests = Vec::new();
        top.used.rests(&self.begun(b's'), &mut rests);
        rests.len() >= all && rests.into_iter().filter(|rest| is_one(rest)).count() >= all
    }

    /// May the search for a way out skip this byte? It escapes a character that may stand for itself.
    pub(in crate::json_readers) fn is_in_vain(&self, byte: u8) -> bool {
        self.is_in_string() && self.escape.is_in_vain(byte)
    }

    /// Does this byte, which is no quote and no backslash, make the string at hand differ from all earlier
    /// items?
    pub(in crate::json_readers) fn is_left_by(&self, byte: u8) -> bool {
        if !self.is_in_string() || self.escape.is_open() || self.rest.0 > 0 || self.scalar.len() >= LONG {
            return false;
        }
        let kind = if self.phase == ItemPhase::Key { b'k' } else { b's' };
        let mut longer = self.begun(kind);
        longer.push(byte);
        self.watched_frames().all(|(frame, bit)| {
            frame.used.is_empty() || self.novel & bit != 0 || !frame.used.has_beginning(&longer)
        })
    }

    /// The string at hand so far, as the beginning of a value.
    fn begun(&self, kind: u8) -> Vec<u8> {
        let path = match (self.phase, &self.top) {
            (ItemPhase::Key, Some(top)) => top.base,
            _ => self.path(),
        };
        fact(path, kind, &self.scalar)
    }

    /// Returns a hash of the place. Numbers that go on alike have equal hashes, whatever their digits so far.
    pub(in crate::json_readers) fn place(&self) -> u64 {
        let place = match self.phase {
            ItemPhase::Bare => self.hashed([0, 1], &number_place(&self.scalar, self.digits + 1)),
            _ => self.hashed([0, 1], &self.scalar),
        };
        place[0]
    }

    /// Adds everything that this reader's answers depend on to a hash.
    pub(crate) fn fingerprint(&self, before: Fingerprint) -> Fingerprint {
        self.hashed(with_number(before, self.digits as u64), &self.scalar)
    }

    /// Adds all fields but the digits to a hash, with this spelling of the string or number at hand. The
    /// hashes of frames stand for the values in them.
    fn hashed(&self, before: Fingerprint, scalar: &[u8]) -> Fingerprint {
        let flags = |frame: &ItemFrame| {
            let flags = [frame.is_object, frame.is_watched, frame.is_decided];
            flags.into_iter().fold(1, |bits, flag| bits << 1 | u64::from(flag))
        };
        let mut hash = with_number(before, self.phase as u64 | (self.awaits as u64) << 8);
        hash = with_bytes(with_number(hash, self.novel), self.escape.begun());
        if self.phase != ItemPhase::Between {
            hash = with_bytes(hash, scalar);
        }
        if self.is_in_string() {
            let (length, [one, other]) = self.rest;
            hash = [length as u64, one, other].into_iter().fold(hash, with_number);
        }
        for frame in std::iter::successors(self.top.as_deref(), |frame| frame.below.as_deref()) {
            let ([one, other], [key, rest]) = (frame.hash, frame.key);
            hash = [flags(frame), frame.path, one, other, key, rest].into_iter().fold(hash, with_number);
        }
        hash
    }

    /// Memory that is not shared, in bytes.
    pub(in crate::json_readers) fn own_bytes(&self) -> usize {
        size_of_val(self) + self.scalar.capacity()
    }
}
