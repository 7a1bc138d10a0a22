//! The decoder's own methods: masks of every kind, and drafts.

use super::{Method, MethodError, Outcome, Refinement, Refinements, Stage, decoded};
use crate::{
    compile::CompiledGrammar,
    decode::{DecodeError, Masking},
    ids::TokenId,
    model::Model,
    proposer::{CountProposer, DraftLength, DraftRecipe, Drafter, Learning, Prior, Propose},
    vocab::Tokenizer,
};

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
