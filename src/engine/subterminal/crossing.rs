//! Walks one terminal over the tokens below a trie node: a depth-first product of its DFA and the
//! vocabulary's trie. Independent of the grammar.
//!
//! A subtree is left at the first byte that the terminal does not take. It is taken whole, without a walk,
//! where all of its kinds of bytes lead from a state back to it, or along a count that is far from its bound.
//! So the cost is the trie nodes that are neither.

use std::ops::Range;

use super::rows::Ranges;
use crate::ids::{TrieNodeId, as_index, saturating_u32};
use crate::scanner::{NONE, TerminalDfa};
use crate::vocab::{ByteTrie, byte_kind};

/// For each state of a terminal [kinds](byte_kind) of bytes, as bits, that all lead to one state, and for how
/// many such bytes it goes on so, with ends after all of them or none: for ever in a loop, up to a bound in a
/// count. A trie node with only such bytes below it, and no more, needs no walk.
#[derive(Debug, Clone)]
pub(crate) struct Loops(Box<[ByteRun]>);

/// The kinds of bytes and their number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ByteRun {
    kinds: u64,
    bytes: u32,
}

impl Loops {
    /// Finds all loops and counts. Linear in the DFA's table. Without a table there is none.
    pub(crate) fn new(dfa: &TerminalDfa) -> Self {
        let width = dfa.class_count();
        let mut of_class = vec![0_u64; width];
        for byte in 0..=u8::MAX {
            of_class[usize::from(dfa.classes()[usize::from(byte)])] |= 1 << byte_kind(byte);
        }
        let rows = dfa.transitions().chunks_exact(width.max(1)).zip(0..);
        let steps: Vec<Option<(u32, u64)>> = rows.map(|(row, state)| widest(row, state, &of_class)).collect();
        let mut found: Vec<Option<ByteRun>> = vec![None; steps.len()];
        let mut path = Vec::new();
        for state in 0..steps.len() {
            let mut at = state;
            while let (None, Some((to, kinds))) = (found[at], steps[at]) {
                let to = as_index(to);
                // Where the path meets itself later, no more is known than that this much can come.
                found[at] = Some(ByteRun { kinds, bytes: if to == at { u32::MAX } else { 0 } });
                if to != at {
                    path.push((at, kinds));
                }
                at = to;
            }
            let mut run = found[at].unwrap_or_default();
            while let Some((from, kinds)) = path.pop() {
                let bytes = match run.bytes {
                    _ if dfa.accepting()[from] != dfa.accepting()[at] => 0,
                    bytes if kinds & !run.kinds == 0 => bytes.saturating_add(1),
                    _ => 1,
                };
                run = ByteRun { kinds, bytes };
                (found[from], at) = (Some(run), from);
            }
        }
        Self(found.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    /// Does the terminal go on from `state` with all texts of these kinds of bytes, and at most `longest` of
    /// them, with ends after all or none?
    pub(super) fn holds(&self, state: u32, kinds: u64, longest: u32) -> bool {
        let run = self.0.get(state as usize).copied().unwrap_or_default();
        kinds & !run.kinds == 0 && longest <= run.bytes
    }
}

/// Returns `state` itself if kinds of bytes lead back to it alone, or the state that most kinds lead to
/// alone, and these kinds; `None` if there is none.
fn widest(row: &[u32], state: u32, of_class: &[u64]) -> Option<(u32, u64)> {
    let mut targets: Vec<(u32, u64)> = Vec::new();
    for (&to, &kinds) in row.iter().zip(of_class) {
        match targets.iter_mut().find(|(other, _)| *other == to) {
            Some((_, known)) => *known |= kinds,
            None => targets.push((to, kinds)),
        }
    }
    let (mut once, mut twice) = (0, 0);
    for (_, kinds) in &targets {
        twice |= once & kinds;
        once |= kinds;
    }
    let alone = targets.into_iter().map(|(to, kinds)| (to, kinds & !twice));
    let alone = alone.filter(|(to, kinds)| *to != NONE && *kinds != 0);
    alone.max_by_key(|(to, kinds)| (*to == state, kinds.count_ones()))
}

/// Collects the effect of a terminal on tokens.
#[derive(Debug)]
pub(crate) struct Crossing<'a> {
    trie: &'a ByteTrie,
    dfa: &'a TerminalDfa,
    loops: &'a Loops,
    /// Places, in trie order, of the tokens that end inside the terminal or just as it may end.
    pub(crate) stays: Ranges,
    /// Trie nodes where the terminal may end. Nodes without children may be among them.
    pub(crate) exits: Ranges,
    /// Number of trie nodes looked at.
    pub(crate) walked: usize,
    /// Length of the longest text of the trie with which the terminal goes on, in bytes, of walks from the
    /// root.
    pub(crate) longest: u32,
    path: Vec<(u32, u32)>,
    /// Length below which all texts are known.
    known: u32,
    /// Subtrees with only such texts, in order.
    pub(super) taken: Vec<Range<u32>>,
}

impl<'a> Crossing<'a> {
    /// Creates an empty collection.
    pub(crate) fn new(trie: &'a ByteTrie, dfa: &'a TerminalDfa, loops: &'a Loops) -> Self {
        let (stays, exits, taken) = (Ranges::new(), Ranges::new(), Vec::new());
        Self { trie, dfa, loops, stays, exits, walked: 0, longest: 0, path: Vec::new(), known: 0, taken }
    }

    /// Sets the length below which the effect on texts is known: subtrees with only such texts are not
    /// walked. For a walk from the root.
    pub(super) fn knowing(self, known: u32) -> Self {
        Self { known, ..self }
    }

    /// Walks all tokens, with the terminal in `state`. At most linear in the trie nodes that the terminal can
    /// reach; subtrees in which every byte leads back to one state cost as much as a node.
    pub(crate) fn root(&mut self, state: u32) {
        for byte in 0..=u8::MAX {
            if let Some(to) = self.dfa.step(state, byte)
                && let Some(node) = self.trie.root_child(byte)
            {
                self.at(node, to);
            }
        }
    }

    /// Walks the tokens at and below `node`, which the terminal has reached in `state`.
    pub(crate) fn at(&mut self, node: TrieNodeId, state: u32) {
        self.walked += 1;
        if self.is_known(node, 1) || !self.enter(node, state, 1) {
            return;
        }
        let last = self.trie.end(node).raw();
        self.path.clear();
        self.path.push((last, state));
        let mut next = node.raw() + 1;
        while next < last {
            self.walked += 1;
            // The innermost open subtree that `next` is in is its parent's.
            while self.path.last().is_some_and(|&(end, _)| end <= next) {
                self.path.pop();
            }
            let Some(&(_, state)) = self.path.last() else { return };
            let node = TrieNodeId::new(next);
            let end = self.trie.end(node).raw();
            let depth = saturating_u32(self.path.len() + 1);
            match self.dfa.step(state, self.trie.byte(node)) {
                Some(to) if !self.is_known(node, depth) && self.enter(node, to, depth) => {
                    self.path.push((end, to));
                    next += 1;
                }
                _ => next = end,
            }
        }
    }

    /// Are all texts at and below a node known? If so, its subtree is recorded.
    fn is_known(&mut self, node: TrieNodeId, depth: u32) -> bool {
        let longest = self.trie.height(node).and_then(|height| depth.checked_add(height));
        let known = longest.is_some_and(|longest| longest < self.known);
        if known {
            let end = self.trie.end(node).raw();
            match self.taken.last_mut() {
                Some(last) if last.end == node.raw() => last.end = end,
                _ => self.taken.push(node.raw()..end),
            }
        }
        known
    }

    /// Collects `node`, and its whole subtree if no byte there leads anywhere else. Returns whether the
    /// children are still to be walked.
    fn enter(&mut self, node: TrieNodeId, state: u32, depth: u32) -> bool {
        let accepts = self.dfa.accepts(state);
        self.longest = self.longest.max(depth);
        let below = self.trie.height_or_endless(node);
        if self.loops.holds(state, self.trie.kinds_below(node), below) {
            self.longest = self.longest.max(depth.saturating_add(below));
            self.stays.push(self.trie.subtree_tokens(node));
            // A node without children does not matter, but may join the ranges around it.
            if accepts && (self.trie.has_children(node) || self.exits.end() == node.raw()) {
                self.exits.push(node.raw()..self.trie.end(node).raw());
            }
            return false;
        }
        self.stays.push(self.trie.own_tokens(node));
        if accepts {
            self.exits.push(node.raw()..node.raw() + 1);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ids::TokenId, subterminal::shortcuts::reference_rows_tests::dfa};
    use proptest::prelude::*;

    #[test]
    fn a_crossing_counts_the_nodes_it_visits() {
        let ids = ["a", "ab", "abc", "abcd", "b"].into_iter().zip(0..);
        let trie = ByteTrie::new(5, ids.map(|(token, id)| (token.as_bytes(), TokenId::new(id))));
        let dfa = dfa("ab");
        let loops = Loops::new(&dfa);
        let mut crossing = Crossing::new(&trie, &dfa, &loops);
        crossing.root(0);
        // The last of them leads nowhere.
        assert_eq!(crossing.walked, ["a", "ab", "abc"].len());
    }

    fn accepts(dfa: &TerminalDfa, bytes: &[u8]) -> Option<bool> {
        let mut state = 0;
        for &byte in bytes {
            let class = usize::from(dfa.classes()[usize::from(byte)]);
            state = dfa.transitions()[state * dfa.class_count() + class] as usize;
            if state == NONE as usize {
                return None;
            }
        }
        Some(dfa.accepting()[state])
    }

    proptest! {
        /// Compares with running the automaton over each token, and over each prefix of a token.
        #[test]
        fn crossings_agree_with_running_each_token(
            tokens in proptest::collection::vec("[ab \"]{1,6}|[a-cé]{1,4}", 1..60),
            pattern in concat!(
                r#"([ab]|\[a-z \]\*|"|é|\[\^"\]\*|\(\?-u:\[\^"\]\)\*"#,
                r"|\[a-z \]\{(0|2),[3-5]\}|(\(ab\)|\(a b\?\))\*){1,4}",
            ),
        ) {
            let ids = tokens.iter().zip(0..).map(|(token, id)| (token.as_bytes(), TokenId::new(id)));
            let trie = ByteTrie::new(tokens.len(), ids);
            let dfa = dfa(&pattern);
            let loops = Loops::new(&dfa);
            let mut crossing = Crossing::new(&trie, &dfa, &loops);
            crossing.root(0);
            crossing.stays.normalise();
            let stays = crossing.stays.iter().flat_map(|range| trie.tokens_at(range));
            let mut stays: Vec<u32> = stays.map(|token| token.raw()).collect();
            stays.sort_unstable();
            let expected: Vec<u32> = (0..).zip(&tokens)
                .filter(|(_, token)| accepts(&dfa, token.as_bytes()).is_some()).map(|(id, _)| id).collect();
            prop_assert_eq!(stays, expected);
            crossing.exits.normalise();
            let string = |mut node: TrieNodeId| {
                let mut bytes = Vec::new();
                while node != ByteTrie::ROOT {
                    bytes.insert(0, trie.byte(node));
                    node = trie.parent(node);
                }
                bytes
            };
            let inner = |node: &TrieNodeId| trie.has_children(*node);
            let exits: Vec<_> = crossing.exits.iter().flatten().map(TrieNodeId::new).filter(inner).collect();
            let expected: Vec<_> = (1..trie.len()).filter_map(TrieNodeId::from_index).filter(inner)
                .filter(|&node| accepts(&dfa, &string(node)) == Some(true)).collect();
            prop_assert_eq!(exits, expected);
        }
    }
}
