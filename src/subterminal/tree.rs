//! Subterminal trees (paper, Alg. 2), grown on demand.
//!
//! The tree of a scanner state `q` has a node for every sequence of terminals that tokens spell from
//! `q` on; a node holds the tokens that end inside the last terminal of its sequence, and the trie nodes
//! where that terminal may end while tokens go on. A child is made when a parser first follows its edge,
//! so no more is ever built than the grammar can use; past the node budget children are not kept, and
//! masks walk the trie instead.

use hashbrown::HashMap;

use super::crossing::cross;
use crate::{
    ids::{ScanStateId, TerminalId, TokenId, TrieNodeId},
    scanner::Scanner,
    vocab::{ByteTrie, TokenSet},
};

/// A node of some tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TreeNodeId(u32);

/// The tokens of a node, as a list or as bits, whichever is smaller.
#[derive(Debug)]
enum Tokens {
    Few(Box<[TokenId]>),
    Many(Box<TokenSet>),
}

#[derive(Debug)]
struct Node {
    tokens: Tokens,
    exits: Box<[TrieNodeId]>,
    /// `None`: no token reaches this terminal from here.
    children: HashMap<TerminalId, Option<TreeNodeId>>,
}

/// What is known about an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edge {
    /// Tokens reach the node.
    Child(TreeNodeId),
    /// No token follows the edge.
    None,
    /// The budget of nodes is used up.
    Open,
}

/// The trees of all scanner states of a grammar.
#[derive(Debug)]
pub(crate) struct Forest {
    nodes: Vec<Node>,
    roots: HashMap<ScanStateId, TreeNodeId>,
    max_nodes: usize,
}

impl Forest {
    /// No trees yet; at most `max_nodes` nodes in all of them, roots apart.
    pub(crate) fn new(max_nodes: usize) -> Self {
        Self { nodes: Vec::new(), roots: HashMap::new(), max_nodes: max_nodes.min(u32::MAX as usize / 2) }
    }

    /// The root of the tree of `state`. First use walks the trie as far as the terminal reaches.
    pub(crate) fn root(
        &mut self,
        scanner: &Scanner,
        trie: &ByteTrie,
        size: usize,
        state: ScanStateId,
    ) -> TreeNodeId {
        if let Some(&root) = self.roots.get(&state) {
            return root;
        }
        let node = make(scanner, trie, size, state, &[ByteTrie::ROOT]);
        let root = self.push(node);
        self.roots.insert(state, root);
        root
    }

    /// Where `terminal` leads from `node`. First use walks the trie below the node's exits.
    pub(crate) fn child(
        &mut self,
        scanner: &Scanner,
        trie: &ByteTrie,
        size: usize,
        node: TreeNodeId,
        terminal: TerminalId,
    ) -> Edge {
        let parent = &self.nodes[node.0 as usize];
        match parent.children.get(&terminal) {
            Some(Some(child)) => return Edge::Child(*child),
            Some(None) => return Edge::None,
            None if self.nodes.len() >= self.max_nodes => return Edge::Open,
            None => {}
        }
        let made = make(scanner, trie, size, scanner.start(terminal), &parent.exits);
        let empty = matches!(&made.tokens, Tokens::Few(tokens) if tokens.is_empty()) && made.exits.is_empty();
        let child = (!empty).then(|| self.push(made));
        self.nodes[node.0 as usize].children.insert(terminal, child);
        child.map_or(Edge::None, Edge::Child)
    }

    /// Adds the node's tokens to a set.
    pub(crate) fn add_tokens(&self, node: TreeNodeId, set: &mut TokenSet) {
        match &self.nodes[node.0 as usize].tokens {
            Tokens::Few(tokens) => tokens.iter().for_each(|&token| set.insert(token)),
            Tokens::Many(tokens) => set.union_with(tokens),
        }
    }

    /// Trie nodes where the node's terminal may end while tokens go on.
    pub(crate) fn exits(&self, node: TreeNodeId) -> &[TrieNodeId] {
        &self.nodes[node.0 as usize].exits
    }

    fn push(&mut self, node: Node) -> TreeNodeId {
        // Roots are bounded by scanner states and the rest by `max_nodes`, both below `u32::MAX / 2`.
        let id = TreeNodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(node);
        id
    }
}

/// The node for starting in `state` at each of `from`.
fn make(scanner: &Scanner, trie: &ByteTrie, size: usize, state: ScanStateId, from: &[TrieNodeId]) -> Node {
    let (mut stay, mut exits) = (Vec::new(), Vec::new());
    for &start in from {
        cross(scanner, trie, state, start, |tokens| stay.extend_from_slice(tokens), |node| exits.push(node));
    }
    stay.sort_unstable();
    stay.dedup();
    exits.sort_unstable();
    exits.dedup();
    // A bit per token against 32 bits per token held.
    let tokens = if stay.len() < size / 32 {
        Tokens::Few(stay.into())
    } else {
        let mut set = TokenSet::empty(size);
        stay.into_iter().for_each(|token| set.insert(token));
        Tokens::Many(Box::new(set))
    };
    Node { tokens, exits: exits.into(), children: HashMap::new() }
}
