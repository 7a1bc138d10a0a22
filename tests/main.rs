//! One test binary: every integration test is a module of it.

#[cfg(feature = "cli")]
mod cli;
#[cfg(feature = "cli")]
mod cli_batch;
#[cfg(feature = "cli")]
mod cli_bench_model;
#[cfg(feature = "cli")]
mod cli_cache;
#[cfg(feature = "cli")]
mod cli_compile;
#[cfg(feature = "cli")]
mod cli_generate;
#[cfg(feature = "cli")]
mod cli_manners;
#[cfg(feature = "cli")]
mod cli_messages;
#[cfg(feature = "cli")]
mod cli_natural;
#[cfg(feature = "cli")]
mod cli_regex;
#[cfg(feature = "cli")]
mod cli_schema;
#[cfg(feature = "cli")]
mod cli_speculate;
#[cfg(feature = "cli")]
mod cli_trace;
mod corpus;
mod decider;
mod decode;
mod fuzz_replay;
#[cfg(feature = "cli")]
mod generations;
mod gguf;
mod hostile;
#[cfg(feature = "hub")]
mod hub;
mod inspect;
#[cfg(feature = "mistralrs")]
mod mistralrs;
mod model;
mod model_batch;
mod natural;
mod promises;
mod regex_dialects;
mod schema;
#[cfg(feature = "mistralrs")]
mod serve;
mod sessions;
mod shared_data;
mod speculation;
mod spelling;
mod tensor;
mod tidy;
mod tokenizers;
mod vocabulary_cache;
