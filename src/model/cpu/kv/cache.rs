//! Keys and values of the tokens that a sequence has seen, on the CPU.
//!
//! Invariant: positions `0..len` of every layer are valid; garbage past them is overwritten by the next
//! write. So truncation only lowers `len`, and a pass that fails before `commit` has changed nothing that can
//! be seen.

use std::ops::Range;

use candle_core::{Result, Tensor};

use super::blocks::{KEYS, KvBlocks, Side};
use crate::model::{KvCopy, formats::kv_format::KvFormat};

/// Keys and values of all layers.
#[derive(Debug)]
pub(crate) struct CpuCache {
    layers: Vec<[KvBlocks; 2]>,
    context: usize,
    len: usize,
    /// The most tokens that it has held.
    touched: usize,
}

impl CpuCache {
    /// An empty cache for `context` tokens. Allocates its memory.
    ///
    /// # Errors
    /// If its bytes exceed the address space.
    pub(crate) fn new(layers: usize, sizes: [usize; 3], format: KvFormat) -> Result<Self> {
        let layer =
            |_| Ok([KvBlocks::new(Side::Keys, format, sizes)?, KvBlocks::new(Side::Values, format, sizes)?]);
        Ok(Self {
            layers: (0..layers).map(layer).collect::<Result<_>>()?,
            context: sizes[1],
            len: 0,
            touched: 0,
        })
    }

    /// Number of tokens held.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The most tokens that it has held, which took memory.
    pub(crate) fn touched(&self) -> usize {
        self.touched
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
    ) -> Result<(&KvBlocks, &KvBlocks)> {
        let Some([own_keys, own_values]) = self.layers.get_mut(layer) else {
            candle_core::bail!("no layer {layer} in the cache");
        };
        own_keys.write(keys, self.len)?;
        own_values.write(values, self.len)?;
        Ok((own_keys, own_values))
    }

    /// Commits `count` tokens, which were written to every layer.
    pub(crate) fn commit(&mut self, count: usize) {
        self.len = (self.len + count).min(self.context);
        self.touched = self.touched.max(self.len);
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
        let blocks = positions.start / KEYS..positions.end / KEYS;
        let mut bytes = Vec::new();
        self.layers.iter().flatten().for_each(|side| side.copy_out(blocks.clone(), &mut bytes));
        Some(KvCopy::new(positions.len(), bytes))
    }

    /// Appends copied keys and values to whole blocks; says whether that was done.
    pub(crate) fn copy_in(&mut self, copy: &KvCopy) -> bool {
        let positions = copy.positions();
        let whole = self.len.is_multiple_of(KEYS) && positions.is_multiple_of(KEYS);
        let blocks = self.len / KEYS..(self.len + positions) / KEYS;
        let size: usize = self.layers.iter().flatten().map(|side| side.copied(blocks.len())).sum();
        if !whole || self.len + positions > self.context || size != copy.bytes() {
            return false;
        }
        let mut bytes = copy.content();
        for side in self.layers.iter_mut().flatten() {
            let (own, rest) = bytes.split_at(side.copied(blocks.len()));
            side.copy_in(blocks.clone(), own);
            bytes = rest;
        }
        self.len += positions;
        self.touched = self.touched.max(self.len);
        true
    }

    /// Bytes of keys and values in all.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.layers.iter().flatten().map(KvBlocks::bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    #[test]
    fn the_cache_holds_committed_and_not_truncated_positions() {
        let filled = |value: f32, count: usize| Tensor::full(value, (2, count, 4), &Device::Cpu).unwrap();
        for format in [KvFormat::F32, KvFormat::F16, KvFormat::Q8_0] {
            let mut cache = CpuCache::new(1, [2, 20, 4], format).unwrap();
            // Whole blocks of 16 positions of keys and of values.
            assert_eq!(cache.bytes(), 2 * 2 * 32 * format.bytes(4).unwrap());
            cache.extend(0, &filled(1.0, 18), &filled(1.0, 18)).unwrap();
            assert_eq!(cache.len(), 0);
            cache.commit(18);
            cache.truncate(3);
            cache.truncate(5);
            assert_eq!((cache.len(), cache.context()), (3, 20));
            cache.extend(0, &filled(2.0, 1), &filled(2.0, 1)).unwrap();
            assert!(cache.extend(0, &filled(0.0, 30), &filled(0.0, 30)).is_err());
            assert!(cache.extend(1, &filled(0.0, 1), &filled(0.0, 1)).is_err());
        }
    }
}
