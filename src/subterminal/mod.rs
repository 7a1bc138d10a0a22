//! Vocabulary x terminals: which tokens stay inside a terminal, which cross into further ones.
//!
//! A token does four things to terminals (paper, 3.3): as a *continuation* it stays inside the current
//! one, as an *end* it finishes it, as a *start* it begins one it does not finish, and in between it may
//! span *full* ones. Knows no parser, only which terminals may follow which.

mod ahead;
mod alike;
mod branches;
mod breaks;
mod chain;
mod counted;
mod crossing;
mod entrances;
mod grow;
mod kin;
#[cfg(test)]
mod kin_tests;
mod lookahead;
mod measured;
mod ranges;
mod reach;
mod scattered;
mod side_by_side;
mod spelled;
mod stored;
mod strings;
mod table;
mod tables;
mod tree;
#[cfg(test)]
mod tree_tests;
mod view;

pub(crate) use ahead::make_ahead;
pub(crate) use branches::{Branch, Branches};
pub use lookahead::Lookahead;
pub(crate) use reach::Tokens;
pub(crate) use table::TerminalTable;
pub(crate) use tables::{Tables, Weights};
pub(crate) use tree::{Forest, Grow, Soil, TreeNodeId};
