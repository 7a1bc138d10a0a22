//! Grammars: the ones with names (`named`), and all that were compiled (`registry`), kept while there is room
//! (`shelf`).

pub(crate) mod named;
pub(crate) mod registry;
mod shelf;
