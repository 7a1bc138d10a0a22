//! Sampling and the decode loop.

mod batch;
mod chosen;
mod draw;
mod kept;
mod numbering;
mod options;
mod replay;
pub(crate) mod run;
mod thoughts;
// Texts of the shipped model, judged by other parsers.
mod generations;
// Token healing.
mod healing;
