//! Passes over several sequences with one set of weights.
//!
//! Invariants: the caches are whole between calls: a call that fails has changed none; what a sequence gets
//! has the same bits whatever shares its passes and however its tokens were split.

use std::{num::NonZeroUsize, ops::Range};

use super::kv::{CpuCache, KEYS};
use super::transformer::{Part, Transformer};
use super::{CHUNK, together};
use crate::ids::TokenId;
use crate::model::batch::{BatchInput, BatchModel, named_twice};
use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::{KvCopy, Logits, files::config::Config, formats::KvFormat};

/// A model with caches of several sequences, which share its passes: products are made for the rows of all at
/// once, attention for each over its own cache. See [`CandleModel`](crate::model::candle::CandleModel).
#[derive(Debug)]
pub struct CandleBatch {
    transformer: Transformer,
    caches: Vec<CpuCache>,
    /// Number format of keys and values in the caches.
    kv: KvFormat,
    /// Tokens that they should hold at once, at most.
    tokens: usize,
    /// The rows of the last pass, whose memory the next one takes if they are not wanted any more.
    last: Option<Logits>,
}

impl CandleBatch {
    /// The configuration of the model.
    pub(super) fn config(&self) -> &Config {
        self.transformer.config()
    }

    /// Wraps a transformer, with empty caches.
    pub(crate) fn new(
        transformer: Transformer,
        kv: KvFormat,
        context: usize,
        sequences: NonZeroUsize,
    ) -> Result<Self, ModelError> {
        let config = transformer.config();
        let caches = (0..sequences.get()).map(|_| cache(config, context, kv)).collect::<Result<_, _>>()?;
        Ok(Self { transformer, caches, kv, tokens: usize::MAX, last: None })
    }

    /// Bounds the memory of all caches together, in tokens. `None`: there is no bound.
    pub(crate) fn holding(self, tokens: Option<usize>) -> Self {
        Self { tokens: tokens.unwrap_or(usize::MAX), ..self }
    }

    /// Gives memory back that no token needs, if all caches together would take that of too many tokens once
    /// those of `inputs` have come: that of empty caches first, as nothing of them must be copied.
    fn give_back(&mut self, inputs: &[BatchInput<'_>]) {
        if self.tokens == usize::MAX {
            return;
        }
        let mut lens: Vec<usize> = self.caches.iter().map(CpuCache::len).collect();
        for input in inputs {
            lens[input.sequence] += input.tokens.len();
        }
        let mut order: Vec<usize> = (0..self.caches.len()).collect();
        order.sort_by_key(|&index| self.caches[index].len());
        for index in order {
            let touched = self.caches.iter().zip(&lens).map(|(cache, &len)| cache.touched(len));
            if touched.sum::<usize>() <= self.tokens {
                return;
            }
            let cache = &mut self.caches[index];
            if cache.touched(0) > cache.reserved(lens[index]) {
                // If there is no room for a copy, the memory stays as it is, which is right too.
                let _ = cache.shrink();
            }
        }
    }

    /// Sets the number of sequences. New ones are empty, the last ones go, and all others keep their tokens.
    ///
    /// # Errors
    /// If a cache cannot be made.
    pub(crate) fn resize(&mut self, sequences: NonZeroUsize) -> Result<(), ModelError> {
        let context = self.context();
        self.caches.truncate(sequences.get());
        while self.caches.len() < sequences.get() {
            self.caches.push(cache(self.transformer.config(), context, self.kv)?);
        }
        Ok(())
    }

    /// Runs checked inputs, [`CHUNK`] tokens at a time; on error the caches may hold some of them.
    fn run(&mut self, inputs: &[BatchInput<'_>]) -> Result<Vec<Logits>, ModelError> {
        let width = self.vocabulary_size();
        // Tokens that a cache must see again, before the new ones.
        let again: Vec<Vec<u32>> = inputs.iter().map(|input| self.caches[input.sequence].go_back()).collect();
        let new = |input: &BatchInput<'_>| input.tokens.iter().map(|token| token.raw()).collect::<Vec<_>>();
        let tokens: Vec<Vec<u32>> =
            inputs.iter().zip(&again).map(|(input, again)| [again.clone(), new(input)].concat()).collect();
        let mut done = vec![0; inputs.len()];
        let nothing = Logits::new(Vec::new(), width);
        let mut rows = vec![nothing; inputs.len()];
        loop {
            let mut room = CHUNK;
            let mut parts = Vec::with_capacity(inputs.len());
            // No sequence is named twice.
            let mut caches: Vec<Option<&mut CpuCache>> = self.caches.iter_mut().map(Some).collect();
            let mut members = Vec::with_capacity(inputs.len());
            for (index, input) in inputs.iter().enumerate() {
                let rest = &tokens[index][done[index]..];
                let now = &rest[..rest.len().min(room)];
                let Some(cache) = caches[input.sequence].take_if(|_| !now.is_empty()) else {
                    continue;
                };
                room -= now.len();
                // Rows are wanted of the last tokens of an input: here, of those that are in this chunk.
                let all = input.rows.count(input.tokens.len());
                let later = rest.len() - now.len();
                let wanted = all.saturating_sub(later).min(now.len());
                let sets =
                    input.rows.sets().map(|sets| &sets[all.saturating_sub(later) - wanted..][..wanted]);
                // What is run again, or of no interest, is not taken back soon.
                let settled =
                    if wanted == 0 { now.len() } else { again[index].len().saturating_sub(done[index]) };
                parts.push(Part { tokens: now, cache, wanted, sets, settled });
                members.push((index, now, wanted));
            }
            if parts.is_empty() {
                break;
            }
            let memory = self.last.take().and_then(Logits::into_values).unwrap_or_default();
            let values = self.transformer.forward(&mut parts, memory)?;
            let all = Logits::new(values, width);
            let mut first = 0;
            for (index, now, wanted) in members {
                let own = all.part(first, wanted);
                first += wanted;
                rows[index] = if rows[index].rows() == 0 { own } else { joined(&rows[index], &own) };
                self.caches[inputs[index].sequence].commit(now);
                done[index] += now.len();
            }
            self.last = Some(all);
        }
        Ok(rows)
    }
}

/// An empty cache for `context` tokens.
fn cache(config: &Config, context: usize, kv: KvFormat) -> candle_core::Result<CpuCache> {
    Ok(CpuCache::new(&config.caches(), context, kv)?.with_states(config.state_layers()))
}

/// Concatenates the rows of two passes.
fn joined(one: &Logits, other: &Logits) -> Logits {
    let rows = |logits: &Logits| {
        (0..logits.rows()).flat_map(|row| logits.row(row).unwrap_or_default()).copied().collect::<Vec<_>>()
    };
    Logits::new([rows(one), rows(other)].concat(), one.width())
}

impl BatchModel for CandleBatch {
    type Error = ModelError;

    fn sequences(&self) -> usize {
        self.caches.len()
    }

    fn position(&self, sequence: usize) -> usize {
        self.caches.get(sequence).map_or(0, CpuCache::len)
    }

    fn context(&self) -> usize {
        self.caches.first().map_or(0, CpuCache::context)
    }

    fn vocabulary_size(&self) -> usize {
        self.transformer.config().vocabulary
    }

    fn forward(&mut self, inputs: &[BatchInput<'_>]) -> Result<Vec<Logits>, ModelError> {
        check_inputs(inputs, self.vocabulary_size(), |sequence| {
            self.caches.get(sequence).map(|cache| [cache.len(), cache.context()])
        })?;
        self.give_back(inputs);
        let before: Vec<usize> = inputs.iter().map(|input| self.position(input.sequence)).collect();
        // A pass over one token is too small to hand over as a whole: its output product alone is worth
        // sharing.
        let large = inputs.iter().map(|input| input.tokens.len()).sum::<usize>() > 1;
        let rows = together(large, || self.run(inputs));
        if rows.is_err() {
            for (input, position) in inputs.iter().zip(before) {
                self.caches[input.sequence].stay(position);
            }
        }
        rows
    }

    fn truncate(&mut self, sequence: usize, position: usize) -> Result<(), ModelError> {
        let cache = self.caches.get_mut(sequence).ok_or(ModelErrorKind::NoSuchSequence(sequence))?;
        if position > cache.len() {
            return Err(ModelErrorKind::PastEnd { asked: position, position: cache.len() }.into());
        }
        cache.truncate(position);
        if position == 0 {
            self.give_back(&[]);
        }
        Ok(())
    }

    fn reserved(&self, tokens: usize) -> usize {
        self.caches.first().map_or(tokens, |cache| cache.reserved(tokens))
    }

    fn copied_block(&self) -> Option<usize> {
        self.config().delta.is_none().then_some(KEYS)
    }

    fn copy_out(&self, sequence: usize, positions: Range<usize>) -> Option<KvCopy> {
        self.caches.get(sequence)?.copy_out(positions)
    }

    fn copy_in(&mut self, sequence: usize, copy: &KvCopy) -> bool {
        self.caches.get_mut(sequence).is_some_and(|cache| cache.copy_in(copy))
    }
}

/// The only sequence of a batch of one.
pub(crate) const ONLY: usize = 0;

/// Refuses inputs that cannot be run: `caches` says how many tokens a sequence holds and has room for.
pub(crate) fn check_inputs(
    inputs: &[BatchInput<'_>],
    vocabulary: usize,
    caches: impl Fn(usize) -> Option<[usize; 2]>,
) -> Result<(), ModelErrorKind> {
    for input in inputs {
        let cache = caches(input.sequence).ok_or(ModelErrorKind::NoSuchSequence(input.sequence))?;
        check_tokens(input.tokens, vocabulary, cache)?;
    }
    named_twice(inputs).map_or(Ok(()), |sequence| Err(ModelErrorKind::SequenceTwice(sequence)))
}

/// Refuses tokens that a pass cannot run after `position` others, where there is room for `context`.
fn check_tokens(
    tokens: &[TokenId],
    vocabulary: usize,
    [position, context]: [usize; 2],
) -> Result<(), ModelErrorKind> {
    if tokens.is_empty() {
        return Err(ModelErrorKind::NoTokens);
    }
    if let Some(&token) = tokens.iter().find(|token| token.index() >= vocabulary) {
        return Err(ModelErrorKind::UnknownToken { token, vocabulary });
    }
    let tokens = tokens.len();
    if tokens > context - position {
        return Err(ModelErrorKind::TooLong { position, tokens, context });
    }
    Ok(())
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
