//! Speculative decoding of one text: draft models, verification of drafts, and the measured cost of passes.

pub(super) mod calibration;
pub(super) mod draft_model;
mod draft_site;
pub(super) mod passes;
#[cfg(feature = "tokenizers")]
mod same_split;
pub(super) mod same_tokens;
pub(super) mod verification;
