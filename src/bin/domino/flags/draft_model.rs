//! `--draft-model`: a second, smaller model that guesses tokens.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use domino::decode::DraftMask;

use crate::session::drafts::draft_model::WantedDraft;

/// Flags of a draft model.
#[derive(Debug, Args)]
pub(crate) struct LowDraftModel {
    /// Let a smaller model of the same tokenizer guess too, beside the counts. The surer of the two is heard,
    /// where that is worth the smaller model's time. A folder, a GGUF file or a model on the hub, as for
    /// --model; it runs where the model does, with the weights as they are stored. The text is the same, the
    /// time is not.
    #[arg(long, value_name = "DIR|FILE|ID", requires = "LowGrammar")]
    pub(crate) draft_model: Option<PathBuf>,
    /// Keep the draft model to the grammar by a mask of its own (on), or not (off), to measure what that is
    /// worth: a guess that the grammar forbids then ends the draft.
    #[arg(long, value_name = "on|off", value_enum, default_value_t = OnOff::On, requires = "draft_model")]
    draft_mask: OnOff,
}

/// The value of `--draft-mask`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnOff {
    On,
    Off,
}

impl LowDraftModel {
    /// Reads the flags as a draft model, if they name one.
    pub(crate) fn resolve(self) -> Option<WantedDraft> {
        let mask = match self.draft_mask {
            OnOff::On => DraftMask::On,
            OnOff::Off => DraftMask::Off,
        };
        self.draft_model.map(|name| WantedDraft { name, mask })
    }
}
