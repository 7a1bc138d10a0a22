//! Flags of speculation, and of a second, smaller model that guesses tokens.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use domino::decode::DraftMask;
use domino::proposer::{DraftLength, Learning};

use super::{ByName, NamedValue, grammar::without_grammar, refuse};
use crate::session::drafts::{self, PAPER_DRAFT, Speculate, Speculation, WantedDraft, Which};
use crate::terminal::failure::BadInput;

/// Flags of speculation, of `domino generate` and `domino explain`.
#[derive(Debug, Args)]
pub(crate) struct LowSpeculate {
    /// Guess tokens ahead and verify several in one pass of the model: auto, N tokens, or off.
    ///
    /// auto: drafts as long as pays, none where none does. N: drafts of up to N tokens. The text is the same,
    /// the time is not. Default: auto. Without a prior for the grammar and the model, the first text is
    /// learnt from as it is written, and with --batch each next text by all before it (with --engine
    /// mistralrs nothing is guessed then).
    #[arg(long, value_name = "auto|N|off")]
    speculate: Option<Speculate>,
    /// Guess tokens by this proposer. shipped: counts of what came at such a place of the grammar and after
    /// such tokens, repeats, and without a prior also text that the grammar forces. paper: the token that
    /// came most often at such a place, and nothing else (section 3.6 of the DOMINO paper; by default drafts
    /// of up to 10 tokens, each with a share of at least 0.5). The text is the same. Default: shipped.
    #[arg(long, value_name = "WHICH", value_enum)]
    proposer: Option<Which>,
    /// Draft only tokens that the proposer thinks will be accepted with at least this probability, from 0 to
    /// 1; with paper, their share of the counts at their place. Only for drafts of up to N tokens, since auto
    /// weighs probabilities itself. Default: 0.
    #[arg(long, value_name = "SHARE", value_parser = drafts::threshold)]
    threshold: Option<f64>,
    /// Guess by the counts in this file of `domino learn`. Default: NAME.prior in the folder priors of the
    /// model, for a grammar that comes with the program.
    #[arg(long, value_name = "FILE", requires = "LowGrammar")]
    prior: Option<PathBuf>,
    /// Learn from this text too, and keep what was learnt in the file of --prior; or forget it with the text.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Learns::PerText, requires = "LowGrammar")]
    learn: Learns,
    /// Make the text three times in turns, without grammar, with it, and with speculation too, and say how
    /// the times compare. Exit code 1 says that speculation changed the tokens, or that there were none to
    /// compare.
    #[arg(long, requires = "LowGrammar")]
    compare: bool,
    #[command(flatten)]
    draft: LowDraftModel,
}

/// The value of `--learn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Learns {
    /// Learn from the text being written too, and keep what was learnt.
    Online,
    /// Forget what is learnt from a text with it.
    #[value(alias = "fixed")]
    PerText,
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
            || self.learn == Learns::Online
            || self.compare
            || self.draft.draft_model.is_some()
    }

    /// True if there is a draft model.
    pub(crate) fn has_draft_model(&self) -> bool {
        self.draft.draft_model.is_some()
    }

    /// Reads the flags.
    pub(crate) fn resolve(&self, constrained: bool) -> Result<Speculation, BadInput> {
        let flags = [
            (matches!(self.speculate, Some(Speculate::To { .. })), "--speculate"),
            (self.proposer.is_some(), "--proposer"),
            (self.threshold.is_some(), "--threshold"),
        ];
        if !constrained {
            refuse(&flags, without_grammar)?;
        }
        let learning = match self.learn {
            Learns::Online => Learning::Online,
            Learns::PerText => Learning::PerText,
        };
        let off = self.speculate == Some(Speculate::Off);
        if self.compare && off {
            return Err(BadInput::new("--compare has nothing to compare with --speculate off"));
        }
        refuse(&[(off && self.has_draft_model(), "--draft-model")], with_nothing_to_do)?;
        let (how, asked) = (self.length()?, self.asks() && !off);
        let proposer = self.proposer.unwrap_or_default();
        let threshold = self.threshold.unwrap_or_else(|| proposer.threshold());
        let (prior, compare, mask) = (self.prior.clone(), self.compare, self.draft.draft_mask.0);
        let draft = self.draft.draft_model.clone().map(|name| WantedDraft { name, mask });
        Ok(Speculation { how, proposer, threshold, prior, learning, compare, asked, draft })
    }

    /// Chooses the length of drafts, with what the proposer and its threshold say of it.
    fn length(&self) -> Result<Option<Speculate>, BadInput> {
        let Self { speculate, proposer, threshold, .. } = self;
        if *speculate == Some(Speculate::Off) {
            let flags = [(proposer.is_some(), "--proposer"), (threshold.is_some(), "--threshold")];
            return refuse(&flags, with_nothing_to_do).map(|()| Some(Speculate::Off));
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

/// Says that a flag is for drafts, which are off.
fn with_nothing_to_do(flag: &str) -> BadInput {
    BadInput::new(format!("{flag} has nothing to do with --speculate off"))
}

/// Flags of a draft model.
#[derive(Debug, Args)]
struct LowDraftModel {
    /// Let a smaller model of the same tokenizer guess too, beside the counts. The surer of the two is heard,
    /// where that is worth the smaller model's time. A folder, a GGUF file or a model on the hub, as for
    /// --model; it runs where the model does, with the weights as they are stored. The text is the same, the
    /// time is not.
    #[arg(long, value_name = "DIR|FILE|ID", requires = "LowGrammar")]
    draft_model: Option<PathBuf>,
    /// Keep the draft model to the grammar by a mask of its own (on), or not (off), to measure what that is
    /// worth: a guess that the grammar forbids then ends the draft.
    #[arg(long, value_name = "on|off", default_value = "on", requires = "draft_model")]
    draft_mask: NamedValue<DraftMask>,
}

impl ByName for DraftMask {
    const NAMES: &'static [(&'static str, Self)] = &[("on", Self::On), ("off", Self::Off)];
}
