//! Masks over canonical tokenisations only, by the library's decoder for them.

use super::{Method, MethodError, Outcome, Stage, decoded};
use crate::{
    decode::{CanonicalDecoder, DecodeOptions, StopStrings},
    ids::TokenId,
    model::Model,
};

/// Masks of canonical tokenisations.
#[derive(Debug)]
pub(super) struct Canonical;

impl<M: Model> Method<M> for Canonical {
    fn generate(&mut self, stage: &mut Stage<'_, M>, prompt: &[TokenId]) -> Result<Outcome, MethodError> {
        let Some(constraint) = stage.grammar.map(crate::CompiledGrammar::constraint) else {
            return Ok(decoded(stage.decoder, prompt)?);
        };
        // Which tokens it takes back is not known before its end: it does not stop at strings.
        let options = DecodeOptions { stop: StopStrings::default(), ..stage.decoder.options_mut().clone() };
        let model = stage.decoder.model_mut();
        let mut decoder = CanonicalDecoder::new(model, stage.tokenizer, &constraint, &options)?;
        let text = decoder.write(prompt, &|| true)?;
        Ok(Outcome { redraws: Some(text.redraws), ..Outcome::new(text.generation, text.first) })
    }
}
