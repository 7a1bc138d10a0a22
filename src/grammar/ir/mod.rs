//! The grammar IR that every notation is turned into: rules over an arena of expressions.
//!
//! Invariants: an expression's parts have smaller ids than itself (so passes are loops without recursion, and
//! deep input cannot overflow the stack); every rule has a body; [`GrammarBuilder`] is the only way in. The
//! IR knows nothing of scanners, parsers or vocabularies.

pub mod any_order;
pub mod automaton;
pub mod decisions;
pub mod pattern;

mod ask;
mod asked_tokens;
mod builder;
pub(super) mod embed;
mod grammar;
mod json_characters;
mod length_bounded;
mod room;

pub use builder::{DuplicateRule, GrammarBuilder, UnfinishedGrammar};
pub use grammar::{DistinctItems, DistinctKeys, Expr, Grammar};
pub use length_bounded::LengthBounded;
