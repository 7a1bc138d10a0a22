//! Work on texts that exist already: heals the end of a prompt, replays tokens, cuts a text into tokens.
//!
//! Token healing rewrites the end of a prompt, so that tokens may cross it (paper, 3.5). A prompt that ends
//! inside what would be one token, as `http:` before `//`, is split unlike any text that the model has seen.
//! So the last tokens are taken back, and the text begins with their bytes, in whichever tokens the model
//! likes.
//!
//! A replay takes an existing text token by token through the model, and says the model's wishes and the
//! allowed tokens. Invariant: the rows are those that the text was drawn from, if the model gives a row the
//! same bits in every pass; domino's own runner does.
//!
//! Model-based retokenisation (paper, algorithm 3) cuts a text into tokens as the model itself would.

use super::decoder::Decoder;
use super::error::{DecodeError, DecodeErrorKind};
use super::sampling::sampler::Sampler;
use super::sampling::{Sampling, logprobs::Logprobs};
use crate::model::{Logits, Model, Rows};
use crate::{Patience, ids::TokenId, vocab::Vocabulary};

/// Greatest number of tokens taken back.
const MOST: usize = 4;

/// The healing of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Healing {
    /// Number of tokens of the prompt that stay; at least one.
    pub kept: usize,
    /// The bytes of the others, with which the text begins; see [`Grammar::after`](crate::Grammar::after).
    pub bytes: Vec<u8>,
}

impl Healing {
    /// Takes back as many of the last four tokens as some longer token may begin with; none that is special,
    /// and not all. A walk down the trie for each.
    #[must_use]
    pub fn of(vocabulary: &Vocabulary, prompt: &[TokenId]) -> Self {
        let mut healing = Self { kept: prompt.len(), bytes: Vec::new() };
        let mut bytes = Vec::new();
        for (kept, &token) in prompt.iter().enumerate().skip(1).rev().take(MOST) {
            let Some(before) = vocabulary.bytes(token) else { break };
            bytes.splice(..0, before.iter().copied());
            if vocabulary.goes_on(&bytes) {
                healing = Self { kept, bytes: bytes.clone() };
            }
        }
        healing
    }
}

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

    /// Returns the tokens of `text` that the model would choose greedily behind `prompt` if it had to write
    /// just this text: at each step the likeliest of the tokens that the rest of the text begins with, ties
    /// by lower id. As it is greedy, the tokenizer's own tokens can be likelier as a whole;
    /// [`replay`](Self::replay) tells how likely either is. The decoder's constraint and options do not
    /// matter.
    ///
    /// One pass a token, which computes only the logits that count.
    ///
    /// # Errors
    /// If the prompt is empty, it does not fit in the context with the text's tokens, no token of the
    /// vocabulary begins what is left, or a pass fails.
    pub fn retokenize(&mut self, prompt: &[TokenId], text: &[u8]) -> Result<Vec<TokenId>, DecodeError> {
        let context = self.model.context();
        DecodeError::check_prompt(prompt.len(), context)?;
        let sampler = Sampler::new(Sampling::greedy(), 0);
        self.model.truncate(0).map_err(DecodeError::model)?;
        let (mut tokens, mut rest, mut pending) = (Vec::new(), text, prompt.to_vec());
        while !rest.is_empty() {
            let position = prompt.len() + tokens.len();
            if position > context {
                return Err(DecodeErrorKind::TextTooLong { context }.into());
            }
            let sets = [self.vocabulary.prefixes_of(rest)];
            let rows = self.model.forward(&pending, Rows::Among(&sets)).map_err(DecodeError::model)?;
            let row = rows.last().unwrap_or_default();
            let token = sampler.draw_at(row, &sets[0], position)?;
            let bytes = self.vocabulary.bytes(token).map_or(0, <[u8]>::len);
            rest = rest.get(bytes..).unwrap_or_default();
            pending.clear();
            pending.push(token);
            tokens.push(token);
        }
        Ok(tokens)
    }
}

/// The state of a replay.
struct Replay<'a> {
    sampler: Sampler,
    constraint: Option<crate::Constraint>,
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
            let biased = decoder.options.bias.apply(row, self.position);
            let penalised = decoder.options.penalties.apply(&biased, before);
            let own = self.sampler.draw(&penalised, &decoder.possible, self.position);
            let unusable = |error| DecodeErrorKind::Logits { position: self.position, error };
            let own = own.map_err(unusable)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn healing_takes_back_a_token_that_begins_a_longer_one() {
        let id = TokenId::new;
        let words = ["http", ":", "://", " ", " a", "x"];
        let builder = words
            .iter()
            .zip(0..)
            .fold(Vocabulary::builder(), |builder, (word, raw)| builder.token(id(raw), word));
        let vocabulary = builder.special(id(6), "<s>").end_of_text(id(7)).build().unwrap();
        let healed = |prompt: &[u32]| {
            let prompt: Vec<TokenId> = prompt.iter().map(|&raw| id(raw)).collect();
            let Healing { kept, bytes } = Healing::of(&vocabulary, &prompt);
            (kept, String::from_utf8(bytes).unwrap())
        };
        assert_eq!(healed(&[6, 0, 1]), (2, ":".to_owned()));
        assert_eq!(healed(&[6, 5, 3]), (2, " ".to_owned()));
        // Nothing goes on from these.
        assert_eq!(healed(&[6, 0, 2]), (3, String::new()));
        assert_eq!(healed(&[6, 5]), (2, String::new()));
        // One token stays, and a special one.
        assert_eq!(healed(&[1]), (1, String::new()));
        assert_eq!(healed(&[0, 6]), (2, String::new()));
        assert_eq!(healed(&[]), (0, String::new()));
    }
}
