//! Builds decoders.
//!
//! Invariant: the parts of a decoder that was built belong together.

use std::sync::Arc;

use super::{
    decoder::{Decoder, check_constraint, check_size},
    error::{BuildError, BuildErrorKind},
    options::{DecodeOptions, Masking},
    sampling::{choice::possible, settings::Sampling},
};
use crate::{model::Model, proposer::Drafter, session::Constraint, vocab::Vocabulary};

/// Builds a [`Decoder`].
#[derive(Debug)]
#[must_use]
pub struct DecoderBuilder<M: Model> {
    model: M,
    vocabulary: Option<Vocabulary>,
    constraint: Option<Constraint>,
    options: DecodeOptions,
    drafter: Option<Drafter>,
}

impl<M: Model> Decoder<M> {
    /// Creates a builder of a decoder of `model`.
    pub fn builder(model: M) -> DecoderBuilder<M> {
        let options = DecodeOptions::default();
        DecoderBuilder { model, vocabulary: None, constraint: None, options, drafter: None }
    }
}

impl<M: Model> DecoderBuilder<M> {
    /// Sets the model's vocabulary. Required.
    pub fn vocabulary(self, vocabulary: Vocabulary) -> Self {
        Self { vocabulary: Some(vocabulary), ..self }
    }

    /// Sets the constraint on the text: each run starts at its present state. It must be compiled for the
    /// same vocabulary. Without one the model is free.
    pub fn constraint(self, constraint: Constraint) -> Self {
        Self { constraint: Some(constraint), ..self }
    }

    /// Sets all options at once, replacing those set before.
    pub fn options(self, options: DecodeOptions) -> Self {
        Self { options, ..self }
    }

    /// Sets [`DecodeOptions::sampling`].
    pub fn sampling(mut self, sampling: Sampling) -> Self {
        self.options.sampling = sampling;
        self
    }

    /// Sets [`DecodeOptions::seed`].
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = seed;
        self
    }

    /// Sets [`DecodeOptions::max_new_tokens`].
    pub fn max_new_tokens(mut self, max_new_tokens: usize) -> Self {
        self.options.max_new_tokens = max_new_tokens;
        self
    }

    /// Sets [`DecodeOptions::masking`].
    pub fn masking(mut self, masking: Masking) -> Self {
        self.options.masking = masking;
        self
    }

    /// Sets a drafter: drafts of several tokens are verified in one pass of the model. The tokens generated
    /// are the same, the time is not. Default: none.
    pub fn drafter(self, drafter: Drafter) -> Self {
        Self { drafter: Some(drafter), ..self }
    }

    /// Builds the decoder. One pass over the vocabulary.
    ///
    /// # Errors
    /// If there is no vocabulary, it has ids past the model's rows of logits (rows may be longer, as many
    /// models pad them; the padding is never drawn), or the constraint was compiled for another one.
    pub fn build(self) -> Result<Decoder<M>, BuildError> {
        let vocabulary = self.vocabulary.ok_or(BuildErrorKind::NoVocabulary)?;
        check_size(&vocabulary, self.model.vocabulary_size())?;
        check_constraint(&vocabulary, self.constraint.as_ref())?;
        let possible = Arc::new(possible(&vocabulary));
        Ok(Decoder {
            model: self.model,
            vocabulary,
            constraint: self.constraint,
            options: self.options,
            drafter: self.drafter,
            possible,
        })
    }
}
