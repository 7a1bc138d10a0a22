//! Summaries of rows: a line for each model, grammar, method and setting, and how lines are shown.

mod cells;
mod lines;
mod show;

pub(super) use cells::{PlainNames, column, quoted};
pub use lines::{Line, summarise};
pub use show::{brief, csv, markdown};

#[cfg(test)]
mod tests;
