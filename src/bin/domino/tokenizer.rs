//! Where vocabularies come from: a tokenizer's files, or the cache.

use std::path::Path;

use domino::{Vocabulary, store::CacheFolder};

use crate::{failure::BadInput, progress};

/// The vocabulary of a `tokenizer.json` or of a folder with one.
pub(crate) fn vocabulary(path: &Path, cache: &CacheFolder) -> Result<Vocabulary, BadInput> {
    progress::during(format!("reading {}", path.display()), || {
        Vocabulary::from_tokenizer_file_cached(path, cache)
    })
    .map_err(|error| BadInput::new(error.to_string()))
}
