//! Why a vocabulary cannot be used.
/// A vocabulary that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("stub")]
pub struct VocabularyError;
