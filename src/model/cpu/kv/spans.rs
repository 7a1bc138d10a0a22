//! The memory of a cache: keys and values of all layers, in [spans](super::layout) of 64 positions.
//!
//! Invariant: a text of some positions uses the first bytes of the memory alone, as many as
//! [`KvMemory::taken`] says.

use std::ops::Range;

use candle_core::{Result, Storage, Tensor};
use rayon::prelude::*;

use super::{
    blocks::{Head, KEYS, Side, write_row},
    layout::{SPAN, SpanLayout},
};
use crate::model::{cpu::pages::Pages, formats::kv_format::KvFormat};

/// Positions of a span: blocks of a head that lie next to each other.
pub(crate) const SPAN_POSITIONS: usize = SPAN * KEYS;
/// Least count of numbers for which waking threads pays.
const PARALLEL: usize = 1 << 16;

/// Keys and values of all layers, of each position that there is room for.
#[derive(Debug)]
pub(crate) struct KvMemory {
    format: KvFormat,
    layers: usize,
    heads: usize,
    head_dim: usize,
    layout: SpanLayout,
    memory: Pages,
}

/// The keys or the values of a layer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KvBlocks<'a> {
    memory: &'a KvMemory,
    layer: usize,
    side: Side,
}

impl KvMemory {
    /// Makes room for `context` positions of `layers` layers.
    ///
    /// # Errors
    /// If their bytes exceed the address space.
    pub(crate) fn new(
        layers: usize,
        [heads, context, head_dim]: [usize; 3],
        format: KvFormat,
    ) -> Result<Self> {
        let blocks = context.div_ceil(KEYS);
        let parts = heads.checked_mul(layers).and_then(|parts| parts.checked_mul(Side::ALL.len()));
        let size = format.bytes(head_dim).and_then(|row| row.checked_mul(KEYS));
        let bytes = parts.zip(size).and_then(|(parts, size)| {
            let bytes = size.checked_mul(blocks)?.checked_mul(parts)?;
            isize::try_from(bytes).ok().map(|_| (SpanLayout { parts, blocks, size }, bytes))
        });
        let Some((layout, bytes)) = bytes else {
            candle_core::bail!("no room for {context} positions");
        };
        Ok(Self { format, layers, heads, head_dim, layout, memory: Pages::exactly(bytes) })
    }

    /// Makes memory of the same sizes, which takes what the first `positions` positions need, and copies them
    /// there.
    ///
    /// # Errors
    /// If their bytes exceed the address space.
    pub(crate) fn shrunk(&self, positions: usize) -> Result<Self> {
        let sizes = [self.heads, self.positions(), self.head_dim];
        let mut fresh = Self::new(self.layers, sizes, self.format)?;
        let held = self.layout.prefix(positions.div_ceil(KEYS));
        fresh.memory.bytes_mut()[..held].copy_from_slice(&self.memory.bytes()[..held]);
        Ok(fresh)
    }

    /// Positions that there is room for.
    pub(crate) fn positions(&self) -> usize {
        self.layout.blocks * KEYS
    }

    /// Bytes of memory, at most, that the first `positions` positions take: of whole spans, and of the large
    /// pages in which these are.
    pub(crate) fn taken(&self, positions: usize) -> usize {
        self.memory.filled(self.layout.prefix(positions.div_ceil(KEYS)))
    }

    /// Bytes of one position.
    pub(crate) fn of_position(&self) -> usize {
        self.layout.parts * self.layout.size / KEYS
    }

    /// All bytes.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.memory.bytes()
    }

    /// The keys or the values of a layer that there is.
    pub(crate) fn side(&self, layer: usize, side: Side) -> KvBlocks<'_> {
        KvBlocks { memory: self, layer, side }
    }

    /// Numbers of the parts that are the keys or the values of a layer's heads.
    fn parts(&self, layer: usize, side: Side) -> Range<usize> {
        let before = match side {
            Side::Keys => 0,
            Side::Values => self.heads,
        };
        let first = layer * Side::ALL.len() * self.heads + before;
        first..first + self.heads
    }

    /// Writes `rows` (`[heads, n, head_dim]`) to their places in a layer, from `position` on.
    ///
    /// # Errors
    /// If they do not fit, or there is no such layer.
    pub(crate) fn write(&mut self, layer: usize, side: Side, rows: &Tensor, position: usize) -> Result<()> {
        let (heads, count, head_dim) = rows.dims3()?;
        let end = position + count;
        if [heads, head_dim] != [self.heads, self.head_dim] || end > self.positions() {
            candle_core::bail!("keys or values do not fit the cache");
        }
        if layer >= self.layers {
            candle_core::bail!("no layer {layer} in the cache");
        }
        let (storage, strides) = rows.storage_and_layout();
        let (Storage::Cpu(storage), Some((from, to))) = (&*storage, strides.contiguous_offsets()) else {
            candle_core::bail!("contiguous heads on the CPU are expected");
        };
        let rows = &storage.as_slice::<f32>()?[from..to];
        if rows.is_empty() {
            return Ok(());
        }
        let (parts, format, layout) = (self.parts(layer, side), self.format, self.layout);
        let first = position / SPAN_POSITIONS;
        let spans = self.memory.bytes_mut()[first * layout.span()..].chunks_mut(layout.span());
        let spans = (first..end.div_ceil(SPAN_POSITIONS)).zip(spans);
        // A task writes the rows of a head that are in a span.
        let tasks = spans.flat_map(|(span, memory)| {
            let own = memory.len() / layout.parts;
            let start = span * SPAN_POSITIONS;
            let now = position.max(start)..end.min(start + SPAN_POSITIONS);
            let memory = memory[parts.start * own..parts.end * own].chunks_exact_mut(own);
            memory.zip(rows.chunks_exact(count * head_dim)).map(move |(memory, rows)| {
                (now.start, memory, &rows[(now.start - position) * head_dim..(now.end - position) * head_dim])
            })
        });
        let write = |(position, memory, rows): (usize, &mut [u8], &[f32])| {
            for (position, row) in (position..).zip(rows.chunks_exact(head_dim)) {
                let block = &mut memory[position / KEYS % SPAN * layout.size..][..layout.size];
                write_row(side, format, row, position % KEYS, block);
            }
        };
        if rows.len() >= PARALLEL {
            tasks.collect::<Vec<_>>().into_par_iter().for_each(write);
        } else {
            tasks.for_each(write);
        }
        Ok(())
    }

    /// Bytes that some blocks of all parts have when they are copied.
    pub(crate) fn copied(&self, blocks: usize) -> usize {
        self.layout.parts * blocks * self.layout.size
    }

    /// Copies some blocks of all parts, part after part.
    pub(crate) fn copy_out(&self, blocks: Range<usize>) -> Vec<u8> {
        let SpanLayout { parts, size, .. } = self.layout;
        let mut bytes = Vec::with_capacity(self.copied(blocks.len()));
        for (part, block) in (0..parts).flat_map(|part| blocks.clone().map(move |block| (part, block))) {
            bytes.extend_from_slice(&self.memory.bytes()[self.layout.start(part, block)..][..size]);
        }
        bytes
    }

    /// Writes copied blocks of all parts, as many bytes as [`copied`](Self::copied) says, to their places.
    pub(crate) fn copy_in(&mut self, blocks: Range<usize>, bytes: &[u8]) {
        let SpanLayout { parts, size, .. } = self.layout;
        let places = (0..parts).flat_map(|part| blocks.clone().map(move |block| (part, block)));
        for ((part, block), copy) in places.zip(bytes.chunks_exact(size.max(1))) {
            let start = self.layout.start(part, block);
            self.memory.bytes_mut()[start..start + size].copy_from_slice(copy);
        }
    }
}

impl<'a> KvBlocks<'a> {
    /// Positions that there is room for.
    pub(crate) fn positions(self) -> usize {
        self.memory.positions()
    }

    /// Number of heads, and of the numbers of each.
    pub(crate) fn heads(self) -> [usize; 2] {
        [self.memory.heads, self.memory.head_dim]
    }

    /// The blocks of a head.
    pub(crate) fn head(self, head: usize) -> Head<'a> {
        let KvMemory { format, head_dim, layout, .. } = *self.memory;
        let part = self.memory.parts(self.layer, self.side).start + head;
        Head { side: self.side, format, head_dim, layout, part, bytes: self.memory.memory.bytes() }
    }
}

#[cfg(test)]
#[path = "spans_tests.rs"]
mod tests;
