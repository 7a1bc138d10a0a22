//! JSON Schema -> grammar IR.

mod dfa;
pub mod leaf;
pub mod numbers;
pub mod strings;
