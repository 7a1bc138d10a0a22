//! Shortcuts: ways to the row that a walk over the trie gives, for less work.
//!
//! - `reference_rows` patches the row of a common terminal, such as any string, where the two differ
//!   (`product_walk` compares the automata), and lists the trie nodes where they can differ;
//! - `characters` restricts a row to tokens of some numbers of characters (`minLength`, `maxLength`);
//! - `length_bounded` takes the row of the unbounded string where the bound is too far away to matter, also
//!   for strings of patterns with large counts, whose states are made on demand;
//! - `chain` takes tokens from an index by kinds of bytes, inside a repeated class of letters;
//! - `bounded_equivalence` takes the row of another state of the terminal that differs only on long texts, or
//!   on none that the vocabulary has.
//!
//! Rows of states that are too many for a table are kept by hash, in `SparseRows`.

mod bounded_equivalence;
mod chain;
mod characters;
mod length_bounded;
mod product_walk;
mod reference_rows;
#[cfg(test)]
pub(super) mod reference_rows_tests;

pub(super) use bounded_equivalence::{LikeStates, grown, have_same_row};
pub(super) use characters::{CharacterIndex, Home};
pub(super) use length_bounded::{SpelledFacts, Unbounded};
pub(super) use product_walk::TextLevels;
pub(super) use reference_rows::{BoundaryNodes, DfaDelta, PatchedRow};
