//! Grammars in each notation, and what they are made of.

pub(crate) mod grammar;
pub(crate) mod parts;
pub(crate) mod schema;
pub(crate) mod tools;
