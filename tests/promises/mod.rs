//! The engine's promises as properties of random grammars, each against the brute-force oracle.
//!
//! `PROPTEST_CASES=5000 cargo test --test main promises` looks longer.

#[cfg(not(packaged))]
mod any_order;
mod automata;
mod bounded;
#[cfg(not(packaged))]
mod captures;
#[cfg(not(packaged))]
mod classes;
#[cfg(not(packaged))]
mod completion;
#[cfg(not(packaged))]
mod explore;
mod gbnf;
mod generate;
#[cfg(not(packaged))]
mod greedy;
#[cfg(not(packaged))]
mod items;
mod k_monotone;
mod keys;
mod leaves;
mod lookahead;
mod lossless;
mod measured;
#[cfg(not(packaged))]
mod minimal;
mod oracle;
#[cfg(not(packaged))]
pub(crate) mod real;
mod rollback;
#[cfg(not(packaged))]
mod run_out;
mod schemas;
mod sound;
mod specials;
mod substrings;
#[cfg(not(packaged))]
mod tokens;
mod trees;
mod walks;
mod warnings;
