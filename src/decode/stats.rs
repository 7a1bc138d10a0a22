//! The cost of a run.
//!
//! Invariant: clocks are only read, never acted on.

use std::time::Duration;

use crate::clock::Instant;

/// Counts and times of one run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecodeStats {
    /// Number of tokens of the prompt.
    pub prompt_tokens: usize,
    /// Number of tokens of the prompt that were not read, as their keys and values were
    /// [kept](super::BatchDecoder::prefix_cache) from another one.
    pub cached_tokens: usize,
    /// Number of tokens generated, without end of text.
    pub tokens: usize,
    /// Number of those that are in a thought, its marks included.
    pub reasoning_tokens: usize,
    /// Number of forward passes of the model, with that over the prompt.
    pub passes: usize,
    /// Number of draws, with that of end of text.
    pub draws: usize,
    /// Number of draws of which the model's own choice is known: the one drawn with the same noise from all
    /// tokens that can be generated. Under a constraint none with [`Masking::Ahead`](super::Masking::Ahead).
    pub own_draws: usize,
    /// Number of those in which it was not allowed, and another token was taken.
    pub interventions: usize,
    /// Number of masks computed or looked up.
    pub masks: usize,
    /// Number of tokens drafted.
    pub drafted: usize,
    /// Number of drafted tokens that were drawn as well.
    pub accepted: usize,
    /// Time in the constraint: asking for tokens, masks, and advancing.
    pub mask_time: Duration,
    /// Time in the model's forward passes.
    pub model_time: Duration,
    /// Time in proposers.
    pub draft_time: Duration,
    /// Time in all, from the beginning of the first step to the end of the last, without the caller's time
    /// between steps. It exceeds mask and model time together by the time of draws.
    pub total_time: Duration,
}

/// Runs `work` and adds the time it took to `time`.
pub(crate) fn timed<T>(time: &mut Duration, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    *time += start.elapsed();
    result
}
