//! Readers of tokenizers, `tokenizer.json` and GGUF, and of the tokens that end a text.

mod end_of_text;
pub(super) mod gguf_tokenizer;
mod sources;
mod spelling;
pub(super) mod tokenizer_json;
