//! The model conditioned on the language, by particles that share passes.

use std::num::{NonZeroU8, NonZeroUsize};

use super::{Method, MethodError, Outcome, Stage, decoded};
use crate::{
    decode::{ConditionalDecoder, ConditionalText, DecodeOptions, StopStrings},
    ids::TokenId,
    model::{BatchModel, InTurns, Model},
    session::Constraint,
};

/// Sequential importance resampling.
#[derive(Debug)]
pub(super) struct Conditional {
    pub(super) particles: NonZeroU8,
}

impl<M: Model> Method<M> for Conditional {
    fn generate(&mut self, stage: &mut Stage<'_, M>, prompt: &[TokenId]) -> Result<Outcome, MethodError> {
        let Some(constraint) = stage.grammar.map(crate::CompiledGrammar::constraint) else {
            return Ok(decoded(stage.decoder, prompt)?);
        };
        // Weights are of whole texts: there is no stopping at strings.
        let options = DecodeOptions { stop: StopStrings::default(), ..stage.decoder.options_mut().clone() };
        let model = stage.decoder.model_mut();
        let particles = NonZeroUsize::from(self.particles);
        let text = match model.as_batch(particles).map_err(crate::decode::DecodeError::model)? {
            Some(batch) => draw(batch, &constraint, &options, prompt)?,
            None => draw(InTurns::new(model, particles), &constraint, &options, prompt)?,
        };
        Ok(Outcome::new(text.generation, text.first))
    }
}

fn draw<B: BatchModel>(
    batch: B,
    constraint: &Constraint,
    options: &DecodeOptions,
    prompt: &[TokenId],
) -> Result<ConditionalText, MethodError> {
    Ok(ConditionalDecoder::new(batch, constraint, options)?.draw(prompt, &|| true)?)
}
