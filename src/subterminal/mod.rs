//! Vocabulary x terminals: which tokens stay inside a terminal, which cross into further ones.
//!
//! A token does four things to terminals (paper, 3.3): as a *continuation* it stays inside the current one,
//! as an *end* it finishes it, as a *start* it begins one it does not finish, and in between it may span
//! *full* ones. This stage knows no parser, only which terminals may follow which.
//!
//! Room by room:
//!
//! - `rows`: a *row* is what one state of a terminal does to all tokens. The plain way to make it is a walk
//!   over the vocabulary's trie with the automaton (`rows/crossing`).
//! - `tables`: the rows of a terminal, made on demand and shared by all grammars that have the terminal.
//! - `shortcuts`: ways to make the same row for less work.
//! - `trees`: the terminal sequences that tokens spell from a scanner state on.
//!
//! `stored` writes trees and tables to files and reads them back.

mod lookahead;
mod rows;
mod shortcuts;
mod stored;
mod tables;
mod trees;

pub use lookahead::Lookahead;
pub(crate) use rows::TokenList;
pub(crate) use tables::{TableMemory, TerminalTable, VocabularyTables, make_ahead};
pub(crate) use trees::{Branch, Branches, Forest, Grow, Siblings, TreeInputs, TreeNodeId};
