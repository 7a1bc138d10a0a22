//! Input made to break things must end in an error value: no panic, no hang, no abort.

mod cancelled;
mod engine;
mod gguf_file;
mod grammar_text;
mod grammars;
mod model_folder;
mod tokenizer;
