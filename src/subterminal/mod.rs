//! Vocabulary x terminals: which tokens stay inside a terminal, which cross into further ones.
//!
//! A token does four things to terminals (paper, 3.3): as a *continuation* it stays inside the current one,
//! as an *end* it finishes it, as a *start* it begins one it does not finish, and in between it may span
//! *full* ones. This stage knows no parser, only which terminals may follow which.
//!
//! A *row* is what one state of a terminal does to all tokens. The plain way to make it is a walk over the
//! vocabulary's trie with the automaton (`crossing`). Shortcuts give the same row for less work:
//!
//! - `reference_rows` patches the row of a common terminal, such as any string, where the two differ
//!   (`product_walk` compares the automata, `boundary_nodes` lists the trie nodes where they can differ);
//! - `counted` counts characters, for a common terminal with bounds on its length (`minLength`, `maxLength`);
//! - `length_bounded` takes the row of the unbounded string where the bound is too far away to matter;
//! - `spelled` does the same for strings of patterns with large counts, whose states are made on demand;
//! - `chain` takes tokens from an index by kinds of bytes, inside a repeated class of letters;
//! - `bounded_equivalence` takes the row of another state of the terminal that differs only on long texts;
//! - `sparse_rows` keeps rows of states that are too many for a table, by hash.

mod ahead;
mod boundary_nodes;
mod bounded_equivalence;
mod branches;
mod chain;
mod counted;
mod crossing;
mod grow;
mod length_bounded;
mod lookahead;
mod product_walk;
mod ranges;
mod reference_rows;
#[cfg(test)]
mod reference_rows_tests;
mod row;
mod sparse_rows;
mod spelled;
mod stored;
mod strings;
mod table;
mod tables;
mod terminal_entry;
mod tree;
#[cfg(test)]
mod tree_tests;
mod view;

pub(crate) use ahead::make_ahead;
pub(crate) use branches::{Branch, Branches};
pub use lookahead::Lookahead;
pub(crate) use row::TokenList;
pub(crate) use table::TerminalTable;
pub(crate) use tables::{TableMemory, VocabularyTables};
pub(crate) use tree::{Forest, Grow, TreeInputs, TreeNodeId};
