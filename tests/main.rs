//! One test binary: every integration test is a module of it.

#[cfg(all(feature = "cli", not(packaged)))]
mod cli;
#[cfg(all(feature = "cli", not(packaged)))]
mod cli_batch;
#[cfg(all(feature = "cli", not(packaged)))]
mod cli_bench_model;
#[cfg(all(feature = "cli", not(packaged)))]
mod cli_cache;
#[cfg(all(feature = "cli", not(packaged)))]
mod cli_captures;
#[cfg(all(feature = "cli", not(packaged)))]
mod cli_compile;
#[cfg(all(feature = "cli", not(packaged)))]
mod cli_conditional;
#[cfg(all(feature = "cli", not(packaged)))]
mod cli_experiment;
#[cfg(all(feature = "cli", not(packaged)))]
mod cli_explain;
#[cfg(all(feature = "cli", not(packaged)))]
mod cli_generate;
#[cfg(all(feature = "cli", not(packaged)))]
mod cli_manners;
#[cfg(all(feature = "cli", not(packaged)))]
mod cli_messages;
#[cfg(all(feature = "cli", not(packaged)))]
mod cli_natural;
#[cfg(all(feature = "cli", not(packaged)))]
mod cli_notations;
#[cfg(all(feature = "cli", not(packaged)))]
mod cli_regex;
#[cfg(all(feature = "cli", not(packaged)))]
mod cli_schema;
#[cfg(all(feature = "cli", not(packaged)))]
mod cli_speculate;
#[cfg(all(feature = "cli", feature = "oracle", not(packaged)))]
mod cli_trace;
mod corpus;
mod decider;
#[cfg(not(packaged))]
mod decode;
#[cfg(all(feature = "cli", not(packaged)))]
mod docs;
#[cfg(not(packaged))]
mod extensions;
#[cfg(not(packaged))]
mod fuzz_replay;
#[cfg(all(feature = "cli", feature = "oracle", not(packaged)))]
mod generations;
#[cfg(not(packaged))]
mod gguf;
mod healing;
#[cfg(not(packaged))]
mod hostile;
#[cfg(all(feature = "hub", not(packaged)))]
mod hub;
#[cfg(not(packaged))]
mod inspect;
mod left_out;
#[cfg(all(feature = "mistralrs", not(packaged)))]
mod mistralrs;
#[cfg(not(packaged))]
mod model;
#[cfg(not(packaged))]
mod model_batch;
#[cfg(not(packaged))]
mod natural;
#[cfg(not(packaged))]
mod notations;
#[cfg(feature = "oracle")]
mod promises;
#[cfg(not(packaged))]
mod regex_dialects;
mod rust_types;
#[cfg(not(packaged))]
mod schema;
#[cfg(all(feature = "serve", not(packaged)))]
mod serve;
mod sessions;
mod shared_data;
#[cfg(not(packaged))]
mod speculation;
mod spelling;
#[cfg(not(packaged))]
mod tensor;
#[cfg(not(packaged))]
mod tidy;
mod tokenizers;
#[cfg(not(packaged))]
mod tool_arguments;
#[cfg(not(packaged))]
mod tools;
mod vocabulary_cache;
