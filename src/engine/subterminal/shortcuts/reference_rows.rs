//! Patches the row of a common terminal: "any string but these keys" treats most tokens as any string does,
//! so its row takes over the common row instead of walking the trie again.
//!
//! Method: both automata run [side by side](side_by_side), which gives each state a partner, and the length
//! of the shortest text that the two treat differently. Below a trie node with shorter ways down, tokens and
//! exits are the partner's. Where only texts with certain bytes are treated differently, such as a quote, the
//! walk leaps from one trie node with such a byte to the next.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;

use super::characters::{Home, next};
use super::product_walk::{LEVELS, NEVER, Pair, TextLevels, side_by_side, told_apart};
use crate::ids::TrieNodeId;
use crate::scanner::{NONE, TerminalDfa};
use crate::subterminal::{
    crossing::Loops,
    rows::{Ranges, TokenRow},
};
use crate::vocab::{ByteTrie, byte_kind};

/// Least size of a subtree, in trie nodes, for which a leap is tried.
const WORTH_A_LEAP: u32 = if cfg!(test) { 2 } else { 16 };

/// A row that was patched together.
pub(in crate::subterminal) struct PatchedRow {
    pub(in crate::subterminal) reach: TokenRow,
    /// Subtrees taken over from the other row, in order.
    pub(in crate::subterminal) taken: Vec<Range<u32>>,
    /// Exits outside of those.
    pub(in crate::subterminal) exits: Ranges,
    /// Number of trie nodes looked at.
    pub(in crate::subterminal) walked: usize,
}

/// A terminal compared with a common one.
#[derive(Debug)]
pub(in crate::subterminal) struct DfaDelta {
    common: Arc<TerminalDfa>,
    pairs: Box<[Pair]>,
    levels: TextLevels,
    /// Does the common one say nothing about where texts end? True if it accepts the empty text, such as any
    /// characters of a string: pieces of a counted string go on as it does, and end elsewhere.
    endless: bool,
}

impl DfaDelta {
    /// Runs both automata side by side from their starts. Linear in the states of `dfa` times the bytes that
    /// either distinguishes. A state that meets several partners is compared with the first.
    pub(in crate::subterminal) fn new(
        dfa: &TerminalDfa,
        common: &Arc<TerminalDfa>,
        (home, levels): (Option<Home>, TextLevels),
    ) -> Self {
        let endless = common.accepts_empty();
        let levels = levels.beside(dfa, common, home);
        let bytes = told_apart(dfa, common, &levels);
        let pairs = side_by_side(dfa, common, &levels, &bytes);
        Self { common: Arc::clone(common), pairs: pairs.into_boxed_slice(), levels, endless }
    }

    /// Returns the state of the common terminal that a state is compared with.
    pub(in crate::subterminal) fn partner(&self, state: u32) -> Option<u32> {
        known(self.pairs[state as usize].partner)
    }

    /// Do a state and its partner treat all texts alike?
    pub(in crate::subterminal) fn is_same(&self, state: u32) -> bool {
        !self.endless && self.partner(state).is_some() && self.pairs[state as usize].apart[0] == NEVER
    }

    /// Memory, in bytes.
    pub(in crate::subterminal) fn bytes(&self) -> usize {
        size_of_val(&*self.pairs)
    }

    /// Are exits taken over as well?
    pub(in crate::subterminal) fn has_exits(&self) -> bool {
        !self.endless
    }

    /// Makes the row of `state` from that of its partner.
    pub(in crate::subterminal) fn row(
        &self,
        trie: &ByteTrie,
        (dfa, loops): (&TerminalDfa, &Loops),
        state: u32,
        partners: &TokenRow,
        breaks: &BoundaryNodes,
    ) -> PatchedRow {
        let mut walk = DeltaWalk {
            delta: self,
            trie,
            loops,
            dfa,
            breaks: breaks.of(trie, &self.levels),
            stays: Ranges::new(),
            exits: Ranges::new(),
            taken: Vec::new(),
            walked: 0,
        };
        let both = (state, self.pairs[state as usize].partner);
        if !walk.leap(ByteTrie::ROOT, both) {
            let all = 1..trie.end(ByteTrie::ROOT).raw();
            walk.each(all, both, true);
        }
        let DeltaWalk { stays, mut exits, taken, walked, .. } = walk;
        let no_exits = Ranges::new();
        let partners_exits = if self.endless { &no_exits } else { partners.exits() };
        let from = (partners.tokens(), partners_exits);
        let reach = TokenRow::spliced(trie, (stays, exits.clone()), &taken, from);
        exits.normalise();
        PatchedRow { reach, taken, exits, walked }
    }
}

/// Returns the partner, if there is one.
fn known(partner: u32) -> Option<u32> {
    Some(partner).filter(|partner| *partner != NONE)
}

/// A walk over the trie with both automata.
struct DeltaWalk<'a> {
    delta: &'a DfaDelta,
    trie: &'a ByteTrie,
    loops: &'a Loops,
    dfa: &'a TerminalDfa,
    /// Trie nodes that leave each level: see [`BoundaryNodes`].
    breaks: [Option<Arc<[u32]>>; LEVELS],
    /// Tokens and exits that the walk itself found.
    stays: Ranges,
    exits: Ranges,
    /// Subtrees taken over.
    taken: Vec<Range<u32>>,
    walked: usize,
}

impl DeltaWalk<'_> {
    /// Walks whole subtrees, whose parents were reached in these states. There may be no partner further
    /// down, where only the terminal itself goes on.
    fn each(&mut self, nodes: Range<u32>, (state, partner): (u32, u32), leaps: bool) {
        let first = (state, known(partner));
        let mut path: Vec<(u32, u32, Option<u32>)> = Vec::new();
        let mut at = nodes.start;
        while at < nodes.end {
            self.walked += 1;
            while path.last().is_some_and(|&(end, ..)| end <= at) {
                path.pop();
            }
            let both = path.last().map_or(first, |&(_, state, partner)| (state, partner));
            let node = TrieNodeId::new(at);
            let end = self.trie.end(node).raw();
            let (Some(to), beside) = self.step(both, self.trie.byte(node)) else {
                at = end;
                continue;
            };
            if self.enter(node, to, beside, leaps) {
                path.push((end, to, beside));
                at += 1;
            } else {
                at = end;
            }
        }
    }

    /// Steps both automata by one byte.
    fn step(&self, (state, partner): (u32, Option<u32>), byte: u8) -> (Option<u32>, Option<u32>) {
        let beside = partner.and_then(|partner| next(&self.delta.common, partner, byte));
        (next(self.dfa, state, byte), beside)
    }

    /// Takes over nodes, which are whole subtrees.
    fn take(&mut self, nodes: Range<u32>) {
        match self.taken.last_mut() {
            Some(last) if last.end == nodes.start => last.end = nodes.end,
            _ if nodes.is_empty() => {}
            _ => self.taken.push(nodes),
        }
    }

    /// Collects a node, and its whole subtree if that is known. Returns whether the children are still to be
    /// walked.
    fn enter(&mut self, node: TrieNodeId, state: u32, beside: Option<u32>, leaps: bool) -> bool {
        let end = self.trie.end(node).raw();
        let pair = self.delta.pairs[state as usize];
        let below = self.trie.height(node).unwrap_or(NEVER - 1);
        let level = self.delta.levels.of(self.trie.kinds_below(node));
        if beside.is_some_and(|beside| beside == pair.partner) {
            if pair.apart[level] > below {
                self.take(node.raw()..end);
                return false;
            }
            if leaps && end - node.raw() >= WORTH_A_LEAP && self.leap(node, (state, pair.partner)) {
                return false;
            }
        }
        let accepts = self.dfa.accepting()[state as usize];
        if self.loops.holds(state, self.trie.kinds_below(node), below) {
            self.stays.push(self.trie.subtree_tokens(node));
            if accepts && self.trie.has_children(node) {
                self.exits.push(node.raw()..end);
            }
            return false;
        }
        self.stays.push(self.trie.own_tokens(node));
        if accepts {
            self.exits.push(node.raw()..node.raw() + 1);
        }
        true
    }

    /// Collects a node that was reached in these states and its whole subtree, if both states treat alike all
    /// texts of the length below that lack bytes of certain kinds: all is taken over but the subtrees that
    /// such a byte leads to. Returns whether that was possible.
    fn leap(&mut self, node: TrieNodeId, both: (u32, u32)) -> bool {
        let below = self.trie.height(node).unwrap_or(NEVER - 1);
        let apart = self.delta.pairs[both.0 as usize].apart;
        let of_level = apart
            .iter()
            .zip(&self.breaks)
            .find_map(|(apart, breaks)| if *apart > below { breaks.clone() } else { None });
        let Some(breaks) = of_level else { return false };
        let end = self.trie.end(node).raw();
        let mut from = node.raw();
        let mut bytes = Vec::new();
        for &at in &breaks[breaks.partition_point(|&at| at <= node.raw())..] {
            if at >= end {
                break;
            }
            // Below one that was walked.
            if at < from {
                continue;
            }
            bytes.clear();
            let mut before = self.trie.parent(TrieNodeId::new(at));
            while before != node {
                bytes.push(self.trie.byte(before));
                before = self.trie.parent(before);
            }
            self.walked += bytes.len();
            // Both go on, or neither does.
            let before = bytes.iter().rev().try_fold(both, |(state, partner), &byte| {
                let (state, partner) = self.step((state, known(partner)), byte);
                state.zip(partner)
            });
            let Some(before) = before else { continue };
            self.take(from..at);
            from = self.trie.end(TrieNodeId::new(at)).raw();
            self.each(at..from, before, false);
        }
        self.take(from..end);
        true
    }
}

/// Bounds: number of nodes up to which a list is made, and number of lists that are kept.
const MOST_NODES: usize = 1_024;
const MOST_LISTS: usize = 64;

/// Ascending nodes; `None` if they are too many.
type Nodes = Option<Arc<[u32]>>;

/// The lists of one vocabulary by the kinds of the nodes' bytes.
#[derive(Debug, Default)]
pub(in crate::subterminal) struct BoundaryNodes(Mutex<HashMap<u64, Nodes>>);

impl BoundaryNodes {
    /// Returns for each level all nodes whose byte no text of the level has. `None` where they are many, or
    /// the same as for the level before. A list is sorted when it is first asked for.
    pub(super) fn of(&self, trie: &ByteTrie, levels: &TextLevels) -> [Nodes; LEVELS] {
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = 0;
        levels.without_kinds().map(|kinds| {
            // Some levels are one.
            if std::mem::replace(&mut before, kinds) == kinds {
                return None;
            }
            if let Some(known) = lists.get(&kinds) {
                return known.clone();
            }
            let made = nodes_with(trie, kinds);
            if lists.len() < MOST_LISTS {
                lists.insert(kinds, made.clone());
            }
            made
        })
    }

    /// Memory, in bytes.
    pub(in crate::subterminal) fn bytes(&self) -> usize {
        let lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lists.allocation_size() + lists.values().flatten().map(|nodes| size_of_val(&**nodes)).sum::<usize>()
    }
}

/// Lists the trie nodes with a byte of these kinds, ascending; `None` if there are too many.
fn nodes_with(trie: &ByteTrie, kinds: u64) -> Nodes {
    let bytes = || (0..=u8::MAX).filter(|&byte| kinds >> byte_kind(byte) & 1 == 1);
    let lists = || bytes().map(|byte| trie.nodes_with(byte));
    if lists().map(<[u32]>::len).sum::<usize>() > MOST_NODES {
        return None;
    }
    let mut nodes = Vec::new();
    lists().for_each(|list| nodes.extend_from_slice(list));
    nodes.sort_unstable();
    Some(nodes.into())
}
