//! Methods without precomputed masks, which ask at every step which token may follow.
//!
//! Rejection draws from the whole vocabulary, asks whether the token may follow, and draws again if not. A
//! refused token is not drawn again at its place, and the noise stays. By the Gumbel-max trick that is a draw
//! without replacement, and the first token that is allowed is the one that a draw under the mask gives.
//!
//! The other one checks the whole vocabulary online: at every step it asks for each token whether it may
//! follow, and precomputes and keeps nothing. That is how llama.cpp's grammars make a mask.

use super::{Method, MethodError, Outcome, Stage, chosen};
use crate::decode::single::{Choose, SingleText, TokenChoice};
use crate::decode::{DecodeError, DecodeStats, Sampler, possible, timed};
use crate::{Constraint, ids::TokenId, model::Model, vocab::TokenSet};

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

/// Asks for every token at every step.
#[derive(Debug, Default)]
pub(super) struct Online {
    /// All tokens that can be generated.
    possible: Option<TokenSet>,
}

/// Returns the mask of a constraint, by asking for each of these tokens.
pub(super) fn mask(constraint: &Constraint, tokens: &TokenSet) -> Result<TokenSet, DecodeError> {
    let mut asked = constraint.fork();
    let mut mask = TokenSet::empty(tokens.size());
    for token in tokens.iter() {
        if asked.allows(token)? {
            mask.insert(token);
        }
    }
    Ok(mask)
}

impl Choose for Online {
    fn choose(
        &mut self,
        row: &[f32],
        text: &SingleText,
        sampler: &Sampler,
        constraint: &mut Constraint,
        stats: &mut DecodeStats,
    ) -> Result<TokenChoice, DecodeError> {
        let position = text.position();
        let all = self.possible.take().unwrap_or_else(|| TokenSet::empty(row.len()));
        stats.masks += 1;
        let mask = timed(&mut stats.mask_time, || mask(constraint, &all));
        self.possible = Some(all);
        let drawn = sampler.draw(row, &mask?, position);
        drawn.map(TokenChoice::Token).map_err(|error| DecodeError::draw(error, position))
    }
}

impl<M: Model> Method<M> for Online {
    fn generate(&mut self, stage: &mut Stage<'_, M>, prompt: &[TokenId]) -> Result<Outcome, MethodError> {
        self.possible.get_or_insert_with(|| possible(stage.decoder.vocabulary()));
        chosen(stage, prompt, self)
    }
}
