//! JSON Schema -> grammar IR.

pub mod leaf;
pub mod numbers;
pub mod strings;
