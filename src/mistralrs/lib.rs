//! Plugin for [mistral.rs](https://github.com/EricLBuehler/mistral.rs) 0.8 (crate `mistralrs-core`): its
//! requests write texts of a grammar.
//!
//! # Any engine: masks
//!
//! One [`GrammarLogitsProcessor`] per request, and the engine stays as it is:
//!
//! ```no_run
//! use std::sync::Arc;
//! use domino::CompiledGrammar;
//! use domino_mistralrs::GrammarLogitsProcessor;
//! use mistralrs_core::NormalRequest;
//!
//! fn constrain(request: &mut NormalRequest, grammar: &CompiledGrammar) {
//!     let processor = GrammarLogitsProcessor::new(grammar.constraint());
//!     let watch = processor.watch(); // says afterwards whether all went well
//!     request.logits_processors = Some(vec![Arc::new(processor)]);
//! }
//! ```
//!
//! The grammar is compiled for the engine's own tokens, which [`vocabulary()`] reads from its pipeline. The
//! engine samples as ever (penalties, then this mask, then temperature, top-k, top-p and min-p), so every
//! token is drawn as if the model gave the forbidden ones probability zero.
//!
//! A JSON Schema is a grammar too. In a program of mistral.rs that is three lines beside the request:
//!
//! ```no_run
//! use std::{error::Error, sync::Arc};
//! use domino::{Compiler, Limits, grammar::json_schema::SchemaOptions};
//! use domino_mistralrs::{GrammarLogitsProcessor, vocabulary};
//! use mistralrs_core::{NormalRequest, Pipeline};
//!
//! fn constrain(
//!     request: &mut NormalRequest,
//!     schema: &str,
//!     engine: &dyn Pipeline,
//! ) -> Result<(), Box<dyn Error>> {
//!     let schema = SchemaOptions::default().parse(schema, &Limits::default())?;
//!     let compiled = Compiler::new(vocabulary(engine)?).compile(&schema.grammar)?; // once a schema
//!     request.logits_processors = Some(vec![Arc::new(GrammarLogitsProcessor::new(compiled.constraint()))]);
//!     Ok(())
//! }
//! ```
//!
//! # Drafts
//!
//! They rest on the speculative pipeline of 0.8.1, which upstream removed in May 2026. With a
//! `GrammarSpeculativeLoader` and without a prior, the text that the schema's template forces is drafted
//! too: `Guesses::new(&grammar, &tokenizer, Prior::new(&grammar), Learning::Online)`.
//!
//! # What to know of mistral.rs 0.8.1
//!
//! * A request that has the engine's own constraint too (`NormalRequest::constraint`) is checked twice; leave
//!   that at `Constraint::None`.
//! * If the receiver of a request that does not stream is dropped before the answer is there, the engine's
//!   thread panics, and all requests that run then are lost. Keep the receiver until the answer is there, in
//!   a task of its own; to end a request that nobody waits for, [`cancel`](RequestWatch::cancel) it.
//! * On the CPU, requests of equal length that run at once are computed as one batch, and come out wrong,
//!   with a grammar or without. Let one run at a time there.
//! * On the CPU the prefix cache drops nothing, so memory grows with each request:
//!   `with_no_prefix_cache(true)`.
//! * If a processor fails, the other requests of the same batch compute with broken caches. Ours do not fail:
//!   what goes wrong is kept for the caller ([`RequestWatch::error`]), and the text is ended.

mod context;
mod error;
mod free;
mod processor;
mod row;
mod runner;
mod speculative;
mod vocabulary;
mod watch;

pub use error::{EngineVocabularyError, RequestError};
pub use free::FreeLogitsProcessor;
pub use processor::GrammarLogitsProcessor;
pub use runner::{EngineDrafts, EngineRunner, GoOn, RunnerError};
pub use speculative::{
    AttachError, GrammarSpeculativeLoader, Guesses, LoadError, Speculation, SpeculativeRequest,
};
pub use vocabulary::{tokenizer, vocabulary};
pub use watch::RequestWatch;

/// The programs in the plugin's page, as doctests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../docs/mistralrs.md")]
    mod mistralrs {}
}
