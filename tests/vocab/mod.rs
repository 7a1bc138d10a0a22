//! Vocabularies.

// Vocabularies in a cache folder.
mod cache;
// Spellings of tokens against the tokenizers crate.
mod spelling;
// Vocabularies of real tokenizers.
mod tokenizers;
