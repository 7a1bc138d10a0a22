//! The vocabulary of a grammar without a tokenizer: the 256 bytes.

use domino::{TokenId, Vocabulary, VocabularyError};

/// Makes a vocabulary of the 256 bytes.
pub(crate) fn byte_vocabulary() -> Result<Vocabulary, VocabularyError> {
    let end = TokenId::new(256);
    Vocabulary::builder().all_bytes().special(end, "<end of text>").end_of_text(end).build()
}
