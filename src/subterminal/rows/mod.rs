//! Rows: what one state of a terminal does to all tokens, and the walk over the trie that finds it.

mod crossing;
mod ranges;
mod row;
mod sparse_rows;

pub(super) use crossing::{Crossing, Loops};
pub(super) use ranges::Ranges;
pub(crate) use row::TokenList;
pub(super) use row::TokenRow;
pub(super) use sparse_rows::SparseRows;
