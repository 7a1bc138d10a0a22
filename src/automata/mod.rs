//! Tools for automata: sets and classes of bytes, sparse rows, equal values as equal numbers, minimisation.

pub(crate) mod byte_set;
pub(crate) mod class_numbers;
pub(crate) mod csr;
pub(crate) mod hash;
pub(crate) mod hash_cons;
pub(crate) mod minimize;
