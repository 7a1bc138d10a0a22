//! Rejects duplicate keys of JSON objects: a reader beside the parser.
//!
//! If parser sets knew which keys have come, every mask inside a value would depend on them. So the machine
//! does not know, and its masks are shared. Each session reads its own text once more, keeps the keys of the
//! open objects, and removes from each mask the tokens with which one of them would come again.

use std::sync::{Arc, OnceLock};
use std::{borrow::Cow, cmp::Ordering};

use super::behind_thought;
use crate::grammar::{Thought, thought::ThoughtReader};
use crate::ids::{ScanStateId, TokenId, TrieNodeId};
use crate::limits::{Budget, KEY_BYTES, LimitExceeded};
use crate::machine::{Fingerprint, with_bytes, with_number};
use crate::masks::Enclosed;
use crate::program::{Program, ScarceKeys};
use crate::vocab::{ByteTrie, TokenSet};

/// Bytes of the longest escape: a surrogate pair.
const LONGEST_ESCAPE: usize = 12;

/// Does an object of this JSON text, perhaps behind a thought, have a key twice? Linear.
pub(crate) fn has_key_twice(text: &[u8], thought: Option<&Thought>) -> Result<bool, LimitExceeded> {
    let thought = thought.map(|thought| ThoughtReader::new(Arc::new(thought.clone())));
    Ok(ObjectKeys::new(None, thought).read(text)? < text.len())
}

/// The reader's position in its JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum KeyPhase {
    #[default]
    Between,
    /// In a string that is a value.
    Text,
    /// The text is in a key.
    Key,
}

/// An open object or array.
#[derive(Debug, Clone)]
struct Frame {
    is_object: bool,
    keys: KeySet,
    /// Bytes of all keys.
    bytes: usize,
    /// Have this frame or those below a key of a terminal that [can run out](ScarceKeys)?
    is_scarce: bool,
    /// Hash of the keys, in order, and of the frames below.
    fingerprint: Fingerprint,
    below: Option<Arc<Frame>>,
}

impl Drop for Frame {
    /// Drops the frames in a loop, as recursion would overflow the stack on deeply nested texts.
    fn drop(&mut self) {
        let mut below = self.below.take();
        while let Some(mut frame) = below.and_then(Arc::into_inner) {
            below = frame.below.take();
        }
    }
}

/// The effect of some bytes on the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyChange {
    Nothing,
    /// Only the key at hand changes: it gets longer.
    Spelling,
    Any,
}

/// The keys of all open objects of a JSON text, as read so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct ObjectKeys {
    phase: KeyPhase,
    /// Was the last byte of a string a backslash that escapes the next?
    escaping: bool,
    /// Is the next string a key?
    awaits_key: bool,
    /// The key at hand, as it is spelt.
    spelt: Vec<u8>,
    /// Is it known to differ from all keys so far, however it goes on?
    is_new: bool,
    top: Option<Arc<Frame>>,
    /// Bytes of the keys of all open objects, and one for each.
    bytes: usize,
    /// The key terminals that can run out; `None` if no key can.
    scarce: Option<Arc<ScarceKeys>>,
    /// The thought before the JSON, if there may still be one.
    thought: Option<Box<ThoughtReader>>,
}

impl ObjectKeys {
    /// Creates a reader before any text; `scarce` are the key terminals that can run out.
    pub(super) fn new(scarce: Option<Arc<ScarceKeys>>, thought: Option<ThoughtReader>) -> Self {
        Self { scarce, thought: thought.map(Box::new), ..Self::default() }
    }

    /// Reads bytes up to the end of a key that has come before. Returns how many were read.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<usize, LimitExceeded> {
        match behind_thought(&mut self.thought, bytes) {
            Some(json) => Ok((self.read_json(&json)? + bytes.len()).saturating_sub(json.len())),
            None => self.read_json(bytes),
        }
    }

    fn read_json(&mut self, bytes: &[u8]) -> Result<usize, LimitExceeded> {
        for (at, &byte) in bytes.iter().enumerate() {
            if self.phase == KeyPhase::Between {
                self.between(byte);
                continue;
            }
            let ends = byte == b'"' && !self.escaping;
            self.escaping = byte == b'\\' && !self.escaping;
            if ends {
                if self.phase == KeyPhase::Key && !self.end_key()? {
                    return Ok(at);
                }
                self.phase = KeyPhase::Between;
            } else if self.phase == KeyPhase::Key {
                self.spelt.push(byte);
            }
        }
        Ok(bytes.len())
    }

    /// Returns the effect of reading these bytes.
    pub(crate) fn change(&self, bytes: &[u8]) -> KeyChange {
        let is_any = match self.phase {
            _ if self.thought.is_some() => true,
            KeyPhase::Between => {
                bytes.iter().any(|byte| matches!(byte, b'"' | b'{' | b'[' | b'}' | b']' | b',' | b':'))
            }
            KeyPhase::Text | KeyPhase::Key => {
                self.escaping || bytes.iter().any(|byte| matches!(byte, b'"' | b'\\'))
            }
        };
        match (is_any, self.phase) {
            (true, _) => KeyChange::Any,
            (false, KeyPhase::Key) => KeyChange::Spelling,
            (false, _) => KeyChange::Nothing,
        }
    }

    /// Undoes [`KeyChange::Spelling`]: removes the last `bytes` bytes of the key at hand.
    pub(super) fn shorten(&mut self, bytes: usize) {
        self.spelt.truncate(self.spelt.len().saturating_sub(bytes));
        self.is_new = false;
    }

    fn between(&mut self, byte: u8) {
        match byte {
            b'"' if self.awaits_key => {
                self.phase = KeyPhase::Key;
                self.spelt.clear();
                self.is_new = false;
            }
            b'"' => self.phase = KeyPhase::Text,
            b'{' | b'[' => {
                let is_object = byte == b'{';
                let below = self.top.take();
                let fingerprint = below.as_ref().map_or([0, 0], |frame| frame.fingerprint);
                let fingerprint = with_number(fingerprint, u64::from(is_object));
                let is_scarce = below.as_ref().is_some_and(|frame| frame.is_scarce);
                let keys = KeySet::default();
                self.top = Some(Arc::new(Frame { is_object, keys, bytes: 0, is_scarce, fingerprint, below }));
                self.awaits_key = is_object;
            }
            b'}' | b']' => {
                let below = self.top.as_ref().and_then(|top| top.below.clone());
                self.bytes -= self.top.as_ref().map_or(0, |top| top.bytes);
                self.top = below;
                self.awaits_key = false;
            }
            b',' => self.awaits_key = self.top.as_ref().is_some_and(|top| top.is_object),
            b':' => self.awaits_key = false,
            _ => {}
        }
    }

    /// Files the key that has ended. Returns `false`, and files nothing, if it has come before.
    fn end_key(&mut self) -> Result<bool, LimitExceeded> {
        let (Some(key), Some(top)) = (decoded(&self.spelt), &mut self.top) else { return Ok(true) };
        if top.keys.contains(&key) {
            return Ok(false);
        }
        let bytes = key.len() + 1;
        if self.bytes + bytes > KEY_BYTES {
            return Err(LimitExceeded::new(Budget::Fixed, "bytes of the keys of open objects", KEY_BYTES));
        }
        let top = Arc::make_mut(top);
        top.is_scarce = top.is_scarce || self.scarce.as_ref().is_some_and(|scarce| scarce.may_have(&key));
        top.keys.insert(&key);
        top.fingerprint = with_bytes(top.fingerprint, key.as_bytes());
        top.bytes += bytes;
        self.bytes += bytes;
        self.awaits_key = false;
        self.spelt.clear();
        Ok(true)
    }

    /// Has any key of an open object come?
    pub(super) fn is_any(&self) -> bool {
        self.bytes > 0
    }

    /// Has an open object a key of a terminal that can run out? If not, no key runs out.
    pub(crate) fn are_scarce(&self) -> bool {
        self.top.as_ref().is_some_and(|top| top.is_scarce)
    }

    /// Could all keys that the key at hand may become have come? A necessary condition.
    pub(crate) fn may_run_out(&self) -> bool {
        self.are_scarce() && self.may_come_again()
    }

    /// Can the terminal complete more keys from this scanner state than have come? Compares two counts;
    /// `false` where it cannot tell.
    pub(crate) fn leaves_some(&self, program: &Program, state: ScanStateId) -> bool {
        let all = program.strings(state).plain;
        if all == 0 || self.phase != KeyPhase::Key || self.is_spelt_in_part() {
            return false;
        }
        let Some(begun) = self.begun() else { return true };
        let all = all as usize;
        let come = begun.rests().filter(|rest| program.goes_on_by(state, rest));
        begun.keys.iter().map(|keys| keys.len()).sum::<usize>() < all || come.take(all).count() < all
    }

    /// Is the text in a key?
    pub(super) fn is_in_key(&self) -> bool {
        self.phase == KeyPhase::Key
    }

    /// The key at hand, normalised so that spellings that go on alike are equal.
    pub(crate) fn spelt(&self) -> Cow<'_, [u8]> {
        match decoded(&self.spelt) {
            Some(Cow::Owned(text)) => Cow::Owned(text.into_bytes()),
            _ => Cow::Borrowed(&self.spelt),
        }
    }

    /// Are both at the same place of the same object?
    pub(crate) fn is_where(&self, other: &Self) -> bool {
        let same_object = match (&self.top, &other.top) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        same_object
            && (self.phase, self.escaping) == (other.phase, other.escaping)
            && self.spelt == other.spelt
    }

    /// The key at hand with the keys that begin so, if there are any.
    pub(crate) fn begun(&self) -> Option<KeyPrefix<'_>> {
        let top = self.top.as_ref().filter(|_| self.phase == KeyPhase::Key)?;
        let text = match self.spelt.contains(&b'\\') {
            true => Cow::Owned(decoded(&self.spelt)?.into_owned().into_bytes()),
            false => Cow::Borrowed(&*self.spelt),
        };
        let keys: Vec<&[Filed]> = top.keys.beginning_with(&text).collect();
        (!keys.is_empty()).then_some(KeyPrefix { keys, known: text.len() })
    }

    /// Is the string a key of an open object that a token can be back in after `before` bytes?
    fn may_file(&self, spelt: &[u8], before: usize) -> bool {
        let Some(key) = decoded(spelt) else { return false };
        let frames = std::iter::successors(self.top.as_deref(), |frame| frame.below.as_deref());
        // Each byte closes one at most.
        frames.take(before + 1).any(|frame| frame.keys.contains(&key))
    }

    /// Would the text, with these bytes after it, have a key twice?
    fn refuses(&self, bytes: &[u8]) -> Result<bool, LimitExceeded> {
        Ok(self.clone().read(bytes)? < bytes.len())
    }

    /// Returns the tokens of a mask with which a key would come again; `enclosed` are those that span
    /// strings.
    pub(crate) fn repeating(
        &self,
        program: &Program,
        mask: &TokenSet,
        enclosed: Option<&Enclosed>,
    ) -> Result<Vec<TokenId>, LimitExceeded> {
        let (vocabulary, quoted) = (&program.vocabulary, program.vocabulary.quoted());
        let mut found = Vec::new();
        let (of_three, of_four) = enclosed.map_or((&[][..], &[][..]), |all| (all.of_three(), all.of_four()));
        let mut try_all = |tokens: &[TokenId]| -> Result<(), LimitExceeded> {
            for &token in tokens.iter().filter(|&&token| mask.contains(token)) {
                if self.refuses(vocabulary.bytes(token).unwrap_or_default())? {
                    found.push(token);
                }
            }
            Ok(())
        };
        // A token repeats a key only if the key ends in it; how many quotes that takes depends on the phase.
        match self.phase {
            KeyPhase::Between if self.is_any() => {
                try_all(of_four)?;
                // Of the others only one string begins and ends in them: the only key that may come again.
                for (spelt, before, tokens) in enclosed.iter().flat_map(|all| all.strings(quoted)) {
                    if self.may_file(spelt, before) {
                        try_all(tokens)?;
                    }
                }
            }
            KeyPhase::Between => try_all(of_four)?,
            KeyPhase::Text if self.is_any() => try_all(of_three)?,
            KeyPhase::Text => try_all(of_four)?,
            KeyPhase::Key if self.is_new => try_all(of_three)?,
            KeyPhase::Key if self.is_spelt_in_part() => try_all(&quoted.by_count[0])?,
            KeyPhase::Key => {
                try_all(of_three)?;
                let Some(begun) = self.begun() else { return Ok(found) };
                try_all(&quoted.escaping)?;
                let trie = vocabulary.trie();
                // Longer rests than this no token spells up to the closing quote.
                let most = begun.known + quoted.most_before;
                for key in begun.keys().filter(|filed| filed.length() <= most).map(Filed::key) {
                    let look_up = || {
                        let rest = key.text().get(begun.known..).unwrap_or_default();
                        let spelt = serde_json::to_string(rest).unwrap_or_default();
                        node_of(trie, &spelt.as_bytes()[1..])
                    };
                    let node = if begun.known == 0 { key.node(look_up) } else { look_up() };
                    let Some(node) = node else { continue };
                    let tokens = trie.tokens_at(trie.subtree_tokens(node));
                    found.extend(tokens.iter().filter(|&&token| mask.contains(token)));
                }
            }
        }
        Ok(found)
    }

    /// Returns the tokens of a mask that may end in a key which can only become one that has come before. No
    /// false negatives, no token twice.
    pub(crate) fn running_out(&self, program: &Program, mask: &TokenSet) -> Vec<TokenId> {
        let (vocabulary, quoted) = (&program.vocabulary, program.vocabulary.quoted());
        if !self.are_scarce() {
            // In the token a scarce key must end, and another key begin.
            let renewing = match self.phase {
                KeyPhase::Key => &quoted.renewing[0],
                KeyPhase::Between => &quoted.renewing[1],
                KeyPhase::Text => &quoted.renewing[2],
            };
            return renewing.iter().copied().filter(|&token| mask.contains(token)).collect();
        }
        let mut found = match self.phase {
            // Quotes that a token needs to end in a key.
            KeyPhase::Between => quoted.by_count[0].clone(),
            KeyPhase::Text => quoted.by_count[1].clone(),
            // A key that is none of those already can only be followed by one.
            KeyPhase::Key if !self.may_come_again() => quoted.by_count[1].clone(),
            KeyPhase::Key if self.is_spelt_in_part() => return mask.iter().collect(),
            // Or it goes on as one of the keys does, or in another spelling.
            KeyPhase::Key => {
                let mut found = quoted.by_count[1].clone();
                found.extend(&quoted.backslashed);
                let trie = vocabulary.trie();
                let begun = self.begun();
                for rest in begun.iter().flat_map(KeyPrefix::rests) {
                    let nodes = nodes_along(trie, rest);
                    found.extend(nodes.flat_map(|node| trie.tokens_at(trie.own_tokens(node))));
                }
                found
            }
        };
        found.retain(|&token| mask.contains(token));
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Does any key that has come begin like the key at hand? An unfinished escape or character at its end
    /// may become anything.
    fn may_come_again(&self) -> bool {
        let is_open = self.phase == KeyPhase::Key && !self.is_new;
        let Some(top) = self.top.as_ref().filter(|_| is_open) else { return false };
        let mut ends = (0..=LONGEST_ESCAPE.min(self.spelt.len())).map(|cut| self.spelt.len() - cut);
        let known = ends.find_map(|end| decoded(&self.spelt[..end]));
        known.is_none_or(|known| top.keys.beginning_with(known.as_bytes()).next().is_some())
    }

    /// Caches whether the key at hand may still equal one that has come.
    pub(crate) fn settle(&mut self) {
        self.is_new = self.phase == KeyPhase::Key && !self.may_come_again();
    }

    /// Does the spelling of the key at hand end inside a character?
    fn is_spelt_in_part(&self) -> bool {
        decoded(&self.spelt).is_none()
    }

    /// Adds everything that this reader's answers depend on to a hash.
    pub(crate) fn fingerprint(&self, fingerprint: Fingerprint) -> Fingerprint {
        let flags = self.phase as u64 | u64::from(self.escaping) << 8 | u64::from(self.awaits_key) << 9;
        let [one, other] = self.top.as_ref().map_or([0, 0], |top| top.fingerprint);
        let fingerprint = [flags, one, other].into_iter().fold(fingerprint, with_number);
        if self.is_in_key() { with_bytes(fingerprint, &self.spelt) } else { fingerprint }
    }

    /// Memory on the heap that it does not share, in bytes.
    pub(super) fn own_bytes(&self) -> usize {
        self.spelt.capacity()
    }
}

/// A string that is the beginning of some keys.
pub(crate) struct KeyPrefix<'k> {
    /// Ranges of those keys, none empty.
    keys: Vec<&'k [Filed]>,
    /// Number of its bytes.
    known: usize,
}

impl KeyPrefix<'_> {
    fn keys(&self) -> impl Iterator<Item = &Filed> {
        self.keys.iter().copied().flatten()
    }

    /// The rests of those keys; empty for the string itself.
    fn rests(&self) -> impl Iterator<Item = &[u8]> {
        self.keys().map(|filed| &filed.key().text().as_bytes()[self.known..])
    }

    /// Is it one of the keys?
    pub(crate) fn is_whole(&self) -> bool {
        self.rests().any(<[u8]>::is_empty)
    }

    /// Does no key go on with this byte?
    pub(crate) fn is_left_by(&self, byte: u8) -> bool {
        !matches!(byte, b'"' | b'\\') && self.rests().all(|rest| rest.first() != Some(&byte))
    }
}

/// Decodes the inside of a string in quotes; `None` if it ends inside a character.
fn decoded(spelt: &[u8]) -> Option<Cow<'_, str>> {
    if !spelt.contains(&b'\\') {
        return std::str::from_utf8(spelt).ok().map(Cow::Borrowed);
    }
    let quoted = [b"\"", spelt, b"\""].concat();
    serde_json::from_slice::<String>(&quoted).ok().map(Cow::Owned)
}

/// Returns the trie node of a string.
pub(super) fn node_of(trie: &ByteTrie, text: &[u8]) -> Option<TrieNodeId> {
    nodes_along(trie, text).nth(text.len().checked_sub(1)?)
}

/// Returns the trie nodes of a string's prefixes, as far as there are any.
pub(super) fn nodes_along<'a>(trie: &'a ByteTrie, text: &'a [u8]) -> impl Iterator<Item = TrieNodeId> + 'a {
    let mut last: Option<TrieNodeId> = None;
    text.iter().map_while(move |&byte| {
        let next = match last {
            None => trie.root_child(byte),
            Some(node) => {
                let mut child = TrieNodeId::new(node.raw() + 1);
                while child < trie.end(node) && trie.byte(child) != byte {
                    child = trie.end(child);
                }
                (child < trie.end(node)).then_some(child)
            }
        };
        last = next;
        next
    })
}

// The keys of an open object are a persistent ordered set with look-ups by prefix.
//
// Method: the logarithmic method (Bentley and Saxe). The set is a list of sorted runs, each longer than the
// next, which the moments of a text share. A new key is a run of its own, merged with those before it that
// are no longer. So `n` keys cost `O(n log n)` in all though every moment keeps its set, and a look-up is a
// binary search in each of `O(log n)` runs.

/// Number of bytes in a head.
const HEAD: usize = 8;

/// A key of an open object.
#[derive(Debug)]
struct ObjectKey {
    text: Box<str>,
    /// Trie node of its spelling without escapes and with the closing quote, once it was looked up.
    spelt: OnceLock<Option<TrieNodeId>>,
}

impl ObjectKey {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The trie node of its spelling up to the closing quote, looked up once.
    pub(super) fn node(&self, look_up: impl FnOnce() -> Option<TrieNodeId>) -> Option<TrieNodeId> {
        *self.spelt.get_or_init(look_up)
    }
}

/// An entry of a run.
#[derive(Debug, Clone)]
struct Filed {
    /// The [`head`] of the key, so that most comparisons look at nothing else.
    head: u64,
    /// Length of the key in bytes.
    length: usize,
    key: Arc<ObjectKey>,
}

impl Filed {
    pub(super) fn key(&self) -> &ObjectKey {
        &self.key
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Compares the key with a text, bytewise; `head` is that of the text.
    fn order(&self, head: u64, text: &[u8]) -> Ordering {
        self.head.cmp(&head).then_with(|| self.key.text.as_bytes().cmp(text))
    }
}

/// A set of keys. Cloning shares them.
#[derive(Debug, Clone, Default)]
struct KeySet {
    /// Runs, each sorted by text and longer than the next.
    runs: Vec<Arc<[Filed]>>,
    /// Bit `n` is set if a key has `n` bytes, bit 63 if one has more than 62.
    lengths: u64,
}

impl KeySet {
    /// Is the key in the set?
    pub(super) fn contains(&self, key: &str) -> bool {
        self.lengths & length_bit(key) != 0 && {
            let head = head(key.as_bytes(), 0);
            self.runs
                .iter()
                .any(|run| run.binary_search_by(|filed| filed.order(head, key.as_bytes())).is_ok())
        }
    }

    /// Adds a key that is not in the set.
    pub(super) fn insert(&mut self, key: &str) {
        self.lengths |= length_bit(key);
        let (head, length) = (head(key.as_bytes(), 0), key.len());
        let key = Arc::new(ObjectKey { text: key.into(), spelt: OnceLock::new() });
        let mut merged = vec![Filed { head, length, key }];
        while let Some(run) = self.runs.pop_if(|run| run.len() <= merged.len()) {
            merged.extend_from_slice(&run);
        }
        merged.sort_unstable_by(|one, other| one.order(other.head, other.key.text.as_bytes()));
        self.runs.push(merged.into());
    }

    /// Returns the keys with this beginning, as a range of each run that has any: two binary searches a run.
    fn beginning_with<'k>(&'k self, beginning: &[u8]) -> impl Iterator<Item = &'k [Filed]> {
        let (least, most) = (head(beginning, 0), head(beginning, u8::MAX));
        // Heads between the two begin as a short `beginning` does; of a longer one the rest is compared.
        let is_within = move |filed: &Filed| {
            filed.head <= most
                && (beginning.len() <= HEAD || filed.key.text.as_bytes().starts_with(beginning))
        };
        self.runs.iter().filter_map(move |run| {
            let rest = &run[run.partition_point(|filed| filed.order(least, beginning).is_lt())..];
            let found = &rest[..rest.partition_point(is_within)];
            (!found.is_empty()).then_some(found)
        })
    }
}

/// Packs the first eight bytes, padded with `fill`, into a number of the same order.
fn head(text: &[u8], fill: u8) -> u64 {
    let mut bytes = [fill; HEAD];
    let known = text.len().min(bytes.len());
    bytes[..known].copy_from_slice(&text[..known]);
    u64::from_be_bytes(bytes)
}

fn length_bit(key: &str) -> u64 {
    1 << key.len().min(63)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares with a sorted set; older sets stay as they were.
        #[test]
        fn keys_are_found_by_their_prefixes(
            keys in prop::collection::vec("(abcdefgh)?[ab\u{e9}\u{0}]{0,4}", 0..40),
            asked in prop::collection::vec("(abcdefgh)?[ab\u{e9}\u{0}]{0,4}", 0..8),
        ) {
            let (mut set, mut expected) = (KeySet::default(), BTreeSet::new());
            let mut moments = vec![(set.clone(), expected.clone())];
            for key in &keys {
                if expected.insert(key.clone()) {
                    set.insert(key);
                }
                moments.push((set.clone(), expected.clone()));
            }
            for (set, expected) in &moments {
                for beginning in &asked {
                    prop_assert_eq!(set.contains(beginning), expected.contains(beginning));
                    // Within a character too.
                    for end in 0..=beginning.len() {
                        let beginning = &beginning.as_bytes()[..end];
                        let found = set.beginning_with(beginning).flatten();
                        let mut found: Vec<&str> = found.map(|filed| filed.key.text()).collect();
                        found.sort_unstable();
                        let all = expected.iter().filter(|key| key.as_bytes().starts_with(beginning));
                        prop_assert_eq!(found, all.map(String::as_str).collect::<Vec<_>>());
                    }
                }
                prop_assert!(set.runs.len() <= 6);
            }
        }
    }
}
