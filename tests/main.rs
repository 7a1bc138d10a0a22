//! One test binary: every integration test is a module of it.

#[cfg(feature = "cli")]
mod batch;
mod card;
mod chat;
#[cfg(feature = "cli")]
mod cli;
#[cfg(feature = "cli")]
mod cli_bench_model;
#[cfg(feature = "cli")]
mod cli_cache;
#[cfg(feature = "cli")]
mod cli_captures;
#[cfg(feature = "cli")]
mod cli_compile;
#[cfg(feature = "cli")]
mod cli_conditional;
#[cfg(feature = "cli")]
mod cli_experiment;
#[cfg(feature = "cli")]
mod cli_explain;
#[cfg(feature = "cli")]
mod cli_files;
#[cfg(feature = "cli")]
mod cli_generate;
#[cfg(feature = "cli")]
mod cli_keywords;
#[cfg(feature = "cli")]
mod cli_manners;
#[cfg(feature = "cli")]
mod cli_messages;
#[cfg(feature = "cli")]
mod cli_natural;
#[cfg(feature = "cli")]
mod cli_notations;
#[cfg(feature = "cli")]
mod cli_numbers;
#[cfg(feature = "cli")]
mod cli_regex;
#[cfg(feature = "cli")]
mod cli_schema;
#[cfg(feature = "cli")]
mod cli_speculate;
#[cfg(all(feature = "cli", feature = "oracle"))]
mod cli_trace;
mod corpus;
mod decider;
mod decode;
#[cfg(feature = "cli")]
mod docs;
mod ends;
mod extensions;
mod fuzz_replay;
#[cfg(all(feature = "cli", feature = "oracle"))]
mod generations;
mod gguf;
mod healing;
mod hostile;
#[cfg(feature = "hub")]
mod hub;
mod inspect;
#[cfg(feature = "mistralrs")]
mod mistralrs;
mod model;
mod model_batch;
mod natural;
mod notations;
#[cfg(feature = "cli")]
mod pages;
#[cfg(feature = "oracle")]
mod promises;
mod regex_dialects;
#[cfg(feature = "cli")]
mod reported;
mod rust_types;
mod schema;
#[cfg(feature = "serve")]
mod serve;
mod sessions;
mod shared_data;
mod speculation;
mod spelling;
mod tensor;
mod tidy;
mod tokenizers;
mod tool_arguments;
mod tools;
#[cfg(feature = "cli")]
mod usage;
mod vocabulary_cache;
