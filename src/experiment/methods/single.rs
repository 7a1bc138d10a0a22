//! A loop of one token a pass for methods that choose tokens in a way that the decoder does not have.
//!
//! Invariant: with a choice of the mask's tokens by the sampler's draw it gives the decoder's tokens.

use std::time::{Duration, Instant};

use super::{Outcome, Stage, draws};
use crate::{
    constraint::{Constraint, Patience},
    decode::{DecodeError, DecodeErrorKind, DecodeStats, DrawError, Finish, Sampler},
    ids::TokenId,
    model::{Model, Rows},
    vocab::Vocabulary,
};

/// Chooses a token.
pub(super) trait Choose {
    /// What comes after a text, given its row of logits, by what the constraint allows.
    fn choose(
        &mut self,
        row: &[f32],
        text: &Text,
        sampler: &Sampler,
        constraint: &mut Constraint,
        stats: &mut DecodeStats,
    ) -> Result<Choice, DecodeError>;

    /// Tokens that come next without a draw.
    fn fixed(&mut self, _constraint: &Constraint, _text: &Text) -> Vec<TokenId> {
        Vec::new()
    }
}

/// What was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// This token comes next.
    Token(TokenId),
    /// The last token of the text, which is not empty, goes.
    Back,
}

/// A text of tokens that `choose` chooses.
pub(super) fn generate<M: Model>(
    stage: &mut Stage<'_, M>,
    constraint: Constraint,
    prompt: &[TokenId],
    choose: &mut dyn Choose,
) -> Result<Outcome, DecodeError> {
    let (sampling, seed, most) = draws(stage.decoder);
    let sampler = Sampler::new(sampling, seed);
    let vocabulary = stage.decoder.vocabulary().clone();
    let mut constraint = constraint.patient(Patience::whole());
    let model = stage.decoder.model_mut();
    check(prompt, model.context())?;
    let mut text = Text { sequence: prompt.to_vec(), prompt: prompt.len(), bytes: Vec::new() };
    let mut stats = DecodeStats { prompt_tokens: prompt.len(), ..DecodeStats::default() };
    let start = Instant::now();
    let (mut first, mut inserted) = (None, 0);
    model.truncate(0).map_err(DecodeError::model)?;
    let finish = loop {
        let fixed = timed(&mut stats.mask_time, || choose.fixed(&constraint, &text));
        for token in fixed {
            if text.sequence.len() >= model.context() || stats.tokens >= most {
                break;
            }
            if timed(&mut stats.mask_time, || constraint.advance(token)).is_err() {
                break;
            }
            text.push(token, &vocabulary);
            stats.tokens += 1;
            inserted += 1;
        }
        if timed(&mut stats.mask_time, || constraint.is_complete() && !constraint.can_go_on()) {
            break Finish::Stop;
        }
        if text.sequence.len() > model.context() || stats.tokens >= most {
            break Finish::Length;
        }
        let pending = &text.sequence[model.position()..];
        let rows = timed(&mut stats.model_time, || model.forward(pending, Rows::Last));
        let rows = rows.map_err(DecodeError::model)?;
        stats.passes += 1;
        let row = rows.last().unwrap_or_default();
        let choice = choose.choose(row, &text, &sampler, &mut constraint, &mut stats)?;
        let Choice::Token(token) = choice else {
            timed(&mut stats.mask_time, || constraint.rollback(1))?;
            text.pop(&vocabulary);
            stats.tokens = stats.tokens.saturating_sub(1);
            model.truncate(text.sequence.len() - 1).map_err(DecodeError::model)?;
            continue;
        };
        stats.draws += 1;
        timed(&mut stats.mask_time, || constraint.advance(token))?;
        first.get_or_insert_with(|| start.elapsed());
        if vocabulary.is_end_of_text(token) {
            break Finish::Stop;
        }
        text.push(token, &vocabulary);
        stats.tokens += 1;
    };
    stats.total_time = start.elapsed();
    Ok(Outcome {
        tokens: text.sequence[text.prompt..].to_vec(),
        text: text.bytes,
        finish,
        complete: constraint.is_complete(),
        first: first.unwrap_or(stats.total_time),
        stats,
        redraws: None,
        inserted: (inserted > 0).then_some(inserted),
    })
}

/// Prompt and text in the making.
pub(super) struct Text {
    /// Prompt and text.
    pub(super) sequence: Vec<TokenId>,
    /// Tokens of the prompt.
    pub(super) prompt: usize,
    /// The bytes of the text.
    pub(super) bytes: Vec<u8>,
}

impl Text {
    /// The tokens of the text.
    pub(super) fn tokens(&self) -> &[TokenId] {
        &self.sequence[self.prompt..]
    }

    /// Where the next token comes in the whole sequence.
    pub(super) fn position(&self) -> usize {
        self.sequence.len()
    }

    fn pop(&mut self, vocabulary: &Vocabulary) {
        let last = self.sequence.pop().and_then(|token| vocabulary.bytes(token));
        self.bytes.truncate(self.bytes.len() - last.map_or(0, <[u8]>::len));
    }

    fn push(&mut self, token: TokenId, vocabulary: &Vocabulary) {
        self.sequence.push(token);
        self.bytes.extend_from_slice(vocabulary.bytes(token).unwrap_or_default());
    }
}

/// Refuses a prompt that a model cannot go on from.
fn check(prompt: &[TokenId], context: usize) -> Result<(), DecodeError> {
    match prompt.len() {
        0 => Err(DecodeErrorKind::EmptyPrompt.into()),
        tokens if tokens > context => Err(DecodeErrorKind::PromptTooLong { tokens, context }.into()),
        _ => Ok(()),
    }
}

/// A draw that failed at a position.
pub(super) fn cannot_draw(error: DrawError, position: usize) -> DecodeError {
    match error {
        DrawError::NoneAllowed => DecodeErrorKind::NothingAllowed { position },
        error => DecodeErrorKind::Logits { position, error },
    }
    .into()
}

/// Runs `work` and adds the time it took to `time`.
pub(super) fn timed<T>(time: &mut Duration, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    *time += start.elapsed();
    result
}
