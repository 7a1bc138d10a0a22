//! Views of the subterminal trees: their size and contents.

use std::{collections::HashSet, sync::Arc};

use super::Inspection;
use crate::{
    ids::{TerminalId, TokenId},
    subterminal::{Forest, TreeNodeId},
};

/// The tree of a scanner state.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeView {
    /// The terminal that the text is inside of.
    pub terminal: TerminalId,
    /// The state of its DFA.
    pub scanner_state: u32,
    /// Nodes: sequences of terminals that tokens spell, the state's own terminal first.
    pub nodes: usize,
    /// Number of terminals in the longest sequence.
    pub depth: usize,
    /// Tokens in all nodes; a token counts once for each way to spell it.
    pub tokens: usize,
    /// Number of places inside tokens where a node's terminal may end and another begin, in all nodes.
    pub exits: usize,
    /// Memory, in bytes; what trees share counts for the first of them.
    pub bytes: usize,
    /// Nodes whose children were not made because memory ran out: masks walk the vocabulary there.
    pub open: usize,
}

/// A node of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeNodeView {
    /// Index of the parent in the list; `None` for the root.
    pub parent: Option<usize>,
    /// The last terminal of its sequence.
    pub terminal: TerminalId,
    /// Tokens that end inside that terminal or just as it may end.
    pub tokens: usize,
    /// The first few of them.
    pub examples: Vec<TokenId>,
    /// Places inside tokens where the terminal may end and another begin.
    pub exits: usize,
    /// Children; `None` if they were not made.
    pub children: Option<usize>,
}

/// Number of tokens given as examples of a node.
const MOST_EXAMPLES: usize = 5;

impl Inspection {
    /// Lists the trees, by terminal and scanner state. [Grows](crate::CompiledGrammar::grow_trees) those not
    /// yet there.
    #[must_use]
    pub fn trees(&self) -> Vec<TreeView> {
        let Some(forest) = self.forest() else { return Vec::new() };
        let scanner = &self.program().lowered.scanner;
        let (mut nodes_seen, mut rows_seen) = (HashSet::new(), HashSet::new());
        let view = |(state, root)| {
            let mut view = TreeView {
                terminal: scanner.terminal(state),
                scanner_state: scanner.local(state),
                nodes: 0,
                depth: 0,
                tokens: 0,
                exits: 0,
                bytes: 0,
                open: 0,
            };
            let mut open = vec![(root, 1)];
            while let Some((node, depth)) = open.pop() {
                let reach = forest.reach(node);
                view.nodes += 1;
                view.depth = view.depth.max(depth);
                view.tokens += reach.tokens().len();
                view.exits += reach.exits().total();
                if nodes_seen.insert(node) {
                    let (_, contents) = forest.contents(node);
                    let own = if rows_seen.insert(contents) { reach.bytes() } else { 0 };
                    view.bytes += Forest::NODE_BYTES + own;
                }
                match forest.made(node) {
                    Some(children) => open.extend(children.map(|child| (forest.child(child).1, depth + 1))),
                    None => view.open += 1,
                }
            }
            view
        };
        forest.trees().into_iter().map(view).collect()
    }

    /// Returns the first nodes of a tree, parents before children, at most `most`; `None` if there is no such
    /// scanner state. [Grows](crate::CompiledGrammar::grow_trees) all trees if they are not there.
    #[must_use]
    pub fn tree(&self, terminal: TerminalId, scanner_state: u32, most: usize) -> Option<Vec<TreeNodeView>> {
        let scanner = &self.program().lowered.scanner;
        let forest = self.forest()?;
        let is_it = |state| scanner.terminal(state) == terminal && scanner.local(state) == scanner_state;
        let (_, root) = forest.trees().into_iter().find(|(state, _)| is_it(*state))?;
        let mut nodes: Vec<TreeNodeView> = Vec::new();
        let mut open: std::collections::VecDeque<(Option<usize>, TreeNodeId)> = [(None, root)].into();
        while nodes.len() < most
            && let Some((parent, node)) = open.pop_front()
        {
            let reach = forest.reach(node);
            let children = forest.made(node);
            let here = nodes.len();
            nodes.push(TreeNodeView {
                parent,
                terminal: forest.terminal(node),
                tokens: reach.tokens().len(),
                examples: reach.tokens().iter().take(MOST_EXAMPLES).collect(),
                exits: reach.exits().total(),
                children: children.as_ref().map(ExactSizeIterator::len),
            });
            // No more than can still be shown.
            let room = most.saturating_sub(nodes.len() + open.len());
            open.extend(
                children.into_iter().flatten().take(room).map(|child| (Some(here), forest.child(child).1)),
            );
        }
        Some(nodes)
    }

    fn forest(&self) -> Option<&Arc<Forest>> {
        self.grammar.grow_trees();
        self.program().grown.get()
    }
}
