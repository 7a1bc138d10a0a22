//! Parts of the batch decoder beside its passes: names and events of sequences, admission and turns, prompts
//! that are read in chunks, and the prefixes that prompts have in common.

pub(super) mod admission;
pub(super) mod event;
pub(super) mod parts;
pub(super) mod prefixes;
pub(super) mod reading;
pub(super) mod turns;

#[cfg(test)]
mod tests;
