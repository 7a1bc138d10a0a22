//! A second, smaller model that guesses tokens.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

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
