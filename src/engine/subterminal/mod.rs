//! Vocabulary x terminals: which tokens stay inside a terminal, which cross into further ones.
//!
//! A token does four things to terminals (paper, 3.3): as a *continuation* it stays inside the current one,
//! as an *end* it finishes it, as a *start* it begins one it does not finish, and in between it may span
//! *full* ones. This stage knows no parser, only which terminals may follow which.
//!
//! Part by part:
//!
//! - `rows`: a *row* is what one state of a terminal does to all tokens. The plain way to make it is a walk
//!   over the vocabulary's trie with the automaton (`crossing`).
//! - `table`: the rows of a terminal, made on demand and shared by all grammars that have the terminal
//!   (`vocabulary_tables`). `terminal_entry` crosses from one terminal into the next.
//! - `shortcuts`: ways to make the same row for less work.
//! - `tree`: the terminal sequences that tokens spell from a scanner state on, made as a text needs them
//!   (`branches`) or ahead (`grow`).
//!
//! `stored` writes trees and tables to files and reads them back.

mod branches;
mod crossing;
mod grow;
mod rows;
mod shortcuts;
mod stored;
mod table;
mod terminal_entry;
mod tree;
#[cfg(test)]
mod tree_tests;
mod vocabulary_tables;

pub(crate) use branches::{Branch, Branches, Siblings};
pub(crate) use rows::TokenList;
pub(crate) use table::TerminalTable;
pub(crate) use tree::{Forest, Grow, TreeInputs, TreeNodeId};
pub(crate) use vocabulary_tables::{TableMemory, VocabularyTables, make_ahead};

/// Bound on the terminals past the current one that a token may reach (the paper's `k`, 3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Lookahead {
    /// At most this many: a token may be refused that the language allows, never the other way round.
    Terminals(u32),
    /// Any number: the mask is exact, the constraint minimally invasive.
    #[default]
    Unbounded,
}
