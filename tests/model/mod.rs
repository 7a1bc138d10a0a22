//! Models.

// Passes over several sequences.
mod batch;
// GGUF files against reference programs.
pub(crate) mod gguf;
// Models from a hub.
mod hub;
// A real model.
mod real;
// The model runner against reference logits.
pub(crate) mod runner;
// Layers with states.
mod states;
// The tensor runner.
mod tensor;
