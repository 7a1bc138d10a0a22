//! Several texts at once.

use std::{fmt, num::NonZeroUsize, path::Path};

use domino::model::{BatchInput, BatchModel, Logits, candle::ModelError};

use crate::sequences::{LlamaCppOptions, Sequences};

/// A model that llama.cpp runs, with a cache for each of several texts, which share passes.
///
/// The rows of a text are those that it would have alone up to rounding; with
/// [`apart`](LlamaCppOptions::apart) they do not depend on the other texts.
pub struct LlamaCppBatch {
    sequences: Sequences,
}

impl LlamaCppBatch {
    /// Loads a GGUF file for this many sequences, at most 256.
    ///
    /// # Errors
    /// If llama.cpp cannot load it, or there is no memory for the contexts.
    pub fn load(
        path: impl AsRef<Path>,
        sequences: NonZeroUsize,
        options: &LlamaCppOptions,
    ) -> Result<Self, ModelError> {
        Sequences::load(path.as_ref(), sequences.get(), options).map(|sequences| Self { sequences })
    }

    /// Tokens that the model was made for.
    #[must_use]
    pub fn made_for(&self) -> usize {
        self.sequences.made_for()
    }

    /// Can the caches forget the last tokens? As [`LlamaCppModel::can_roll_back`](crate::LlamaCppModel).
    #[must_use]
    pub fn can_roll_back(&self) -> bool {
        self.sequences.can_roll_back()
    }
}

impl BatchModel for LlamaCppBatch {
    type Error = ModelError;

    fn sequences(&self) -> usize {
        self.sequences.count()
    }

    fn position(&self, sequence: usize) -> usize {
        self.sequences.position(sequence)
    }

    fn context(&self) -> usize {
        self.sequences.context()
    }

    fn vocabulary_size(&self) -> usize {
        self.sequences.vocabulary_size()
    }

    fn forward(&mut self, inputs: &[BatchInput<'_>]) -> Result<Vec<Logits>, ModelError> {
        self.sequences.forward(inputs)
    }

    fn truncate(&mut self, sequence: usize, position: usize) -> Result<(), ModelError> {
        self.sequences.truncate(sequence, position)
    }
}

impl fmt::Debug for LlamaCppBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LlamaCppBatch").field("sequences", &self.sequences.count()).finish_non_exhaustive()
    }
}
