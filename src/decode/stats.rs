//! What a run cost.
//!
//! Invariant: clocks are only read, never acted on.

use std::time::Duration;

use crate::clock::Instant;

/// Counts and times of one run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecodeStats {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Tokens of the prompt that were not read, as their keys and values were
    /// [kept](super::BatchDecoder::prefix_cache) from another one.
    pub cached_tokens: usize,
    /// Tokens generated, end of text not counted.
    pub tokens: usize,
    /// Forward passes of the model, that over the prompt included.
    pub passes: usize,
    /// Draws, that of end of text included.
    pub draws: usize,
    /// Draws of which the model's own choice is known: the one drawn with the same noise from all tokens that can be
    /// generated at all. Under a constraint none with [`Masking::Ahead`](super::Masking::Ahead).
    pub own_draws: usize,
    /// Those of them in which it was not allowed, and another token was taken.
    pub interventions: usize,
    /// Masks computed or looked up.
    pub masks: usize,
    /// Tokens drafted.
    pub drafted: usize,
    /// Drafted tokens that were drawn as well.
    pub accepted: usize,
    /// Time in the constraint: asking for tokens, masks, and advancing.
    pub mask_time: Duration,
    /// Time in the model's forward passes.
    pub model_time: Duration,
    /// Time in proposers.
    pub draft_time: Duration,
    /// Time in all, from the first step's beginning to the last one's end, without what the caller did
    /// between steps. More than mask and model time together by the time spent drawing.
    pub total_time: Duration,
}

/// Runs `work` and adds the time it took to `time`.
pub(crate) fn timed<T>(time: &mut Duration, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    *time += start.elapsed();
    result
}
