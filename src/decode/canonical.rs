//! Masks over canonical tokenisations only: every prefix of the text is cut into tokens as the tokenizer
//! itself cuts it.
//!
//! Method: depth-first search. A token is drawn from the mask. If the text with it is not the tokenizer's own
//! split, it is refused and another one is drawn without replacement, so that the token is a draw from those
//! that are allowed and canonical. If none is, the last token is removed and refused at its place.
//!
//! Guarantee: a text is canonical, unless the budget of steps back was used up, after which tokens are free.
//! Limits: the distribution is not the model's conditioned on canonical texts, as a token is drawn before it
//! is known whether a canonical text follows; and texts that are canonical though one of their prefixes is
//! not (if the tokenizer splits words by what follows them) are never written. Inside a character, where
//! there is no text to split, any token is taken, and checked with the character's last byte.
//!
//! Cost: whole rows of logits, and for each draw a call of the tokenizer with the text so far.

use std::time::Duration;

use super::error::{BuildError, BuildErrorKind, DecodeError};
use super::single::{self, Choose, SingleText, TokenChoice};
use super::stats::{DecodeStats, timed};
use super::{decoder::check_size, options::DecodeOptions, run::Generation, sampling::sampler::Sampler};
use crate::vocab::{Tokenizer, Vocabulary};
use crate::{Constraint, ids::TokenId, model::Model};

/// Number of steps back in a text after which its tokens are free.
const MOST_BACK: usize = 256;

/// Writes texts of canonical tokens: those that the tokenizer itself makes of the text. With the feature
/// `tokenizers`.
///
/// Nothing is drafted, and tokens come one a pass. Any part of the text may be taken back, so it is returned
/// as a whole.
#[derive(Debug)]
pub struct CanonicalDecoder<'a, M: Model> {
    model: &'a mut M,
    tokenizer: Tokenizer,
    /// The constraint before the text.
    start: Constraint,
    options: DecodeOptions,
}

/// A text of canonical tokens.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CanonicalText {
    /// The text. Removed tokens are not in it, but their passes and draws are in its cost.
    pub generation: Generation,
    /// Time until the first token was drawn.
    pub first: Duration,
    /// Number of tokens that were refused after they were drawn, and of steps back.
    pub redraws: usize,
    /// Are the tokens those that the tokenizer makes of the text? False if 256 steps back were not enough.
    /// `None` if the tokenizer makes none, as of a text that was cut inside a character.
    pub canonical: Option<bool>,
}

impl<'a, M: Model> CanonicalDecoder<'a, M> {
    /// Creates a decoder whose texts begin at `constraint`. `tokenizer` is that of the constraint's
    /// vocabulary.
    ///
    /// # Errors
    /// If the vocabulary has ids past the model's rows of logits, the grammar asks for special tokens, which
    /// no text has, or the options ask for top-k, top-p or min-p (what they cut is known only once all
    /// refusals are), penalties, stop strings, completion, or log-probabilities.
    pub fn new(
        model: &'a mut M,
        tokenizer: &Tokenizer,
        constraint: &Constraint,
        options: &DecodeOptions,
    ) -> Result<Self, BuildError> {
        check_size(constraint.vocabulary(), model.vocabulary_size())?;
        let special = (constraint.asks_for_specials()).then_some("grammars that ask for special tokens");
        if let Some(what) = special.or(options.beyond_plain_draws()) {
            return Err(BuildErrorKind::NotCanonical(what).into());
        }
        Ok(Self { model, tokenizer: tokenizer.clone(), start: constraint.fork(), options: options.clone() })
    }

    /// Writes a text that continues `prompt`. `go_on` is called before each pass; if it returns false, the
    /// text is cut as by length.
    ///
    /// # Errors
    /// If the prompt is empty or does not fit in the context, or a pass, a draw or the constraint fails.
    pub fn write(
        &mut self,
        prompt: &[TokenId],
        go_on: &dyn Fn() -> bool,
    ) -> Result<CanonicalText, DecodeError> {
        let vocabulary = self.start.vocabulary().clone();
        let mut search = Search {
            tokenizer: &self.tokenizer,
            vocabulary: &vocabulary,
            refused: Vec::new(),
            redraws: 0,
            back: 0,
        };
        let (start, options) = (self.start.fork(), &self.options);
        let written = single::write(self.model, start, options, prompt, &mut search, go_on)?;
        let (generation, redraws) = (written.generation, search.redraws + search.back);
        let own = self.tokenizer.alone(&vocabulary, &generation.text);
        let canonical = own.map(|own| own == generation.tokens);
        Ok(CanonicalText { generation, first: written.first, redraws, canonical })
    }
}

/// A depth-first search for a canonical text.
struct Search<'a> {
    tokenizer: &'a Tokenizer,
    vocabulary: &'a Vocabulary,
    /// Tokens refused at each place of the text, up to the next one.
    refused: Vec<Vec<TokenId>>,
    redraws: usize,
    back: usize,
}

impl Search<'_> {
    /// Is the text with this token the tokenizer's own split, as far as can be told?
    fn fits(&self, text: &SingleText, token: TokenId) -> bool {
        let Some(bytes) = self.vocabulary.bytes(token).filter(|_| !self.vocabulary.is_end_of_text(token))
        else {
            return true;
        };
        let bytes = [&text.bytes, bytes].concat();
        if str::from_utf8(&bytes).is_err_and(|error| error.error_len().is_none()) {
            return true;
        }
        self.tokenizer.alone(self.vocabulary, &bytes).is_none_or(|tokens| {
            tokens.split_last().is_some_and(|(last, before)| *last == token && before == text.tokens())
        })
    }
}

impl Choose for Search<'_> {
    fn choose(
        &mut self,
        row: &[f32],
        text: &SingleText,
        sampler: &Sampler,
        constraint: &mut Constraint,
        stats: &mut DecodeStats,
    ) -> Result<TokenChoice, DecodeError> {
        let (place, position) = (text.tokens().len(), text.position());
        self.refused.resize(place + 1, Vec::new());
        stats.masks += 1;
        let mut left = timed(&mut stats.mask_time, || constraint.mask())?.clone();
        let free = self.back >= MOST_BACK;
        if !free {
            self.refused[place].iter().for_each(|token| left.remove(*token));
        }
        while !left.is_empty() {
            let token = sampler.draw_at(row, &left, position)?;
            if free || timed(&mut stats.mask_time, || self.fits(text, token)) {
                return Ok(TokenChoice::Token(token));
            }
            self.redraws += 1;
            left.remove(token);
        }
        self.back += 1;
        if let Some(&last) = text.tokens().last() {
            self.refused[place - 1].push(last);
            return Ok(TokenChoice::Back);
        }
        // No canonical text at all.
        self.back = MOST_BACK;
        self.choose(row, text, sampler, constraint, stats)
    }
}

#[cfg(test)]
mod tests;
