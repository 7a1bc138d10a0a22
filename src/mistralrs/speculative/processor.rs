//! The processor that drafts and draws: both halves of a speculative step, told apart by their contexts.
//!
//! In each step upstream first asks, for each row, for the draft model's next token, with contexts that grow
//! by the answers. Then it asks, with the context of the step's beginning, for the target's draw in each row,
//! as long as the draws agree with the draft. All answers are rows from which only one token can be drawn.
//! The draw of a step's last row also makes the next step's draft, and sets that step's number of rows.
//!
//! Invariant: a token is drawn by seed and position from the row that a plain run would have. Drafts change
//! the number of tokens of a step, never the tokens.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use mistralrs_candle::Tensor;
use mistralrs_core::{CustomLogitsProcessor, SpeculativePipeline};

use super::{
    guesses::{CoupledDraws, Guesser},
    turn::EngineTurn,
    widths::Widths,
};
use domino::{
    Constraint,
    decode::{DrawError, Masking, Sampler, StopSearch, StopStrings},
    ids::TokenId,
    vocab::{TokenSet, Vocabulary},
};

use crate::{
    error::RequestError,
    processor::{end_of_text, own_draw},
    row,
    watch::RequestWatch,
};

/// A request's settings.
#[derive(Debug)]
pub(super) struct SpeculativeJob {
    /// The constraint; `None` for any text.
    pub(super) constraint: Option<Constraint>,
    pub(super) guesser: Guesser,
    pub(super) sampler: Sampler,
    pub(super) masking: Masking,
    /// Position of the text's first token. Default: the number of tokens of the prompt.
    pub(super) first: Option<usize>,
    /// Most tokens of the text.
    pub(super) most: usize,
    pub(super) stop: Stop,
}

/// Stop tokens and stop strings, which end a text before its own end.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop {
    pub(super) tokens: Vec<u32>,
    pub(super) strings: StopStrings,
}

/// Facts that all requests of an engine share.
#[derive(Debug, Clone)]
pub(super) struct EngineFacts {
    pub(super) vocabulary: Vocabulary,
    /// Most rows of a pass, one more than the most tokens of a draft.
    pub(super) gamma: usize,
    /// Tokens that the model can hold.
    pub(super) context: usize,
}

/// One request of an engine with speculation.
pub(super) struct SpeculativeProcessor {
    model: EngineFacts,
    state: Mutex<RequestState>,
    watch: RequestWatch,
    widths: Widths<SpeculativePipeline>,
    /// The right to be in the engine; the next request gets it when the engine drops this.
    turn: EngineTurn,
}

struct RequestState {
    constraint: Option<Constraint>,
    guesser: Guesser,
    draws: CoupledDraws,
    masking: Masking,
    most: usize,
    /// Tokens that end the text.
    stop_tokens: Vec<u32>,
    /// The search for stop strings in the tokens drawn.
    search: StopSearch,
    /// The prompt and the tokens drawn; empty before the first context.
    sequence: Vec<TokenId>,
    /// True if the text has ended. Upstream makes one more step after a text that ended in its first step.
    over: bool,
    /// True if the text has a stop string. Upstream notices at the next token, which is drawn as any other.
    stopped: bool,
    step: Option<SpeculativeStep>,
    /// The draft of the next step.
    next: Vec<TokenId>,
    /// Time of the draw of the last step's last row.
    last: Option<Instant>,
    /// The set of all tokens of a row.
    all: TokenSet,
}

/// One speculative step of the engine.
struct SpeculativeStep {
    /// Length of its context in tokens.
    base: usize,
    draft: Vec<TokenId>,
    /// Token that fills the rows after the draft: one that cannot be drawn there.
    junk: TokenId,
    /// Tokens given to upstream as the draft model's, which is the number of rows of the step.
    told: usize,
    /// Rows drawn from so far.
    judged: usize,
    accepted: usize,
    /// Time when the target's pass began.
    pass: Instant,
}

impl SpeculativeStep {
    /// The token given to upstream as the draft of the row at `index`.
    fn guess(&self, index: usize) -> TokenId {
        self.draft.get(index).copied().unwrap_or(self.junk)
    }
}

impl SpeculativeProcessor {
    pub(super) fn new(
        model: EngineFacts,
        job: SpeculativeJob,
        turn: EngineTurn,
        widths: Widths<SpeculativePipeline>,
    ) -> Self {
        let SpeculativeJob { constraint, guesser, sampler, masking, first, most, stop } = job;
        let state = RequestState {
            constraint,
            guesser,
            draws: CoupledDraws { sampler, first, prompt: 0 },
            masking,
            most,
            search: stop.strings.search(),
            stop_tokens: stop.tokens,
            sequence: Vec::new(),
            over: false,
            stopped: false,
            step: None,
            next: Vec::new(),
            last: None,
            all: TokenSet::empty(0),
        };
        Self { model, state: Mutex::new(state), watch: RequestWatch::default(), widths, turn }
    }

    pub(super) fn watch(&self) -> RequestWatch {
        self.watch.clone()
    }

    fn next(&self, logits: &Tensor, context: &[u32]) -> mistralrs_candle::Result<Tensor> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        let size = logits.elem_count();
        if let Some(step) = &mut state.step {
            if step.judged == 0 && context.len() == step.base + step.told {
                let token = step.guess(step.told);
                step.told += 1;
                step.pass = Instant::now();
                return row::only(token, size);
            }
            if context.len() == step.base {
                return self.judge(state, &row::read(logits)?);
            }
        }
        let token = self.begin(state, context)?;
        row::only(token, size)
    }

    /// Begins a step; returns the first token of its draft.
    fn begin(&self, state: &mut RequestState, context: &[u32]) -> mistralrs_candle::Result<TokenId> {
        if state.sequence.is_empty() {
            state.sequence = context.iter().copied().map(TokenId::new).collect();
            state.draws.prompt = context.len();
            self.watch.count(|stats| stats.prompt_tokens = context.len());
            if context.len() + self.model.gamma > self.model.context {
                mistralrs_candle::bail!(
                    "the prompt has {} tokens, but the model's context holds {}, of which drafts need {}",
                    context.len(),
                    self.model.context,
                    self.model.gamma
                );
            }
        } else if !self.watch.is_over()
            && !context.iter().copied().map(TokenId::new).eq(state.sequence.iter().copied())
        {
            // If a text was ended from outside, its end token is no part of the sequence.
            self.watch.fail(RequestError::OutOfStep);
        }
        let draft = std::mem::take(&mut state.next);
        let junk = state.junk(&draft, &self.model.vocabulary);
        let token = draft.first().copied().unwrap_or(junk);
        self.watch.count(|stats| {
            stats.passes += 1;
            stats.drafted += draft.len();
        });
        state.step = Some(SpeculativeStep {
            base: context.len(),
            draft,
            junk,
            told: 1,
            judged: 0,
            accepted: 0,
            pass: Instant::now(),
        });
        Ok(token)
    }

    /// Accounts for the step whose last row was drawn from, and makes the draft of the next one.
    fn prepare(&self, state: &mut RequestState) {
        let Some(step) = &state.step else { return };
        let begun = Instant::now();
        // Step cost = time between the last rows of two consecutive steps: it includes drafting, the
        // stand-in's passes, sampling, and the engine's work between steps. The first pass, over the prompt,
        // does not count.
        if let Some(last) = state.last.replace(begun) {
            state.guesser.verified(step.accepted, step.told, begun.duration_since(last).as_secs_f64());
        }
        if !self.watch.is_over() {
            state.next = state.draft();
        }
        self.widths.set(state.next.len() + 1);
        self.watch.count(|stats| stats.draft_time += begun.elapsed());
    }

    /// Draws from a row of the target.
    fn judge(&self, state: &mut RequestState, row: &[f32]) -> mistralrs_candle::Result<Tensor> {
        if let Some(step) = state.step.as_mut() {
            step.judged += 1;
            if step.judged == 1 {
                let elapsed = step.pass.elapsed();
                self.watch.count(|stats| stats.model_time += elapsed);
            }
        }
        // The rows of the next step must fit.
        let full = state.sequence.len() + self.model.gamma > self.model.context;
        if full {
            self.watch.fill();
        }
        let ended = state.constraint.as_ref().is_some_and(Constraint::is_ended);
        if full || ended || state.over || self.watch.is_over() {
            return row::end(&self.model.vocabulary, row.len());
        }
        match self.draw(state, row) {
            Ok(token) => {
                let mut is_last = true;
                if let Some(step) = &mut state.step {
                    let index = step.judged - 1;
                    let accepted = step.draft.get(index) == Some(&token);
                    step.accepted += usize::from(accepted);
                    self.watch.count(|stats| stats.accepted += usize::from(accepted));
                    // Upstream goes on with a step as long as draws agree with the draft.
                    is_last = step.judged == step.told || step.guess(index) != token;
                }
                if is_last {
                    self.prepare(state);
                }
                row::only(token, row.len())
            }
            Err(error) => {
                self.watch.fail(error);
                row::end(&self.model.vocabulary, row.len())
            }
        }
    }

    /// Draws the next token and advances by it.
    fn draw(&self, state: &mut RequestState, row: &[f32]) -> Result<TokenId, RequestError> {
        let position = state.draws.position(state.sequence.len());
        if state.all.size() != row.len() {
            state.all = row::all(row.len());
        }
        let sampler = &state.draws.sampler;
        let begun = Instant::now();
        let mut masked = Duration::ZERO;
        let how = (state.masking, sampler);
        let own = match &mut state.constraint {
            Some(constraint) => own_draw(how, row, &state.all, position, constraint)?,
            None => Some(sampler.draw(row, &state.all, position)?),
        };
        // Else the mask comes first: most masks are cached, and a draw takes as long as its set has tokens.
        let token = match (own, &mut state.constraint) {
            (None, Some(constraint)) => {
                let end = constraint.end().map(|_| end_of_text(&self.model.vocabulary));
                let allowed = match &end {
                    Some(end) => end,
                    None => constraint.mask()?,
                };
                masked = begun.elapsed();
                if allowed.is_empty() {
                    return Err(DrawError::NoneAllowed.into());
                }
                sampler.draw(row, allowed, position)?
            }
            (own, _) => own.ok_or(DrawError::NoneAllowed)?,
        };
        let advancing = Instant::now();
        let constrained = state.constraint.is_some();
        if let Some(constraint) = &mut state.constraint {
            if state.guesser.learns() {
                state.guesser.observe(constraint, &mut state.sequence, &state.draws, token);
            }
            constraint.advance(token)?;
            masked += advancing.elapsed();
        }
        let ends = self.model.vocabulary.is_end_of_text(token);
        state.push(token, self.model.vocabulary.bytes(token).unwrap_or_default());
        state.over |= ends;
        self.watch.count(|stats| {
            stats.draws += 1;
            stats.own_draws += usize::from(!constrained);
            stats.masks += usize::from(own.is_none());
            stats.mask_time += masked;
        });
        self.watch.drawn(token, ends);
        Ok(token)
    }
}

impl RequestState {
    /// Appends a token that spells `bytes`.
    fn push(&mut self, token: TokenId, bytes: &[u8]) {
        self.sequence.push(token);
        self.over |= self.taken() >= self.most || self.stop_tokens.contains(&token.raw());
        self.stopped |= bytes.iter().any(|byte| self.search.push(*byte).is_some());
    }

    /// Number of tokens of the text.
    fn taken(&self) -> usize {
        self.sequence.len() - self.draws.prompt
    }

    /// Makes the draft of the next step. It leaves room for the token after it, and ends before a token that
    /// would end the text: after such a token, upstream ends the text but keeps the rest of an accepted
    /// draft. The first step has no draft, so a text that ends there has one token.
    fn draft(&mut self) -> Vec<TokenId> {
        let Some(constraint) = self.constraint.as_ref().filter(|_| !self.over && !self.stopped) else {
            return Vec::new();
        };
        let room = self.most.saturating_sub(self.taken() + 1);
        let (stop_tokens, vocabulary) = (&self.stop_tokens, constraint.vocabulary().clone());
        let mut ahead = self.search.clone();
        let keep = |draft: &[TokenId]| {
            let tokens = draft.iter().take_while(|&&token| {
                let mut bytes = vocabulary.bytes(token).unwrap_or_default().iter();
                !stop_tokens.contains(&token.raw()) && !bytes.any(|byte| ahead.push(*byte).is_some())
            });
            tokens.count()
        };
        self.guesser.draft(constraint, &mut self.sequence, &self.draws, room, keep).to_vec()
    }

    /// A token that cannot be drawn after the draft. If there is none (as without a grammar), an unlikely
    /// one: if it is drawn, the step goes on after it, which is right unless the text ends there.
    fn junk(&self, draft: &[TokenId], vocabulary: &Vocabulary) -> TokenId {
        // Special tokens that the grammar does not ask for are never allowed, except end of text, which is
        // where the text is complete.
        let asked = |token| self.constraint.as_ref().is_some_and(|constraint| constraint.asks_for(token));
        let mut specials = vocabulary.special_tokens().map(|(token, _)| token);
        if let Some(token) = specials.find(|&token| !vocabulary.is_end_of_text(token) && !asked(token)) {
            return token;
        }
        let Some(mut ahead) = self.constraint.as_ref().map(Constraint::fork) else { return TokenId::new(0) };
        let moved = draft.iter().all(|&token| ahead.advance(token).is_ok());
        let mut refused = |token: &TokenId| moved && ahead.allows(*token).is_ok_and(|allowed| !allowed);
        let end = vocabulary.end_of_text().first().copied().into_iter();
        let all = (0..vocabulary.size()).filter_map(TokenId::from_index);
        end.chain(all).find(&mut refused).unwrap_or(TokenId::new(0))
    }
}

impl CustomLogitsProcessor for SpeculativeProcessor {
    fn apply(&self, logits: &Tensor, context: &[u32]) -> mistralrs_candle::Result<Tensor> {
        let answer = self.next(logits, context);
        self.turn.sign();
        answer
    }
}

impl fmt::Debug for SpeculativeProcessor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpeculativeProcessor")
            .field("model", &self.model)
            .field("watch", &self.watch)
            .finish_non_exhaustive()
    }
}
