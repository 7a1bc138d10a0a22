//! Puts trees together that were grown apart, each node once: nodes with equal contents and equal children
//! are one.
//!
//! States in the middle of a count, as of white space, differ in few tokens, and what follows them is mostly
//! the same. Children come before their parents, so that equal ones have equal numbers.

use std::{ops::Range, sync::Arc};

use hashbrown::{HashMap, HashSet};

use super::tree::{Children, Forest, TreeNode, TreeNodeId};
use crate::{
    ids::{ScanStateId, TerminalId},
    limits::LimitExceeded,
    subterminal::rows::TokenRow,
};

/// The contents of a node, as an address, and its children, by which equal nodes are known.
type NodeKey = (TerminalId, usize, Option<Range<u32>>);

/// A node of a tree that is adopted, and its children in the forest, if they were made.
type NodeWithChildren<'n> = (&'n TreeNode, &'n Option<Range<u32>>);

/// A forest that takes over trees.
#[derive(Debug)]
pub(super) struct Adopted {
    pub(super) forest: Forest,
    rows: HashSet<Arc<TokenRow>>,
    siblings: HashMap<Vec<NodeKey>, Range<u32>>,
    roots: HashMap<NodeKey, TreeNodeId>,
}

impl Adopted {
    /// Creates an empty forest of at most `max_bytes`.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            forest: Forest::new(max_bytes),
            rows: HashSet::new(),
            siblings: HashMap::new(),
            roots: HashMap::new(),
        }
    }

    /// Adopts the tree of `state`, whose children come after their parents. Linear in its contents.
    ///
    /// # Errors
    /// If there are more nodes than numbers.
    pub(super) fn adopt(&mut self, state: ScanStateId, tree: Forest) -> Result<(), LimitExceeded> {
        let Some(&root) = tree.roots.get(&state) else { return Ok(()) };
        let nodes: Vec<TreeNode> =
            tree.nodes.into_iter().map(|node| TreeNode { reach: self.row(node.reach), ..node }).collect();
        let mut made: Vec<Option<Range<u32>>> = vec![None; nodes.len()];
        for (number, node) in nodes.iter().enumerate().rev() {
            if let Children::Made(children) = &node.children {
                let children = children.start as usize..children.end as usize;
                let siblings = nodes[children.clone()].iter().zip(&made[children]);
                made[number] = Some(self.siblings(siblings)?);
            }
        }
        let (node, children) = (&nodes[root.index()], &made[root.index()]);
        let key = key((node, children));
        let root = match self.roots.get(&key) {
            Some(&root) => root,
            None => {
                let root = self.push((node, children))?;
                self.forest.nodes[root.index()].state = Some(state);
                self.roots.insert(key, root);
                root
            }
        };
        self.forest.plant(state, root);
        Ok(())
    }

    /// Returns the contents that equal these.
    fn row(&mut self, row: Arc<TokenRow>) -> Arc<TokenRow> {
        // Contents that a table has too are its own.
        let own = if Arc::strong_count(&row) == 1 { row.bytes() } else { 0 };
        Arc::clone(self.rows.get_or_insert_with(&row, |_| {
            self.forest.own.0 += own;
            Arc::clone(&row)
        }))
    }

    /// Returns the numbers of siblings like these.
    fn siblings<'n>(
        &mut self,
        siblings: impl Iterator<Item = NodeWithChildren<'n>> + Clone,
    ) -> Result<Range<u32>, LimitExceeded> {
        let keys: Vec<NodeKey> = siblings.clone().map(key).collect();
        if let Some(known) = self.siblings.get(&keys) {
            return Ok(known.clone());
        }
        let first = self.forest.nodes.numbers().end;
        for sibling in siblings {
            self.push(sibling)?;
        }
        let made = first..self.forest.nodes.numbers().end;
        self.siblings.insert(keys, made.clone());
        Ok(made)
    }

    fn push(&mut self, (node, children): NodeWithChildren<'_>) -> Result<TreeNodeId, LimitExceeded> {
        let number = self.forest.push(node.terminal, Arc::clone(&node.reach))?;
        if let Some(children) = children {
            self.forest.share(number, children.clone());
        }
        Ok(number)
    }
}

fn key((node, children): NodeWithChildren<'_>) -> NodeKey {
    (node.terminal, Arc::as_ptr(&node.reach).addr(), children.clone())
}
