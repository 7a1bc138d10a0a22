//! Commands, one by one.

// domino bench-model, and --device without a card.
mod bench_model;
// The program's cache folder.
mod cache;
// --capture on the command line.
mod captures;
// domino compile and --trees.
mod compile;
// domino generate --sampling conditional and --tokenization canonical.
mod conditional;
// domino experiment: records survive kills.
pub(crate) mod experiment;
// domino explain and domino retokenize.
mod explain;
// domino generate with a model of random weights.
mod generate;
// domino learn and domino generate --speculate.
mod speculate;
// domino trace.
mod trace;
