//! The engine's promises as properties of random grammars, each against the brute-force oracle.
//!
//! The six promises have a file each. The rooms beside them hold what follows from them for masks, for the
//! parts of grammars, for JSON, and for questions about a text. Random grammars come from `generate`.
//!
//! `PROPTEST_CASES=5000 cargo test --test main promises` looks longer.

mod bounded;
mod generate;
mod grammars;
mod json;
mod k_monotone;
mod lossless;
pub(crate) mod masks;
mod minimal;
mod oracle;
mod questions;
mod rollback;
mod sound;
