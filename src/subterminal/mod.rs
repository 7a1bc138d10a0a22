//! Vocabulary x terminals: which tokens stay inside a terminal, which cross into further ones.
//!
//! A token does four things to terminals (paper, 3.3): as a *continuation* it stays inside the current one,
//! as an *end* it finishes it, as a *start* it begins one it does not finish, and in between it may span
//! *full* ones. This stage knows no parser, only which terminals may follow which.
//!
//! A *row* is what one state of a terminal does to all tokens. The plain way to make it is a walk over the
//! vocabulary's trie with the automaton (`crossing`). Shortcuts give the same row for less work:
//!
//! - `kin` patches the row of a common terminal, such as any string, where the two differ (`side_by_side`
//!   compares the automata, `breaks` lists the trie nodes where they can differ);
//! - `counted` counts characters, for a common terminal with bounds on its length (`minLength`, `maxLength`);
//! - `measured` takes the row of the unbounded string where the bound is too far away to matter;
//! - `spelled` does the same for strings of patterns with large counts, whose states are made on demand;
//! - `chain` takes tokens from an index by kinds of bytes, inside a repeated class of letters;
//! - `alike` takes the row of another state of the same terminal that differs only on long texts;
//! - `scattered` keeps rows of states that are too many for a table, by hash.

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
