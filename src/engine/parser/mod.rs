//! Earley parsing over terminals with canonical sets.
//!
//! Equal continuations get equal set ids, whatever text led there; a set id *is* the stack. Knows
//! terminals by number only: no bytes, no tokens.

mod core;
#[cfg(test)]
mod firsts_tests;
mod lists;
mod origin;
#[expect(clippy::module_inception, reason = "the stage's main type lives in the file of its name")]
mod parser;
mod remaining;
mod sets;

pub(crate) use parser::{Parser, Predicted};
pub(crate) use remaining::Remaining;
