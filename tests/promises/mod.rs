//! The engine's promises as properties of random grammars, each against the brute-force oracle.
//!
//! `PROPTEST_CASES=5000 cargo test --test main promises` looks longer.

mod any_order;
mod automata;
mod bounded;
mod captures;
mod classes;
mod completion;
mod explore;
mod gbnf;
mod generate;
mod greedy;
mod items;
mod k_monotone;
mod keys;
mod leaves;
mod length_bounded;
mod lookahead;
mod lossless;
mod minimal;
mod oracle;
pub(crate) mod real;
mod rollback;
mod run_out;
mod schemas;
mod sound;
mod specials;
mod substrings;
mod tokens;
mod trees;
mod walks;
mod warnings;
