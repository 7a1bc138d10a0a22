//! Speculation: the drafts that flags ask for, and the proposers that guess them.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    sync::{Arc, Mutex, PoisonError},
};

#[cfg(feature = "mistralrs-speculation")]
use domino::mistralrs::Guesses;
use domino::{
    CompiledGrammar,
    proposer::{CountProposer, DraftLength, DraftRecipe, Drafter, Learning, Prior, Propose},
    store::CacheFolder,
    vocab::Tokenizer,
};

use crate::{
    grammar::source::GrammarSource,
    session::{
        drafts::{
            draft_model::{Drafting, WantedDraft},
            learner::{Keeper, Learner},
            prior::{load, shipped_prior, tell_apart},
            proposer::Which,
        },
        runner::Card,
    },
    terminal::failure::BadInput,
};

/// The value of `--speculate`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Speculate {
    Off,
    To {
        length: DraftLength,
        /// Limit on the tokens of a draft, if one was given.
        most: Option<usize>,
    },
}

impl FromStr for Speculate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self::Off),
            "auto" => Ok(Self::To { length: DraftLength::Auto, most: None }),
            _ => {
                let tokens =
                    text.parse::<usize>().map_err(|_| "expected auto, off or a number".to_owned())?;
                let length = DraftLength::up_to(tokens, 0.0).map_err(|error| error.to_string())?;
                Ok(Self::To { length, most: Some(tokens) })
            }
        }
    }
}

/// The resolved flags of speculation.
#[derive(Debug)]
pub(crate) struct Speculation {
    pub(crate) how: Option<Speculate>,
    pub(crate) proposer: Which,
    /// The least acceptance of the tokens of a draft of fixed length, for mistral.rs.
    #[cfg_attr(
        not(feature = "mistralrs-speculation"),
        expect(dead_code, reason = "only mistral.rs is told apart from `how`")
    )]
    pub(crate) threshold: f64,
    pub(crate) prior: Option<PathBuf>,
    pub(crate) learning: Learning,
    /// True if the run is compared with others.
    pub(crate) compare: bool,
    /// True if any flag asked for drafts.
    pub(crate) asked: bool,
    /// A smaller model that guesses too.
    pub(crate) draft: Option<WantedDraft>,
}

/// Settings of drafts of one length.
#[cfg(feature = "mistralrs-speculation")]
pub(crate) struct FixedLength {
    pub(crate) most: usize,
    pub(crate) prior: Prior,
    pub(crate) learning: Learning,
    pub(crate) proposer: Which,
    /// The least acceptance of the tokens of a draft.
    pub(crate) threshold: f64,
    /// The file for the counts.
    pub(crate) file: Option<PathBuf>,
}

#[cfg(feature = "mistralrs-speculation")]
impl FixedLength {
    /// Makes the guessers for texts of `grammar`.
    pub(crate) fn guesses(self, grammar: &CompiledGrammar, tokenizer: &Tokenizer) -> Guesses {
        self.proposer.guesses(grammar, tokenizer, self.prior, self.learning, self.threshold)
    }
}

impl Speculation {
    /// Loads the draft model for texts of `grammar`, if one was named.
    pub(crate) fn draft_model(
        &self,
        card: Card,
        grammar: &CompiledGrammar,
        tokenizer: &Tokenizer,
        cache: &CacheFolder,
    ) -> Result<Option<Drafting>, BadInput> {
        let load = |draft: &WantedDraft| draft.load(card, grammar.vocabulary(), tokenizer, cache);
        self.draft.as_ref().map(load).transpose()
    }

    /// Makes the drafter for texts of `grammar`, and the learner's keeper, as far as flags ask for them.
    /// `source` is the grammar's source, if texts begin as it says; `draft` is the loaded draft model.
    pub(crate) fn drafter(
        &self,
        source: Option<&GrammarSource>,
        grammar: &CompiledGrammar,
        model: &Path,
        tokenizer: &Tokenizer,
        draft: Option<&Drafting>,
    ) -> Result<Option<(Drafter, Option<Keeper>)>, BadInput> {
        if self.how == Some(Speculate::Off) {
            return Ok(None);
        }
        let prior = self.prior(source, grammar, model)?;
        let length = match self.how {
            Some(Speculate::To { length, .. }) => length,
            _ => DraftLength::Auto,
        };
        // A prior that is yet to be learnt knows nothing.
        let known = prior.as_ref().is_some_and(|prior| !prior.is_empty());
        let recipe = self.proposer.recipe(grammar, tokenizer, known);
        let knows = prior.is_some() || self.learning == Learning::Online;
        let learner = self.learner(prior.unwrap_or_else(|| Prior::new(grammar)), self.learning);
        let file = self.prior.clone().filter(|_| self.learning == Learning::Online);
        let keeper = knows.then(|| Keeper { learner: Arc::clone(&learner), file });
        // The paper's proposer has no other beside it.
        let draft = draft.filter(|_| !self.proposer.is_paper());
        let second = draft.map(|draft| -> Box<dyn Propose> { Box::new(Arc::clone(draft)) });
        Ok(Some((recipe.drafter(Box::new(learner), second, length), keeper)))
    }

    /// Makes the proposer that guesses by counts.
    fn learner(&self, prior: Prior, learning: Learning) -> Learner {
        let counts = CountProposer::new(prior, learning).counting(self.proposer.counting());
        Arc::new(Mutex::new(counts))
    }

    /// Makes the parts of the drafters of all texts of a grammar in a batch, if there are to be any. `source`
    /// is the grammar's source, if it has a name.
    pub(crate) fn shared(
        &self,
        source: Option<&GrammarSource>,
        grammar: &CompiledGrammar,
        model: &Path,
        tokenizer: &Tokenizer,
    ) -> Option<Shared> {
        let length = match self.how {
            Some(Speculate::Off) => return None,
            Some(Speculate::To { length, .. }) => length,
            None => DraftLength::Auto,
        };
        let prior = source.and_then(|source| shipped_prior(source, grammar, model));
        let recipe = self.proposer.recipe(grammar, tokenizer, prior.is_some());
        // Where nothing is known, texts of a grammar learn for one another.
        let learning = if prior.is_none() { Learning::Online } else { self.learning };
        let learner = self.learner(prior.unwrap_or_else(|| Prior::new(grammar)), learning);
        Some(Shared { learner, online: learning == Learning::Online, recipe, length })
    }

    /// Makes the settings for mistral.rs's engine, where drafts are of one length.
    #[cfg(feature = "mistralrs-speculation")]
    pub(crate) fn fixed(
        &self,
        source: &GrammarSource,
        grammar: &CompiledGrammar,
        model: &Path,
    ) -> Result<Option<FixedLength>, BadInput> {
        /// Default length of a draft in tokens.
        const USUAL: usize = 7;
        if self.how == Some(Speculate::Off) {
            return Ok(None);
        }
        let prior = self.prior(Some(source), grammar, model)?;
        if self.how.is_none() && self.learning != Learning::Online && prior.is_none() {
            return Ok(None);
        }
        let most = match self.how {
            Some(Speculate::To { most: Some(most), .. }) => most,
            _ => USUAL,
        };
        let prior = prior.unwrap_or_else(|| Prior::new(grammar));
        let file = self.prior.clone().filter(|_| self.learning == Learning::Online);
        // One proposer drafts all texts there.
        let learning = if self.learning == Learning::Online { Learning::Online } else { Learning::Fixed };
        let (proposer, threshold) = (self.proposer, self.threshold);
        Ok(Some(FixedLength { most, prior, learning, proposer, threshold, file }))
    }

    /// Finds the prior that was named, or that comes with the model. A named one that cannot be used is an
    /// error, unless it is yet to be made.
    fn prior(
        &self,
        source: Option<&GrammarSource>,
        grammar: &CompiledGrammar,
        model: &Path,
    ) -> Result<Option<Prior>, BadInput> {
        if let Some(file) = &self.prior {
            if self.learning == Learning::Online && !file.exists() {
                return Ok(Some(Prior::new(grammar)));
            }
            let prior = load(file, grammar)?;
            tell_apart(&prior, file, grammar);
            return Ok(Some(prior));
        }
        Ok(source.and_then(|source| shipped_prior(source, grammar, model)))
    }
}

/// The parts that the drafters of several texts have in common.
pub(crate) struct Shared {
    learner: Learner,
    /// True if all texts learn from each other.
    online: bool,
    recipe: DraftRecipe,
    length: DraftLength,
}

impl Shared {
    /// Makes the drafter of one text.
    pub(crate) fn drafter(&self) -> Drafter {
        let counts: Box<dyn Propose> = if self.online {
            Box::new(Arc::clone(&self.learner))
        } else {
            Box::new(self.learner.lock().unwrap_or_else(PoisonError::into_inner).another())
        };
        self.recipe.drafter(counts, None, self.length)
    }
}
