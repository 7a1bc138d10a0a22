//! JSON Schema -> grammar IR.

mod dfa;
pub mod leaf;
pub mod numbers;
#[cfg(test)]
mod probe;
pub mod strings;
