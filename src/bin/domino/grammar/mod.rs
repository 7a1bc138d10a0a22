//! Grammars as commands have them: where they come from, how they are read, and what is said of them.

pub(crate) mod compiled;
pub(crate) mod compiler;
pub(crate) mod notation;
pub(crate) mod reading;
pub(crate) mod source;
pub(crate) mod thinking;
pub(crate) mod warned;
