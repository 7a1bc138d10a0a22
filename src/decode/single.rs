//! A loop of one token a pass, for ways of choosing tokens that the decoder does not have.
//!
//! Invariant: with a choice among the mask's tokens by the sampler's draw it gives the decoder's tokens.

use std::time::Duration;

use super::run::{Finish, Generation, patient};
use super::stats::{DecodeStats, timed};
use super::{error::DecodeError, options::DecodeOptions, sampling::sampler::Sampler, stop::StopSearch};
use crate::model::{Model, Rows};
use crate::{Constraint, clock::Instant, ids::TokenId};

/// Chooses a token.
pub(crate) trait Choose {
    /// Chooses the next token of a text, given its row of logits, by what the constraint allows.
    fn choose(
        &mut self,
        row: &[f32],
        text: &SingleText,
        sampler: &Sampler,
        constraint: &mut Constraint,
        stats: &mut DecodeStats,
    ) -> Result<TokenChoice, DecodeError>;

    /// Returns tokens that come next without a draw.
    fn fixed(&mut self, _constraint: &Constraint, _text: &SingleText) -> Vec<TokenId> {
        Vec::new()
    }
}

/// The choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenChoice {
    /// This token comes next.
    Token(TokenId),
    /// The last token of the text, which is not empty, is removed.
    Back,
}

/// A text that was written.
#[derive(Debug)]
pub(crate) struct WrittenText {
    /// The text.
    pub(crate) generation: Generation,
    /// Time until the first token was drawn.
    pub(crate) first: Duration,
    /// Number of tokens that were not drawn.
    #[cfg_attr(not(feature = "experiments"), expect(dead_code, reason = "only experiments insert tokens"))]
    pub(crate) inserted: usize,
}

/// Writes a text of tokens that `choose` chooses. Of the options it uses sampling, seed, length and stop
/// strings, the latter if no token is taken back. `go_on` is called before each pass; if it returns false,
/// the text is cut as by length.
pub(crate) fn write<M: Model>(
    model: &mut M,
    constraint: Constraint,
    options: &DecodeOptions,
    prompt: &[TokenId],
    choose: &mut dyn Choose,
    go_on: &dyn Fn() -> bool,
) -> Result<WrittenText, DecodeError> {
    let (sampler, most) = (Sampler::new(options.sampling, options.seed), options.max_new_tokens);
    let mut constraint = patient(constraint, options);
    DecodeError::check_prompt(prompt.len(), model.context())?;
    let mut text = SingleText::new(prompt, options.stop.search());
    let mut stats = DecodeStats { prompt_tokens: prompt.len(), ..DecodeStats::default() };
    let start = Instant::now();
    let (mut first, mut inserted, mut end_of_text) = (None, 0, None);
    model.truncate(0).map_err(DecodeError::model)?;
    let finish = loop {
        let fixed = || if text.stopped { Vec::new() } else { choose.fixed(&constraint, &text) };
        let fixed = timed(&mut stats.mask_time, fixed);
        let room = model.context().saturating_sub(text.sequence.len()).min(most.saturating_sub(stats.tokens));
        inserted += timed(&mut stats.mask_time, || text.insert(&fixed, room, &mut constraint));
        stats.tokens = text.tokens().len();
        if text.stopped {
            break Finish::StopString;
        }
        if let Some(finish) = timed(&mut stats.mask_time, || Finish::of_text(&constraint)) {
            break finish;
        }
        if text.sequence.len() > model.context() || stats.tokens >= most || !go_on() {
            break Finish::Length;
        }
        let pending = &text.sequence[model.position()..];
        let rows = timed(&mut stats.model_time, || model.forward(pending, Rows::Last));
        let rows = rows.map_err(DecodeError::model)?;
        stats.passes += 1;
        let row = rows.last().unwrap_or_default();
        let choice = choose.choose(row, &text, &sampler, &mut constraint, &mut stats)?;
        let TokenChoice::Token(token) = choice else {
            timed(&mut stats.mask_time, || constraint.rollback(1))?;
            text.pop(&constraint);
            stats.tokens = stats.tokens.saturating_sub(1);
            model.truncate(text.sequence.len() - 1).map_err(DecodeError::model)?;
            continue;
        };
        stats.draws += 1;
        timed(&mut stats.mask_time, || constraint.advance(token))?;
        first.get_or_insert_with(|| start.elapsed());
        if constraint.vocabulary().is_end_of_text(token) {
            end_of_text = Some(token);
            break Finish::Stop;
        }
        text.push(token, &constraint);
        stats.tokens += 1;
    };
    stats.total_time = start.elapsed();
    let written = (text.tokens().to_vec(), text.bytes);
    let generation = Generation::of_constraint(&constraint, written, finish, end_of_text, stats);
    Ok(WrittenText { generation, first: first.unwrap_or(stats.total_time), inserted })
}

/// A prompt and a text in progress.
pub(crate) struct SingleText {
    /// Prompt and text.
    pub(crate) sequence: Vec<TokenId>,
    /// Number of tokens of the prompt.
    prompt: usize,
    /// The bytes of the text.
    pub(crate) bytes: Vec<u8>,
    stop: StopSearch,
    /// Was a stop string found, and the text cut before it?
    stopped: bool,
}

impl SingleText {
    /// The tokens of the text.
    pub(crate) fn tokens(&self) -> &[TokenId] {
        &self.sequence[self.prompt..]
    }

    /// Index of the next token in the whole sequence.
    pub(crate) fn position(&self) -> usize {
        self.sequence.len()
    }

    fn new(prompt: &[TokenId], stop: StopSearch) -> Self {
        Self { sequence: prompt.to_vec(), prompt: prompt.len(), bytes: Vec::new(), stop, stopped: false }
    }

    /// Appends tokens without a draw, as many as there is room for and the constraint allows.
    fn insert(&mut self, tokens: &[TokenId], room: usize, constraint: &mut Constraint) -> usize {
        let mut inserted = 0;
        for &token in tokens.iter().take(room) {
            if constraint.advance(token).is_err() {
                break;
            }
            self.push(token, constraint);
            inserted += 1;
            if self.stopped {
                break;
            }
        }
        inserted
    }

    fn pop(&mut self, constraint: &Constraint) {
        let last = self.sequence.pop().map_or(0, |token| constraint.text_of(token).len());
        self.bytes.truncate(self.bytes.len() - last);
    }

    fn push(&mut self, token: TokenId, constraint: &Constraint) {
        self.sequence.push(token);
        self.stopped |= self.stop.append(&mut self.bytes, constraint.text_of(token));
    }
}
