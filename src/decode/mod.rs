//! The decode loop: model, constraint and sampling meet here and nowhere else.

mod batch;
#[cfg(feature = "tokenizers")]
mod canonical;
mod conditional;
mod decoder;
mod error;
mod existing_text;
mod options;
mod run;
mod sampling;
#[cfg(feature = "tokenizers")]
pub(crate) mod single;
mod speculation;
mod stats;
mod steps;
mod stop;

pub use batch::BatchDecoder;
pub use batch::sequence::{BatchEvent, SequenceId, SequenceTurn};
#[cfg(feature = "tokenizers")]
pub use canonical::{CanonicalDecoder, CanonicalText};
pub use conditional::{ConditionalDecoder, ConditionalText};
pub use decoder::{Decoder, DecoderBuilder};
pub use error::{BuildError, BuildErrorKind, DecodeError, DecodeErrorKind};
pub use existing_text::{Healing, Replayed};
pub use options::{DecodeOptions, Masking};
pub use run::{Finish, Generation, Step};
#[cfg(feature = "experiments")]
pub(crate) use sampling::choice::possible;
pub use sampling::logprobs::{Logprobs, TokenLogprobs};
#[cfg(feature = "experiments")]
pub(crate) use sampling::logprobs::{likely, log_kept, log_mass, log_sum};
pub use sampling::penalties::{LogitBias, LogitBiasError, Penalties, PenaltyError};
pub use sampling::sampler::{DrawError, KeptDrawError, Sampler};
pub use sampling::{Sampling, SamplingError};
pub use speculation::draft_model::{DraftMask, DraftModel, DraftModelError, DraftModelErrorKind, DraftTally};
pub use stats::DecodeStats;
#[cfg(feature = "experiments")]
pub(crate) use stats::timed;
pub use steps::Steps;
pub use stop::{StopSearch, StopStringError, StopStrings};
