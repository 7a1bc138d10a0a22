//! Masks: the tokens that may follow, made by subterminal trees and kept in bounded memory.
//!
//! *Invariant:* a mask is what its state's threads and the parser say, whether it is made or found. What
//! readers of JSON take from it is not here: these masks are the grammar's, and all texts share them.
//!
//! Below it are the program, the parser and the trees. Above it is the machine, which asks for the masks of
//! its states, and where trees take too much work walks the trie instead: that walk steps the machine, so it
//! is there (`machine/trie_walk.rs`).

mod by_trees;
mod cache;
mod enclosed;

pub(crate) use by_trees::{MaskMaker, MaskRequest};
pub(crate) use cache::{GrammarMask, MaskCache};
pub(crate) use enclosed::{Enclosed, SharedEnclosed};
