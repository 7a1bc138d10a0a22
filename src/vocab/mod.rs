//! Tokens and their bytes. Knows nothing of grammars, which lets its tables be shared.

mod builder;
mod error;
mod indexes;
mod readers;
mod stored;
mod text;
mod token_set;
#[cfg(feature = "tokenizers")]
mod tokenizer;
mod trie;
mod utf8_stream;
mod vocabulary;

pub use builder::VocabularyBuilder;
pub use error::{VocabularyError, VocabularyErrorKind};
pub(crate) use indexes::{item_ends::has_bracket, kinds::byte_kind, quoted::Quoted};
pub(crate) use token_set::Contents;
pub use token_set::TokenSet;
#[cfg(feature = "tokenizers")]
pub use tokenizer::Tokenizer;
pub(crate) use trie::{ByteTrie, ENDLESS};
pub use utf8_stream::Utf8Stream;
pub use vocabulary::Vocabulary;
