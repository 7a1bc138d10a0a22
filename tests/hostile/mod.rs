//! Input made to break things must end in an error value: no panic, no hang, no abort.

mod engine;
#[cfg(not(packaged))]
mod gguf_file;
mod grammar_text;
#[cfg(not(packaged))]
mod model_folder;
mod tokenizer;
