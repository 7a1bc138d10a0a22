//! The seam for engines of other programs that write texts themselves, instead of giving rows of logits.

use std::{fmt, future::Future, num::NonZeroUsize, path::Path, path::PathBuf, pin::Pin, sync::Arc};
use std::{sync::OnceLock, time::Duration};

use domino::Vocabulary;

use super::super::{args::DraftSize, bounds::Pulse};
use super::Engine;
use crate::{engine::OtherEngine, engine::WantedModel, session::model::RunBy, terminal::failure::BadInput};

/// An engine that writes texts itself.
pub trait TextEngine: OtherEngine {
    /// Refuses what the engine cannot do, before anything is loaded.
    ///
    /// # Errors
    /// If there is such a thing.
    fn check(&self, wanted: &WantedTexts) -> Result<(), BadInput>;

    /// Loads a model, in the runtime in which its texts are written. The engine beats the pulse whenever it
    /// makes a token.
    ///
    /// # Errors
    /// If it cannot be loaded.
    fn load_texts<'a>(
        &'a self,
        file: &'a Path,
        wanted: &'a WantedTexts,
        pulse: &'a Arc<Pulse>,
    ) -> Loading<'a>;
}

/// A model that is being loaded.
pub type Loading<'a> = Pin<Box<dyn Future<Output = Result<TextModel, BadInput>> + 'a>>;

/// Options of an engine that writes texts.
#[derive(Debug, Clone)]
pub struct WantedTexts {
    /// The options that all engines have.
    pub model: WantedModel,
    /// Texts at once; others wait.
    pub texts: NonZeroUsize,
    /// Most tokens of a guess; `None`: nothing is guessed.
    pub drafts: Option<DraftSize>,
    /// A chat template in place of the model's.
    pub chat_template: Option<PathBuf>,
}

/// A loaded model whose texts the engine writes.
pub struct TextModel {
    /// The writer of its texts.
    pub engine: Arc<dyn Engine>,
    /// The model's tokens, with those that end its texts.
    pub vocabulary: Vocabulary,
    /// Tokens of a text, its prompt included.
    pub context: usize,
}

impl fmt::Debug for TextModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextModel").field("context", &self.context).finish_non_exhaustive()
    }
}

/// Time after which an engine has stalled that makes no token, where nobody says otherwise: as
/// `--stall-timeout` of `domino serve`.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The engine of this run.
static ENGINE: OnceLock<&'static dyn TextEngine> = OnceLock::new();

/// Makes an engine that of this run, before anything is asked about it.
pub(crate) fn bring(engine: &'static dyn TextEngine) {
    // There is one program in a process, and it brings one engine.
    let _ = ENGINE.set(engine);
}

/// The engine of this program that writes texts itself, if it has one and that runs the model.
pub(crate) fn other(by: RunBy) -> Option<&'static dyn TextEngine> {
    ENGINE.get().copied().filter(|_| matches!(by, RunBy::Other { .. }))
}
