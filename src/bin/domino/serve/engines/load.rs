//! Finds and loads the model.

use std::{path::Path, path::PathBuf, sync::Arc};

use domino::{Vocabulary, store::CacheFolder, vocab::Tokenizer};

use super::super::args::{EngineArgs, Speculation, WhenToGuess};
use super::own::{self, RunningFacts};
use super::texts::TextModel;
use super::{super::bounds::Pulse, Engine, Guessing, kept::PriorKeeper, prior_files};
use crate::session::model::{self, may_draft, read_tokenizer};
use crate::terminal::failure::BadInput;

/// A model that runs.
pub(crate) struct LoadedModel {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) vocabulary: Vocabulary,
    pub(crate) tokenizer: Tokenizer,
    /// Tokens of a text, its prompt included.
    pub(crate) context: usize,
    /// Maker of guesses; `None`: nothing is guessed.
    pub(crate) guessing: Option<Guessing>,
}

/// Finds the model's path, and checks that it can be a model.
pub(crate) fn find(args: &EngineArgs) -> Result<PathBuf, BadInput> {
    let path = model::locate(args.flags.model.as_deref())?;
    if path.is_file() {
        if path.extension().is_none_or(|extension| !extension.eq_ignore_ascii_case("gguf")) {
            return Err(BadInput::new(format!("{} is no model", path.display()))
                .hint("--model takes a model's folder or a GGUF file (*.gguf)"));
        }
    } else {
        check_folder(&path)?;
    }
    args.check()?;
    Ok(path)
}

/// Checks that a folder has the files of a model.
fn check_folder(path: &Path) -> Result<(), BadInput> {
    for needed in ["config.json", "tokenizer.json"] {
        if !path.join(needed).is_file() {
            return Err(BadInput::new(format!("{} has no {needed}", path.display())).hint(
                "a model's folder has config.json, tokenizer.json, tokenizer_config.json and *.safetensors",
            ));
        }
    }
    if !["tokenizer_config.json", "generation_config.json"].iter().any(|file| path.join(file).is_file()) {
        return Err(BadInput::new(format!("{} has no tokenizer_config.json", path.display())).hint(
            "without it nobody knows which token ends a text; it comes with the model's other files \
             (eos_token, chat_template)",
        ));
    }
    Ok(())
}

/// Loads the model. Blocks while it reads the weights.
pub(crate) async fn load(
    args: &EngineArgs,
    path: &Path,
    pulse: &Arc<Pulse>,
    cache: &CacheFolder,
) -> anyhow::Result<LoadedModel> {
    let speculation = args.guesses();
    let priors = match speculation {
        Some(speculation) => prior_files(speculation.prior.as_deref(), path)?,
        None => Vec::new(),
    };
    let keeper = speculation.map(|speculation| keeper(speculation, path)).transpose()?.flatten();
    let tokenizer = read_tokenizer(path)?;
    let (engine, vocabulary, RunningFacts { context, no_drafts }): (Arc<dyn Engine>, _, _) =
        match args.text_engine() {
            Some(other) => {
                let TextModel { engine, vocabulary, context } =
                    other.load_texts(path, &args.wanted_texts(), pulse).await?;
                (engine, vocabulary, RunningFacts { context, no_drafts: None })
            }
            None => {
                let vocabulary = model::vocabulary(path, cache)?;
                let engine = own::load(args, path, &vocabulary, pulse).await?;
                let facts = engine.facts.clone();
                (Arc::new(engine), vocabulary, facts)
            }
        };
    may_draft(no_drafts.as_deref(), args.flags.grammar_speculate == WhenToGuess::On);
    let guessing = speculation
        .filter(|_| no_drafts.is_none())
        .map(|speculation| Guessing::new(tokenizer.clone(), speculation, &priors, keeper))
        .transpose()?;
    Ok(LoadedModel { engine, vocabulary, tokenizer, context, guessing })
}

/// Opens the folder for what is learnt, if one is named. Proposers that count in other ways have other files.
fn keeper(speculation: &Speculation, model: &Path) -> Result<Option<PriorKeeper>, BadInput> {
    let Some(folder) = &speculation.prior_dir else { return Ok(None) };
    let mut name = model.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if speculation.proposer.is_paper() {
        name += " paper";
    }
    PriorKeeper::open(folder, &name).map(Some)
}
