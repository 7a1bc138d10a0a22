//! Which proposer guesses, and how sure its guesses must be.

use clap::ValueEnum;
use domino::proposer::Counting;
#[cfg(feature = "mistralrs")]
use domino::{
    CompiledGrammar,
    mistralrs::Guesses,
    proposer::{Learning, Prior},
    vocab::Tokenizer,
};

/// Most tokens of a draft of the paper's proposer, and the least share of its guesses, unless told
/// otherwise: as in definitions of experiments.
pub(crate) const PAPER_DRAFT: usize = 10;
const PAPER_THRESHOLD: f64 = 0.5;

/// `--proposer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Which {
    /// That of the DOMINO paper (3.6).
    Paper,
    /// Counts with all refinements, forced text and repeats.
    #[default]
    Shipped,
}

impl Which {
    /// Are the counts all that guesses?
    pub(crate) fn is_paper(self) -> bool {
        self == Self::Paper
    }

    /// What is counted, and how guesses are made of it.
    pub(crate) fn counting(self) -> Counting {
        match self {
            Self::Paper => Counting::paper(),
            Self::Shipped => Counting::default(),
        }
    }

    /// The least acceptance of a guess, unless told otherwise.
    pub(crate) fn threshold(self) -> f64 {
        if self.is_paper() { PAPER_THRESHOLD } else { 0.0 }
    }
}

#[cfg(feature = "mistralrs")]
impl Which {
    /// What guesses texts of `grammar` in mistral.rs, with the least acceptance of the tokens of a draft.
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

/// `--threshold`.
pub(crate) fn threshold(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("expected a number from 0 to 1".to_owned()),
    }
}
