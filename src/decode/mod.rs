//! The decode loop: model, constraint and sampling meet here and nowhere else.

mod batch;
mod builder;
mod decoder;
mod error;
mod existing_text;
mod options;
mod other_decoders;
mod row;
mod run;
mod sampling;
mod speculation;
mod stats;
mod steps;
mod stop;

pub use batch::{
    decoder::BatchDecoder,
    event::{BatchEvent, SequenceId, SequenceTurn},
};
pub use builder::DecoderBuilder;
pub use decoder::Decoder;
pub use error::{BuildError, BuildErrorKind, DecodeError, DecodeErrorKind};
pub use existing_text::{heal::Healing, replay::Replayed};
pub use options::{DecodeOptions, Masking};
#[cfg(feature = "tokenizers")]
pub use other_decoders::canonical::{CanonicalDecoder, CanonicalText};
pub use other_decoders::conditional::{ConditionalDecoder, ConditionalText};
#[cfg(feature = "experiments")]
pub(crate) use other_decoders::single;
pub use run::{Finish, Generation, Step};
pub use sampling::{
    bias::{LogitBias, LogitBiasError},
    logprobs::{Logprobs, TokenLogprobs},
    penalties::{Penalties, PenaltyError},
    sampler::{DrawError, KeptDrawError, Sampler},
    settings::{Sampling, SamplingError},
};
#[cfg(feature = "experiments")]
pub(crate) use sampling::{
    choice::possible,
    kept_mass::{log_kept, log_mass, log_sum},
    likely::likely,
};
pub use speculation::{
    draft_model::{DraftMask, DraftModel, DraftTally},
    same_tokens::{DraftModelError, DraftModelErrorKind},
};
pub use stats::DecodeStats;
#[cfg(feature = "experiments")]
pub(crate) use stats::timed;
pub use steps::Steps;
pub use stop::{StopSearch, StopStringError, StopStrings};
