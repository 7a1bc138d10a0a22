//! Experiments: a grid of runs by a definition, one record a run, and what they add up to.
//!
//! A [`Row`] says what one run made and cost. Rows are appended to a folder one by one, so a run that is killed goes on
//! where it was; tables and figures are made from rows alone.

mod row;

pub use row::{End, K, Row, RunId, UNCONSTRAINED, fill_reproduced};
