//! Prompts as tokens.

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
