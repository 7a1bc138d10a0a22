//! Prompts as tokens.

use super::error::ExperimentError;
use crate::{
    ids::TokenId,
    vocab::{Tokenizer, Vocabulary},
};

/// Splits a prompt into tokens; at least one, as a model must have something to continue.
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
