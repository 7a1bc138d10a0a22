//! Keys and values of the tokens that sequences have seen.

pub(super) mod blocks;
pub(super) mod cache;
