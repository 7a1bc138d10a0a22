//! Errors of model folders and of passes.
//!
//! Invariant: each kind carries what a person needs to mend it (file, tensor, both shapes); the underlying
//! error is the `source`.

use std::path::{Path, PathBuf};

use super::candle::CardFault;
use super::files::architectures;
use super::formats::{self, Instructions};
use crate::ids::TokenId;
use domino_engine::gguf::{GgufError, GgufErrorKind};

/// Kinds of [`ModelError`].
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// A file that a model folder needs is not there.
    #[error("{} is missing", .0.display())]
    MissingFile(PathBuf),
    /// A file cannot be read.
    #[error("{} cannot be read", .0.display())]
    Unreadable(PathBuf),
    /// `config.json` is invalid: the reason in words.
    #[error("config.json: {0}")]
    InvalidConfig(String),
    /// The metadata of a GGUF file is invalid: the reason in words.
    #[error("the GGUF file's metadata: {0}")]
    InvalidMetadata(String),
    /// The configuration asks for something that this runner does not do.
    #[error("the model's {field} = {value} is not supported")]
    Unsupported {
        /// Field of `config.json`, or key of the GGUF metadata.
        field: String,
        /// The value of the field, as JSON.
        value: String,
    },
    /// The architecture is unknown to this runner.
    #[error(
        "unknown architecture {}; supported are {}, and in GGUF files {}",
        .0, architectures::names()[0], architectures::names()[1]
    )]
    UnknownArchitecture(String),
    /// A weights file or its index is damaged or cut short: the reason in words.
    #[error("{}: {reason}", .file.display())]
    DamagedWeights {
        /// The file.
        file: PathBuf,
        /// The damage, in words.
        reason: String,
    },
    /// A tensor that the architecture needs is in none of the weights files.
    #[error("tensor {0} is in none of the weights files")]
    MissingTensor(String),
    /// A tensor does not fit the configuration.
    #[error("tensor {tensor} has shape {found:?}, but the configuration asks for {expected:?}")]
    Shape {
        /// The tensor.
        tensor: String,
        /// The shape that the configuration asks for.
        expected: Vec<usize>,
        /// The shape that the file holds.
        found: Vec<usize>,
    },
    /// A tensor is stored in a number format that this runner does not read.
    #[error("tensor {tensor} is stored as {format}; supported are {}", formats::NAMES)]
    NumberFormat {
        /// The tensor.
        tensor: String,
        /// The format, as safetensors or ggml names it.
        format: String,
    },
    /// The context asked for is zero or longer than the model's.
    #[error("a context of {asked} tokens was asked for, the model has 1 to {supported}")]
    Context {
        /// Tokens asked for.
        asked: usize,
        /// Tokens the model was made for.
        supported: usize,
    },
    /// Loading would need more memory than is allowed or free.
    #[error(
        "the model needs {} MB of memory, more than the {} MB that it may take; a shorter context needs less",
        .needed.div_ceil(1_000_000), .limit / 1_000_000
    )]
    Memory {
        /// Bytes needed.
        needed: u64,
        /// Bytes allowed or free.
        limit: u64,
    },
    /// A card has no room for a model; found out before weights are read.
    #[error(
        "the card has no room: weights take {} MB, keys and values of {context} tokens {} MB, and {} MB \
         are free; a shorter context (--context), fewer texts at once (--max-seqs, --parallel) or a \
         smaller model needs less",
        .weights.div_ceil(1_000_000), .cache.div_ceil(1_000_000), .free / 1_000_000
    )]
    CardMemory {
        /// Bytes of the weights, as they are kept there.
        weights: u64,
        /// Bytes of the keys and values of all texts.
        cache: u64,
        /// Tokens that all texts together have room for.
        context: usize,
        /// Bytes free.
        free: u64,
    },
    /// The processor lacks the instructions asked for.
    #[error("this processor does not have {0}; it has {all}", all = own_instructions())]
    Instructions(Instructions),
    /// The pass is over no tokens.
    #[error("a forward pass needs at least one token")]
    NoTokens,
    /// The pass is over a token that the model does not have.
    #[error("token {token} is not one of the model's {vocabulary} tokens")]
    UnknownToken {
        /// The token.
        token: TokenId,
        /// Tokens the model has.
        vocabulary: usize,
    },
    /// The tokens do not fit in the context.
    #[error("{tokens} tokens at position {position} do not fit in a context of {context} tokens")]
    TooLong {
        /// Tokens in the cache.
        position: usize,
        /// Tokens given.
        tokens: usize,
        /// Tokens that fit in all.
        context: usize,
    },
    /// A truncation goes past the end of the cache.
    #[error("cannot truncate to position {asked}: the cache ends at {position}")]
    PastEnd {
        /// Position asked for.
        asked: usize,
        /// Tokens in the cache.
        position: usize,
    },
    /// The batch has no sequence of this number.
    #[error("the batch has no room for a sequence {0}")]
    NoSuchSequence(usize),
    /// A sequence has two inputs in one pass.
    #[error("sequence {0} is in one pass twice")]
    SequenceTwice(usize),
    /// A device cannot be used.
    #[error("{device} cannot be used: {reason}")]
    Device {
        /// Name of the device.
        device: String,
        /// The reason in words; the source is the library's error.
        reason: String,
    },
    /// A card failed while a model was loaded or run; the source has the driver's words.
    #[error("the card failed: {0}")]
    Card(CardFault),
    /// The tensor library failed; see the source.
    #[error("the tensor library failed")]
    Backend,
    /// Another engine failed: the reason in words. For engines that implement [`Model`](super::Model) outside
    /// of this library.
    #[error("{0}")]
    Engine(String),
}

/// A model folder that cannot be used, or a pass that could not be made.
#[derive(Debug, thiserror::Error)]
#[error("{kind}")]
pub struct ModelError {
    kind: ModelErrorKind,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl ModelError {
    /// The kind of error.
    #[must_use]
    pub fn kind(&self) -> &ModelErrorKind {
        &self.kind
    }

    /// Is this a sound model of a kind that this runner does not read?
    #[must_use]
    pub fn is_of_other_kind(&self) -> bool {
        use ModelErrorKind::{NumberFormat, UnknownArchitecture, Unsupported};
        matches!(self.kind, UnknownArchitecture(_) | Unsupported { .. } | NumberFormat { .. })
    }

    /// Makes an error of this kind with its `source`.
    pub(crate) fn with_source(
        kind: ModelErrorKind,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { kind, source: Some(source.into()) }
    }
}

impl From<ModelErrorKind> for ModelError {
    fn from(kind: ModelErrorKind) -> Self {
        Self { kind, source: None }
    }
}

impl From<GgufError> for ModelError {
    fn from(error: GgufError) -> Self {
        let GgufError { kind, file, reason } = error;
        match kind {
            GgufErrorKind::Missing => ModelErrorKind::MissingFile(file),
            GgufErrorKind::Unreadable => ModelErrorKind::Unreadable(file),
            GgufErrorKind::Damaged => ModelErrorKind::DamagedWeights { file, reason },
        }
        .into()
    }
}

impl From<candle_core::Error> for ModelError {
    fn from(error: candle_core::Error) -> Self {
        let fault = CardFault::of(&error.to_string());
        Self::with_source(fault.map_or(ModelErrorKind::Backend, ModelErrorKind::Card), error)
    }
}

/// The instructions of this processor, as a text.
fn own_instructions() -> String {
    let all: Vec<String> = Instructions::available().iter().map(ToString::to_string).collect();
    if all.is_empty() { "none of them".to_owned() } else { all.join(", ") }
}

/// The error for a file that cannot be opened or read.
pub(crate) fn file_error(path: &Path, error: std::io::Error) -> ModelError {
    let kind = match error.kind() {
        std::io::ErrorKind::NotFound => ModelErrorKind::MissingFile(path.to_owned()),
        _ => ModelErrorKind::Unreadable(path.to_owned()),
    };
    ModelError::with_source(kind, error)
}
