//! The caller's end of an engine with speculation: requests get their processors here.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use mistralrs_core::{CustomLogitsProcessor, NormalRequest, SpeculativePipeline, StopTokens};

use super::{
    error::AttachError,
    guesses::{Guesser, Guesses, SharedCost},
    processor::{EngineFacts, SpeculativeJob, SpeculativeProcessor, Stop},
    sampling,
    turn::EngineTurns,
    widths::Widths,
};
use domino::{
    Constraint,
    decode::{Masking, Sampler, StopStringError, StopStrings},
    proposer::{DraftLength, PassCost},
    vocab::{Tokenizer, Vocabulary},
};

use crate::watch::RequestWatch;

/// Attaches requests to the engine of a [`GrammarSpeculativeLoader`](super::GrammarSpeculativeLoader).
/// Cloning shares it.
#[derive(Debug, Clone)]
pub struct Speculation {
    gamma: usize,
    length: DraftLength,
    turns: EngineTurns,
    cost: SharedCost,
    loaded: Arc<Mutex<Option<LoadedEngine>>>,
}

#[derive(Debug, Clone)]
pub(super) struct LoadedEngine {
    pub(super) model: EngineFacts,
    pub(super) tokenizer: Tokenizer,
    pub(super) widths: Widths<SpeculativePipeline>,
}

/// Settings of a request. Its sampling, length and stop strings are those of the engine's own request.
#[derive(Debug, Clone, Default)]
pub struct SpeculativeRequest {
    constraint: Option<Constraint>,
    guesses: Option<Guesses>,
    seed: Option<u64>,
    sampler: Option<Sampler>,
    first: Option<usize>,
    masking: Masking,
}

impl SpeculativeRequest {
    /// Asks for a text that begins where `constraint` is.
    #[must_use]
    pub fn new(constraint: Constraint) -> Self {
        Self { constraint: Some(constraint), ..Self::default() }
    }

    /// Asks for any text, sampled as the engine would. Nothing is drafted.
    #[must_use]
    pub fn unconstrained() -> Self {
        Self::default()
    }

    /// Drafts by these guesses, which must be for the constraint's grammar. Default: nothing is drafted.
    #[must_use]
    pub fn guesses(self, guesses: &Guesses) -> Self {
        Self { guesses: Some(guesses.clone()), ..self }
    }

    /// Sets the key of the random numbers. The same key gives the same text again, with or without drafts,
    /// which is also the text of domino's own runner. Default: another key for each request.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// Draws by this sampler instead of the engine's request. `first` is the position of the text's first
    /// token. The number of tokens of the prompt, which is the default, gives the texts of domino's own
    /// runner.
    #[must_use]
    pub fn draw_by(self, sampler: Sampler, first: usize) -> Self {
        Self { sampler: Some(sampler), first: Some(first), ..self }
    }

    /// Sets when masks are made. The engine's pass is over by then, so [`Masking::Ahead`], the default, is
    /// like [`Masking::Always`]; with [`Masking::Opportunistic`] there is a mask only where the draw from all
    /// tokens may not follow. The text is the same.
    #[must_use]
    pub fn masking(self, masking: Masking) -> Self {
        Self { masking, ..self }
    }
}

impl Speculation {
    pub(super) fn new(gamma: usize, length: DraftLength) -> Self {
        let (turns, cost) = (EngineTurns::new(), SharedCost::default());
        Self { gamma, length, turns, cost, loaded: Arc::default() }
    }

    /// Most rows of a pass, each of which gives at most one token.
    #[must_use]
    pub fn gamma(&self) -> usize {
        self.gamma
    }

    /// Measured times of passes in drafted requests that are over, the stand-in's drafts included.
    #[must_use]
    pub fn pass_cost(&self) -> PassCost {
        self.cost.read()
    }

    /// The vocabulary of the loaded model, for which grammars must be compiled.
    ///
    /// # Errors
    /// If none has been loaded.
    pub fn vocabulary(&self) -> Result<Vocabulary, AttachError> {
        Ok(self.loaded()?.model.vocabulary)
    }

    /// The tokenizer of the loaded model.
    ///
    /// # Errors
    /// If none has been loaded.
    pub fn tokenizer(&self) -> Result<Tokenizer, AttachError> {
        Ok(self.loaded()?.tokenizer)
    }

    /// Waits for the engine's turn, and gives the request its processor. The turn ends when the engine is
    /// done with the request, so send it without delay. Requests that were not attached must not be sent to
    /// such an engine.
    ///
    /// The processor takes over the sampling (temperature, top-k, top-p, min-p) and draws by seed and
    /// position. Penalties stay with the engine; a request that has any is not drafted for.
    ///
    /// # Errors
    /// If the request wants what such an engine cannot do; it is unchanged then.
    pub async fn attach(
        &self,
        request: &mut NormalRequest,
        what: SpeculativeRequest,
    ) -> Result<RequestWatch, AttachError> {
        let LoadedEngine { model, widths, .. } = self.loaded()?;
        check(request)?;
        let stop = stop(request)?;
        let sampling = sampling::take(&mut request.sampling_params)?;
        let SpeculativeRequest { constraint, guesses, seed, sampler, first, masking } = what;
        let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(request.id));
        let drafts = constraint.is_some() && !sampling::penalises(&request.sampling_params);
        // The last row's token needs no draft, since nothing comes after it.
        let guesser = guesses.filter(|_| drafts).map_or_else(Guesser::default, |guesses| {
            guesses.guesser(self.gamma - 1, self.length, &self.cost)
        });
        let job = SpeculativeJob {
            constraint,
            guesser,
            sampler: sampler.unwrap_or_else(|| Sampler::new(sampling, seed)),
            masking,
            first,
            most: request.sampling_params.max_len.unwrap_or(usize::MAX),
            stop,
        };
        let turn = self.turns.next().await.ok_or(AttachError::NotLoaded)?;
        // The first step has no draft.
        widths.set(1);
        let processor = SpeculativeProcessor::new(model, job, turn, widths);
        let watch = processor.watch();
        request.logits_processors = Some(vec![Arc::new(processor) as Arc<dyn CustomLogitsProcessor>]);
        Ok(watch)
    }

    /// Time since the last sign of life of the request that has the engine's turn. Each token is one, so it
    /// is about the time of a pass. `None` while nobody has the turn.
    #[must_use]
    pub fn silence(&self) -> Option<Duration> {
        self.turns.silence()
    }

    /// Waits until there has been [silence](Self::silence) for `limit`: the engine hangs then, or the pass
    /// over a prompt takes longer. For `tokio::select!` beside the wait for an answer.
    pub async fn hung(&self, limit: Duration) {
        const LEAST: Duration = Duration::from_millis(10);
        loop {
            let left = limit.saturating_sub(self.silence().unwrap_or_default());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.max(LEAST)).await;
        }
    }

    pub(super) fn set(&self, loaded: Option<LoadedEngine>) {
        *self.loaded.lock().unwrap_or_else(PoisonError::into_inner) = loaded;
    }

    fn loaded(&self) -> Result<LoadedEngine, AttachError> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or(AttachError::NotLoaded)
    }
}

/// Refuses what an engine with speculation cannot do.
fn check(request: &NormalRequest) -> Result<(), AttachError> {
    match request.sampling_params.n_choices {
        1 => {}
        choices => return Err(AttachError::Choices(choices)),
    }
    if !matches!(request.constraint, mistralrs_core::Constraint::None) {
        return Err(AttachError::OtherConstraint);
    }
    if request.logits_processors.as_ref().is_some_and(|processors| !processors.is_empty()) {
        return Err(AttachError::OtherProcessors);
    }
    if request.return_logprobs || request.sampling_params.top_n_logprobs > 0 {
        return Err(AttachError::Logprobs);
    }
    Ok(())
}

/// Returns what ends the text of a request. Empty strings end none.
fn stop(request: &NormalRequest) -> Result<Stop, StopStringError> {
    Ok(match &request.sampling_params.stop_toks {
        None => Stop::default(),
        Some(StopTokens::Ids(tokens)) => Stop { tokens: tokens.clone(), ..Stop::default() },
        Some(StopTokens::Seqs(strings)) => {
            let strings = strings.iter().map(String::as_str).filter(|string| !string.is_empty());
            Stop { strings: StopStrings::new(strings)?, ..Stop::default() }
        }
    })
}
