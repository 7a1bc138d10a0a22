//! Tokens and their bytes.

mod error;
mod token_set;
mod tokenizer_json;
mod trie;
mod vocabulary;

pub use error::VocabularyError;
pub use token_set::TokenSet;
pub(crate) use trie::ByteTrie;
pub use vocabulary::{Vocabulary, VocabularyBuilder};
