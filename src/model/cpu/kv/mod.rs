//! Keys and values of the tokens that sequences have seen.

mod blocks;
pub(super) mod cache;
mod layout;
mod spans;

#[cfg(test)]
pub(super) use self::{
    blocks::Side,
    spans::{KvMemory, SPAN_POSITIONS},
};
pub(super) use self::{
    blocks::{Head, KEYS},
    spans::KvBlocks,
};
