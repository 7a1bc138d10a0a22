//! The decode loop: model, constraint and sampling meet here and nowhere else.

mod choice;
mod decoder;
mod error;
mod noise;
mod sampler;
mod sampling;
mod stats;

pub use decoder::{Decoder, DecoderBuilder, Finish, Generation, Masking, Step, Steps};
pub use error::{BuildError, BuildErrorKind, DecodeError, DecodeErrorKind};
pub use sampler::{DrawError, Sampler};
pub use sampling::{Sampling, SamplingError};
pub use stats::DecodeStats;
