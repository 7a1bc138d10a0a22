//! Speculative decoding in mistral.rs: drafts by place in the grammar, verified by upstream's speculative
//! pipeline, several tokens a pass.

mod error;
mod guesses;
mod loader;
mod null_draft;
mod processor;
mod sampling;
mod second_permit;
mod self_test;
mod speculation;
mod turn;
mod widths;

pub use error::{AttachError, LoadError};
pub use guesses::Guesses;
pub use loader::GrammarSpeculativeLoader;
pub use speculation::{Speculation, SpeculativeRequest};
