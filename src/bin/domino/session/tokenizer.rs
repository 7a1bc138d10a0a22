//! Vocabularies, read from a tokenizer's files, from a model, or from the cache.

use std::path::{Path, PathBuf};

use domino::{Vocabulary, store::CacheFolder};

use crate::{
    session::model,
    terminal::{failure::BadInput, progress},
};

/// A tokenizer or a model whose tokens are meant.
#[derive(Debug)]
pub(crate) enum TokensOf {
    /// The path of a tokenizer's files.
    Tokenizer(PathBuf),
    /// A model; `None` for the default model.
    Model(Option<PathBuf>),
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
