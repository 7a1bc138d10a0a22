//! Texts as tokens, by themselves.

use super::error::ExperimentError;
use crate::{
    ids::TokenId,
    vocab::{Tokenizer, Vocabulary},
};

/// Tokens of a prompt; at least one, as a model has to go on from something.
pub(super) fn prompt_tokens(
    tokenizer: &Tokenizer,
    vocabulary: &Vocabulary,
    text: &str,
) -> Result<Vec<TokenId>, ExperimentError> {
    let mut tokens = tokenizer.encode(text, true)?;
    if tokens.is_empty() {
        tokens.extend(vocabulary.end_of_text().first());
    }
    Ok(tokens)
}

/// The tokens that the tokenizer makes of a text by itself; `None` if it is no UTF-8, or the tokenizer does
/// not spell it.
pub(super) fn alone(tokenizer: &Tokenizer, vocabulary: &Vocabulary, text: &[u8]) -> Option<Vec<TokenId>> {
    let text = str::from_utf8(text).ok()?;
    if text.is_empty() {
        return Some(Vec::new());
    }
    // Some tokenizers put a space before a text. Behind a line feed there is none, and it is a token of its
    // own unless a text begins with one.
    for before in ["", "\n"] {
        let tokens = tokenizer.encode(&format!("{before}{text}"), false).ok()?;
        for skipped in 0..tokens.len().min(3) {
            if vocabulary.concat(&tokens[skipped..]) == text.as_bytes() {
                return Some(tokens[skipped..].to_vec());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both kinds of tokenizers: one begins every text with a space, the other does not.
    #[test]
    fn texts_are_spelt_by_themselves() {
        for json in [
            include_str!("../../tests/fixtures/byte_level.json"),
            include_str!("../../tests/fixtures/sentencepiece.json"),
        ] {
            let tokenizer = Tokenizer::from_tokenizer_json(json).unwrap();
            let vocabulary = Vocabulary::from_tokenizer_json(json).unwrap();
            for text in ["true", " true", "{\"a\": null}", "a\nb", ""] {
                let tokens = alone(&tokenizer, &vocabulary, text.as_bytes()).unwrap();
                assert_eq!(vocabulary.concat(&tokens), text.as_bytes());
            }
            assert_eq!(alone(&tokenizer, &vocabulary, b"\xff"), None);
            assert!(!prompt_tokens(&tokenizer, &vocabulary, "").unwrap().is_empty());
        }
    }
}
