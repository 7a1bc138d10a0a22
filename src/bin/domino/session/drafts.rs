//! Drafts: those that flags ask for, who guesses, by what counts, and how long guesses are.
//!
//! Counts come from files that were learnt before, named ones or those of a model, or are learnt while texts
//! are written. A second, smaller model can guess too.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use clap::ValueEnum;
use domino::decode::{DraftMask, DraftModel, DraftModelError, DraftTally};
use domino::proposer::{
    CountProposer, Counting, DraftLength, DraftRecipe, Drafter, Learning, Prior, PriorError, Propose,
};
use domino::{
    CompiledGrammar, Lookahead, Terminals, Vocabulary, model::candle::LoadOptions, store::CacheFolder,
    vocab::Tokenizer,
};

use crate::files::{self, Output};
use crate::grammar::{compiler, source::GrammarPlace, source::GrammarSource};
use crate::session::model::{self, RunBy, Runner, load, read_tokenizer};
use crate::terminal::failure::{BadInput, remark};

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
    /// The least acceptance of the tokens of a draft of fixed length, also for engines that draft themselves.
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

impl Speculation {
    /// Loads the draft model for texts of `grammar`, if one was named.
    pub(crate) fn draft_model(
        &self,
        by: RunBy,
        grammar: &CompiledGrammar,
        tokenizer: &Tokenizer,
        cache: &CacheFolder,
    ) -> Result<Option<Drafting>, BadInput> {
        let load = |draft: &WantedDraft| draft.load(by, grammar.vocabulary(), tokenizer, cache);
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
        let Some(length) = self.length() else { return Ok(None) };
        let prior = self.prior(source, grammar, model)?;
        // A prior that is yet to be learnt knows nothing.
        let known = prior.as_ref().is_some_and(|prior| !prior.is_empty());
        let recipe = self.proposer.recipe(grammar, tokenizer, known);
        let knows = prior.is_some() || self.learning == Learning::Online;
        let learner = self.learner(prior.unwrap_or_else(|| Prior::new(grammar)), self.learning);
        let keeper = knows.then(|| self.keeper(Arc::clone(&learner)));
        // The paper's proposer has no other beside it.
        let draft = draft.filter(|_| !self.proposer.is_paper());
        let second = draft.map(|draft| -> Box<dyn Propose> { Box::new(Arc::clone(draft)) });
        Ok(Some((recipe.drafter(Box::new(learner), second, length), keeper)))
    }

    /// The length of drafts; `None` if there are to be none.
    fn length(&self) -> Option<DraftLength> {
        match self.how {
            Some(Speculate::Off) => None,
            Some(Speculate::To { length, .. }) => Some(length),
            None => Some(DraftLength::Auto),
        }
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
        let length = self.length()?;
        let prior = source.and_then(|source| shipped_prior(source, grammar, model));
        let recipe = self.proposer.recipe(grammar, tokenizer, prior.is_some());
        // Where nothing is known, texts of a grammar learn for one another.
        let learning = if prior.is_none() { Learning::Online } else { self.learning };
        let learner = self.learner(prior.unwrap_or_else(|| Prior::new(grammar)), learning);
        Some(Shared { learner, online: learning == Learning::Online, recipe, length })
    }

    /// Finds the counts for an engine that drafts itself, if flags or the model's prior ask for drafts. All
    /// its drafts are made by one proposer, which learns over texts or not at all.
    pub(crate) fn counts(
        &self,
        source: Option<&GrammarSource>,
        grammar: &CompiledGrammar,
        model: &Path,
    ) -> Result<Option<CountProposer>, BadInput> {
        if self.how == Some(Speculate::Off) {
            return Ok(None);
        }
        let prior = self.prior(source, grammar, model)?;
        let online = self.learning == Learning::Online;
        if self.how.is_none() && !online && prior.is_none() {
            return Ok(None);
        }
        let prior = prior.unwrap_or_else(|| Prior::new(grammar));
        let learning = if online { Learning::Online } else { Learning::Fixed };
        Ok(Some(CountProposer::new(prior, learning).counting(self.proposer.counting())))
    }

    /// Makes the keeper of counts that `learner` learns.
    pub(crate) fn keeper(&self, learner: Learner) -> Keeper {
        Keeper { learner, file: self.prior.clone().filter(|_| self.learning == Learning::Online) }
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
            let prior = load_prior(file, grammar)?;
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

/// Reads the value of `--threshold`.
pub(crate) fn threshold(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("expected a number from 0 to 1".to_owned()),
    }
}

/// A proposer whose counts can be read while it learns.
pub type Learner = Arc<Mutex<CountProposer>>;

/// Copies the counts of a learner.
pub(crate) fn known_counts(learner: &Learner) -> Prior {
    learner.lock().unwrap_or_else(PoisonError::into_inner).prior().clone()
}

/// A learner that learns while a text is written, and the file for its counts.
pub(crate) struct Keeper {
    learner: Learner,
    file: Option<PathBuf>,
}

impl Keeper {
    /// The lookahead and the terminals that the prior was learnt at.
    pub(crate) fn learnt_at(&self) -> (Lookahead, Terminals) {
        let learner = self.learner.lock().unwrap_or_else(PoisonError::into_inner);
        (learner.prior().lookahead(), learner.prior().terminals())
    }

    /// Writes the counts to the file, if there is one.
    pub(crate) fn keep(&self) -> anyhow::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        Output::prepare(file)?.write(&known_counts(&self.learner).to_bytes())
    }
}

/// Finds the prior that comes with the model. If it cannot be used, for instance since the grammar has
/// changed, a note says so, and there is none.
fn shipped_prior(source: &GrammarSource, grammar: &CompiledGrammar, model: &Path) -> Option<Prior> {
    let (GrammarPlace::Shipped(shipped), None) = (&source.place, &source.thought) else { return None };
    let file = model.join("priors").join(shipped.name).with_extension("prior");
    if !file.is_file() {
        return None;
    }
    load_prior(&file, grammar)
        .map_err(|error| remark!("note:", "{error}; going on without"))
        .ok()
        .inspect(|prior| tell_apart(prior, &file, grammar))
}

/// Notes that a prior was learnt with another lookahead. Its contexts do not depend on that, so it is of use,
/// but its counts are of tokens that other masks allowed.
fn tell_apart(prior: &Prior, file: &Path, grammar: &CompiledGrammar) {
    if prior.lookahead() == grammar.lookahead() {
        return;
    }
    let was = compiler::reach_in_words(prior.lookahead(), prior.terminals());
    let is = compiler::reach_in_words(grammar.lookahead(), grammar.terminals());
    let file = file.display();
    remark!("note:", "{file} was learnt with {was}, and this is {is}: its guesses may be worse");
}

/// Reads the prior of a file.
pub(crate) fn load_prior(file: &Path, grammar: &CompiledGrammar) -> Result<Prior, BadInput> {
    Prior::from_bytes(&files::read(file)?, grammar).map_err(|error| bad_prior(file, &error))
}

/// Makes the error for a prior that cannot be used, with advice.
pub(crate) fn bad_prior(file: &Path, error: &PriorError) -> BadInput {
    BadInput::new(format!("{}: {error}", file.display())).hint(error.hint())
}

/// A draft model that is not loaded yet.
#[derive(Debug)]
pub(crate) struct WantedDraft {
    pub(crate) name: PathBuf,
    pub(crate) mask: DraftMask,
}

/// A loaded draft model that can be asked for the tally of its guesses.
pub(crate) type Drafting = Arc<Mutex<DraftModel<Runner>>>;

impl WantedDraft {
    /// Loads the draft model for texts of a model of this vocabulary and tokenizer.
    pub(crate) fn load(
        &self,
        by: RunBy,
        vocabulary: &Vocabulary,
        splits: &Tokenizer,
        cache: &CacheFolder,
    ) -> Result<Drafting, BadInput> {
        let folder = model::locate(Some(&self.name))?;
        let bad = |error: DraftModelError| {
            BadInput::new(format!("--draft-model {}: {error}", self.name.display())).hint(error.hint())
        };
        let own = (model::vocabulary(&folder, cache)?, read_tokenizer(&folder)?);
        let model = load(&folder, &LoadOptions::default(), by)?;
        let draft = DraftModel::new(model, &own.0, vocabulary).map_err(bad)?;
        let draft = draft.splitting(&own.1, splits).map_err(bad)?;
        Ok(Arc::new(Mutex::new(draft.mask(self.mask))))
    }
}

/// Reads the tally of a draft model's guesses.
pub(crate) fn draft_tally(draft: &Drafting) -> DraftTally {
    draft.lock().unwrap_or_else(PoisonError::into_inner).tally()
}
