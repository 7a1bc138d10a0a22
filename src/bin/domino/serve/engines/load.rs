//! Finds and loads the model.

use std::{path::Path, path::PathBuf, sync::Arc};

use domino::{Vocabulary, model::candle::ModelDescription, store::CacheFolder, vocab::Tokenizer};

use super::super::args::{EngineArgs, Speculation};
use super::{super::bounds::Pulse, Engine, Guessing, kept::PriorKeeper, own, prior_files};
use crate::session::model::{self, read_tokenizer};
use crate::{flags::EngineName, terminal::failure::BadInput};

/// A model that runs.
pub(crate) struct LoadedModel {
    pub(crate) engine: Arc<dyn Engine>,
    /// Name of the engine.
    pub(crate) kind: EngineName,
    pub(crate) vocabulary: Vocabulary,
    pub(crate) tokenizer: Tokenizer,
    /// Tokens of a text, its prompt included.
    pub(crate) context: usize,
    /// Maker of guesses; `None`: nothing is guessed.
    pub(crate) guessing: Option<Guessing>,
}

/// Finds the model's path, checks that it can be a model, and chooses the engine that runs it.
pub(crate) fn find(args: &EngineArgs) -> Result<(PathBuf, EngineName), BadInput> {
    let path = model::locate(args.model.as_deref())?;
    if path.is_file() {
        if path.extension().is_none_or(|extension| !extension.eq_ignore_ascii_case("gguf")) {
            return Err(BadInput::new(format!("{} is no model", path.display()))
                .hint("--model takes a model's folder or a GGUF file (*.gguf)"));
        }
        if args.isq.is_some() {
            return Err(BadInput::new("a GGUF file has its own numbers").hint("leave --isq out"));
        }
    } else {
        check_folder(&path)?;
    }
    let engine = match args.engine {
        Some(engine) => engine,
        None => match ModelDescription::of_model(&path) {
            Ok(_) => EngineName::Domino,
            Err(_) if cfg!(feature = "mistralrs") => EngineName::Mistralrs,
            Err(error) => {
                return Err(BadInput::new(format!("{}: {error}", path.display())).hint(
                    "other models are served by mistral.rs: cargo build --release --features mistralrs (500 \
                     crates more)",
                ));
            }
        },
    };
    if engine == EngineName::Mistralrs && !cfg!(feature = "mistralrs") {
        return Err(BadInput::new("this build of domino is without mistral.rs").hint(
            "leave --engine out, or build one with it: cargo build --release --features mistralrs (500 \
             crates more)",
        ));
    }
    args.check(engine)?;
    Ok((path, engine))
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
    (path, kind): (&Path, EngineName),
    pulse: &Arc<Pulse>,
    cache: &CacheFolder,
) -> anyhow::Result<LoadedModel> {
    let speculation = args.guesses(kind);
    let priors = match speculation {
        Some(speculation) => prior_files(speculation.prior.as_deref(), path)?,
        None => Vec::new(),
    };
    let keeper = speculation.map(|speculation| keeper(speculation, path)).transpose()?.flatten();
    let tokenizer = read_tokenizer(path)?;
    let (engine, vocabulary, context): (Arc<dyn Engine>, _, _) = match kind {
        EngineName::Domino => {
            let vocabulary = model::vocabulary(path, cache)?;
            let engine = own::load(args, path, &vocabulary, pulse).await?;
            let context = engine.context();
            (Arc::new(engine), vocabulary, context)
        }
        #[cfg(feature = "mistralrs")]
        EngineName::Mistralrs => {
            let engine = super::mistralrs::load(args, path, pulse).await?;
            let (vocabulary, context) = (engine.vocabulary(), engine.context());
            (Arc::new(engine), vocabulary, context)
        }
        #[cfg(not(feature = "mistralrs"))]
        EngineName::Mistralrs => return Err(BadInput::new("this build is without mistral.rs").into()),
    };
    let guessing = speculation
        .map(|speculation| Guessing::new(tokenizer.clone(), speculation, &priors, keeper))
        .transpose()?;
    Ok(LoadedModel { engine, kind, vocabulary, tokenizer, context, guessing })
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
