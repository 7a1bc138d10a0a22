//! The processor that drafts and draws: both halves of a speculative step, told apart by the contexts.
//!
//! Upstream asks for each step, first for each row what the draft model's next token is, with contexts that
//! grow by what it was told; then, with the context of the step's beginning, what each row of the target
//! draws, for as long as that is what was drafted. All answers are rows from which only one token can be
//! drawn. When the last row of a step is drawn, the next step's draft is made, and that step gets as many
//! rows as it needs.
//!
//! Invariant: a token is drawn from the row that a plain run would have, by seed and position; what is
//! drafted changes how many tokens a step makes, never which.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use mistralrs_candle::Tensor;
use mistralrs_core::{CustomLogitsProcessor, SpeculativePipeline};

use super::{
    guesses::{Draws, Guesser},
    turn::Turn,
    widths::Widths,
};
use crate::{
    constraint::Constraint,
    decode::{DrawError, Sampler},
    ids::TokenId,
    mistralrs::{error::RequestError, processor::end_of_text, row, watch::RequestWatch},
    vocab::{TokenSet, Vocabulary},
};

/// What a request is to be.
#[derive(Debug)]
pub(super) struct Job {
    /// `None`: any text.
    pub(super) constraint: Option<Constraint>,
    pub(super) guesser: Guesser,
    pub(super) sampler: Sampler,
    /// Position of the text's first token; of itself the prompt's number of tokens.
    pub(super) first: Option<usize>,
    /// Most tokens of the text.
    pub(super) most: usize,
    pub(super) stop: Stop,
}

/// What ends a text but its end.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop {
    pub(super) tokens: Vec<u32>,
    pub(super) strings: Vec<Vec<u8>>,
}

/// What all requests of an engine have in common.
#[derive(Debug, Clone)]
pub(super) struct Model {
    pub(super) vocabulary: Vocabulary,
    /// Most rows of a pass, one more than tokens of a draft.
    pub(super) gamma: usize,
    /// Tokens that the model can hold.
    pub(super) context: usize,
}

/// One request of an engine with speculation.
pub(super) struct SpeculativeProcessor {
    model: Model,
    state: Mutex<State>,
    watch: RequestWatch,
    widths: Widths<SpeculativePipeline>,
    /// It goes to the next request when the engine drops this.
    turn: Turn,
}

struct State {
    constraint: Option<Constraint>,
    guesser: Guesser,
    draws: Draws,
    most: usize,
    stop: Stop,
    /// The prompt and the tokens, once there was a context.
    sequence: Vec<TokenId>,
    /// What the tokens spell, in which stop strings are searched.
    text: Vec<u8>,
    /// Has the text ended? Upstream steps a text that ended with its prompt's step once more.
    over: bool,
    /// Does it have a stop string? Upstream notices at the next token, which is drawn as any other.
    stopped: bool,
    step: Option<Step>,
    /// The draft of the next step.
    next: Vec<TokenId>,
    /// When the last step's last row was drawn from.
    last: Option<Instant>,
    /// All tokens of a row.
    all: TokenSet,
}

/// A step of the engine.
struct Step {
    /// Length of its context.
    base: usize,
    draft: Vec<TokenId>,
    /// What is drafted after that: a token that cannot be drawn there.
    junk: TokenId,
    /// Tokens that upstream was told the draft model drew, which is how many rows the step has.
    told: usize,
    /// Rows that were drawn from.
    judged: usize,
    accepted: usize,
    /// When the target's pass began.
    pass: Instant,
}

impl Step {
    /// What upstream was told that the row at `index` draws.
    fn guess(&self, index: usize) -> TokenId {
        self.draft.get(index).copied().unwrap_or(self.junk)
    }
}

impl SpeculativeProcessor {
    pub(super) fn new(model: Model, job: Job, turn: Turn, widths: Widths<SpeculativePipeline>) -> Self {
        let Job { constraint, guesser, sampler, first, most, stop } = job;
        let state = State {
            constraint,
            guesser,
            draws: Draws { sampler, first, prompt: 0 },
            most,
            stop,
            sequence: Vec::new(),
            text: Vec::new(),
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

    /// Begins a step, and gives the first token of its draft.
    fn begin(&self, state: &mut State, context: &[u32]) -> mistralrs_candle::Result<TokenId> {
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
            // Of a text that was ended from outside, the end itself is no part of the sequence.
            self.watch.fail(RequestError::OutOfStep);
        }
        let draft = std::mem::take(&mut state.next);
        let junk = state.junk(&draft, &self.model.vocabulary);
        let token = draft.first().copied().unwrap_or(junk);
        self.watch.count(|stats| {
            stats.passes += 1;
            stats.drafted += draft.len();
        });
        state.step = Some(Step {
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

    /// Accounts for the step whose last row was drawn from, and drafts for the next one.
    fn prepare(&self, state: &mut State) {
        let Some(step) = &state.step else { return };
        let begun = Instant::now();
        // From last row to last row it is all that a step costs: drafting, the stand-in's passes, sampling,
        // and what the engine does between steps. The first step's pass is over the prompt.
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
    fn judge(&self, state: &mut State, row: &[f32]) -> mistralrs_candle::Result<Tensor> {
        if let Some(step) = state.step.as_mut() {
            step.judged += 1;
            if step.judged == 1 {
                let elapsed = step.pass.elapsed();
                self.watch.count(|stats| stats.model_time += elapsed);
            }
        }
        // The next step must fit.
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
                    // Upstream goes on as long as the draws are what it was told.
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

    /// Draws the next token and goes on by it.
    fn draw(&self, state: &mut State, row: &[f32]) -> Result<TokenId, RequestError> {
        let position = state.draws.position(state.sequence.len());
        if state.all.size() != row.len() {
            state.all = row::all(row.len());
        }
        let sampler = &state.draws.sampler;
        let begun = Instant::now();
        let mut masked = Duration::ZERO;
        // The mask first: it is known by the place in the grammar as a rule, and a draw takes as long as it
        // has tokens.
        let token = match &mut state.constraint {
            Some(constraint) => {
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
            None => sampler.draw(row, &state.all, position)?,
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
            stats.masks += usize::from(constrained);
            stats.mask_time += masked;
        });
        self.watch.drawn(token, ends);
        Ok(token)
    }
}

impl State {
    /// Goes on by a token that spells `bytes`.
    fn push(&mut self, token: TokenId, bytes: &[u8]) {
        let before = self.text.len();
        self.sequence.push(token);
        self.text.extend_from_slice(bytes);
        self.over |= self.taken() >= self.most || self.stop.tokens.contains(&token.raw());
        self.stopped |= self.stop.is_in(&self.text, before);
    }

    /// Tokens of the text.
    fn taken(&self) -> usize {
        self.sequence.len() - self.draws.prompt
    }

    /// The draft of the next step. It leaves room for the token after it, and ends before a token that would
    /// end the text: upstream ends a text after such a token, but takes the rest of an accepted draft all the
    /// same. (The first step has none, so a text that ends in it has one token.)
    fn draft(&mut self) -> Vec<TokenId> {
        let Some(constraint) = self.constraint.as_ref().filter(|_| !self.over && !self.stopped) else {
            return Vec::new();
        };
        let room = self.most.saturating_sub(self.taken() + 1);
        let (stop, text, vocabulary) = (&self.stop, &self.text, constraint.vocabulary().clone());
        let keep = |draft: &[TokenId]| {
            let mut ahead = stop.tail(text);
            let tokens = draft.iter().take_while(|&&token| {
                let before = ahead.len();
                ahead.extend_from_slice(vocabulary.bytes(token).unwrap_or_default());
                !stop.tokens.contains(&token.raw()) && !stop.is_in(&ahead, before)
            });
            tokens.count()
        };
        self.guesser.draft(constraint, &mut self.sequence, &self.draws, room, keep).to_vec()
    }

    /// A token that cannot be drawn after the draft. Where all can be (there is none without a grammar), one
    /// that hardly ever is: if it is, the step goes on behind it, rightly, but for a text that ends there.
    fn junk(&self, draft: &[TokenId], vocabulary: &Vocabulary) -> TokenId {
        // But for the end, special tokens that no grammar asks for are never allowed, and the end only where
        // the text is complete.
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

impl Stop {
    /// The end of `text` in which a string can begin that goes on after it.
    fn tail(&self, text: &[u8]) -> Vec<u8> {
        let longest = self.strings.iter().map(Vec::len).max().unwrap_or(0);
        text[text.len().saturating_sub(longest)..].to_vec()
    }

    /// Does `text` have a stop string that ends after `from`?
    fn is_in(&self, text: &[u8], from: usize) -> bool {
        self.strings.iter().any(|string| {
            let begin = (from + 1).saturating_sub(string.len()).min(text.len());
            !string.is_empty() && text[begin..].windows(string.len()).any(|window| window == string)
        })
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
