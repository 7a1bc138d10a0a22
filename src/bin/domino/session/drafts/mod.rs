//! Drafts: who guesses, by what counts, and how long guesses are.

pub(crate) mod draft_model;
pub(crate) mod learner;
pub(crate) mod prior;
pub(crate) mod proposer;
pub(crate) mod speculation;
