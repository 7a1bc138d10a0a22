//! The passes that lower a grammar, from its rules open to rewriting to a reduced context-free grammar.

pub(super) mod emit;
pub(super) mod factor_runs;
mod leaves;
pub(super) mod lexemes;
pub(super) mod recursion;
pub(super) mod reduce;
pub(super) mod regular;
pub(super) mod rewrite;
