//! Draws a token from a row of logits: settings, penalties, Gumbel noise, and what the probabilities were.

pub(super) mod bias;
pub(super) mod choice;
mod gumbel_argmax;
pub(super) mod kept_mass;
pub(super) mod likely;
pub(super) mod logprobs;
pub(super) mod noise;
pub(super) mod penalties;
pub(super) mod sampler;
pub(super) mod settings;
mod wide;
