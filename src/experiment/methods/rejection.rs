//! Rejection: draw from the whole vocabulary, ask whether the token may follow, and draw again if not.
//!
//! A refused token is not drawn again at its place, and the noise stays. By the Gumbel-max trick that is a
//! draw without replacement, and the first token that is allowed is the one that a draw under the mask gives.

use super::{Method, MethodError, Outcome, Stage, chosen};
use crate::{
    decode::{
        DecodeError, DecodeStats, Sampler, possible,
        single::{Choose, SingleText, TokenChoice},
        timed,
    },
    ids::TokenId,
    model::Model,
    session::Constraint,
    vocab::TokenSet,
};

/// Draws again until a token is allowed.
#[derive(Debug, Default)]
pub(super) struct Rejection {
    redraws: usize,
    /// All tokens that can be generated.
    possible: Option<TokenSet>,
}

impl Choose for Rejection {
    fn choose(
        &mut self,
        row: &[f32],
        text: &SingleText,
        sampler: &Sampler,
        constraint: &mut Constraint,
        stats: &mut DecodeStats,
    ) -> Result<TokenChoice, DecodeError> {
        let position = text.position();
        let mut left = self.possible.clone().unwrap_or_else(|| TokenSet::empty(row.len()));
        let mut refused = false;
        stats.own_draws += 1;
        loop {
            let token =
                sampler.draw(row, &left, position).map_err(|error| DecodeError::draw(error, position))?;
            if timed(&mut stats.mask_time, || constraint.allows(token))? {
                stats.interventions += usize::from(refused);
                return Ok(TokenChoice::Token(token));
            }
            refused = true;
            self.redraws += 1;
            left.remove(token);
        }
    }
}

impl<M: Model> Method<M> for Rejection {
    fn generate(&mut self, stage: &mut Stage<'_, M>, prompt: &[TokenId]) -> Result<Outcome, MethodError> {
        self.redraws = 0;
        self.possible.get_or_insert_with(|| possible(stage.decoder.vocabulary()));
        let outcome = chosen(stage, prompt, self)?;
        Ok(Outcome { redraws: Some(self.redraws), ..outcome })
    }
}
