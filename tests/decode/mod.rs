//! Sampling and the decode loop.

mod batch;
mod chosen;
mod draw;
mod kept;
#[cfg(all(feature = "candle", feature = "tokenizers"))]
mod numbering;
mod options;
mod replay;
pub(crate) mod run;
#[cfg(all(feature = "candle", feature = "tokenizers"))]
mod thoughts;
// Texts of the shipped model, judged by other parsers.
#[cfg(all(feature = "cli", feature = "oracle"))]
mod generations;
// Token healing.
mod healing;
