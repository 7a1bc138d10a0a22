//! JSON Schema -> grammar IR.

mod dfa;
#[cfg(test)]
mod engine_tests;
pub mod leaf;
pub mod numbers;
#[cfg(test)]
mod probe;
pub mod strings;
