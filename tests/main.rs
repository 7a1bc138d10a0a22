//! One test binary: every integration test is a module of it.

// --batch: rows in, a line for each of them out.
#[cfg(feature = "cli")]
mod batch;
// Cards, on machines without one: kernels thread by thread.
mod card;
// Chat templates: golden prompts, hostile templates, and the program with them.
mod chat;
// The program as a shell sees it: output, exit codes, errors.
#[cfg(feature = "cli")]
mod cli;
// domino bench-model, and --device without a card.
#[cfg(feature = "cli")]
mod cli_bench_model;
// The program's cache folder.
#[cfg(feature = "cli")]
mod cli_cache;
// --capture on the command line.
#[cfg(feature = "cli")]
mod cli_captures;
// domino compile and --trees.
#[cfg(feature = "cli")]
mod cli_compile;
// domino generate --sampling conditional and --tokenization canonical.
#[cfg(feature = "cli")]
mod cli_conditional;
// domino experiment: records survive kills.
#[cfg(feature = "cli")]
mod cli_experiment;
// domino explain and domino retokenize.
#[cfg(feature = "cli")]
mod cli_explain;
// Files saved on Windows, and files of a wrong kind.
#[cfg(feature = "cli")]
mod cli_files;
// domino generate with a model of random weights.
#[cfg(feature = "cli")]
mod cli_generate;
// Warnings about keywords of schemas.
#[cfg(feature = "cli")]
mod cli_keywords;
// Exit codes, pipes, full disks, budgets.
#[cfg(feature = "cli")]
mod cli_manners;
// Messages about texts speak of characters.
#[cfg(feature = "cli")]
mod cli_messages;
// Natural grammars stay within the program's budgets.
#[cfg(feature = "cli")]
mod cli_natural;
// Lark and EBNF on the command line.
#[cfg(feature = "cli")]
mod cli_notations;
// Numbers of schemas on the command line.
#[cfg(feature = "cli")]
mod cli_numbers;
// Warnings about dialects of regular expressions.
#[cfg(feature = "cli")]
mod cli_regex;
// JSON Schemas on the command line.
#[cfg(feature = "cli")]
mod cli_schema;
// domino learn and domino generate --speculate.
#[cfg(feature = "cli")]
mod cli_speculate;
// domino trace.
#[cfg(all(feature = "cli", feature = "oracle"))]
mod cli_trace;
// The shipped grammars against the texts beside them.
mod corpus;
// Not tests: membership by the engine and by the oracle, for other modules.
mod decider;
// Sampling and the decode loop.
mod decode;
// Commands on pages can be run.
#[cfg(feature = "cli")]
mod docs;
// Ends of texts: only white space can follow.
mod ends;
// Named languages in regular expressions and GBNF.
mod extensions;
// The fuzz corpus and its regressions.
mod fuzz_replay;
// Texts of the shipped model, judged by other parsers.
#[cfg(all(feature = "cli", feature = "oracle"))]
mod generations;
// GGUF files against reference programs.
mod gguf;
// Token healing.
mod healing;
// Hostile input ends in an error value.
mod hostile;
// Models from a hub.
#[cfg(feature = "hub")]
mod hub;
// Views of every stage of compilation.
mod inspect;
// The plugin for mistral.rs.
#[cfg(feature = "mistralrs")]
mod mistralrs;
// The model runner against reference logits.
mod model;
// Passes over several sequences.
mod model_batch;
// Grammars of the kinds that people write.
mod natural;
// Published grammars in Lark and EBNF, and structural tags.
mod notations;
// Links between pages, and the examples.
#[cfg(feature = "cli")]
mod pages;
// Properties of random grammars against the oracle.
#[cfg(feature = "oracle")]
mod promises;
// Regular expressions beside other dialects.
mod regex_dialects;
// Inputs that users reported.
#[cfg(feature = "cli")]
mod reported;
// Grammars of Rust types.
mod rust_types;
// JSON Schema against suites and slow judges.
mod schema;
// domino serve over HTTP.
#[cfg(feature = "serve")]
mod serve;
// Sessions of one grammar on many threads.
mod sessions;
// Test data outside of the repository.
mod shared_data;
// Proposers, priors and drafts.
mod speculation;
// Spellings of tokens against the tokenizers crate.
mod spelling;
// The tensor runner.
mod tensor;
// Rules of the house that a machine can check.
mod tidy;
// Vocabularies of real tokenizers.
mod tokenizers;
// Arguments of calls between XML tags.
mod tool_arguments;
// Calls of functions in all spellings.
mod tools;
// Help, flags and mistakes.
#[cfg(feature = "cli")]
mod usage;
// Vocabularies in a cache folder.
mod vocabulary_cache;
