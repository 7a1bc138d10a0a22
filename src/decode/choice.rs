//! Chooses the token of one row of logits under a constraint.
//!
//! Invariant: the token is the one that masking first and drawing then gives, whichever way it was found;
//! the choice depends on the row, the constraint's state, seed and position only, so rows of a draft can be
//! judged one by one.

use super::{
    decoder::Masking,
    error::{DecodeError, DecodeErrorKind},
    sampler::{DrawError, Sampler},
    stats::{DecodeStats, timed},
};
use crate::{constraint::Constraint, ids::TokenId, vocab::TokenSet};

/// What every choice of a run has in common.
#[derive(Debug)]
pub(super) struct Chooser {
    pub(super) sampler: Sampler,
    pub(super) masking: Masking,
    /// All tokens that can be generated at all: those with bytes, and end of text.
    pub(super) possible: TokenSet,
}

impl Chooser {
    /// The token at `position` given its row of logits; counts what it did in `stats`.
    ///
    /// # Errors
    /// If the logits cannot be drawn from, nothing is allowed, or the constraint fails.
    pub(super) fn choose(
        &self,
        row: &[f32],
        position: usize,
        constraint: Option<&mut Constraint>,
        stats: &mut DecodeStats,
    ) -> Result<TokenId, DecodeError> {
        let own = self.draw(row, &self.possible, position)?;
        let token = match constraint {
            Some(constraint) => self.constrained(own, row, position, constraint, stats)?,
            None => own,
        };
        stats.draws += 1;
        stats.interventions += usize::from(token != own);
        Ok(token)
    }

    /// The token to take where the model by itself would take `own`.
    fn constrained(
        &self,
        own: TokenId,
        row: &[f32],
        position: usize,
        constraint: &mut Constraint,
        stats: &mut DecodeStats,
    ) -> Result<TokenId, DecodeError> {
        // With cuts, what is cut off depends on the mask: an allowed token need not be the one.
        let ask_first = self.masking == Masking::Opportunistic && !self.sampler.sampling().cuts();
        if ask_first && timed(&mut stats.mask_time, || constraint.allows(own))? {
            return Ok(own);
        }
        stats.masks += 1;
        let mask = timed(&mut stats.mask_time, || constraint.mask())?;
        self.draw(row, mask, position)
    }

    fn draw(&self, row: &[f32], allowed: &TokenSet, position: usize) -> Result<TokenId, DecodeError> {
        self.sampler.draw(row, allowed, position).map_err(|error| {
            match error {
                DrawError::NoneAllowed => DecodeErrorKind::NothingAllowed { position },
                error => DecodeErrorKind::Logits { position, error },
            }
            .into()
        })
    }
}
