//! Vocabulary x terminals: which tokens stay inside a terminal, which cross into further ones.
//!
//! A token does four things to terminals (paper, 3.3): as a *continuation* it stays inside the current
//! one, as an *end* it finishes it, as a *start* it begins one it does not finish, and in between it may
//! span *full* ones. Knows no parser: which terminals may follow is asked edge by edge.

mod crossing;
mod lookahead;
mod tree;

pub(crate) use crossing::cross;
pub use lookahead::Lookahead;
pub(crate) use tree::{Edge, Forest, TreeNodeId};
