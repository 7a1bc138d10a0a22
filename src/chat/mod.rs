//! Chat templates, which write the prompts of instruct models (feature `chat`).
//!
//! A model comes with a template in Jinja that writes a [`Conversation`] in the form that the model was
//! trained on ([`ChatTemplate`]). It runs in minijinja, with the functions, filters and methods that
//! transformers offers, and writes what transformers' `apply_chat_template` writes. This module knows nothing
//! of models and grammars.
//!
//! A template comes from strangers. Invariants: it reaches no file; steps, work, depth, the size of each
//! value and the output are bounded, in proportion to the messages; mistakes are errors with their line.

mod admission;
mod budget;
mod conversation;
mod error;
mod files;
mod filters;
mod methods;
mod python;
mod template;

pub use conversation::Conversation;
pub use error::{ChatError, ChatErrorKind};
pub use template::ChatTemplate;

#[cfg(test)]
mod tests;
