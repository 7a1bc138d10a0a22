//! A model, its vocabulary, a constraint and options, put together by a builder and checked.
//!
//! Invariants: the parts of a decoder that was built belong together. Runs share nothing but the
//! configuration, so the same prompt gives the same tokens.

use std::{fmt, sync::Arc};

use super::error::{BuildError, BuildErrorKind, DecodeError};
use super::options::{DecodeOptions, Masking};
use super::run::{Generation, TextRun};
use super::sampling::{Sampling, choice::possible};
use super::{speculation::calibrate, steps::Steps};
use crate::vocab::{TokenSet, Vocabulary};
use crate::{Constraint, ids::TokenId, model::Model, proposer::Drafter};

/// Generates text with a model, under a constraint if there is one.
pub struct Decoder<M: Model> {
    pub(super) model: M,
    pub(super) vocabulary: Vocabulary,
    pub(super) constraint: Option<Constraint>,
    pub(super) options: DecodeOptions,
    pub(super) drafter: Option<Drafter>,
    /// All tokens that can be generated.
    pub(super) possible: Arc<TokenSet>,
}

impl<M: Model> Decoder<M> {
    /// Creates a builder of a decoder of `model`.
    pub fn builder(model: M) -> DecoderBuilder<M> {
        let options = DecodeOptions::default();
        DecoderBuilder { model, vocabulary: None, constraint: None, options, drafter: None }
    }

    /// Continues `prompt` until the text ends. Every run starts anew, with an empty cache and the
    /// constraint's initial state. The draw of a token is keyed by its index in the whole sequence, prompt
    /// included.
    ///
    /// # Errors
    /// If the prompt is empty or does not fit in the context, or a pass, a draw or the constraint fails.
    /// What was generated until then is lost; use [`steps`](Self::steps) to keep it.
    pub fn generate(&mut self, prompt: &[TokenId]) -> Result<Generation, DecodeError> {
        let mut steps = self.steps(prompt);
        while steps.finish().is_none() {
            steps.next().transpose()?;
        }
        Ok(steps.into_generation())
    }

    /// Writes a value of a type that `serde_json` reads, under the type's own grammar
    /// ([`Grammar::of`](crate::Grammar::of)). The decoder's constraint is left out of this run and stays for
    /// others. A text that is cut is completed, so there is a value unless the run fails.
    ///
    /// The grammar is compiled for the call. To write many values of a type, compile it once and use
    /// [`set_constraint`](Self::set_constraint), [`generate`](Self::generate) and `serde_json` yourself.
    ///
    /// # Errors
    /// If the type has no grammar, if the run fails as [`generate`](Self::generate) may, or if the type's
    /// `Deserialize` refuses a text that its schema allows.
    ///
    /// # Examples
    /// ```no_run
    /// # fn example<M: domino::model::Model>(
    /// #     decoder: &mut domino::decode::Decoder<M>,
    /// #     prompt: &[domino::TokenId],
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Person {
    ///     name: String,
    ///     age: u8,
    /// }
    ///
    /// let person: Person = decoder.generate_as(prompt)?;
    /// println!("{} is {}", person.name, person.age);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "schemars")]
    pub fn generate_as<T>(&mut self, prompt: &[TokenId]) -> Result<T, DecodeError>
    where
        T: schemars::JsonSchema + serde::de::DeserializeOwned,
    {
        let grammar = crate::Grammar::of::<T>().map_err(DecodeError::of_type)?;
        let compiled = crate::Compiler::new(self.vocabulary.clone()).compile(&grammar);
        let constraint = compiled.map_err(DecodeError::of_type)?.constraint();
        let before = self.constraint.replace(constraint);
        let close = std::mem::replace(&mut self.options.close, true);
        let generated = self.generate(prompt);
        self.options.close = close;
        self.constraint = before;
        serde_json::from_slice(&generated?.text).map_err(DecodeError::of_type)
    }

    /// Iterates over the tokens of [`generate`](Self::generate), one by one as the model makes them. To
    /// cancel, stop iterating: the text so far stays available.
    pub fn steps(&mut self, prompt: &[TokenId]) -> Steps<'_, M> {
        let possible = Arc::clone(&self.possible);
        let run =
            TextRun::new(prompt, self.vocabulary.clone(), possible, self.constraint.clone(), &self.options);
        Steps::new(&mut self.model, run, self.drafter.as_mut())
    }

    /// The vocabulary.
    #[must_use]
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &M {
        &self.model
    }

    /// The model, for passes besides the runs. Its cache does not matter: every run starts anew.
    pub fn model_mut(&mut self) -> &mut M {
        &mut self.model
    }

    /// Returns the model.
    #[must_use]
    pub fn into_model(self) -> M {
        self.model
    }

    /// Replaces the constraint for later runs; `None` frees the model.
    ///
    /// # Errors
    /// If it was compiled for another vocabulary; the present one stays then.
    pub fn set_constraint(&mut self, constraint: Option<Constraint>) -> Result<(), BuildError> {
        check_constraint(&self.vocabulary, constraint.as_ref())?;
        self.constraint = constraint;
        Ok(())
    }

    /// Replaces the drafter for later runs, and returns the old one; `None` for plain runs. Its knowledge and
    /// measurements go with it.
    pub fn set_drafter(&mut self, drafter: Option<Drafter>) -> Option<Drafter> {
        std::mem::replace(&mut self.drafter, drafter)
    }

    /// Measures the cost of passes over several tokens, so that drafts have the right length from the first
    /// one on; some forty short passes. Otherwise it is measured as runs go on. Does nothing if it is known,
    /// or not needed.
    ///
    /// # Errors
    /// If a pass fails.
    pub fn calibrate(&mut self) -> Result<(), DecodeError> {
        let ahead = self.constraint.is_some() && self.options.is_ahead();
        let token = self.vocabulary.end_of_text().first().copied();
        let (Some(drafter), Some(token)) = (&mut self.drafter, token) else { return Ok(()) };
        drafter.set_at_once(self.model.tokens_at_once());
        let passes = drafter.unmeasured(ahead);
        if passes.is_empty() {
            return Ok(());
        }
        calibrate(&mut self.model, token, passes, |pass, seconds| drafter.passed(pass, seconds))
    }

    /// The drafter, if runs speculate.
    #[must_use]
    pub fn drafter(&self) -> Option<&Drafter> {
        self.drafter.as_ref()
    }

    /// Options of draws and of the end of runs, for later runs.
    pub fn options_mut(&mut self) -> &mut DecodeOptions {
        &mut self.options
    }
}

/// Refuses a vocabulary with ids past the model's rows of logits.
pub(super) fn check_size(vocabulary: &Vocabulary, model: usize) -> Result<(), BuildError> {
    let vocabulary = vocabulary.size();
    if vocabulary > model {
        return Err(BuildErrorKind::VocabularyTooLarge { vocabulary, model }.into());
    }
    Ok(())
}

/// Refuses a constraint for another vocabulary: its tokens would be other texts.
pub(super) fn check_constraint(
    vocabulary: &Vocabulary,
    constraint: Option<&Constraint>,
) -> Result<(), BuildError> {
    match constraint {
        Some(constraint) if constraint.vocabulary().fingerprint() != vocabulary.fingerprint() => {
            Err(BuildErrorKind::OtherVocabulary.into())
        }
        _ => Ok(()),
    }
}

impl<M: Model> fmt::Debug for Decoder<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder")
            .field("options", &self.options)
            .field("constrained", &self.constraint.is_some())
            .finish_non_exhaustive()
    }
}

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
