//! Tokens and their bytes. Knows nothing of grammars, which is what lets its tables be shared.

mod error;
mod token_set;
mod tokenizer_json;
mod trie;
mod vocabulary;

pub use error::{VocabularyError, VocabularyErrorKind};
pub use token_set::TokenSet;
pub(crate) use trie::ByteTrie;
pub use vocabulary::{Vocabulary, VocabularyBuilder};
