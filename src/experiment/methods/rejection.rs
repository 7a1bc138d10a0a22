//! Rejection: draw from the whole vocabulary, ask whether the token may follow, and draw again if not.
//!
//! A refused token is not drawn again at its place, and the noise stays. By the Gumbel-max trick that is a
//! draw without replacement, and the first token that is allowed is the one that a draw under the mask gives.

use super::{Method, MethodError, Outcome, Stage, decoded, single};
use crate::{
    constraint::Constraint,
    decode::{DecodeError, DecodeStats, Sampler, possible},
    ids::TokenId,
    model::Model,
    vocab::TokenSet,
};

/// Draws again until a token is allowed.
#[derive(Debug, Default)]
pub(super) struct Rejection {
    redraws: usize,
    /// All tokens that can be generated at all.
    possible: Option<TokenSet>,
}

impl single::Choose for Rejection {
    fn choose(
        &mut self,
        row: &[f32],
        text: &single::Text,
        sampler: &Sampler,
        constraint: &mut Constraint,
        stats: &mut DecodeStats,
    ) -> Result<single::Choice, DecodeError> {
        let position = text.position();
        let mut left = self.possible.clone().unwrap_or_else(|| TokenSet::empty(row.len()));
        let mut refused = false;
        stats.own_draws += 1;
        loop {
            let token =
                sampler.draw(row, &left, position).map_err(|error| single::cannot_draw(error, position))?;
            if single::timed(&mut stats.mask_time, || constraint.allows(token))? {
                stats.interventions += usize::from(refused);
                return Ok(single::Choice::Token(token));
            }
            refused = true;
            self.redraws += 1;
            left.remove(token);
        }
    }
}

impl<M: Model> Method<M> for Rejection {
    fn generate(&mut self, stage: &mut Stage<'_, M>, prompt: &[TokenId]) -> Result<Outcome, MethodError> {
        let Some(constraint) = stage.grammar.map(crate::CompiledGrammar::constraint) else {
            return Ok(decoded(stage.decoder, prompt)?);
        };
        self.redraws = 0;
        self.possible.get_or_insert_with(|| possible(stage.decoder.vocabulary()));
        let outcome = single::generate(stage, constraint, prompt, self)?;
        Ok(Outcome { redraws: Some(self.redraws), ..outcome })
    }
}
