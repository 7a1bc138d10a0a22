//! Keys and values of the tokens that sequences have seen, on the CPU, beside states of layers without them.
//!
//! A block has keys or values of a head at 16 positions, in the [format](KvFormat) asked for. A block of keys
//! has the same number of all its positions next to each other, `[head_dim][KEYS]`: so the scores of 16 keys
//! are one chain of multiply-adds in a vector, and no sum over a vector's lanes is needed. A block of values
//! has a row for each position, `[KEYS][head_dim]`. The factors of groups follow, `[group][KEYS]`.
//!
//! The memory of a cache fills from its start, as a text grows. A span holds [`SPAN`] blocks of each part,
//! part after part: a part is a head's keys or values in a layer. So what a text has seen lies in the spans
//! at the start, whose large pages are full, and the blocks that attention reads at a time lie next to each
//! other.
//!
//! Invariants: what is stored of a position depends on its own numbers alone, and is written once. The place
//! of a block does not depend on how much is held, so nothing moves when a text grows; a text of some
//! positions uses the first bytes of the memory alone, as many as [`KvMemory::taken`] says. Positions
//! `0..len` of every layer are valid; garbage past them is overwritten by the next write. So truncation only
//! lowers `len`, and a pass that fails before `commit` has changed nothing that can be seen.

use std::ops::Range;

use candle_core::{Result, Tensor};
use half::f16;
#[cfg(target_arch = "x86_64")]
use pulp::core_arch::x86::Avx512f;
use pulp::{Scalar, Simd, bytemuck};
use rayon::prelude::*;

use super::{delta::DeltaState, ops::floats_of, pages::Pages, products::packing};
use crate::model::KvCopy;
use crate::model::formats::{GROUP, KvFormat};

/// Blocks of a part that lie next to each other: those of 64 positions. Fewer would part what attention reads
/// at a time; with more, a short text would take more memory.
const SPAN: usize = 4;

/// The sizes of a cache, in blocks.
#[derive(Debug, Clone, Copy)]
struct SpanLayout {
    /// Heads' keys and values, of all layers.
    parts: usize,
    /// Blocks of each part.
    blocks: usize,
    /// Bytes of a block.
    size: usize,
}

impl SpanLayout {
    /// Bytes of a whole span. The last one may have fewer.
    fn span(self) -> usize {
        SPAN * self.parts * self.size
    }

    /// The byte at which a block of a part starts. Blocks of the part that follow in the span are behind it.
    fn start(self, part: usize, block: usize) -> usize {
        let first = block / SPAN * SPAN;
        let own = SPAN.min(self.blocks - first);
        (first * self.parts + part * own + block - first) * self.size
    }

    /// Bytes of the spans in which the first `blocks` blocks of all parts are.
    fn prefix(self, blocks: usize) -> usize {
        blocks.min(self.blocks).next_multiple_of(SPAN).min(self.blocks) * self.parts * self.size
    }
}

/// Positions of a block.
pub(super) const KEYS: usize = 16;

/// The side of attention that blocks hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Keys,
    Values,
}

impl Side {
    /// Both, in the order in which they lie.
    pub(crate) const ALL: [Self; 2] = [Self::Keys, Self::Values];
}

/// Writes the numbers of a position to its block.
fn write_row(side: Side, format: KvFormat, row: &[f32], position: usize, block: &mut [u8]) {
    let (first, step) = match side {
        Side::Keys => (position, KEYS),
        Side::Values => (position * row.len(), 1),
    };
    match format {
        KvFormat::F32 => {
            let places = block.as_chunks_mut::<4>().0.iter_mut().skip(first).step_by(step);
            places.zip(row).for_each(|(place, number)| *place = number.to_ne_bytes());
        }
        KvFormat::F16 => {
            let places = block.as_chunks_mut::<2>().0.iter_mut().skip(first).step_by(step);
            places.zip(row).for_each(|(place, &number)| *place = half(number).to_le_bytes());
        }
        KvFormat::Q8_0 => {
            let (quants, factors) = block.split_at_mut(KEYS * row.len());
            let mut quants = quants.iter_mut().skip(first).step_by(step);
            let factors = factors.as_chunks_mut::<2>().0.iter_mut().skip(position).step_by(KEYS);
            for (group, place) in row.chunks(GROUP).zip(factors) {
                let factor = factor(group);
                *place = factor.to_le_bytes();
                let inverse = inverse(factor);
                for (number, quant) in group.iter().zip(&mut quants) {
                    // Adding this rounds a small number to a whole one, which is then in the lowest bits.
                    const ROUND: f32 = 12_582_912.0;
                    let number = (number * inverse).clamp(-127.0, 127.0);
                    #[expect(clippy::cast_possible_truncation, reason = "the lowest byte is wanted")]
                    let rounded = (number + ROUND).to_bits() as u8;
                    *quant = rounded;
                }
            }
        }
    }
}

/// The nearest half-precision number; infinity becomes the largest finite one, NaN stays NaN.
fn half(number: f32) -> f16 {
    let most = f16::MAX.to_f32();
    f16::from_f32(number.clamp(-most, most))
}

/// Scale of a group: what its rounded numbers are multiplied by. NaN if a number of the group is NaN.
fn factor(group: &[f32]) -> f16 {
    // `f32::max` would ignore NaN.
    let largest =
        group.iter().map(|number| number.abs()).fold(0.0_f32, |a, b| if b > a || b.is_nan() { b } else { a });
    half(largest / 127.0)
}

/// Inverse scale of a group, by which numbers are multiplied before they are rounded; zero if all become
/// zero.
fn inverse(factor: f16) -> f32 {
    let factor = factor.to_f32();
    if factor > 0.0 { 1.0 / factor } else { 0.0 }
}

/// The keys or the values of a head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head<'a> {
    side: Side,
    format: KvFormat,
    head_dim: usize,
    layout: SpanLayout,
    /// The number of what this head has here, among all parts.
    part: usize,
    /// The memory of all parts.
    bytes: &'a [u8],
}

impl<'a> Head<'a> {
    /// Floats that [`floats`](Self::floats) writes for each block.
    pub(crate) fn buffer(self) -> usize {
        match self.format {
            KvFormat::F32 => 0,
            KvFormat::F16 | KvFormat::Q8_0 => KEYS * self.head_dim,
        }
    }

    /// The bytes of some blocks, all of one span.
    #[inline(always)]
    fn stored(self, blocks: Range<usize>) -> &'a [u8] {
        debug_assert!(blocks.is_empty() || blocks.start / SPAN == (blocks.end - 1) / SPAN, "{blocks:?}");
        let start = self.layout.start(self.part, blocks.start);
        &self.bytes[start..start + blocks.len() * self.layout.size]
    }

    /// Converts some blocks of one span to floats, in the order of their side; into `buffer` if they are
    /// stored otherwise.
    #[inline(always)]
    pub(crate) fn floats<'b, S: Simd>(self, simd: S, blocks: Range<usize>, buffer: &'b mut [f32]) -> &'b [f32]
    where
        'a: 'b,
    {
        let count = blocks.len();
        let bytes = self.stored(blocks);
        if self.format == KvFormat::F32 {
            return bytemuck::try_cast_slice(bytes).unwrap_or_default();
        }
        let floats = &mut buffer[..count * self.buffer()];
        let blocks = bytes.chunks_exact(self.layout.size).zip(floats.chunks_exact_mut(self.buffer()));
        for (block, floats) in blocks {
            match (self.format, self.side) {
                (KvFormat::Q8_0, Side::Keys) => quantised_keys(simd, block, floats),
                (KvFormat::Q8_0, Side::Values) => quantised_values(simd, block, floats),
                _ => wide_halves(simd, block, floats),
            }
        }
        floats
    }
}

/// Converts half-precision numbers to floats.
#[inline(always)]
fn wide_halves<S: Simd>(simd: S, block: &[u8], floats: &mut [f32]) {
    let floats = floats.as_chunks_mut::<KEYS>().0.iter_mut();
    let halves = block.as_chunks::<{ 2 * KEYS }>().0.iter().zip(floats);
    // Where vectors have sixteen lanes there is an instruction for this.
    #[cfg(target_arch = "x86_64")]
    if let (16, Some(wide)) = (S::F32_LANES, Avx512f::try_new()) {
        for (halves, floats) in halves {
            *floats = bytemuck::cast(wide._mm512_cvtph_ps(bytemuck::cast(*halves)));
        }
        return;
    }
    for (halves, floats) in halves {
        *floats = packing::halves::<S>(simd, halves);
    }
}

/// Converts signed bytes to floats, each times a factor.
#[inline(always)]
fn scaled<const N: usize>(quants: &[u8; N], factors: &[f32; N], floats: &mut [f32; N]) {
    for lane in 0..N {
        floats[lane] = f32::from(quants[lane].cast_signed()) * factors[lane];
    }
}

/// Converts quantised keys: a vector holds 16 positions, each with its own factor.
#[inline(always)]
fn quantised_keys<S: Simd>(simd: S, block: &[u8], floats: &mut [f32]) {
    let (quants, factors) = block.split_at(floats.len());
    let (quants, floats) = (quants.as_chunks::<KEYS>().0, floats.as_chunks_mut::<KEYS>().0);
    let groups = quants.chunks(GROUP).zip(floats.chunks_mut(GROUP));
    for ((quants, floats), factors) in groups.zip(factors.chunks_exact(2 * KEYS)) {
        let factors = packing::halves::<S>(simd, factors);
        for (quants, floats) in quants.iter().zip(floats) {
            scaled(quants, &factors, floats);
        }
    }
}

/// Converts quantised values: a row has a factor for each group.
#[inline(always)]
fn quantised_values<S: Simd>(simd: S, block: &[u8], floats: &mut [f32]) {
    let (quants, factors) = block.split_at(floats.len());
    let head_dim = floats.len() / KEYS;
    for (group, factors) in factors.chunks_exact(2 * KEYS).enumerate() {
        let factors = packing::halves::<S>(simd, factors);
        let numbers = group * GROUP..head_dim.min((group + 1) * GROUP);
        for (position, factor) in factors.into_iter().enumerate() {
            let (from, to) = (position * head_dim + numbers.start, position * head_dim + numbers.end);
            let (whole, rest) = quants[from..to].as_chunks::<KEYS>();
            let (floats, floats_rest) = floats[from..to].as_chunks_mut::<KEYS>();
            for (quants, floats) in whole.iter().zip(floats) {
                scaled(quants, &[factor; KEYS], floats);
            }
            for (float, quant) in floats_rest.iter_mut().zip(rest) {
                *float = f32::from(quant.cast_signed()) * factor;
            }
        }
    }
}

/// Positions of a span: blocks of a head that lie next to each other.
pub(super) const SPAN_POSITIONS: usize = SPAN * KEYS;
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
    fn shrunk(&self, positions: usize) -> Result<Self> {
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
    fn of_position(&self) -> usize {
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
        let rows = floats_of(&storage, strides)?;
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

    /// Writes `rows` (`[n, width]`) in the place of keys and values, from `position` on: of `layer`, and of
    /// as many after it as they need.
    ///
    /// # Errors
    /// If they do not fit, or there are no such layers.
    fn write_rows(&mut self, layer: usize, rows: &Tensor, position: usize) -> Result<()> {
        let (count, width) = rows.dims2()?;
        let side = self.heads * self.head_dim;
        let layers = width.div_ceil(2 * side);
        let rows = rows.pad_with_zeros(1, 0, layers * 2 * side - width)?;
        for (index, own) in (0..2 * layers).map(|index| (index, index % 2)) {
            let heads = rows.narrow(1, index * side, side)?.reshape((count, self.heads, self.head_dim))?;
            let heads = heads.transpose(0, 1)?.contiguous()?;
            self.write(layer + index / 2, Side::ALL[own], &heads, position)?;
        }
        Ok(())
    }

    /// Reads rows of `width` numbers of some positions, which were written in the place of keys and values
    /// from `layer` on: one after the other.
    fn rows(&self, layer: usize, positions: Range<usize>, width: usize) -> Vec<f32> {
        let Self { format, head_dim, layout, heads, .. } = *self;
        let mut rows = vec![0.0; positions.len() * width];
        let mut buffer = vec![0.0; KEYS * head_dim];
        let first = self.parts(layer, Side::Keys).start;
        for (index, column) in (0..width).step_by(head_dim).enumerate() {
            let side = Side::ALL[index / heads % 2];
            let head =
                Head { side, format, head_dim, layout, part: first + index, bytes: self.memory.bytes() };
            let [step, stride] = if side == Side::Keys { [KEYS, 1] } else { [1, head_dim] };
            for position in positions.clone() {
                let block = position / KEYS;
                let floats = head.floats(Scalar::new(), block..block + 1, &mut buffer);
                let own = floats.iter().skip(position % KEYS * stride).step_by(step);
                let row = &mut rows[(position - positions.start) * width..][..width];
                row[column..].iter_mut().take(head_dim).zip(own).for_each(|(to, from)| *to = *from);
            }
        }
        rows
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

/// Keys and values of all layers, and the states of those that have them in place of these.
#[derive(Debug)]
pub(crate) struct CpuCache {
    /// Layers whose heads have the same sizes, one group after the other.
    memories: Vec<KvMemory>,
    context: usize,
    len: usize,
    /// The most tokens that were written.
    written: usize,
    states: Vec<DeltaState>,
    /// The tokens held, if there are states: to run some again where a state has seen too many.
    tokens: Vec<u32>,
}

impl CpuCache {
    /// An empty cache for `context` tokens, of some layers, with heads and numbers of a head, one after the
    /// other. Its memory is taken as tokens come.
    ///
    /// # Errors
    /// If its bytes exceed the address space.
    pub(crate) fn new(layers: &[[usize; 3]], context: usize, format: KvFormat) -> Result<Self> {
        let memory =
            |&[layers, heads, size]: &[usize; 3]| KvMemory::new(layers, [heads, context, size], format);
        let memories = layers.iter().map(memory).collect::<Result<_>>()?;
        Ok(Self { memories, context, len: 0, written: 0, states: Vec::new(), tokens: Vec::new() })
    }

    /// The number of the memory that has a layer, and the layer's number there.
    fn place(&self, mut layer: usize) -> Result<(usize, usize)> {
        for (index, memory) in self.memories.iter().enumerate() {
            if layer < memory.layers {
                return Ok((index, layer));
            }
            layer -= memory.layers;
        }
        candle_core::bail!("no such layer in the cache")
    }

    /// Gives the empty cache states of this many layers.
    pub(crate) fn with_states(mut self, layers: usize) -> Self {
        self.states.resize_with(layers, DeltaState::default);
        self
    }

    /// A state, by its number.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn state(&mut self, number: usize) -> Result<&mut DeltaState> {
        match self.states.get_mut(number) {
            Some(state) => Ok(state),
            None => candle_core::bail!("no state {number} in the cache"),
        }
    }

    /// Goes back to where all states can go on, if they cannot go on after the tokens held. Returns the
    /// tokens from there on, which must be run again; [`stay`](Self::stay) undoes it.
    pub(crate) fn go_back(&mut self) -> Vec<u32> {
        if self.states.iter().all(|state| state.reaches(self.len)) {
            return Vec::new();
        }
        let mut saved = self.states.iter().map(|state| state.saved(self.len));
        let start = saved.next().unwrap_or_default();
        let start = if saved.all(|other| other == start) { start } else { 0 };
        self.states.iter_mut().for_each(|state| state.go_back(start > 0));
        self.len = start;
        self.tokens[start..].to_vec()
    }

    /// Holds `len` tokens again, or fewer, after a pass that failed.
    pub(crate) fn stay(&mut self, len: usize) {
        self.len = if self.states.is_empty() { self.len.min(len) } else { len };
        self.tokens.truncate(len);
    }

    /// Number of tokens held.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Number of tokens for which a text of `tokens` tokens takes memory: whole spans and pages, at most the
    /// context.
    pub(crate) fn reserved(&self, tokens: usize) -> usize {
        let taken = self.memories.iter().map(|memory| memory.taken(tokens.min(self.context)));
        let of_position: usize = self.memories.iter().map(KvMemory::of_position).sum();
        taken.sum::<usize>().div_ceil(of_position.max(1)).min(self.context)
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
        let shrunk = self.memories.iter().map(|memory| memory.shrunk(self.len));
        self.memories = shrunk.collect::<Result<_>>()?;
        self.written = self.len;
        Ok(())
    }

    /// Tokens that fit.
    pub(crate) fn context(&self) -> usize {
        self.context
    }

    /// Writes keys and values (`[kv_heads, n, head_dim]`) of the tokens after the ones held.
    ///
    /// # Errors
    /// If the shapes do not fit or there is no such layer.
    pub(crate) fn extend(&mut self, layer: usize, keys: &Tensor, values: &Tensor) -> Result<()> {
        let count = keys.dim(1)?.max(values.dim(1)?);
        let (memory, own) = self.place(layer)?;
        self.memories[memory].write(own, Side::Keys, keys, self.len)?;
        self.memories[memory].write(own, Side::Values, values, self.len)?;
        self.written = self.written.max(self.len + count);
        Ok(())
    }

    /// Returns the keys and values of a layer, also those that this pass wrote.
    ///
    /// # Errors
    /// If there is no such layer.
    pub(crate) fn sides(&self, layer: usize) -> Result<(KvBlocks<'_>, KvBlocks<'_>)> {
        let (memory, layer) = self.place(layer)?;
        let memory = &self.memories[memory];
        Ok((memory.side(layer, Side::Keys), memory.side(layer, Side::Values)))
    }

    /// Writes the inputs `rows` (`[n, width]`) of the convolution of the tokens after the ones held, in the
    /// place of keys and values from `layer` on, and returns those of `before` tokens before them (of fewer
    /// if there are not as many) and of these.
    ///
    /// # Errors
    /// If the shapes do not fit or there is no such layer.
    pub(crate) fn extend_rows(&mut self, layer: usize, rows: &Tensor, before: usize) -> Result<Vec<f32>> {
        let (count, width) = rows.dims2()?;
        let end = self.len + count;
        let (memory, layer) = self.place(layer)?;
        self.memories[memory].write_rows(layer, rows, self.len)?;
        self.written = self.written.max(end);
        Ok(self.memories[memory].rows(layer, self.len.saturating_sub(before)..end, width))
    }

    /// Commits tokens that were written to every layer.
    pub(crate) fn commit(&mut self, tokens: &[u32]) {
        if !self.states.is_empty() {
            // Of tokens that were run again some are there.
            let there = self.tokens.len().saturating_sub(self.len).min(tokens.len());
            self.tokens.extend_from_slice(&tokens[there..]);
        }
        self.len = (self.len + tokens.len()).min(self.context);
    }

    /// Forgets all but the first `len` tokens; `len` is at most what is held. Constant time.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        self.tokens.truncate(len);
    }

    /// A copy of the keys and values of whole blocks of positions; `None` if they are not held, or not whole,
    /// or there are states, of which these are no copy.
    pub(crate) fn copy_out(&self, positions: Range<usize>) -> Option<KvCopy> {
        let whole = positions.start.is_multiple_of(KEYS) && positions.end.is_multiple_of(KEYS);
        if !whole || positions.is_empty() || positions.end > self.len || !self.states.is_empty() {
            return None;
        }
        let blocks = positions.start / KEYS..positions.end / KEYS;
        let copies = self.memories.iter().map(|memory| memory.copy_out(blocks.clone()));
        let bytes = copies.reduce(|mut all, more| {
            all.extend(more);
            all
        });
        Some(KvCopy::new(positions.len(), bytes?))
    }

    /// Appends copied keys and values to whole blocks; says whether that was done.
    pub(crate) fn copy_in(&mut self, copy: &KvCopy) -> bool {
        let positions = copy.positions();
        let whole = self.len.is_multiple_of(KEYS) && positions.is_multiple_of(KEYS);
        let blocks = self.len / KEYS..(self.len + positions) / KEYS;
        let size: usize = self.memories.iter().map(|memory| memory.copied(blocks.len())).sum();
        if !whole || self.len + positions > self.context || size != copy.bytes() || !self.states.is_empty() {
            return false;
        }
        let mut rest = copy.content();
        for memory in &mut self.memories {
            let (own, after) = rest.split_at(memory.copied(blocks.len()));
            memory.copy_in(blocks.clone(), own);
            rest = after;
        }
        self.len += positions;
        self.written = self.written.max(self.len);
        true
    }

    /// The memory of keys and values.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> &KvMemory {
        &self.memories[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_fill_the_memory_without_gaps_from_its_start() {
        for (parts, blocks, size) in
            [(1, 1, 4), (2, 3, 1), (3, 4, 8), (4, 5, 2), (6, 8, 3), (5, 11, 7), (12, 13, 16)]
        {
            let layout = SpanLayout { parts, blocks, size };
            let mut starts: Vec<usize> =
                (0..parts).flat_map(|part| (0..blocks).map(move |block| layout.start(part, block))).collect();
            // Those of the first blocks are in the prefix, and the next span is behind it.
            for held in 0..=blocks {
                let prefix = layout.prefix(held);
                for part in 0..parts {
                    assert!((0..held).all(|block| layout.start(part, block) < prefix));
                    let next = held.next_multiple_of(SPAN);
                    assert!((next..blocks).all(|block| layout.start(part, block) >= prefix));
                    for block in (1..blocks).filter(|block| !block.is_multiple_of(SPAN)) {
                        assert_eq!(layout.start(part, block), layout.start(part, block - 1) + size);
                    }
                }
            }
            starts.sort_unstable();
            let expected: Vec<usize> = (0..parts * blocks).map(|place| place * size).collect();
            assert_eq!(starts, expected, "{layout:?}");
            assert_eq!(layout.prefix(blocks), parts * blocks * size);
            assert_eq!(layout.span(), SpanLayout { blocks: SPAN, ..layout }.prefix(1));
        }
    }
}

#[cfg(test)]
mod spans_tests;

#[cfg(test)]
mod cache_tests;
