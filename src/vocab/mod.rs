//! Tokens and their bytes. Knows nothing of grammars, which lets its tables be shared.

mod builder;
mod end_of_text;
mod error;
mod gguf_tokenizer;
mod item_ends;
mod kinds;
mod quoted;
mod sources;
mod spelling;
mod stored;
mod text;
mod token_set;
#[cfg(feature = "tokenizers")]
mod tokenizer;
mod tokenizer_json;
mod trie;
mod utf8_stream;
mod vocabulary;

pub use builder::VocabularyBuilder;
pub use error::{VocabularyError, VocabularyErrorKind};
pub(crate) use item_ends::has_bracket;
pub(crate) use kinds::byte_kind;
pub(crate) use quoted::Quoted;
pub(crate) use token_set::Contents;
pub use token_set::TokenSet;
#[cfg(feature = "tokenizers")]
pub use tokenizer::Tokenizer;
pub(crate) use trie::ByteTrie;
pub use utf8_stream::Utf8Stream;
pub use vocabulary::Vocabulary;
