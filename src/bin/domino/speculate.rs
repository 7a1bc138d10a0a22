//! Flags of speculation, and the proposers that they choose.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    sync::{Arc, Mutex, PoisonError},
};

use clap::{Args, ValueEnum};
#[cfg(feature = "mistralrs-speculation")]
use domino::mistralrs::Guesses;
use domino::{
    CompiledGrammar, Lookahead, Terminals,
    proposer::{
        BestOf, CountProposer, DraftLength, Drafter, ForcedText, Learning, Lookup, Prior, PriorError, Propose,
    },
    store::CacheFolder,
    vocab::Tokenizer,
};

use crate::{
    draft_model::{Drafting, LowDraftModel, WantedDraft},
    failure::{BadInput, Paint, note},
    notation::GrammarSource,
    proposer::{self, PAPER_DRAFT, Which},
    reach,
    runner::Card,
};

/// How to speculate. Part of the flags of `domino generate` and `domino explain`.
#[derive(Debug, Args)]
pub(crate) struct LowSpeculate {
    /// Guess tokens ahead and verify several in one pass of the model: auto, N tokens, or off.
    ///
    /// auto: drafts as long as pays, none where none does. N: drafts of up to N tokens. The text is the same,
    /// the time is not. Default: auto. Without a prior for the grammar and the model the first text is learnt
    /// from as it is written, and with --batch the next ones by what all before them had (with --engine
    /// mistralrs nothing is guessed then).
    #[arg(long, value_name = "auto|N|off")]
    speculate: Option<Speculate>,
    /// What guesses: shipped (counts of what came at such a place of the grammar and after such tokens, text
    /// that the grammar forces, and repeats) or paper (section 3.6 of the DOMINO paper: the token that came
    /// most often at such a place, and nothing else; without --speculate drafts of up to 10 tokens, without
    /// --threshold of 0.5 at least). The text is the same. Default: shipped.
    #[arg(long, value_name = "WHICH", value_enum)]
    proposer: Option<Which>,
    /// How likely each token of a draft must be to be accepted, from 0 to 1, as the proposer thinks; of
    /// paper, its share of the counts at its place. For drafts of up to N tokens, since auto weighs that
    /// itself. Default: 0.
    #[arg(long, value_name = "SHARE", value_parser = proposer::threshold)]
    threshold: Option<f64>,
    /// Guess by the counts in this file of `domino learn`. Default: NAME.prior in the folder priors of the
    /// model, for a grammar that comes with the program.
    #[arg(long, value_name = "FILE", requires = "LowGrammar")]
    prior: Option<PathBuf>,
    /// Learn from this text too (online), and keep what was learnt in the file of --prior; or forget it with
    /// the text (fixed).
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Learn::Fixed, requires = "LowGrammar")]
    learn: Learn,
    /// Make the text three times in turns, without grammar, with it, and with speculation too, and say how
    /// the times compare. Exit code 1 says that speculation changed the tokens, or that there were none to
    /// compare.
    #[arg(long, requires = "LowGrammar")]
    compare: bool,
    #[command(flatten)]
    draft: LowDraftModel,
}

/// `--learn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Learn {
    /// From the text being written.
    Online,
    /// What is learnt from a text is forgotten with it.
    Fixed,
}

/// The value of `--speculate`.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Speculate {
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
    how: Option<Speculate>,
    proposer: Which,
    /// The least acceptance of the tokens of a draft of fixed length, for mistral.rs.
    #[cfg_attr(
        not(feature = "mistralrs-speculation"),
        expect(dead_code, reason = "only mistral.rs is told apart from `how`")
    )]
    threshold: f64,
    prior: Option<PathBuf>,
    learning: Learning,
    /// True if the run is compared with others.
    pub(crate) compare: bool,
    /// True if any flag asked for drafts.
    pub(crate) asked: bool,
    /// A smaller model that guesses too.
    draft: Option<WantedDraft>,
}

impl LowSpeculate {
    /// True if the run is compared with others.
    pub(crate) fn compares(&self) -> bool {
        self.compare
    }

    /// True if any of these flags was given.
    pub(crate) fn asks(&self) -> bool {
        self.speculate.is_some()
            || self.proposer.is_some()
            || self.threshold.is_some()
            || self.prior.is_some()
            || self.learn == Learn::Online
            || self.compare
            || self.draft.draft_model.is_some()
    }

    /// True if there is a draft model.
    pub(crate) fn has_draft_model(&self) -> bool {
        self.draft.draft_model.is_some()
    }

    /// Reads the flags.
    pub(crate) fn resolve(self, constrained: bool) -> Result<Speculation, BadInput> {
        let flags = [
            (matches!(self.speculate, Some(Speculate::To { .. })), "--speculate"),
            (self.proposer.is_some(), "--proposer"),
            (self.threshold.is_some(), "--threshold"),
        ];
        if let Some((_, flag)) = flags.into_iter().find(|(given, _)| *given && !constrained) {
            return Err(BadInput::new(format!("{flag} needs a grammar")).hint("give --grammar or --regex"));
        }
        let learning = match self.learn {
            Learn::Online => Learning::Online,
            Learn::Fixed => Learning::Text,
        };
        if self.compare && self.speculate == Some(Speculate::Off) {
            return Err(BadInput::new("--compare has nothing to compare with --speculate off"));
        }
        if self.has_draft_model() && self.speculate == Some(Speculate::Off) {
            return Err(BadInput::new("--draft-model has nothing to do with --speculate off"));
        }
        let (how, asked) = (self.length()?, self.asks() && self.speculate != Some(Speculate::Off));
        let proposer = self.proposer.unwrap_or_default();
        let threshold = self.threshold.unwrap_or_else(|| proposer.threshold());
        let Self { prior, compare, draft, .. } = self;
        Ok(Speculation { how, proposer, threshold, prior, learning, compare, asked, draft: draft.resolve() })
    }

    /// Chooses the length of drafts, with what the proposer and its threshold say of it.
    fn length(&self) -> Result<Option<Speculate>, BadInput> {
        let Self { speculate, proposer, threshold, .. } = self;
        if *speculate == Some(Speculate::Off) {
            let flags = [(proposer.is_some(), "--proposer"), (threshold.is_some(), "--threshold")];
            return match flags.into_iter().find(|(given, _)| *given) {
                Some((_, flag)) => {
                    Err(BadInput::new(format!("{flag} has nothing to do with --speculate off")))
                }
                None => Ok(Some(Speculate::Off)),
            };
        }
        let which = proposer.unwrap_or_default();
        if which.is_paper() && self.has_draft_model() {
            return Err(BadInput::new("--draft-model: not with --proposer paper, which guesses alone")
                .hint("leave one of the two out"));
        }
        let most = match speculate {
            Some(Speculate::To { most, .. }) => *most,
            _ => which.is_paper().then_some(PAPER_DRAFT),
        };
        let Some(tokens) = most else {
            return match threshold {
                Some(_) => Err(BadInput::new("--threshold is for drafts of a fixed length")
                    .hint("give --speculate N too")),
                None => Ok(*speculate),
            };
        };
        let length = DraftLength::up_to(tokens, threshold.unwrap_or_else(|| which.threshold()));
        let length = length.map_err(|error| BadInput::new(error.to_string()))?;
        Ok(Some(Speculate::To { length, most }))
    }
}

/// A proposer whose counts can be read while it learns.
pub(crate) type Learner = Arc<Mutex<CountProposer>>;

/// Copies the counts of a learner.
pub(crate) fn known(learner: &Learner) -> Prior {
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
        crate::output::Output::prepare(file)?.write(&known(&self.learner).to_bytes())
    }
}

/// Settings of drafts of one length.
#[cfg(feature = "mistralrs-speculation")]
pub(crate) struct Fixed {
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
impl Fixed {
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
        let forced = forced_text(prior.as_ref(), grammar, tokenizer);
        let knows = prior.is_some() || self.learning == Learning::Online;
        let learner = self.learner(prior.unwrap_or_else(|| Prior::new(grammar)), self.learning);
        let file = self.prior.clone().filter(|_| self.learning == Learning::Online);
        let keeper = knows.then(|| Keeper { learner: Arc::clone(&learner), file });
        if self.proposer.is_paper() {
            return Ok(Some((Drafter::new(Box::new(learner), length), keeper)));
        }
        let mut proposer =
            BestOf::new(vec![Box::new(learner), Box::new(forced), Box::new(Lookup::default())]);
        if let Some(draft) = draft {
            proposer = proposer.with_dear(Box::new(Arc::clone(draft)));
        }
        Ok(Some((Drafter::new(Box::new(proposer), length), keeper)))
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
        let forced = forced_text(prior.as_ref(), grammar, tokenizer);
        // Where nothing is known, texts of a grammar learn for one another.
        let learning = if prior.is_none() { Learning::Online } else { self.learning };
        let learner = self.learner(prior.unwrap_or_else(|| Prior::new(grammar)), learning);
        let (alone, online) = (self.proposer.is_paper(), learning == Learning::Online);
        Some(Shared { learner, alone, online, forced, length })
    }

    /// Makes the settings for mistral.rs's engine, where drafts are of one length.
    #[cfg(feature = "mistralrs-speculation")]
    pub(crate) fn fixed(
        &self,
        source: &GrammarSource,
        grammar: &CompiledGrammar,
        model: &Path,
    ) -> Result<Option<Fixed>, BadInput> {
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
        Ok(Some(Fixed { most, prior, learning, proposer, threshold, file }))
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
    /// True if only counts guess.
    alone: bool,
    /// True if all texts learn from each other.
    online: bool,
    forced: ForcedText,
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
        if self.alone {
            return Drafter::new(counts, self.length);
        }
        let proposer = BestOf::new(vec![counts, Box::new(self.forced.clone()), Box::new(Lookup::default())]);
        Drafter::new(Box::new(proposer), self.length)
    }
}

/// Makes the proposer of forced text. Without a prior it also guesses where the text could be spelled
/// otherwise.
fn forced_text(prior: Option<&Prior>, grammar: &CompiledGrammar, tokenizer: &Tokenizer) -> ForcedText {
    let forced = ForcedText::new(tokenizer.clone(), grammar.vocabulary().clone());
    if prior.is_none() { forced.with_spellings() } else { forced }
}

/// Finds the prior that comes with the model. If it cannot be used, for instance since the grammar has
/// changed, a note says so, and there is none.
fn shipped_prior(source: &GrammarSource, grammar: &CompiledGrammar, model: &Path) -> Option<Prior> {
    let GrammarSource::Shipped(shipped) = source else { return None };
    let file = model.join("priors").join(shipped.name).with_extension("prior");
    if !file.is_file() {
        return None;
    }
    load(&file, grammar)
        .map_err(|error| {
            let paint = Paint::for_stderr();
            note!("{} {error}; going on without", paint.cyan("note:"));
        })
        .ok()
        .inspect(|prior| tell_apart(prior, &file, grammar))
}

/// Notes that a prior was learnt with another lookahead. Its contexts do not depend on that, so it is of use,
/// but its counts are of tokens that other masks allowed.
fn tell_apart(prior: &Prior, file: &Path, grammar: &CompiledGrammar) {
    if prior.lookahead() == grammar.lookahead() {
        return;
    }
    let was = reach::in_words(prior.lookahead(), prior.terminals());
    let is = reach::in_words(grammar.lookahead(), grammar.terminals());
    let (note, file) = (Paint::for_stderr().cyan("note:"), file.display());
    note!("{note} {file} was learnt with {was}, and this is {is}: its guesses may be worse");
}

/// Reads the prior of a file.
pub(crate) fn load(file: &Path, grammar: &CompiledGrammar) -> Result<Prior, BadInput> {
    let bytes = read(file)?;
    Prior::from_bytes(&bytes, grammar).map_err(|error| bad_prior(file, &error))
}

/// Reads the bytes of a file of counts.
pub(crate) fn read(file: &Path) -> Result<Vec<u8>, BadInput> {
    std::fs::read(file).map_err(|error| BadInput::new(format!("cannot read {}: {error}", file.display())))
}

/// Makes the error for a prior that cannot be used, with advice.
pub(crate) fn bad_prior(file: &Path, error: &PriorError) -> BadInput {
    BadInput::new(format!("{}: {error}", file.display())).hint(error.hint())
}
