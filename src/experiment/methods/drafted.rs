//! The library's own decoders as methods: masks of every kind, and drafts; masks over canonical tokenisations
//! only; and the model conditioned on the language, by particles that share passes.

use std::num::{NonZeroU8, NonZeroUsize};

use super::{Method, MethodError, Outcome, Refinement, Refinements, Stage, decoded};
use crate::decode::{
    CanonicalDecoder, ConditionalDecoder, ConditionalText, DecodeError, DecodeOptions, Masking, StopStrings,
};
use crate::model::{BatchModel, InTurns, Model};
use crate::proposer::{CountProposer, DraftLength, DraftRecipe, Drafter, Learning, Prior, Propose};
use crate::{CompiledGrammar, Constraint, ids::TokenId, vocab::Tokenizer};

/// A decoder's own run, with or without drafts.
#[derive(Debug)]
pub(super) struct Drafted {
    masking: Masking,
    drafter: Option<Drafter>,
}

impl Drafted {
    /// Creates a method without drafts.
    pub(super) fn plain(masking: Masking) -> Self {
        Self { masking, drafter: None }
    }

    /// Creates a method that drafts text that the grammar forces.
    pub(super) fn forced(grammar: &CompiledGrammar, tokenizer: &Tokenizer) -> Self {
        let drafter = Drafter::of_forced_text(tokenizer.clone(), grammar.vocabulary().clone());
        Self { masking: Masking::Ahead, drafter: Some(drafter) }
    }

    /// Creates a method that drafts by one proposer.
    pub(super) fn by(proposer: Box<dyn Propose>, length: DraftLength) -> Self {
        Self { masking: Masking::Ahead, drafter: Some(Drafter::new(proposer, length)) }
    }

    /// Creates a method that drafts by counts, by what else the refinements name, and by a second model, best
    /// first. With all refinements it is what the program does, which drafts forced text where nothing was
    /// learnt.
    pub(super) fn by_counts(
        grammar: &CompiledGrammar,
        tokenizer: &Tokenizer,
        prior: Option<Prior>,
        refinements: Refinements,
        length: DraftLength,
        second: Option<Box<dyn Propose>>,
    ) -> Self {
        let learnt = prior.as_ref().is_some_and(|prior| !prior.is_empty());
        let known = learnt || refinements != Refinements::all();
        let mut recipe = DraftRecipe::standard(tokenizer, grammar.vocabulary(), known);
        if !refinements.has(Refinement::Lookup) {
            recipe = recipe.without_lookup();
        }
        let counts = counts(prior.unwrap_or_else(|| Prior::new(grammar)), refinements);
        let drafter = recipe.drafter(Box::new(counts), second, length);
        let masking = if refinements.has(Refinement::Rows) { Masking::Ahead } else { Masking::Always };
        Self { masking, drafter: Some(drafter) }
    }

    fn set<M: Model>(&self, stage: &mut Stage<'_, M>) -> Result<(), crate::decode::BuildError> {
        stage.decoder.options_mut().masking = self.masking;
        stage.decoder.set_constraint(stage.grammar.map(CompiledGrammar::constraint))
    }
}

/// Creates the counts of a method with these refinements.
pub(super) fn counts(prior: Prior, refinements: Refinements) -> CountProposer {
    let learning = if refinements.has(Refinement::Text) { Learning::PerText } else { Learning::Fixed };
    CountProposer::new(prior, learning).counting(refinements.counting())
}

impl<M: Model> Method<M> for Drafted {
    fn prepare(&mut self, stage: &mut Stage<'_, M>) -> Result<(), MethodError> {
        self.set(stage)?;
        stage.decoder.set_drafter(self.drafter.take());
        let calibrated = stage.decoder.calibrate();
        self.drafter = stage.decoder.set_drafter(None);
        Ok(calibrated?)
    }

    fn generate(&mut self, stage: &mut Stage<'_, M>, prompt: &[TokenId]) -> Result<Outcome, MethodError> {
        self.set(stage)?;
        stage.decoder.set_drafter(self.drafter.take());
        let outcome: Result<Outcome, DecodeError> = decoded(stage.decoder, prompt);
        self.drafter = stage.decoder.set_drafter(None);
        Ok(outcome?)
    }
}

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
