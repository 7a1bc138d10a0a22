//! Shows trees, for display.

use std::ops::Range;

use super::tree::{Children, Forest, TreeNodeId};
use crate::{
    ids::{ScanStateId, TokenId},
    subterminal::rows::TokenList,
};

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
