//! Earley parsing over terminals with canonical sets.
//!
//! Equal continuations get equal set ids, whatever text led there; a set id *is* the stack. Knows
//! terminals by number only: no bytes, no tokens.

mod closure;
mod core;
mod firsts;
#[cfg(test)]
mod firsts_tests;
mod item;
mod lists;
mod memo;
mod origin;
#[expect(clippy::module_inception, reason = "the stage's main type lives in the file of its name")]
mod parser;
mod remaining;
mod sets;
mod tail;
mod view;

pub(crate) use parser::Parser;
pub(crate) use remaining::Remaining;
pub(crate) use view::Predicted;
