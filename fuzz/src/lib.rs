//! Checks of the fuzz targets, one module for each target: `check(bytes)` panics on a finding.
//!
//! They are compiled twice: for `cargo fuzz`, and into the tests, which replay the corpus and every
//! regression.

pub mod artefact;
pub mod bytes;
pub mod chat_template;
pub mod grammar_text;
pub mod json_schema;
pub mod lark;
pub mod regex;
pub mod token_trace;
pub mod tokenizer_json;
pub mod walk;
