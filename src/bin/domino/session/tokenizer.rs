//! Vocabularies, read from a tokenizer's files, from a model, or from the cache.

use std::path::{Path, PathBuf};

use clap::Args;
use domino::{Vocabulary, store::CacheFolder};

use crate::{
    session::model,
    terminal::{failure::BadInput, progress},
};

/// Flags that say whose tokens are meant, for commands that run no model.
#[derive(Debug, Args)]
pub(crate) struct LowVocabulary {
    /// A tokenizer.json, a folder with one, or a GGUF file.
    #[arg(long, short = 't', value_name = "DIR|FILE", conflicts_with = "model")]
    tokenizer: Option<PathBuf>,
    /// The model whose tokens are meant: a folder, a GGUF file, or OWNER/NAME on the Hugging Face hub.
    ///
    /// As for `domino generate`; of the model nothing but its tokenizer is read.
    #[arg(long, short = 'm', value_name = "DIR|FILE|ID")]
    model: Option<PathBuf>,
}

/// A tokenizer or a model whose tokens are meant.
#[derive(Debug)]
pub(crate) enum TokensOf {
    /// The path of a tokenizer's files.
    Tokenizer(PathBuf),
    /// A model; `None` for the default model.
    Model(Option<PathBuf>),
}

impl LowVocabulary {
    /// Takes the tokens of the flags, or else of the default model.
    pub(crate) fn resolve(self) -> TokensOf {
        self.given().unwrap_or(TokensOf::Model(None))
    }

    /// Takes the tokens of the flags, if there are any.
    pub(crate) fn given(self) -> Option<TokensOf> {
        let model = self.model.map(|model| TokensOf::Model(Some(model)));
        self.tokenizer.map(TokensOf::Tokenizer).or(model)
    }
}

impl TokensOf {
    /// Finds the files. Those of a model on the hub are downloaded if they are not there.
    pub(crate) fn locate(&self) -> Result<PathBuf, BadInput> {
        match self {
            Self::Tokenizer(path) => Ok(path.clone()),
            Self::Model(name) => model::locate(name.as_deref()),
        }
    }

    /// Reads the vocabulary.
    pub(crate) fn vocabulary(&self, cache: &CacheFolder) -> Result<Vocabulary, BadInput> {
        vocabulary(&self.locate()?, cache)
    }
}

/// Reads the vocabulary of a `tokenizer.json` or of a folder with one.
pub(crate) fn vocabulary(path: &Path, cache: &CacheFolder) -> Result<Vocabulary, BadInput> {
    progress::during(format!("reading {}", path.display()), || {
        Vocabulary::from_tokenizer_file_cached(path, cache)
    })
    .map_err(|error| BadInput::new(error.to_string()))
}
