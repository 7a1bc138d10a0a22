//! Reads the tokens of an engine.

use mistralrs_core::Pipeline;

use super::error::EngineVocabularyError;
use domino::{
    ids::TokenId,
    vocab::{Tokenizer, Vocabulary},
};

/// The vocabulary of a loaded pipeline: the tokens of its tokenizer, and as end of text the very tokens at
/// which the engine ends a text. Costs a second for 200,000 tokens.
///
/// # Errors
/// If the pipeline has no tokenizer, or one of a kind that is not supported, or no token that ends a text.
///
/// ```no_run
/// # async fn f(pipeline: std::sync::Arc<tokio::sync::Mutex<dyn mistralrs_core::Pipeline + Send + Sync>>)
/// # -> Result<(), Box<dyn std::error::Error>> {
/// let vocabulary = domino_mistralrs::vocabulary(&*pipeline.lock().await)?;
/// let compiler = domino::Compiler::new(vocabulary);
/// # Ok(()) }
/// ```
pub fn vocabulary(pipeline: &dyn Pipeline) -> Result<Vocabulary, EngineVocabularyError> {
    let ends = pipeline.get_metadata().eos_tok.iter().copied().map(TokenId::new).collect::<Vec<_>>();
    if ends.is_empty() {
        return Err(EngineVocabularyError::NoEndOfText);
    }
    Ok(Vocabulary::from_tokenizer_json_with_ends(&json(pipeline)?, ends)?)
}

/// The tokenizer of a loaded pipeline. Costs as much as [`vocabulary`].
///
/// # Errors
/// If the pipeline has none, or one of a kind that is not supported.
pub fn tokenizer(pipeline: &dyn Pipeline) -> Result<Tokenizer, EngineVocabularyError> {
    Ok(Tokenizer::from_tokenizer_json(&json(pipeline)?)?)
}

fn json(pipeline: &dyn Pipeline) -> Result<String, EngineVocabularyError> {
    let tokenizer = pipeline.tokenizer().ok_or(EngineVocabularyError::NoTokenizer)?;
    tokenizer.to_string(false).map_err(|error| EngineVocabularyError::Unwritable(error.to_string()))
}
