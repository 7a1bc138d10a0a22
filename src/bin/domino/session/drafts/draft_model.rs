//! `--draft-model`: a second, smaller model that guesses tokens.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use clap::{Args, ValueEnum};
use domino::{
    Vocabulary,
    decode::{DraftMask, DraftModel, DraftModelError, DraftTally},
    model::candle::LoadOptions,
    store::CacheFolder,
    vocab::Tokenizer,
};
use serde_json::{Value, json};

use crate::{
    session::{
        load::{load, read_tokenizer},
        model,
        runner::{Card, Runner},
        tokenizer,
    },
    terminal::failure::BadInput,
};

/// Flags of a draft model.
#[derive(Debug, Args)]
pub(crate) struct LowDraftModel {
    /// Let a smaller model of the same tokenizer guess too, beside the counts: the surer is heard, where that
    /// is worth the smaller model's time. A folder, a GGUF file or a model on the hub, as for --model; it
    /// runs where the model does, with the weights as they are stored. The text is the same, the time is not.
    #[arg(long, value_name = "DIR|FILE|ID", requires = "LowGrammar")]
    pub(crate) draft_model: Option<PathBuf>,
    /// Keep the draft model to the grammar, by a mask of its own; off is for measuring what that is worth: a
    /// guess that the grammar forbids then ends the draft.
    #[arg(long, value_name = "on|off", value_enum, default_value_t = Mask::On, requires = "draft_model")]
    draft_mask: Mask,
}

/// `--draft-mask`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mask {
    On,
    Off,
}

/// A draft model that is not loaded yet.
#[derive(Debug)]
pub(crate) struct WantedDraft {
    name: PathBuf,
    mask: DraftMask,
}

impl LowDraftModel {
    /// Reads the flags as a draft model, if they name one.
    pub(crate) fn resolve(self) -> Option<WantedDraft> {
        let mask = match self.draft_mask {
            Mask::On => DraftMask::On,
            Mask::Off => DraftMask::Off,
        };
        self.draft_model.map(|name| WantedDraft { name, mask })
    }
}

/// A loaded draft model that can be asked for the tally of its guesses.
pub(crate) type Drafting = Arc<Mutex<DraftModel<Runner>>>;

impl WantedDraft {
    /// Loads the draft model for texts of a model of this vocabulary and tokenizer.
    pub(crate) fn load(
        &self,
        card: Card,
        vocabulary: &Vocabulary,
        splits: &Tokenizer,
        cache: &CacheFolder,
    ) -> Result<Drafting, BadInput> {
        let folder = model::locate(Some(&self.name))?;
        let bad = |error: DraftModelError| {
            BadInput::new(format!("--draft-model {}: {error}", self.name.display())).hint(error.hint())
        };
        let own = (tokenizer::vocabulary(&folder, cache)?, read_tokenizer(&folder)?);
        let model = load(&folder, &LoadOptions::default(), card)?;
        let draft = DraftModel::new(model, &own.0, vocabulary).map_err(bad)?;
        let draft = draft.splitting(&own.1, splits).map_err(bad)?;
        Ok(Arc::new(Mutex::new(draft.mask(self.mask))))
    }
}

/// Reads the tally of a draft model's guesses.
pub(crate) fn tally(draft: &Drafting) -> DraftTally {
    draft.lock().unwrap_or_else(PoisonError::into_inner).tally()
}

/// Makes the object that `--json` prints as `draft_model`.
pub(crate) fn object(tally: DraftTally) -> Value {
    let DraftTally { guessed, judged, right, .. } = tally;
    json!({ "guessed": guessed, "judged": judged, "right": right })
}
