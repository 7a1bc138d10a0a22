//! Trees x parser -> token mask, and the cache of masks by constraint state.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::{program::Program, thread::Thread};
use crate::{
    ids::{ScanStateId, SetId, StateId, TerminalId, TrieNodeId},
    limits::{LimitExceeded, Limits},
    parser::Parser,
    subterminal::{Edge, Forest, Lookahead, TreeNodeId, cross},
    vocab::TokenSet,
};

/// Makes masks and keeps them.
#[derive(Debug)]
pub(super) struct MaskMaker {
    forest: Forest,
    cache: HashMap<StateId, Arc<TokenSet>>,
    max_cached: usize,
}

/// A tree node reached by a parser: `terminal` was started in `set`, and `left` more terminals may be crossed into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Visit {
    node: TreeNodeId,
    set: SetId,
    terminal: TerminalId,
    left: u32,
}

/// A place in the trie where the parser is in `set` and no tree goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct OpenVisit {
    exit: TrieNodeId,
    set: SetId,
    terminal: TerminalId,
    left: u32,
}

impl MaskMaker {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            forest: Forest::new(limits.tree_nodes),
            cache: HashMap::new(),
            max_cached: limits.cached_masks,
        }
    }

    pub(super) fn cached(&self, state: StateId) -> Option<Arc<TokenSet>> {
        self.cache.get(&state).cloned()
    }

    /// Files a mask under its state. A full cache is emptied: what is in use is soon there again.
    pub(super) fn keep(&mut self, state: StateId, mask: TokenSet) -> Arc<TokenSet> {
        let mask = Arc::new(mask);
        if self.cache.len() >= self.max_cached {
            self.cache.clear();
        }
        if self.max_cached > 0 {
            self.cache.insert(state, Arc::clone(&mask));
        }
        mask
    }

    /// The tokens that may follow these threads: stay-tokens need no parser, an edge is followed only if
    /// the parser can shift (paper, 3.4).
    pub(super) fn make(
        &mut self,
        shared: &Program,
        parser: &mut Parser,
        threads: &[Thread],
    ) -> Result<TokenSet, LimitExceeded> {
        let size = shared.vocabulary.size();
        let (scanner, trie) = (&shared.lowered.scanner, shared.vocabulary.trie());
        let mut mask = TokenSet::empty(size);
        let left = match shared.lookahead {
            Lookahead::Terminals(k) => k,
            // No token spans as many terminals: each takes a byte.
            Lookahead::Unbounded => u32::MAX,
        };
        let mut open: Vec<Visit> = Vec::new();
        let mut seen: HashSet<Visit> = HashSet::new();
        let mut untended: Vec<OpenVisit> = Vec::new();
        for &Thread { set, scan } in threads {
            let node = self.forest.root(scanner, trie, size, scan);
            let visit = Visit { node, set, terminal: scanner.terminal(scan), left };
            if seen.insert(visit) {
                open.push(visit);
            }
        }
        while let Some(visit) = open.pop() {
            self.forest.add_tokens(visit.node, &mut mask);
            if visit.left == 0 || self.forest.exits(visit.node).is_empty() {
                continue;
            }
            let Some(set) = parser.shift(&shared.lowered.cfg, visit.set, visit.terminal)? else { continue };
            let left = next_left(visit.left);
            for &terminal in parser.accepts(set) {
                match self.forest.child(scanner, trie, size, visit.node, terminal) {
                    Edge::Child(node) => {
                        let visit = Visit { node, set, terminal, left };
                        if seen.insert(visit) {
                            open.push(visit);
                        }
                    }
                    Edge::None => {}
                    Edge::Open => {
                        untended.extend(self.forest.exits(visit.node).iter().map(|&exit| OpenVisit {
                            exit,
                            set,
                            terminal,
                            left,
                        }))
                    }
                }
            }
            if seen.len() > shared.limits.mask_visits {
                return Err(LimitExceeded::new("tree nodes visited for one mask", shared.limits.mask_visits));
            }
        }
        finish_open(shared, parser, untended, &mut mask)?;
        Ok(mask)
    }
}

/// `left` after one more terminal; `u32::MAX` stands for no bound and stays.
fn next_left(left: u32) -> u32 {
    if left == u32::MAX { left } else { left - 1 }
}

/// Does what trees would have done where they are left open: walks the trie with the parser, once per
/// (trie node, parser set, terminal).
fn finish_open(
    shared: &Program,
    parser: &mut Parser,
    mut open: Vec<OpenVisit>,
    mask: &mut TokenSet,
) -> Result<(), LimitExceeded> {
    let (scanner, trie) = (&shared.lowered.scanner, shared.vocabulary.trie());
    let mut seen: HashSet<OpenVisit> = open.iter().copied().collect();
    let mut exits: Vec<TrieNodeId> = Vec::new();
    while let Some(visit) = open.pop() {
        let start: ScanStateId = scanner.start(visit.terminal);
        exits.clear();
        let stay = |tokens: &[_]| tokens.iter().for_each(|&token| mask.insert(token));
        cross(scanner, trie, start, visit.exit, stay, |node| exits.push(node));
        if visit.left == 0 || exits.is_empty() {
            continue;
        }
        let Some(set) = parser.shift(&shared.lowered.cfg, visit.set, visit.terminal)? else { continue };
        let left = next_left(visit.left);
        for &terminal in parser.accepts(set) {
            for &exit in &exits {
                let visit = OpenVisit { exit, set, terminal, left };
                if seen.insert(visit) {
                    open.push(visit);
                }
            }
        }
        if seen.len() > shared.limits.mask_visits {
            return Err(LimitExceeded::new("trie nodes visited for one mask", shared.limits.mask_visits));
        }
    }
    Ok(())
}
