//! The recipe of drafters: the proposers that guess for a text, the most trusted first, for all front ends.

use super::best::BestOf;
use crate::{
    proposer::{
        draft::{DraftLength, Drafter},
        forced::ForcedText,
        lookup::Lookup,
        propose::Propose,
    },
    vocab::{Tokenizer, Vocabulary},
};

/// The recipe of drafters for the texts of a grammar: the proposers beside the counts of the grammar.
///
/// A drafter trusts its counts most, then what the grammar forces, if nothing was learnt before, then what
/// came before in the same text; [`BestOf`] says when a less trusted one is heard. Cloning is cheap. With the
/// feature `tokenizers`.
///
/// ```
/// use domino::{
///     Vocabulary,
///     proposer::{CountProposer, DraftLength, DraftRecipe, Drafter, Learning, Prior},
///     vocab::Tokenizer,
/// };
///
/// # fn make(grammar: &domino::CompiledGrammar, tokenizer: &Tokenizer) -> Drafter {
/// // Nothing was learnt of the grammar before.
/// let recipe = DraftRecipe::standard(tokenizer, grammar.vocabulary(), false);
/// let counts = CountProposer::new(Prior::new(grammar), Learning::PerText);
/// recipe.drafter(Box::new(counts), None, DraftLength::Auto)
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct DraftRecipe {
    forced: Option<ForcedText>,
    /// Does a lookup of earlier text guess?
    lookup: bool,
}

impl DraftRecipe {
    /// Drafts by counts and by a lookup of earlier text, and by [text that the grammar forces](ForcedText)
    /// unless counts begin with something that was learnt before, as `known` says: then they know it.
    ///
    /// The vocabulary is the grammar's, which has the special tokens that the grammar spells out; the
    /// tokenizer must be its own.
    #[must_use]
    pub fn standard(tokenizer: &Tokenizer, vocabulary: &Vocabulary, known: bool) -> Self {
        let forced = (!known).then(|| ForcedText::new(tokenizer.clone(), vocabulary.clone()));
        Self { forced, lookup: true }
    }

    /// Drafts by counts alone, as the DOMINO paper (3.6) does.
    #[must_use]
    pub fn counts_alone() -> Self {
        Self { forced: None, lookup: false }
    }

    /// Leaves out the lookup of earlier text.
    #[must_use]
    pub fn without_lookup(self) -> Self {
        Self { lookup: false, ..self }
    }

    /// Makes the drafter of one text. The counts are the text's own, or shared (`Arc<Mutex<_>>`) by texts
    /// that learn from one another. `second` is an expensive proposer, such as a draft model: it is trusted
    /// most, and asked only where no other is sure.
    #[must_use]
    pub fn drafter(
        &self,
        counts: Box<dyn Propose>,
        second: Option<Box<dyn Propose>>,
        length: DraftLength,
    ) -> Drafter {
        let mut proposers = vec![counts];
        if let Some(forced) = &self.forced {
            proposers.push(Box::new(forced.clone()));
        }
        if self.lookup {
            proposers.push(Box::new(Lookup::default()));
        }
        let mut proposer = BestOf::new(proposers);
        if let Some(second) = second {
            proposer = proposer.with_expensive(second);
        }
        Drafter::new(Box::new(proposer), length)
    }
}

#[cfg(test)]
mod tests;
