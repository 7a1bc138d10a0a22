//! Grammars as commands have them: where they come from, how they are read, and what is said of them.

pub(crate) mod advice;
pub(crate) mod budgets;
pub(crate) mod bytes;
pub(crate) mod captures;
mod expected;
pub(crate) mod keywords;
mod looks;
pub(crate) mod notation;
pub(crate) mod places;
pub(crate) mod reading;
pub(crate) mod shipped;
pub(crate) mod source;
pub(crate) mod trees;
pub(crate) mod warned;
