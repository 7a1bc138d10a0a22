//! One test binary: every integration test is a module of it, in the folder of what it tests.

// Cards, on machines without one: kernels thread by thread.
mod card;
// Chat templates: golden prompts, hostile templates, and the program with them.
mod chat;
// The program, from its command line.
mod cli;
// Sampling and the decode loop; token healing; texts of the shipped model.
mod decode;
// Ends of texts: only white space can follow.
mod ends;
// The fuzz corpus and its regressions.
mod fuzz_replay;
// Grammars in each notation, and those that are shipped.
mod grammar;
// Hostile input ends in an error value.
mod hostile;
// Views of every stage of compilation.
mod inspect;
// The model runners against reference logits, their files, and the hub.
mod model;
// Pages: their commands, links and examples.
mod pages;
// Properties of random grammars against the oracle.
mod promises;
// JSON Schema against suites and slow judges.
mod schema;
// domino serve over HTTP.
mod serve;
// Sessions of one grammar on many threads.
mod session;
// Proposers, priors and drafts.
mod speculation;
// Helpers of tests.
mod support;
// Rules of the house that a machine can check.
mod tidy;
// Vocabularies of real tokenizers, their spellings, and the cache of them.
mod vocab;
