//! Subterminal trees (paper, Alg. 2).
//!
//! The tree of a scanner state `q` has a node for every sequence of terminals that tokens spell from `q` on
//! and that can follow each other in a sentence. A node holds the tokens that end inside the last terminal of
//! its sequence, and the trie nodes where that terminal may end while tokens go on. A node's children are
//! made all at once, on first use or ahead of it (see `grow`). Past the budget they are not made, and masks
//! walk the trie instead.

use std::{ops::Range, sync::Arc};

use hashbrown::{HashMap, HashSet};

use super::rows::{TokenList, TokenRow};
use super::{table::TerminalTable, terminal_entry::TerminalEntry};
use crate::ids::{Numbered, ScanStateId, TerminalId, TokenId};
use crate::limits::{LimitExceeded, Work};
use crate::{automata::ByteSet, lower::Follow, scanner::Scanner, vocab::ByteTrie};

/// A node of some tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TreeNodeId(u32);

impl TreeNodeId {
    pub(super) fn new(raw: u32) -> Self {
        Self(raw)
    }

    pub(super) fn raw(self) -> u32 {
        self.0
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The inputs from which trees are made: parts of the grammar and of the vocabulary.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TreeInputs<'a> {
    pub(crate) scanner: &'a Scanner,
    pub(crate) follow: &'a Follow,
    /// Tables by terminal.
    pub(crate) tables: &'a [Arc<TerminalTable>],
    pub(crate) trie: &'a ByteTrie,
}

/// Bytes with which characters begin at least, for their repeats to spell most tokens.
const SPELLING_BYTES: usize = 48;

/// Bytes of a character in UTF-8.
const MOST_OF_A_CHARACTER: usize = 4;

impl TreeInputs<'_> {
    /// Is the terminal one character of a repeat, as in `[^"]{0,50}` past the bound of folding? It is short,
    /// begins with many bytes, and follows itself.
    pub(crate) fn spells(self, terminal: TerminalId) -> bool {
        self.tables[terminal.index()].first().len() >= SPELLING_BYTES
            && self.scanner.dfa(terminal).is_within(MOST_OF_A_CHARACTER)
            && self.follow.of(terminal).any(|follower| follower == terminal)
    }
}

/// May nodes be made?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grow {
    Yes,
    No,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TreeNode {
    pub(super) terminal: TerminalId,
    /// The scanner state of a root.
    pub(super) state: Option<ScanStateId>,
    pub(super) reach: Arc<TokenRow>,
    pub(super) children: Children,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Children {
    /// Children that were not made.
    Unknown,
    /// A range of nodes, in order of their terminals. No token reaches any other terminal that may follow.
    Made(Range<u32>),
}

/// Trees of a grammar's scanner states. Cloning costs a few words for each node: contents are shared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Forest {
    pub(super) nodes: Numbered<TreeNode>,
    pub(super) roots: HashMap<ScanStateId, TreeNodeId>,
    /// Roots by what their trees depend on, the terminal and the address of the contents: many states in the
    /// middle of a count are alike.
    alike: Aside<HashMap<(TerminalId, usize), TreeNodeId>>,
    pub(super) bytes: usize,
    /// The part of `bytes` whose contents no table had when they came.
    pub(super) own: Aside<usize>,
    pub(super) max_bytes: usize,
    /// Addresses of large contents whose memory is counted: many states of a string may share a row.
    pub(super) counted: HashSet<usize>,
}

/// A value that is ignored in comparisons: equal forests may have come by their contents in different ways.
#[derive(Debug, Clone, Default)]
pub(super) struct Aside<T>(pub(super) T);

impl<T> PartialEq for Aside<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Aside<T> {}

/// The things that the numbers of nodes may run out for, in words.
pub(super) const NODES: &str = "nodes of subterminal trees";

/// Least size of contents, in bytes, that are counted once, however many nodes share them.
const LARGE: usize = 1_024;

impl Forest {
    /// Memory of a node without its contents, in bytes.
    pub(crate) const NODE_BYTES: usize = size_of::<TreeNode>();

    /// Creates an empty forest; children are made up to `max_bytes` of memory in all trees.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            nodes: Numbered::default(),
            roots: HashMap::new(),
            alike: Aside::default(),
            bytes: 0,
            own: Aside(0),
            max_bytes,
            counted: HashSet::new(),
        }
    }

    /// Memory, in bytes, contents shared with tables included.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Memory that no table of a terminal has too, in bytes.
    pub(crate) fn own_bytes(&self) -> usize {
        self.list_bytes() + self.own.0
    }

    /// Memory that a clone does not share, in bytes.
    pub(crate) fn list_bytes(&self) -> usize {
        self.nodes.bytes()
            + self.roots.allocation_size()
            + self.alike.0.allocation_size()
            + self.counted.allocation_size()
    }

    /// Number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the root of the tree of `state`. The first use makes a row of the terminal's table.
    pub(crate) fn root(
        &mut self,
        inputs: TreeInputs<'_>,
        state: ScanStateId,
        work: &mut Work,
    ) -> Result<TreeNodeId, LimitExceeded> {
        if let Some(&root) = self.roots.get(&state) {
            return Ok(root);
        }
        let terminal = inputs.scanner.terminal(state);
        let row = inputs.tables[terminal.index()].row(inputs.trie, inputs.scanner.local(state), work)?;
        let root = match self.alike.0.get(&(terminal, Arc::as_ptr(&row).addr())) {
            Some(&root) => root,
            None => {
                let root = self.push(terminal, row)?;
                self.nodes[root.index()].state = Some(state);
                self.alike.0.insert(self.contents(root), root);
                root
            }
        };
        self.roots.insert(state, root);
        Ok(root)
    }

    /// The node's terminal.
    pub(crate) fn terminal(&self, node: TreeNodeId) -> TerminalId {
        self.nodes[node.index()].terminal
    }

    /// The contents of a node.
    pub(crate) fn reach(&self, node: TreeNodeId) -> &TokenRow {
        &self.nodes[node.index()].reach
    }

    /// Returns the node's children, in the order of their terminals. The first use walks the trie below the
    /// node's exits for each terminal that may follow, if nodes `may` be made and the budget allows; if not,
    /// `None`.
    pub(crate) fn children(
        &mut self,
        inputs: TreeInputs<'_>,
        node: TreeNodeId,
        may: Grow,
        work: &mut Work,
    ) -> Result<Option<Range<u32>>, LimitExceeded> {
        match &self.nodes[node.index()].children {
            Children::Made(children) => return Ok(Some(children.clone())),
            Children::Unknown if self.nodes[node.index()].reach.exits().is_empty() => return Ok(Some(0..0)),
            Children::Unknown if may == Grow::No || !self.has_room() => return Ok(None),
            Children::Unknown => {}
        }
        let offspring = offspring(inputs, &self.nodes[node.index()], work)?;
        let first = self.nodes.numbers().end;
        for (terminal, reach) in offspring {
            self.push(terminal, reach)?;
        }
        let children = first..self.nodes.numbers().end;
        self.nodes[node.index()].children = Children::Made(children.clone());
        Ok(Some(children))
    }

    /// Returns what the children of a node depend on: its terminal and the address of its contents. Contents
    /// keep their address as long as the forest lives.
    pub(crate) fn contents(&self, node: TreeNodeId) -> (TerminalId, usize) {
        let TreeNode { terminal, reach, .. } = &self.nodes[node.index()];
        (*terminal, Arc::as_ptr(reach).addr())
    }

    /// Shares the children of a node with equal [`contents`](Self::contents).
    pub(crate) fn share(&mut self, node: TreeNodeId, children: Range<u32>) {
        self.nodes[node.index()].children = Children::Made(children);
    }

    /// Returns the node with a number in a range of [`children`](Self::children), and its terminal.
    pub(crate) fn child(&self, number: u32) -> (TerminalId, TreeNodeId) {
        (self.nodes[number as usize].terminal, TreeNodeId(number))
    }

    /// Makes a node the root of the tree of `state`.
    pub(super) fn plant(&mut self, state: ScanStateId, root: TreeNodeId) {
        self.roots.insert(state, root);
        self.alike.0.insert(self.contents(root), root);
    }

    /// Lists the roots of a terminal's trees whose children are made.
    pub(super) fn grown_roots(
        &self,
        inputs: TreeInputs<'_>,
        terminal: TerminalId,
    ) -> impl Iterator<Item = TreeNodeId> {
        let states =
            if inputs.scanner.dfa(terminal).is_table() { inputs.scanner.dfa(terminal).len() } else { 0 };
        let start = inputs.scanner.start(terminal).raw();
        let roots = (start..).take(states).filter_map(|state| self.roots.get(&ScanStateId::new(state)));
        let is_made = |root: &TreeNodeId| matches!(self.nodes[root.index()].children, Children::Made(_));
        roots.copied().filter(is_made)
    }

    /// Is it the root of a scanner state's tree?
    pub(super) fn is_root(&self, node: TreeNodeId) -> bool {
        self.nodes[node.index()].state.is_some()
    }

    /// May another node be made?
    pub(super) fn has_room(&self) -> bool {
        self.bytes < self.max_bytes
    }

    /// Adds a node whose children are unknown.
    ///
    /// # Errors
    /// If there are more nodes than numbers.
    pub(super) fn push(
        &mut self,
        terminal: TerminalId,
        reach: Arc<TokenRow>,
    ) -> Result<TreeNodeId, LimitExceeded> {
        let contents = reach.bytes();
        self.own.0 += if Arc::strong_count(&reach) == 1 { contents } else { 0 };
        // The node keeps the row, so no other row takes its address.
        let is_new = contents < LARGE || self.counted.insert(Arc::as_ptr(&reach).addr());
        self.bytes += Self::NODE_BYTES + if is_new { contents } else { 0 };
        let node = TreeNode { terminal, state: None, reach, children: Children::Unknown };
        self.nodes.push(node, NODES).map(TreeNodeId)
    }
}

/// Returns the effect of each terminal that may follow the node's on the tokens that go on at its exits;
/// terminals without any are left out.
fn offspring(
    inputs: TreeInputs<'_>,
    node: &TreeNode,
    work: &mut Work,
) -> Result<Vec<(TerminalId, Arc<TokenRow>)>, LimitExceeded> {
    let TreeInputs { tables, trie, .. } = inputs;
    // Twice over the bits of what follows.
    work.spend(tables.len() / 4)?;
    let mut offspring = Vec::new();
    let add = |offspring: &mut Vec<_>, terminal, reach: Arc<TokenRow>| {
        if !reach.is_empty() {
            offspring.push((terminal, reach));
        }
    };
    if let Some(state) = node.state
        && let Some(follows) = follows_in_common(inputs, node.terminal)
    {
        // Of a terminal's own state, which other grammars may have in common.
        let (table, state) = (&tables[node.terminal.index()], inputs.scanner.local(state));
        for terminal in follows {
            let reach = table.crossing(trie, state, &tables[terminal.index()], work)?;
            add(&mut offspring, terminal, reach);
        }
        return Ok(offspring);
    }
    // All share one search for their first bytes.
    let followers: Vec<TerminalId> = inputs.follow.of(node.terminal).collect();
    let mut wanted = ByteSet::default();
    followers.iter().for_each(|terminal| wanted.union_with(tables[terminal.index()].begins()));
    let entrances = TerminalEntry::new(trie, node.reach.exits(), &wanted, work)?;
    for terminal in followers {
        let reach = entrances.cross(trie, &tables[terminal.index()], work)?;
        add(&mut offspring, terminal, Arc::new(reach));
    }
    Ok(offspring)
}

/// Returns the terminals that follow another, if they are so few that crossings are kept for other grammars.
pub(super) fn follows_in_common(inputs: TreeInputs<'_>, terminal: TerminalId) -> Option<Vec<TerminalId>> {
    let follows: Vec<TerminalId> = inputs.follow.of(terminal).take(COMMON_FOLLOWS + 1).collect();
    (follows.len() <= COMMON_FOLLOWS).then_some(follows)
}

/// Number of terminals that follow another, up to which crossings between the two are kept with their tables:
/// white space and punctuation follow strings in every grammar, while what follows punctuation is each
/// grammar's own.
const COMMON_FOLLOWS: usize = 8;

impl Forest {
    /// Lists the trees, in order of their scanner states.
    pub(crate) fn trees(&self) -> Vec<(ScanStateId, TreeNodeId)> {
        let mut trees: Vec<_> = self.roots.iter().map(|(&state, &root)| (state, root)).collect();
        trees.sort_unstable_by_key(|(state, _)| *state);
        trees
    }

    /// Returns the numbers of a node's children, or `None` if some may not have been made.
    pub(crate) fn made(&self, node: TreeNodeId) -> Option<Range<u32>> {
        match &self.nodes[node.index()].children {
            Children::Made(children) => Some(children.clone()),
            Children::Unknown => self.reach(node).exits().is_empty().then_some(0..0),
        }
    }
}

impl TokenList {
    /// Number of tokens.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Few(tokens) => tokens.len(),
            Self::Many(tokens) => tokens.len(),
        }
    }

    /// Iterates over the tokens, ascending.
    pub(crate) fn iter(&self) -> Box<dyn Iterator<Item = TokenId> + '_> {
        match self {
            Self::Few(tokens) => Box::new(tokens.iter().copied()),
            Self::Many(tokens) => Box::new(tokens.iter()),
        }
    }
}
