//! Several texts by one model: all share every pass, whenever they join and however long their prompts are.

mod admission;
pub(super) mod decoder;
pub(super) mod event;
mod pool;
mod prefixes;
mod reading;
mod sequence;
mod turns;

#[cfg(test)]
mod tests;
