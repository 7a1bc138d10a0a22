//! Replays an existing text token by token through the model: the model's wishes, and the allowed tokens.
//!
//! Invariant: the rows are those that the text was drawn from, if the model gives a row the same bits in
//! every pass; domino's own runner does.

use super::super::{
    decoder::Decoder,
    error::{DecodeError, DecodeErrorKind},
    sampling::{
        logprobs::Logprobs,
        sampler::{DrawError, Sampler},
    },
};
use crate::{
    ids::TokenId,
    model::{Logits, Model, Rows},
    session::Patience,
};

/// Number of tokens of a pass, each with a whole row: more would take more memory and little less time.
const PASS: usize = 16;

/// One token of an existing text; see [`Decoder::replay`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Replayed {
    /// Log-probabilities of the token, with alternatives.
    pub logprobs: Logprobs,
    /// The model's own draw here, with the decoder's sampling, seed and penalties, from all tokens that can
    /// be generated. If it is another token than the text's, the constraint intervened, or the text was not
    /// drawn like this.
    pub own: TokenId,
    /// Number of tokens that the constraint allows; `None` without one.
    pub allowed: Option<usize>,
}

impl<M: Model> Decoder<M> {
    /// Replays `tokens`, which follow `prompt`, as if they were being drawn, with `count` alternatives each.
    /// An end-of-text token may be the last of them. Under the decoder's constraint they must be of its
    /// language.
    ///
    /// Passes over some tokens at a time with whole rows, and a mask for each token; drafts nothing.
    ///
    /// # Errors
    /// If the prompt is empty, it does not fit in the context with the tokens, a token cannot follow, or a
    /// pass, a draw or the constraint fails.
    pub fn replay(
        &mut self,
        prompt: &[TokenId],
        tokens: &[TokenId],
        count: usize,
    ) -> Result<Vec<Replayed>, DecodeError> {
        let Some((_, seen)) = tokens.split_last() else { return Ok(Vec::new()) };
        let context = self.model.context();
        if prompt.is_empty() {
            return Err(DecodeErrorKind::EmptyPrompt.into());
        }
        if prompt.len() + seen.len() > context {
            return Err(DecodeErrorKind::TextTooLong { context }.into());
        }
        let sequence = [prompt, tokens].concat();
        let constraint = self.constraint.clone();
        let mut replay = Replay {
            sampler: Sampler::new(self.options.sampling, self.options.seed),
            constraint: constraint.map(|constraint| constraint.patient_unless_told(Patience::whole())),
            sequence: &sequence,
            position: prompt.len(),
            count,
            found: Vec::with_capacity(tokens.len()),
        };
        self.model.truncate(0).map_err(DecodeError::model)?;
        let first = self.model.forward(prompt, Rows::Last).map_err(DecodeError::model)?;
        replay.take(self, &first)?;
        for part in seen.chunks(PASS) {
            let rows = self.model.forward(part, Rows::All).map_err(DecodeError::model)?;
            replay.take(self, &rows)?;
        }
        Ok(replay.found)
    }
}

/// The state of a replay.
struct Replay<'a> {
    sampler: Sampler,
    constraint: Option<crate::session::Constraint>,
    /// Prompt and tokens.
    sequence: &'a [TokenId],
    /// Index of the next token.
    position: usize,
    count: usize,
    found: Vec<Replayed>,
}

impl Replay<'_> {
    /// Replays as many tokens as there are rows.
    fn take<M: Model>(&mut self, decoder: &Decoder<M>, rows: &Logits) -> Result<(), DecodeError> {
        for index in 0..rows.rows() {
            let (before, rest) = self.sequence.split_at(self.position);
            let (Some(row), Some(&token)) = (rows.row(index), rest.first()) else { return Ok(()) };
            let biased = decoder.options.bias.apply(row);
            let penalised = decoder.options.penalties.apply(&biased, before);
            let own = self.sampler.draw(&penalised, &decoder.possible, self.position);
            let own = own.map_err(|error| cannot_draw(error, self.position))?;
            let mut allowed = None;
            let logprobs = match &mut self.constraint {
                Some(constraint) => {
                    let mask = constraint.mask()?;
                    allowed = Some(mask.len());
                    let logprobs = Logprobs::new(row, token, Some(mask), self.count);
                    constraint.advance(token)?;
                    logprobs
                }
                None => Logprobs::new(row, token, None, self.count),
            };
            self.found.push(Replayed { logprobs, own, allowed });
            self.position += 1;
        }
        Ok(())
    }
}

fn cannot_draw(error: DrawError, position: usize) -> DecodeError {
    DecodeErrorKind::Logits { position, error }.into()
}
