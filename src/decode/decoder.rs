//! The loop: a pass of the model, a choice, a step of the constraint, until the text ends.
//!
//! Invariant: every token handed out has been advanced through the constraint; runs share nothing but the
//! configuration, so the same prompt gives the same tokens.

use std::{fmt, iter::FusedIterator};

use super::{
    choice::Chooser,
    error::{BuildError, BuildErrorKind, DecodeError, DecodeErrorKind},
    sampler::Sampler,
    sampling::Sampling,
    stats::{DecodeStats, timed},
};
use crate::{
    constraint::Constraint,
    ids::TokenId,
    limits::DEFAULT_NEW_TOKENS,
    model::{Model, Rows},
    vocab::Vocabulary,
};

/// When the mask of allowed tokens is computed. The tokens generated are the same either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Masking {
    /// At every step, before a token is drawn.
    Always,
    /// Only after the model's own choice was refused (the paper's opportunistic masking). With top-k, top-p
    /// or min-p the mask still comes first, since there the result would differ.
    #[default]
    Opportunistic,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Finish {
    /// The text is complete: the model ended it, or nothing can follow.
    Stop,
    /// The limit of new tokens or the model's context was reached.
    Length,
}

/// What a run generated.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Generation {
    /// The tokens, without prompt and end of text.
    pub tokens: Vec<TokenId>,
    /// Why it ended.
    pub finish: Finish,
    /// What it cost.
    pub stats: DecodeStats,
}

/// One token generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// The token.
    pub token: TokenId,
    /// Was it taken in place of the model's own choice, which is not allowed?
    pub intervened: bool,
}

/// Generates text with a model, under a constraint if there is one.
pub struct Decoder<M: Model> {
    model: M,
    vocabulary: Vocabulary,
    constraint: Option<Constraint>,
    chooser: Chooser,
    max_new_tokens: usize,
}

/// Builds a [`Decoder`].
#[derive(Debug)]
#[must_use]
pub struct DecoderBuilder<M: Model> {
    model: M,
    vocabulary: Option<Vocabulary>,
    constraint: Option<Constraint>,
    sampling: Sampling,
    seed: u64,
    max_new_tokens: usize,
    masking: Masking,
}

impl<M: Model> DecoderBuilder<M> {
    /// The model's vocabulary. Must be given.
    pub fn vocabulary(self, vocabulary: Vocabulary) -> Self {
        Self { vocabulary: Some(vocabulary), ..self }
    }

    /// What the text must be: each run starts at this constraint's present state. Compiled for the same
    /// vocabulary. Without one the model is free.
    pub fn constraint(self, constraint: Constraint) -> Self {
        Self { constraint: Some(constraint), ..self }
    }

    /// How tokens are drawn. Default: greedy.
    pub fn sampling(self, sampling: Sampling) -> Self {
        Self { sampling, ..self }
    }

    /// Key of the random numbers. Default: 0.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Most tokens of one run, end of text not counted. Default: 512.
    pub fn max_new_tokens(self, max_new_tokens: usize) -> Self {
        Self { max_new_tokens, ..self }
    }

    /// When masks are computed. Default: [`Masking::Opportunistic`].
    pub fn masking(self, masking: Masking) -> Self {
        Self { masking, ..self }
    }

    /// The decoder. One pass over the vocabulary.
    ///
    /// # Errors
    /// If there is no vocabulary, it has ids past the model's rows of logits (rows may be longer, as many
    /// models pad them; the padding is never drawn), or the constraint was compiled for another one.
    pub fn build(self) -> Result<Decoder<M>, BuildError> {
        let vocabulary = self.vocabulary.ok_or(BuildErrorKind::NoVocabulary)?;
        let (size, model) = (vocabulary.size(), self.model.vocabulary_size());
        if size > model {
            return Err(BuildErrorKind::VocabularyTooLarge { vocabulary: size, model }.into());
        }
        check_constraint(&vocabulary, self.constraint.as_ref())?;
        let mut possible = vocabulary.empty_set();
        for (token, _) in vocabulary.text_tokens().filter(|(_, bytes)| !bytes.is_empty()) {
            possible.insert(token);
        }
        for &token in vocabulary.end_of_text() {
            possible.insert(token);
        }
        let sampler = Sampler::new(self.sampling, self.seed);
        Ok(Decoder {
            model: self.model,
            vocabulary,
            constraint: self.constraint,
            chooser: Chooser { sampler, masking: self.masking, possible },
            max_new_tokens: self.max_new_tokens,
        })
    }
}

impl<M: Model> Decoder<M> {
    /// A builder of a decoder of `model`.
    pub fn builder(model: M) -> DecoderBuilder<M> {
        DecoderBuilder {
            model,
            vocabulary: None,
            constraint: None,
            sampling: Sampling::default(),
            seed: 0,
            max_new_tokens: DEFAULT_NEW_TOKENS,
            masking: Masking::default(),
        }
    }

    /// Goes on from `prompt` until the text ends. Every run starts anew: the cache is emptied, and the
    /// constraint is where it was given. The draw of a token is keyed by its index in the whole sequence,
    /// prompt included.
    ///
    /// # Errors
    /// If the prompt is empty or does not fit in the context, or a pass, a draw or the constraint fails.
    /// What was generated until then is lost; use [`steps`](Self::steps) to keep it.
    pub fn generate(&mut self, prompt: &[TokenId]) -> Result<Generation, DecodeError> {
        let mut steps = self.steps(prompt);
        let mut finish = None;
        while finish.is_none() {
            steps.next().transpose()?;
            finish = steps.finish();
        }
        let Steps { tokens, stats, .. } = steps;
        Ok(Generation { tokens, finish: finish.unwrap_or(Finish::Length), stats })
    }

    /// The tokens that [`generate`](Self::generate) would give, one by one as the model makes them. To
    /// cancel, stop asking: what was generated stays available.
    pub fn steps(&mut self, prompt: &[TokenId]) -> Steps<'_, M> {
        Steps {
            constraint: self.constraint.clone(),
            stats: DecodeStats { prompt_tokens: prompt.len(), ..DecodeStats::default() },
            pending: prompt.to_vec(),
            tokens: Vec::new(),
            progress: Progress::NotStarted,
            decoder: self,
        }
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

    /// Gives the model back.
    #[must_use]
    pub fn into_model(self) -> M {
        self.model
    }

    /// Puts another constraint in place of the present one, for the runs to come; `None` frees the model.
    ///
    /// # Errors
    /// If it was compiled for another vocabulary; the present one stays then.
    pub fn set_constraint(&mut self, constraint: Option<Constraint>) -> Result<(), BuildError> {
        check_constraint(&self.vocabulary, constraint.as_ref())?;
        self.constraint = constraint;
        Ok(())
    }
}

/// Refuses a constraint for another vocabulary: its tokens would be other texts.
fn check_constraint(vocabulary: &Vocabulary, constraint: Option<&Constraint>) -> Result<(), BuildError> {
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
            .field("sampler", &self.chooser.sampler)
            .field("masking", &self.chooser.masking)
            .field("max_new_tokens", &self.max_new_tokens)
            .field("constrained", &self.constraint.is_some())
            .finish_non_exhaustive()
    }
}

/// Where a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    NotStarted,
    Running,
    Finished(Finish),
    Failed,
}

/// One run, token by token; see [`Decoder::steps`]. After an error or the end there are no more items.
pub struct Steps<'a, M: Model> {
    decoder: &'a mut Decoder<M>,
    constraint: Option<Constraint>,
    /// Tokens that the model has not seen: the prompt, then the last one.
    pending: Vec<TokenId>,
    tokens: Vec<TokenId>,
    stats: DecodeStats,
    progress: Progress,
}

impl<M: Model> Steps<'_, M> {
    /// The tokens so far, without prompt and end of text.
    #[must_use]
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// Why the run ended, if it has, and not by an error.
    #[must_use]
    pub fn finish(&self) -> Option<Finish> {
        match self.progress {
            Progress::Finished(finish) => Some(finish),
            _ => None,
        }
    }

    /// What the run cost so far.
    #[must_use]
    pub fn stats(&self) -> &DecodeStats {
        &self.stats
    }

    /// The constraint after the tokens so far.
    #[must_use]
    pub fn constraint(&self) -> Option<&Constraint> {
        self.constraint.as_ref()
    }

    /// Index of the next token in the whole sequence.
    fn next_position(&self) -> usize {
        self.stats.prompt_tokens + self.tokens.len()
    }

    /// Empties the cache and checks the prompt.
    fn start(&mut self) -> Result<(), DecodeError> {
        let (tokens, context) = (self.pending.len(), self.decoder.model.context());
        if tokens == 0 {
            return Err(DecodeErrorKind::EmptyPrompt.into());
        }
        if tokens > context {
            return Err(DecodeErrorKind::PromptTooLong { tokens, context }.into());
        }
        self.decoder.model.truncate(0).map_err(DecodeError::model)
    }

    /// Is the text over before the model is asked?
    fn ending(&mut self) -> Option<Finish> {
        if let Some(constraint) = &self.constraint
            && timed(&mut self.stats.mask_time, || constraint.is_complete() && !constraint.can_go_on())
        {
            return Some(Finish::Stop);
        }
        let full = self.decoder.model.position() + self.pending.len() > self.decoder.model.context();
        (full || self.tokens.len() >= self.decoder.max_new_tokens).then_some(Finish::Length)
    }

    /// Makes the next token, or says why there is none.
    fn step(&mut self) -> Result<Result<Step, Finish>, DecodeError> {
        if self.progress == Progress::NotStarted {
            self.start()?;
            self.progress = Progress::Running;
        }
        if let Some(finish) = self.ending() {
            return Ok(Err(finish));
        }
        let position = self.next_position();
        let model = &mut self.decoder.model;
        let logits = timed(&mut self.stats.model_time, || model.forward(&self.pending, Rows::Last))
            .map_err(DecodeError::model)?;
        self.stats.passes += 1;
        let interventions = self.stats.interventions;
        let row = logits.last().unwrap_or_default();
        let token = self.decoder.chooser.choose(row, position, self.constraint.as_mut(), &mut self.stats)?;
        if let Some(constraint) = &mut self.constraint {
            timed(&mut self.stats.mask_time, || constraint.advance(token))?;
        }
        if self.decoder.vocabulary.is_end_of_text(token) {
            return Ok(Err(Finish::Stop));
        }
        self.pending.clear();
        self.pending.push(token);
        self.tokens.push(token);
        self.stats.tokens += 1;
        Ok(Ok(Step { token, intervened: self.stats.interventions > interventions }))
    }
}

impl<M: Model> Iterator for Steps<'_, M> {
    type Item = Result<Step, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if matches!(self.progress, Progress::Finished(_) | Progress::Failed) {
            return None;
        }
        let mut time = self.stats.total_time;
        let result = timed(&mut time, || self.step());
        self.stats.total_time = time;
        match result {
            Ok(Ok(step)) => Some(Ok(step)),
            Ok(Err(finish)) => {
                self.progress = Progress::Finished(finish);
                None
            }
            Err(error) => {
                self.progress = Progress::Failed;
                Some(Err(error))
            }
        }
    }
}

impl<M: Model> FusedIterator for Steps<'_, M> {}

impl<M: Model> fmt::Debug for Steps<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Steps")
            .field("tokens", &self.tokens.len())
            .field("progress", &self.progress)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}
