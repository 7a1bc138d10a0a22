//! Turns text into tokens, for prompts, by the `tokenizers` crate.
//!
//! A prompt is split as the model's makers split it; generated text is only ever spelt by the bytes of a
//! [`Vocabulary`]. The crate numbers added tokens anew, without the holes that some files leave between them;
//! ids here are always those of the file.

use std::{collections::HashMap, fmt, panic::catch_unwind, path::Path, sync::Arc};

use tokenizers::Model;

use super::{
    error::{VocabularyError, VocabularyErrorKind},
    gguf_tokenizer,
    tokenizer_json::read_added,
    vocabulary::Vocabulary,
};
use crate::{gguf::is_gguf, ids::TokenId};

/// Turns prompts into tokens, with the feature `tokenizers`. Cloning shares the tables, which are megabytes.
#[derive(Clone)]
pub struct Tokenizer {
    inner: Arc<tokenizers::Tokenizer>,
    /// File ids of added tokens that the crate gives another id.
    to_file: HashMap<u32, TokenId>,
    /// Crate ids of the same tokens.
    to_crate: HashMap<TokenId, u32>,
}

impl Tokenizer {
    /// Reads a Hugging Face `tokenizer.json`. Costs about a second for 200,000 tokens with merges.
    ///
    /// # Errors
    /// If the text is not a `tokenizer.json`, or one in which ids cannot be told apart.
    pub fn from_tokenizer_json(json: &str) -> Result<Self, VocabularyError> {
        let added = read_added(json)?;
        let inner = parse(json)?;
        let mut to_file = HashMap::new();
        for (id, content) in added {
            let Some(given) = inner.token_to_id(&content).filter(|&given| given != id.raw()) else {
                continue;
            };
            let model = inner.get_model();
            if model.id_to_token(given).is_some() || to_file.insert(given, id).is_some() {
                let message = format!("the added token {content:?} ({id}) collides with another token");
                return Err(VocabularyError::new(VocabularyErrorKind::DuplicateId(id.raw()), message));
            }
        }
        let to_crate = to_file.iter().map(|(&given, &id)| (id, given)).collect();
        Ok(Self { inner: Arc::new(inner), to_file, to_crate })
    }

    /// Reads a `tokenizer.json`, the one in a model's folder, or the tokenizer in a GGUF file (`*.gguf`).
    ///
    /// # Errors
    /// If the file cannot be read, is not a `tokenizer.json`, or is a GGUF file without a tokenizer or with
    /// one that splits text in an unknown way.
    pub fn from_tokenizer_file(path: impl AsRef<Path>) -> Result<Self, VocabularyError> {
        let path = path.as_ref();
        if is_gguf(path) {
            let json = gguf_tokenizer::read(path, true)?.json;
            return Self::from_tokenizer_json(&json).map_err(|error| error.at(&path.display()));
        }
        let file = if path.is_dir() { path.join("tokenizer.json") } else { path.to_path_buf() };
        Self::from_tokenizer_json(&read_file(&file)?).map_err(|error| error.at(&file.display()))
    }

    /// Splits `text` into tokens. With `add_special` also those that the tokenizer puts around a text, such
    /// as a begin-of-text token. Names of special tokens within `text` become those tokens.
    ///
    /// # Errors
    /// If the tokenizer has no tokens for a part of the text.
    pub fn encode(&self, text: &str, add_special: bool) -> Result<Vec<TokenId>, VocabularyError> {
        let encoding = self.inner.encode_fast(text, add_special).map_err(|error| encoding_error(&error))?;
        let to_file = |&id: &u32| self.to_file.get(&id).copied().unwrap_or(TokenId::new(id));
        Ok(encoding.get_ids().iter().map(to_file).collect())
    }

    /// Splits a text in which special tokens are written out, as a chat template does. The tokens that the
    /// tokenizer puts before a text, such as a begin-of-text token, come once, whether the text begins with
    /// them or not, and nothing is put behind the text. Names of special tokens become these tokens.
    ///
    /// # Errors
    /// If the tokenizer has no tokens for a part of the text.
    pub fn encode_written(&self, text: &str) -> Result<Vec<TokenId>, VocabularyError> {
        let (around, alone) = (self.encode("a", true)?, self.encode("a", false)?);
        let before = around.windows(alone.len().max(1)).position(|window| window == alone).unwrap_or(0);
        let mut tokens = self.encode(text, false)?;
        if !tokens.starts_with(&around[..before]) {
            tokens.splice(..0, around[..before].iter().copied());
        }
        Ok(tokens)
    }

    /// Returns the text of `tokens`, as the tokenizer shows it: without special tokens, and with U+FFFD for
    /// bytes that are not UTF-8. The exact bytes are [`Vocabulary::concat`].
    ///
    /// # Errors
    /// If the tokenizer's decoder fails.
    pub fn decode(&self, tokens: &[TokenId]) -> Result<String, VocabularyError> {
        let to_crate = |token: &TokenId| self.to_crate.get(token).copied().unwrap_or(token.raw());
        let ids: Vec<u32> = tokens.iter().map(to_crate).collect();
        self.inner.decode(&ids, true).map_err(|error| encoding_error(&error))
    }

    /// Returns the canonical tokens of `text`, those that the tokenizer makes of it by itself; `None` if it
    /// is not UTF-8, or the tokenizer does not spell it. `vocabulary` has the bytes of the same tokens.
    #[doc(hidden)]
    pub fn alone(&self, vocabulary: &Vocabulary, text: &[u8]) -> Option<Vec<TokenId>> {
        let text = str::from_utf8(text).ok()?;
        if text.is_empty() {
            return Some(Vec::new());
        }
        // Some tokenizers put a space before a text. Behind a line feed there is none, and it is a token of
        // its own unless a text begins with one.
        for before in ["", "\n"] {
            let tokens = self.encode(&format!("{before}{text}"), false).ok()?;
            for skipped in 0..tokens.len().min(3) {
                if vocabulary.concat(&tokens[skipped..]) == text.as_bytes() {
                    return Some(tokens[skipped..].to_vec());
                }
            }
        }
        None
    }
}

/// Reads the text of a file.
fn read_file(path: &Path) -> Result<String, VocabularyError> {
    std::fs::read_to_string(path).map_err(|error| {
        VocabularyError::new(VocabularyErrorKind::Io, format!("cannot read {}: {error}", path.display()))
    })
}

/// Lets the crate parse a file. It panics on some that it should refuse, such as those with a wrong character
/// map.
fn parse(json: &str) -> Result<tokenizers::Tokenizer, VocabularyError> {
    let refuse = |error: &dyn fmt::Display| {
        VocabularyError::new(VocabularyErrorKind::Malformed, format!("not a tokenizer.json: {error}"))
    };
    catch_unwind(|| json.parse::<tokenizers::Tokenizer>())
        .map_err(|_| refuse(&"a part of it cannot be read"))?
        .map_err(|error| refuse(&error))
}

fn encoding_error(error: &tokenizers::Error) -> VocabularyError {
    VocabularyError::new(VocabularyErrorKind::Encoding, error.to_string())
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer").field("tokens", &self.inner.get_vocab_size(true)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests both kinds of tokenizers: one begins every text with a space, the other does not.
    #[test]
    fn tokens_of_a_text_alone_have_its_bytes() {
        for json in [
            include_str!("../../../tests/fixtures/byte_level.json"),
            include_str!("../../../tests/fixtures/sentencepiece.json"),
        ] {
            let tokenizer = Tokenizer::from_tokenizer_json(json).unwrap();
            let vocabulary = Vocabulary::from_tokenizer_json(json).unwrap();
            for text in ["true", " true", "{\"a\": null}", "a\nb", ""] {
                let tokens = tokenizer.alone(&vocabulary, text.as_bytes()).unwrap();
                assert_eq!(vocabulary.concat(&tokens), text.as_bytes());
            }
            assert_eq!(tokenizer.alone(&vocabulary, b"\xff"), None);
        }
    }
}
