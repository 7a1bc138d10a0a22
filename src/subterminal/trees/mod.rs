//! Subterminal trees: the terminal sequences that tokens spell from a scanner state on.

mod adopted;
mod branches;
mod grow;
mod tree;
#[cfg(test)]
mod tree_tests;
mod view;

pub(crate) use branches::{Branch, Branches, Siblings};
pub(super) use tree::{Children, NODES, TreeNode};
pub(crate) use tree::{Forest, Grow, TreeInputs, TreeNodeId};
