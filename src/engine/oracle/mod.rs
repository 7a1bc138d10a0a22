//! A brute-force decider of viable prefixes, to hold the engine against.
//!
//! It shares the grammar IR with the engine and nothing else: no lexer, no automata, no interning. The
//! IR becomes one context-free grammar over bytes (`bytes_cfg`), and a textbook Earley recogniser
//! ([`Session`]) reads one byte after the other. Without unproductive rules every state of that
//! recogniser can be completed to a sentence, so "some item is left" means "viable prefix".
//!
//! [`lookahead`] is apart: it counts terminals, so it takes those of the lowered grammar as given.
//!
//! Simple and slow on purpose: a mask over 32,000 tokens takes up to a second.

mod bytes_cfg;
pub mod lookahead;
#[cfg(test)]
mod tests;

use hashbrown::HashSet;

use self::bytes_cfg::{BytesCfg, MAX_SYMBOLS, OracleSymbol};
use crate::grammar::{Grammar, Reasoning, Thought};
use crate::ids::{Numbered, TokenId, as_index};
use crate::vocab::{TokenSet, Vocabulary};

pub use bytes_cfg::OracleError;

/// Decides which byte strings can be completed to a sentence of a grammar.
#[derive(Debug)]
pub struct Oracle {
    cfg: BytesCfg,
    /// Does no text count in which an object has a key twice?
    distinct_keys: bool,
    thought: Option<Thought>,
}

impl Oracle {
    /// Creates the oracle of `grammar`. Linear in its expressions and in the counts of its repetitions.
    ///
    /// # Errors
    /// If the grammar over bytes would have more than 50 million symbols, or is greedy.
    pub fn new(grammar: &Grammar) -> Result<Self, OracleError> {
        Self::within(grammar, MAX_SYMBOLS)
    }

    /// Creates the oracle of `grammar` if that is cheap: the grammar over bytes has fewer than `symbols`
    /// symbols.
    ///
    /// # Errors
    /// If it has more, or is greedy.
    pub fn within(grammar: &Grammar, symbols: usize) -> Result<Self, OracleError> {
        if grammar.is_greedy() {
            return Err(OracleError::Greedy);
        }
        if grammar.classes().len() > 0 {
            return Err(OracleError::Tokens);
        }
        if grammar.distinct_items().is_some() {
            return Err(OracleError::Items);
        }
        let distinct_keys = grammar.distinct_keys().is_some();
        let thought = grammar.thought().cloned();
        Ok(Self { cfg: BytesCfg::new(grammar, symbols)?, distinct_keys, thought })
    }

    /// Starts a session at the empty text.
    #[must_use]
    pub fn session(&self) -> Session<'_> {
        Session::new(&self.cfg, self.distinct_keys, self.thought.as_ref())
    }

    /// Does the grammar have a sentence at all?
    #[must_use]
    pub fn has_sentence(&self) -> bool {
        self.cfg.has_sentence()
    }

    /// Is `text` the beginning of a sentence, or one?
    #[must_use]
    pub fn viable(&self, text: &[u8]) -> bool {
        self.has_sentence() && self.session().push_all(text)
    }

    /// Is `text` a sentence?
    #[must_use]
    pub fn accepts(&self, text: &[u8]) -> bool {
        let mut session = self.session();
        session.push_all(text) && session.is_complete()
    }

    /// Returns the tokens of `vocabulary` that may follow `prefix`: those after whose bytes the text is still
    /// viable, and the end-of-text tokens if it is a sentence. None if `prefix` is not viable.
    #[must_use]
    pub fn mask(&self, prefix: &[u8], vocabulary: &Vocabulary) -> TokenSet {
        let mut session = self.session();
        if session.push_all(prefix) {
            session.mask(&SortedTokens::new(vocabulary))
        } else {
            TokenSet::empty(vocabulary.size())
        }
    }
}

// A session is Earley's recogniser over bytes, with one set of items for each position. Masks are found by
// depth-first search. Invariant: every set but perhaps the first has an item, that is, the text read is a
// viable prefix.

/// A dotted rule and the position where the rule was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct OracleItem {
    position: u32,
    origin: u32,
}

impl OracleItem {
    /// Moves the dot over one symbol.
    fn moved(self) -> Self {
        Self { position: self.position + 1, ..self }
    }
}

/// The closed set of items after a prefix of the text, as far as later steps need it.
#[derive(Debug)]
struct ItemSet {
    /// Items before a byte, with its range.
    scan: Vec<(u8, u8, OracleItem)>,
    /// Items before a nonterminal, sorted by that nonterminal.
    waiting: Vec<(u32, OracleItem)>,
    /// Has the start symbol been derived from the beginning to here?
    complete: bool,
}

/// Tokens of a vocabulary sorted by their bytes. Tokens of no bytes are left out: they are never allowed.
#[derive(Debug, Clone)]
pub struct SortedTokens {
    tokens: Vec<(Vec<u8>, TokenId)>,
    end_of_text: Vec<TokenId>,
    size: usize,
}

impl SortedTokens {
    /// Sorts the tokens of `vocabulary`.
    #[must_use]
    pub fn new(vocabulary: &Vocabulary) -> Self {
        let mut tokens: Vec<_> = (0..vocabulary.size())
            .filter_map(TokenId::from_index)
            .filter_map(|token| Some((vocabulary.bytes(token)?.to_vec(), token)))
            .filter(|(bytes, _)| !bytes.is_empty())
            .collect();
        tokens.sort();
        Self { tokens, end_of_text: vocabulary.end_of_text().to_vec(), size: vocabulary.size() }
    }
}

/// A text in progress.
#[derive(Debug)]
pub struct Session<'o> {
    cfg: &'o BytesCfg,
    /// The text, if no object may have a key twice.
    text: Option<Vec<u8>>,
    /// The thought before it.
    thought: Option<&'o Thought>,
    sets: Numbered<ItemSet>,
    /// Scratch of `close`, empty between calls.
    items: Vec<OracleItem>,
    seen: HashSet<OracleItem>,
    /// Scratch of `close`: the last set (counted over the session) in which each nonterminal was predicted.
    predicted: Vec<u64>,
    closed: u64,
}

impl<'o> Session<'o> {
    /// Starts a session in which no byte has come.
    fn new(cfg: &'o BytesCfg, distinct_keys: bool, thought: Option<&'o Thought>) -> Self {
        let mut session = Self {
            cfg,
            thought,
            text: distinct_keys.then(Vec::new),
            sets: Numbered::default(),
            items: Vec::new(),
            seen: HashSet::new(),
            predicted: vec![0; cfg.nonterminals()],
            closed: 0,
        };
        session.closed = 1;
        session.predict(cfg.start(), 0);
        session.close();
        session
    }

    /// Number of bytes read.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sets.len() - 1
    }

    /// Has nothing been read?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Is the text read so far a sentence?
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.sets.last().is_some_and(|set| set.complete)
    }

    /// Reads `byte` if the text is still a viable prefix with it, of fewer than 2^32 bytes; otherwise returns
    /// `false` and has not moved.
    pub fn push(&mut self, byte: u8) -> bool {
        let Some(set) = self.sets.last() else { return false };
        self.closed += 1;
        for &(first, last, item) in &set.scan {
            if (first..=last).contains(&byte) && self.seen.insert(item.moved()) {
                self.items.push(item.moved());
            }
        }
        if self.items.is_empty() {
            return false;
        }
        if !self.close() {
            return false;
        }
        let here = self.len() - 1;
        if let Some(text) = &mut self.text {
            text.truncate(here);
            text.push(byte);
            // A key ends with a quote.
            let json = self.thought.map_or(&text[..], |thought| behind(thought, text));
            if byte == b'"' && has_key_twice(json) {
                self.sets.pop();
                return false;
            }
        }
        true
    }

    /// Reads all of `bytes`, or returns `false` and has not moved.
    pub fn push_all(&mut self, bytes: &[u8]) -> bool {
        let before = self.len();
        let viable = bytes.iter().all(|&byte| self.push(byte));
        if !viable {
            self.sets.truncate(before + 1);
        }
        viable
    }

    /// Takes the last byte back. Returns `false` at the empty text.
    pub fn pop(&mut self) -> bool {
        let moves = self.sets.len() > 1;
        if moves {
            self.sets.pop();
        }
        moves
    }

    fn add(&mut self, item: OracleItem) {
        if self.seen.insert(item) {
            self.items.push(item);
        }
    }

    fn predict(&mut self, nonterminal: u32, here: u32) {
        if std::mem::replace(&mut self.predicted[as_index(nonterminal)], self.closed) == self.closed {
            return;
        }
        let cfg = self.cfg;
        for &position in cfg.productions(nonterminal) {
            self.add(OracleItem { position, origin: here });
        }
    }

    /// Predicts and completes until nothing is new, then adds the set. Returns `false`, with no set added, if
    /// there is no number for it.
    ///
    /// A nonterminal that derives the empty string is stepped over where it is predicted, so what is
    /// completed in the set it began in needs no second look (Aycock and Horspool).
    fn close(&mut self) -> bool {
        let here = self.sets.numbers().end;
        let mut set = ItemSet { scan: Vec::new(), waiting: Vec::new(), complete: false };
        let mut next = 0;
        while let Some(&item) = self.items.get(next) {
            next += 1;
            match self.cfg.symbol(item.position) {
                OracleSymbol::Byte(first, last) => set.scan.push((first, last, item)),
                OracleSymbol::Nonterminal(nonterminal) => {
                    set.waiting.push((nonterminal, item));
                    self.predict(nonterminal, here);
                    if self.cfg.is_nullable(nonterminal) {
                        self.add(item.moved());
                    }
                }
                OracleSymbol::End(nonterminal) => {
                    set.complete |= nonterminal == self.cfg.start() && item.origin == 0;
                    if item.origin != here {
                        self.complete(nonterminal, item.origin);
                    }
                }
            }
        }
        self.items.clear();
        self.seen.clear();
        set.waiting.sort_unstable_by_key(|&(nonterminal, _)| nonterminal);
        self.sets.push(set, "sets of items").is_ok()
    }

    /// Moves on the items of set `origin` that wait for `nonterminal`.
    fn complete(&mut self, nonterminal: u32, origin: u32) {
        let waiting = &self.sets[as_index(origin)].waiting;
        let first = waiting.partition_point(|&(other, _)| other < nonterminal);
        for &(_, item) in waiting[first..].iter().take_while(|&&(other, _)| other == nonterminal) {
            if self.seen.insert(item.moved()) {
                self.items.push(item.moved());
            }
        }
    }

    /// Returns the tokens that may follow, see [`Oracle::mask`](Oracle::mask). Leaves the text as it
    /// is.
    #[must_use]
    pub fn mask(&mut self, tokens: &SortedTokens) -> TokenSet {
        let mut mask = TokenSet::empty(tokens.size);
        let before = self.len();
        // The bytes read after `before`, and the last string that was refused.
        let mut path: &[u8] = &[];
        let mut refused: Option<&[u8]> = None;
        for (bytes, token) in &tokens.tokens {
            if refused.is_some_and(|refused| bytes.starts_with(refused)) {
                continue;
            }
            let shared = path.iter().zip(bytes).take_while(|(a, b)| a == b).count();
            self.sets.truncate(before + shared + 1);
            match (shared..bytes.len()).find(|&at| !self.push(bytes[at])) {
                None => {
                    mask.insert(*token);
                    path = bytes;
                }
                Some(at) => {
                    refused = Some(&bytes[..=at]);
                    path = &bytes[..at];
                }
            }
        }
        self.sets.truncate(before + 1);
        if self.is_complete() {
            for &token in &tokens.end_of_text {
                mask.insert(token);
            }
        }
        mask
    }
}

/// Returns the part of a text behind its thought.
fn behind<'t>(thought: &Thought, text: &'t [u8]) -> &'t [u8] {
    let (open, close) = thought.spelled();
    let inside = match thought.reasoning() {
        Reasoning::Open => text,
        _ => match text.strip_prefix(open) {
            Some(inside) => inside,
            None => return text,
        },
    };
    let mut ends = (0..inside.len()).filter(|&at| inside[at..].starts_with(close));
    ends.next().map_or(&[], |at| &inside[at + close.len()..])
}

/// Are two complete keys of an object equal? `text` is the beginning of a JSON text.
fn has_key_twice(text: &[u8]) -> bool {
    // Of each open container the keys; `None` for arrays.
    let mut open: Vec<Option<Vec<String>>> = Vec::new();
    let mut at = 0;
    let mut awaits_key = false;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'{' => open.push(Some(Vec::new())),
            b'[' => open.push(None),
            b'}' | b']' => drop(open.pop()),
            b'"' => {
                let mut end = at;
                while text.get(end).is_some_and(|&byte| byte != b'"') {
                    end += if text[end] == b'\\' { 2 } else { 1 };
                }
                let Some(string) = text.get(at - 1..=end) else { return false };
                if awaits_key && let Some(Some(keys)) = open.last_mut() {
                    let Ok(key) = serde_json::from_slice::<String>(string) else { return false };
                    if keys.contains(&key) {
                        return true;
                    }
                    keys.push(key);
                }
                at = end + 1;
            }
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            awaits_key = matches!(byte, b'{' | b',');
        }
    }
    false
}
