//! One test binary: every integration test is a module of it.

mod cli;
mod corpus;
mod decider;
mod decode;
mod hostile;
mod model;
mod promises;
mod shared_data;
mod tidy;
mod tokenizers;
