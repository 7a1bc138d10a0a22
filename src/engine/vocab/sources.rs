//! The files that a vocabulary is read from, and their hash, which is the key in a cache folder. The tokens
//! that end a text are found in them, or else by well-known names.

use std::{
    fs::{self, File},
    io, iter,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{
    builder::VocabularyBuilder,
    error::{VocabularyError, VocabularyErrorKind},
    gguf_tokenizer::{self, GgufTokenizer},
    stored, tokenizer_json,
    vocabulary::Vocabulary,
};
use crate::store::{CacheFolder, Kind, PayloadKey};
use crate::{gguf::is_gguf, ids::TokenId};

impl Vocabulary {
    /// Reads a `tokenizer.json`, the one in a model's folder, or the tokenizer in a GGUF file (`*.gguf`).
    ///
    /// In a folder the tokens that end a text are those of `generation_config.json` (`eos_token_id`), or else
    /// of `config.json` (`eos_token_id`), or else of `tokenizer_config.json` (`eos_token`), or else found by
    /// name as in [`from_tokenizer_json`](Self::from_tokenizer_json); a single file is read the latter way.
    /// In a GGUF file they are those that it names and those found by name.
    ///
    /// # Errors
    /// Those of [`from_tokenizer_json`](Self::from_tokenizer_json), and if a file cannot be read, one of the
    /// configurations is not JSON, or a GGUF file is damaged or has a tokenizer of an unsupported kind.
    pub fn from_tokenizer_file(path: impl AsRef<Path>) -> Result<Self, VocabularyError> {
        let path = path.as_ref();
        if is_gguf(path) {
            return from_gguf(path, &gguf_tokenizer::read(path, false)?);
        }
        Sources::of(path, FileContents::read).vocabulary()
    }

    /// Reads a vocabulary like [`from_tokenizer_file`](Self::from_tokenizer_file), by way of a cache folder.
    /// The key is the content of the files, wherever they are. For 131,000 tokens a hit costs about 10 ms,
    /// and a miss 10 ms and a file of 2 MB more than no cache.
    ///
    /// # Errors
    /// All of [`from_tokenizer_file`](Self::from_tokenizer_file). A cache that does not work is no error.
    ///
    /// ```no_run
    /// use domino::{Vocabulary, store::CacheFolder};
    ///
    /// let cache = CacheFolder::new("/tmp/domino");
    /// let vocabulary = Vocabulary::from_tokenizer_file_cached("models/domino-small", &cache)?;
    /// # Ok::<(), domino::VocabularyError>(())
    /// ```
    pub fn from_tokenizer_file_cached(
        path: impl AsRef<Path>,
        cache: &CacheFolder,
    ) -> Result<Self, VocabularyError> {
        let path = path.as_ref();
        // A pipe can be read only once.
        if cache.path().is_none() || !(path.is_dir() || path.is_file()) {
            return Self::from_tokenizer_file(path);
        }
        if is_gguf(path) {
            return from_gguf_cached(path, cache);
        }
        let key = Sources::of(path, digest_of_file).key(|digest| *digest);
        if let Some(vocabulary) = cache.get(Kind::Vocabulary, &key, stored::decode) {
            return Ok(vocabulary);
        }
        let sources = Sources::of(path, FileContents::read);
        let vocabulary = sources.vocabulary()?;
        // A file may have changed since it was hashed: the key is that of what was read.
        cache.put(Kind::Vocabulary, &sources.key(FileContents::digest), &vocabulary.encode());
        Ok(vocabulary)
    }
}

/// Builds the vocabulary of the tokenizer in the GGUF file at `path`.
fn from_gguf(path: &Path, tokenizer: &GgufTokenizer) -> Result<Vocabulary, VocabularyError> {
    let at_file = |error: VocabularyError| error.at(&path.display());
    let tokens = tokenizer_json::read(&tokenizer.json).map_err(at_file)?;
    let mut ends = tokenizer.ends.clone();
    ends.extend(ends_by_well_known_names(tokens.specials()));
    tokenizer_json::build(tokens, ends).map_err(at_file)
}

/// Does the same by way of the cache. The key is the tokenizer: hashing the weights beside it would cost more
/// than the cache saves.
fn from_gguf_cached(path: &Path, cache: &CacheFolder) -> Result<Vocabulary, VocabularyError> {
    let tokenizer = gguf_tokenizer::read(path, false)?;
    let ends: Vec<u8> = tokenizer.ends.iter().flat_map(|id| id.raw().to_le_bytes()).collect();
    let key = PayloadKey::of(&[b"gguf", tokenizer.json.as_bytes(), &ends]);
    if let Some(vocabulary) = cache.get(Kind::Vocabulary, &key, stored::decode) {
        return Ok(vocabulary);
    }
    let vocabulary = from_gguf(path, &tokenizer)?;
    cache.put(Kind::Vocabulary, &key, &vocabulary.encode());
    Ok(vocabulary)
}

/// A `tokenizer.json` and its neighbours in a model's folder, each file as a `T`.
struct Sources<T> {
    tokenizer: T,
    /// The files of [`CONFIGURATIONS`] that exist, by their place in that list; none for a single file.
    configurations: Vec<(usize, T)>,
}

/// The BLAKE3 hash of a file, if it can be read.
type FileHash = Option<[u8; 32]>;

/// Hashes a file without holding it: fresh memory for all of it would cost more than the hash.
fn digest_of_file(path: PathBuf) -> FileHash {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path).ok()?).ok()?;
    Some(*hasher.finalize().as_bytes())
}

impl<T> Sources<T> {
    /// Reads the files by `read`.
    fn of(path: &Path, read: impl Fn(PathBuf) -> T) -> Self {
        if !path.is_dir() {
            return Self { tokenizer: read(path.to_path_buf()), configurations: Vec::new() };
        }
        let files = CONFIGURATIONS.iter().map(|(name, _)| path.join(name)).enumerate();
        let there = files.filter(|(_, file)| file.is_file());
        let configurations = there.map(|(place, file)| (place, read(file))).collect();
        Self { tokenizer: read(path.join("tokenizer.json")), configurations }
    }

    /// Returns the hash of all that the vocabulary depends on.
    fn key(&self, digest: impl Fn(&T) -> FileHash) -> PayloadKey {
        let mut text = Vec::new();
        for (place, file) in iter::once((&usize::MAX, &self.tokenizer))
            .chain(self.configurations.iter().map(|(place, file)| (place, file)))
        {
            let digest = digest(file);
            text.extend_from_slice(&(*place as u64).to_le_bytes());
            text.push(u8::from(digest.is_some()));
            text.extend_from_slice(&digest.unwrap_or_default());
        }
        PayloadKey::of(&[&text])
    }
}

/// The contents of a file when it was read.
struct FileContents {
    path: PathBuf,
    bytes: io::Result<Vec<u8>>,
}

impl FileContents {
    fn read(path: PathBuf) -> Self {
        let bytes = fs::read(&path);
        Self { path, bytes }
    }

    fn digest(&self) -> FileHash {
        self.bytes.as_ref().ok().map(|bytes| *blake3::hash(bytes).as_bytes())
    }

    /// The path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The text of the file.
    pub(super) fn text(&self) -> Result<&str, VocabularyError> {
        let bytes = self.bytes.as_ref().map_err(|error| self.cannot_read(error))?;
        std::str::from_utf8(bytes).map_err(|error| self.cannot_read(&error))
    }

    fn cannot_read(&self, error: &dyn std::fmt::Display) -> VocabularyError {
        let message = format!("cannot read {}: {error}", self.path.display());
        VocabularyError::new(VocabularyErrorKind::Io, message)
    }
}

impl Sources<FileContents> {
    /// Reads the vocabulary. The first configuration with end-of-text tokens names them.
    fn vocabulary(&self) -> Result<Vocabulary, VocabularyError> {
        let at_file = |error: VocabularyError| error.at(&self.tokenizer.path.display());
        let tokens = tokenizer_json::read(self.tokenizer.text()?).map_err(at_file)?;
        let mut ends = Vec::new();
        for (place, source) in &self.configurations {
            if ends.is_empty() {
                ends = ends_by_configuration(source, CONFIGURATIONS[*place].1, &tokens)?;
            }
        }
        tokenizer_json::build(tokens, ends).map_err(at_file)
    }
}

/// Names of tokens that end a text or a turn.
const NAMES: [&str; 19] = [
    "</s>",
    "<eos>",
    "<EOS>",
    "[EOS]",
    "<|eos|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|eot|>",
    "<|end|>",
    "<|return|>",
    "<|endofturn|>",
    "<|end_of_turn|>",
    "<end_of_turn>",
    "<end_of_utterance>",
    "<|END_OF_TURN_TOKEN|>",
    "<｜end▁of▁sentence｜>",
];

/// Files of a model's folder that may name the tokens that end a text, and the key in each; the first that
/// names any wins.
const CONFIGURATIONS: [(&str, &str); 3] = [
    ("generation_config.json", "eos_token_id"),
    ("config.json", "eos_token_id"),
    ("tokenizer_config.json", "eos_token"),
];

/// Returns the special tokens with a well-known name.
pub(super) fn ends_by_well_known_names(specials: &[(TokenId, String)]) -> Vec<TokenId> {
    let known = specials.iter().filter(|(_, name)| NAMES.contains(&name.as_str()));
    known.map(|(id, _)| *id).collect()
}

/// Returns the tokens that a configuration file names under `key`; none if it has no such key.
fn ends_by_configuration(
    source: &FileContents,
    key: &str,
    tokens: &VocabularyBuilder,
) -> Result<Vec<TokenId>, VocabularyError> {
    let config: Value = serde_json::from_str(source.text()?).map_err(|error| {
        let message = format!("{}: not JSON: {error}", source.path().display());
        VocabularyError::new(VocabularyErrorKind::NotJson, message)
    })?;
    ids(&config[key], tokens).ok_or_else(|| {
        let message =
            format!("{}: `{key}` is {}, which names no token", source.path().display(), config[key]);
        VocabularyError::new(VocabularyErrorKind::Malformed, message)
    })
}

/// Resolves an id, a name, an object with a name as `content`, or a list of such; `None` if one of them means
/// no token.
fn ids(value: &Value, tokens: &VocabularyBuilder) -> Option<Vec<TokenId>> {
    match value {
        Value::Null => Some(Vec::new()),
        Value::Number(number) => Some(vec![TokenId::new(u32::try_from(number.as_u64()?).ok()?)]),
        Value::String(name) => Some(vec![by_name(name, tokens)?]),
        Value::Object(object) => ids(object.get("content")?, tokens),
        Value::Array(items) => {
            let each: Option<Vec<_>> = items.iter().map(|item| ids(item, tokens)).collect();
            Some(each?.concat())
        }
        Value::Bool(_) => None,
    }
}

fn by_name(name: &str, tokens: &VocabularyBuilder) -> Option<TokenId> {
    let special = tokens.specials().iter().find(|(_, special)| special == name).map(|(id, _)| *id);
    let text = || tokens.tokens().find(|(_, bytes)| *bytes == name.as_bytes()).map(|(id, _)| id);
    special.or_else(text)
}
