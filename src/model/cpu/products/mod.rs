//! Products of weight matrices, packed, with a few rows: in floats, or in whole numbers.

mod ahead;
pub(super) mod integer;
mod kernel;
pub(in crate::model) mod linear;
pub(in crate::model) mod matrix;
pub(in crate::model) mod packing;
mod panel;
mod scheme;
pub(super) mod selection;
