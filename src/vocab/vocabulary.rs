//! Token <-> bytes, special tokens apart.

use std::sync::Arc;

use super::{error::VocabularyError, trie::ByteTrie};
use crate::ids::TokenId;

/// A vocabulary. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Vocabulary {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    trie: ByteTrie,
}

/// Builds a [`Vocabulary`].
#[derive(Debug, Default)]
pub struct VocabularyBuilder {}

impl VocabularyBuilder {
    /// A token with its bytes.
    #[must_use]
    pub fn token(self, _id: TokenId, _bytes: impl Into<Vec<u8>>) -> Self {
        unimplemented!()
    }
    /// A special token: has a name, no bytes; never allowed by a grammar.
    #[must_use]
    pub fn special(self, _id: TokenId, _name: impl Into<String>) -> Self {
        unimplemented!()
    }
    /// Marks a token as end of text (and special).
    #[must_use]
    pub fn end_of_text(self, _id: TokenId) -> Self {
        unimplemented!()
    }
    /// The vocabulary.
    /// # Errors
    /// stub
    pub fn build(self) -> Result<Vocabulary, VocabularyError> {
        unimplemented!()
    }
}

impl Vocabulary {
    /// A builder.
    #[must_use]
    pub fn builder() -> VocabularyBuilder {
        VocabularyBuilder::default()
    }
    /// Reads a Hugging Face `tokenizer.json`.
    /// # Errors
    /// stub
    pub fn from_tokenizer_json(_json: &str) -> Result<Self, VocabularyError> {
        unimplemented!()
    }
    /// One more than the highest token id.
    #[must_use]
    pub fn size(&self) -> usize {
        unimplemented!()
    }
    /// The bytes of a token; `None` for special tokens and holes.
    #[must_use]
    pub fn bytes(&self, _token: TokenId) -> Option<&[u8]> {
        unimplemented!()
    }
    /// The ids that end a text, sorted.
    #[must_use]
    pub fn end_of_text(&self) -> &[TokenId] {
        unimplemented!()
    }
    pub(crate) fn trie(&self) -> &ByteTrie {
        &self.inner.trie
    }
}
