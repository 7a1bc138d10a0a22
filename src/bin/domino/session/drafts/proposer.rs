//! The choice of a proposer, and the certainty that its guesses need.

use clap::ValueEnum;
use domino::{
    CompiledGrammar,
    proposer::{Counting, DraftRecipe},
    vocab::Tokenizer,
};
#[cfg(feature = "mistralrs-speculation")]
use domino::{
    mistralrs::Guesses,
    proposer::{Learning, Prior},
};

/// Default length of a draft of the paper's proposer in tokens, and default threshold of its guesses, as in
/// definitions of experiments.
pub(crate) const PAPER_DRAFT: usize = 10;
const PAPER_THRESHOLD: f64 = 0.5;

/// The value of `--proposer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Which {
    /// The proposer of the DOMINO paper (section 3.6).
    Paper,
    /// Counts with all refinements and repeats; where nothing was learnt of the grammar, text that it forces.
    #[default]
    Shipped,
}

impl Which {
    /// True if only counts guess.
    pub(crate) fn is_paper(self) -> bool {
        self == Self::Paper
    }

    /// The contexts that are counted, and the rule that makes guesses of the counts.
    pub(crate) fn counting(self) -> Counting {
        match self {
            Self::Paper => Counting::paper(),
            Self::Shipped => Counting::default(),
        }
    }

    /// The recipe of drafters for texts of `grammar`. `known` says whether something was learnt of it before.
    pub(crate) fn recipe(self, grammar: &CompiledGrammar, tokenizer: &Tokenizer, known: bool) -> DraftRecipe {
        match self {
            Self::Paper => DraftRecipe::counts_alone(),
            Self::Shipped => DraftRecipe::standard(tokenizer, grammar.vocabulary(), known),
        }
    }

    /// The least acceptance of a guess, unless a flag says otherwise.
    pub(crate) fn threshold(self) -> f64 {
        if self.is_paper() { PAPER_THRESHOLD } else { 0.0 }
    }
}

#[cfg(feature = "mistralrs-speculation")]
impl Which {
    /// Makes the guessers for texts of `grammar` in mistral.rs; `threshold` is the least acceptance of a
    /// draft's tokens.
    pub(crate) fn guesses(
        self,
        grammar: &CompiledGrammar,
        tokenizer: &Tokenizer,
        prior: Prior,
        learning: Learning,
        threshold: f64,
    ) -> Guesses {
        let guesses = match self {
            Self::Paper => Guesses::of_paper(prior, learning),
            Self::Shipped => Guesses::new(grammar, tokenizer, prior, learning),
        };
        guesses.at_least(threshold)
    }
}

/// Reads the value of `--threshold`.
pub(crate) fn threshold(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("expected a number from 0 to 1".to_owned()),
    }
}
