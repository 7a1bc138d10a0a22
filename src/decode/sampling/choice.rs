//! Chooses the token of one row of logits under a constraint.
//!
//! Invariant: the token is the one that penalising, masking and drawing, in this order, give, whichever way
//! it was found; the choice depends on the row, the tokens before it, the constraint's state and the seed
//! only, so rows of a draft can be judged one by one.

use std::sync::Arc;

use super::penalties::{LogitBias, Penalties};
use super::sampler::{KeptDrawError, Sampler};
use crate::decode::error::DecodeError;
use crate::decode::options::{DecodeOptions, Masking};
use crate::decode::stats::{DecodeStats, timed};
use crate::model::{Kept, RowAnswer, RowChoice};
use crate::vocab::{TokenSet, Vocabulary};
use crate::{Constraint, ids::TokenId, proposer::Drawn};

/// The settings that all choices of a run share.
#[derive(Clone)]
pub(in crate::decode) struct Chooser {
    pub(in crate::decode) sampler: Sampler,
    masking: Masking,
    penalties: Penalties,
    bias: LogitBias,
    /// Are masks known before passes?
    ahead: bool,
    /// All tokens that can be generated; see [`possible`].
    possible: Arc<TokenSet>,
}

/// A row where the model computed it.
#[derive(Clone, Copy)]
pub(in crate::decode) struct KeptRow<'a> {
    pub(in crate::decode) rows: &'a Kept<DecodeError>,
    pub(in crate::decode) index: usize,
    /// The answer that it has [given](Chooser::choose_rows) already, if it was asked.
    pub(in crate::decode) answer: Option<&'a RowAnswer>,
}

impl Chooser {
    pub(in crate::decode) fn new(options: &DecodeOptions, possible: Arc<TokenSet>) -> Self {
        Self {
            sampler: Sampler::new(options.sampling, options.seed),
            masking: options.masking,
            penalties: options.penalties,
            bias: options.bias.clone(),
            ahead: options.is_ahead(),
            possible,
        }
    }

    /// Chooses the token after `tokens`, the whole sequence so far with the prompt, given its row of logits
    /// and the constraint after them; counts its work in `stats`.
    ///
    /// # Errors
    /// If the logits cannot be drawn from, nothing is allowed, or the constraint fails.
    pub(in crate::decode) fn choose(
        &self,
        row: &[f32],
        tokens: &[TokenId],
        constraint: Option<&mut Constraint>,
        stats: &mut DecodeStats,
    ) -> Result<TokenId, DecodeError> {
        let biased = self.bias.apply(row, tokens.len());
        let (row, position) = (&*self.penalties.apply(&biased, tokens), tokens.len());
        if self.ahead
            && let Some(constraint) = constraint
        {
            stats.masks += 1;
            let mask = timed(&mut stats.mask_time, || constraint.mask())?;
            let token = self.sampler.draw_at(row, mask, position)?;
            stats.draws += 1;
            return Ok(token);
        }
        let own = self.sampler.draw_at(row, &self.possible, position)?;
        let token = match constraint {
            Some(constraint) => self.constrained(own, row, position, constraint, stats)?,
            None => own,
        };
        stats.draws += 1;
        stats.own_draws += 1;
        stats.interventions += usize::from(token != own);
        Ok(token)
    }

    /// Predicts the draw after `tokens` from another model's row among the allowed tokens, or else all that
    /// can be generated. Costs two draws; `None` if there is no first one.
    pub(in crate::decode) fn foresee(
        &self,
        row: &[f32],
        tokens: &[TokenId],
        allowed: Option<&TokenSet>,
    ) -> Option<Drawn> {
        let biased = self.bias.apply(row, tokens.len());
        let (row, position) = (&*self.penalties.apply(&biased, tokens), tokens.len());
        let allowed = allowed.unwrap_or(&self.possible);
        let token = self.sampler.draw(row, allowed, position).ok()?;
        let mut others = allowed.clone();
        others.remove(token);
        let margin = match self.sampler.draw(row, &others, position) {
            Ok(next) => self.sampler.score(row, token, position) - self.sampler.score(row, next, position),
            Err(_) => f64::INFINITY,
        };
        Some(Drawn { token, margin })
    }

    /// Chooses from all rows of a pass, with one wait: row `i` is about the token at `position + i`, and the
    /// tokens that may follow there are `sets[i]`; all that can be generated without sets. Lists the tokens
    /// that are `near` the likeliest, if that is asked. `None` if the rows cannot do it for such draws:
    /// nothing was waited for then.
    pub(in crate::decode) fn choose_rows(
        &self,
        rows: &Kept<DecodeError>,
        sets: Option<&[TokenSet]>,
        position: usize,
        near: Option<f32>,
    ) -> Result<Option<Vec<RowAnswer>>, DecodeError> {
        let choice = |index: usize| {
            let allowed = match sets {
                Some(sets) => sets.get(index)?,
                None => &*self.possible,
            };
            Some(RowChoice { near, ..self.sampler.choice(allowed, position + index)? })
        };
        match (0..rows.rows()).map(choice).collect::<Option<Vec<_>>>() {
            Some(choices) => rows.choose(0, &choices),
            None => Ok(None),
        }
    }

    /// Chooses like [`choose`](Self::choose), from a row that may still be in progress: the mask is made
    /// first. Not possible with penalties or a bias, and only if masks need not wait for the model's own
    /// choice.
    pub(in crate::decode) fn choose_kept(
        &self,
        row: KeptRow<'_>,
        position: usize,
        constraint: Option<&mut Constraint>,
        stats: &mut DecodeStats,
    ) -> Result<TokenId, DecodeError> {
        let allowed = match constraint {
            Some(constraint) => {
                stats.masks += 1;
                timed(&mut stats.mask_time, || constraint.mask())?
            }
            None => {
                stats.own_draws += 1;
                &self.possible
            }
        };
        let KeptRow { rows, index, answer } = row;
        let chosen = answer.and_then(|answer| answer.token);
        debug_assert!(chosen.is_none_or(|token| allowed.contains(token)), "the mask is the one it was by");
        // Waiting for the pass is most of it.
        let draw = || match chosen {
            Some(token) => Ok(token),
            None => self.sampler.draw_kept(&**rows, index, allowed, position),
        };
        let token = timed(&mut stats.model_time, draw).map_err(|error| match error {
            KeptDrawError::Rows(error) => error,
            KeptDrawError::Draw(error) => DecodeError::draw(error, position),
        })?;
        stats.draws += 1;
        Ok(token)
    }

    /// Can tokens be chosen from [kept](Self::choose_kept) rows? Penalties and a bias need the numbers.
    pub(in crate::decode) fn takes_kept(&self, constrained: bool) -> bool {
        self.penalties.is_none() && self.bias.is_none() && (self.ahead || !constrained)
    }

    /// Are masks known before passes?
    pub(in crate::decode) fn is_ahead(&self) -> bool {
        self.ahead
    }

    /// Returns the token to take if the model's own choice is `own`.
    fn constrained(
        &self,
        own: TokenId,
        row: &[f32],
        position: usize,
        constraint: &mut Constraint,
        stats: &mut DecodeStats,
    ) -> Result<TokenId, DecodeError> {
        // If the model's choice is allowed, the draw among the allowed tokens gives it too. Not with cuts,
        // which depend on the mask.
        let same = !self.sampler.sampling().cuts();
        let ask_first = self.masking == Masking::Opportunistic && same;
        if ask_first && timed(&mut stats.mask_time, || constraint.allows(own))? {
            return Ok(own);
        }
        stats.masks += 1;
        let mask = timed(&mut stats.mask_time, || constraint.mask())?;
        if same && mask.contains(own) { Ok(own) } else { self.sampler.draw_at(row, mask, position) }
    }

    /// All tokens that can be generated.
    pub(in crate::decode) fn possible(&self) -> &TokenSet {
        &self.possible
    }
}

/// Returns all tokens that can be generated: those with bytes, and end of text. One pass over the vocabulary.
pub(crate) fn possible(vocabulary: &Vocabulary) -> TokenSet {
    let mut possible = vocabulary.empty_set();
    for (token, _) in vocabulary.text_tokens().filter(|(_, bytes)| !bytes.is_empty()) {
        possible.insert(token);
    }
    for &token in vocabulary.end_of_text() {
        possible.insert(token);
    }
    possible
}
