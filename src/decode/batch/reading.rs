//! Chunked prefill: prompts are read in chunks, so that texts which have begun need not wait for a long one.

use super::{super::speculation::verification::Between, event::BatchEvent, sequence::Placed};
use crate::model::{BatchInput, Logits, Rows};

/// Factor on the tokens of prompts that a pass reads if no text goes on in it.
const ALONE: usize = 4;

/// Most whole rows that a pass makes of one prompt: 64 of 150,000 tokens take 40 MB.
const WHOLE_ROWS: usize = 64;

/// A sequence of which the next pass reads only a chunk of the unseen tokens, and so makes no row to draw
/// from.
pub(super) struct PromptChunk {
    pub(super) one: Placed<Between>,
    /// Tokens that the model has seen.
    pub(super) seen: usize,
    /// Tokens that the pass reads; fewer than are left.
    pub(super) count: usize,
}

impl PromptChunk {
    /// The chunk as a part of the pass.
    pub(super) fn input(&self) -> BatchInput<'_> {
        let Placed { place, sequence } = &self.one;
        let tokens = &sequence.run.sequence()[self.seen..][..self.count];
        let rows = if sequence.scores.is_wanting() { Rows::All } else { Rows::Among(&[]) };
        BatchInput { sequence: *place, tokens, rows }
    }

    /// Takes the rows of the pass. Returns an event if the prompt's last one was among them.
    pub(super) fn score(&mut self, rows: &Logits) -> Option<BatchEvent> {
        self.one.sequence.score(rows, self.seen)
    }
}

/// Splits sequences into those for which the next pass makes a row, those of whose prompts it reads a chunk,
/// and those that must wait. A pass reads at most `chunk` tokens of prompts, and [`ALONE`] times as many if
/// no text goes on in it; sequences that came first are read first. `seen` returns the number of tokens that
/// the model has of a place.
pub(super) fn split(
    all: Vec<Placed<Between>>,
    chunk: usize,
    seen: impl Fn(usize) -> usize,
) -> (Vec<Placed<Between>>, Vec<PromptChunk>, Vec<Placed<Between>>) {
    let pending = |one: &Placed<Between>| one.sequence.run.sequence().len() - seen(one.place);
    let mut order: Vec<usize> = (0..all.len()).filter(|&index| pending(&all[index]) > 1).collect();
    order.sort_by_key(|&index| all[index].sequence.id);
    let alone = order.len() == all.len();
    let mut left = if alone { chunk.saturating_mul(ALONE) } else { chunk }.max(1);
    let mut counts = vec![None; all.len()];
    for index in order {
        let wanted = pending(&all[index]);
        // The last token goes with a pass that makes the row to draw from.
        let count = match all[index].sequence.scores.is_wanting() {
            true => (wanted - 1).min(left).min(WHOLE_ROWS),
            false => wanted.min(left),
        };
        left -= count;
        counts[index] = (count < wanted).then_some(count);
    }
    let (mut ready, mut reading, mut idle) = (Vec::with_capacity(all.len()), Vec::new(), Vec::new());
    for (one, count) in all.into_iter().zip(counts) {
        match count {
            None => ready.push(one),
            Some(0) => idle.push(one),
            Some(count) => reading.push(PromptChunk { seen: seen(one.place), one, count }),
        }
    }
    (ready, reading, idle)
}
