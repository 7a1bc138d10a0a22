//! Finds the shortest completion under greedy lexing.
//!
//! Greedy lexing ends a terminal only where nothing else could go on, so the distance of a state cannot be
//! computed thread by thread. The distance over all splits into terminals is a lower bound, since greedy
//! lexing only removes texts. Method: A* over states, byte by byte, with that bound.

use std::{cmp::Reverse, collections::BinaryHeap};

use hashbrown::HashMap;

use super::{Completion, CompletionSearch};
use crate::{
    ids::{StateId, TokenId},
    limits::LimitExceeded,
    vocab::Vocabulary,
};

/// The distance of a state from the start in bytes, and the last step there.
type GreedyPath = (u64, Option<(StateId, u8)>);

/// The number of tokens up to an offset, and the last of them with the offset where it begins.
type TokenCut = (usize, Option<(usize, TokenId)>);

impl CompletionSearch<'_> {
    /// Returns the shortest completion, of equally short ones a fixed one; `None` if there is none. Costs a
    /// visit for each state that is nearer than that, and each class of bytes.
    pub(super) fn greedily(&mut self, start: StateId) -> Result<Option<Completion>, LimitExceeded> {
        let scanner = &self.program.lowered.scanner;
        let mut bytes: Vec<u8> = (0..=u8::MAX).collect();
        bytes.sort_by_key(|&byte| scanner.byte_class(byte));
        bytes.dedup_by_key(|byte| scanner.byte_class(*byte));
        let mut ways: HashMap<StateId, GreedyPath> = HashMap::from([(start, (0, None))]);
        let mut open = BinaryHeap::from([Reverse((self.distance(start)?, 0_u64, start))]);
        while let Some(Reverse((_, length, state))) = open.pop() {
            if self.machine.is_complete(state) {
                let text = text_to(&ways, state);
                let tokens = fewest_tokens(&self.program.vocabulary, &text);
                return Ok(Some(Completion { bytes: text, tokens, fewest: false }));
            }
            if ways.get(&state).is_some_and(|&(known, _)| known < length) {
                continue;
            }
            for &byte in &bytes {
                self.visit()?;
                let Some(to) = self.machine.step(self.program, state, byte, &mut self.work)? else {
                    continue;
                };
                let distance = self.distance(to)?;
                let nearer = ways.get(&to).is_none_or(|&(known, _)| length + 1 < known);
                if distance < u64::MAX && nearer {
                    ways.insert(to, (length + 1, Some((state, byte))));
                    open.push(Reverse((distance.saturating_add(length + 1), length + 1, to)));
                }
            }
        }
        Ok(None)
    }
}

/// Returns the bytes on the way to `state`.
fn text_to(ways: &HashMap<StateId, GreedyPath>, mut state: StateId) -> Vec<u8> {
    let mut text = Vec::new();
    while let Some(&(_, Some((before, byte)))) = ways.get(&state) {
        text.push(byte);
        state = before;
    }
    text.reverse();
    text
}

/// Splits `text` into the fewest tokens (dynamic programming); `None` if none spell it. `O(n m)` for tokens
/// of at most `m` bytes.
fn fewest_tokens(vocabulary: &Vocabulary, text: &[u8]) -> Option<Vec<TokenId>> {
    let trie = vocabulary.trie();
    let mut best: Vec<Option<TokenCut>> = vec![None; text.len() + 1];
    best[0] = Some((0, None));
    for from in 0..text.len() {
        let Some((tokens, _)) = best[from] else { continue };
        let mut node = trie.root_child(text[from]);
        let mut to = from + 1;
        while let Some(here) = node {
            if let Some(&token) = trie.tokens_at(trie.own_tokens(here)).first()
                && best[to].is_none_or(|(known, _)| tokens + 1 < known)
            {
                best[to] = Some((tokens + 1, Some((from, token))));
            }
            node = text.get(to).and_then(|&byte| trie.child(here, byte));
            to += 1;
        }
    }
    let (mut at, mut found) = (text.len(), Vec::new());
    while let (_, Some((from, token))) = best[at]? {
        found.push(token);
        at = from;
    }
    found.reverse();
    Some(found)
}
