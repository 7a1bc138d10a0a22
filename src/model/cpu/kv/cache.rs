//! Keys and values of the tokens that a sequence has seen, on the CPU.
//!
//! Invariant: positions `0..len` of every layer are valid; garbage past them is overwritten by the next
//! write. So truncation only lowers `len`, and a pass that fails before `commit` has changed nothing that can
//! be seen.

use std::ops::Range;

use candle_core::{Result, Tensor};

use super::{
    blocks::{KEYS, Side},
    spans::{KvBlocks, KvMemory},
};
use crate::model::{KvCopy, formats::kv_format::KvFormat};

/// Keys and values of all layers.
#[derive(Debug)]
pub(crate) struct CpuCache {
    memory: KvMemory,
    context: usize,
    len: usize,
    /// The most tokens that were written.
    written: usize,
}

impl CpuCache {
    /// An empty cache for `context` tokens. Its memory is taken as they come.
    ///
    /// # Errors
    /// If its bytes exceed the address space.
    pub(crate) fn new(layers: usize, sizes: [usize; 3], format: KvFormat) -> Result<Self> {
        let memory = KvMemory::new(layers, sizes, format)?;
        Ok(Self { memory, context: sizes[1], len: 0, written: 0 })
    }

    /// Number of tokens held.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Number of tokens for which a text of `tokens` tokens takes memory: whole spans and pages, at most the
    /// context.
    pub(crate) fn reserved(&self, tokens: usize) -> usize {
        let bytes = self.memory.taken(tokens.min(self.context));
        bytes.div_ceil(self.memory.of_position().max(1)).min(self.context)
    }

    /// Number of tokens for which this cache has taken memory, or will have when it holds `len`.
    pub(crate) fn touched(&self, len: usize) -> usize {
        self.reserved(self.written.max(len))
    }

    /// Gives back the memory past the tokens held, which are copied.
    ///
    /// # Errors
    /// If there is no room for the copy; then nothing changes.
    pub(crate) fn shrink(&mut self) -> Result<()> {
        self.memory = self.memory.shrunk(self.len)?;
        self.written = self.len;
        Ok(())
    }

    /// Tokens that fit.
    pub(crate) fn context(&self) -> usize {
        self.context
    }

    /// Writes keys and values (`[kv_heads, n, head_dim]`) of the tokens after the ones held, and returns
    /// those of all positions.
    ///
    /// # Errors
    /// If the shapes do not fit or there is no such layer.
    pub(crate) fn extend(
        &mut self,
        layer: usize,
        keys: &Tensor,
        values: &Tensor,
    ) -> Result<(KvBlocks<'_>, KvBlocks<'_>)> {
        let count = keys.dim(1)?.max(values.dim(1)?);
        self.memory.write(layer, Side::Keys, keys, self.len)?;
        self.memory.write(layer, Side::Values, values, self.len)?;
        self.written = self.written.max(self.len + count);
        Ok((self.memory.side(layer, Side::Keys), self.memory.side(layer, Side::Values)))
    }

    /// Commits `count` tokens, which were written to every layer.
    pub(crate) fn commit(&mut self, count: usize) {
        self.len = (self.len + count).min(self.context);
    }

    /// Forgets all but the first `len` tokens; `len` is at most what is held. Constant time.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// A copy of the keys and values of whole blocks of positions; `None` if they are not held, or not whole.
    pub(crate) fn copy_out(&self, positions: Range<usize>) -> Option<KvCopy> {
        let whole = positions.start.is_multiple_of(KEYS) && positions.end.is_multiple_of(KEYS);
        if !whole || positions.is_empty() || positions.end > self.len {
            return None;
        }
        let bytes = self.memory.copy_out(positions.start / KEYS..positions.end / KEYS);
        Some(KvCopy::new(positions.len(), bytes))
    }

    /// Appends copied keys and values to whole blocks; says whether that was done.
    pub(crate) fn copy_in(&mut self, copy: &KvCopy) -> bool {
        let positions = copy.positions();
        let whole = self.len.is_multiple_of(KEYS) && positions.is_multiple_of(KEYS);
        let blocks = self.len / KEYS..(self.len + positions) / KEYS;
        let size = self.memory.copied(blocks.len());
        if !whole || self.len + positions > self.context || size != copy.bytes() {
            return false;
        }
        self.memory.copy_in(blocks, copy.content());
        self.len += positions;
        self.written = self.written.max(self.len);
        true
    }

    /// The memory of keys and values.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> &KvMemory {
        &self.memory
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
