//! Keys and values of the tokens seen, in tensors allocated once.
//!
//! Invariant: positions `0..len` of every layer are valid; garbage past them is overwritten by the next
//! write. So truncation only lowers `len`, and a pass that fails before `commit` has changed nothing that can
//! be seen.

use candle_core::{DType, Device, Result, Tensor};

/// One layer's keys and values, each `[kv_heads, context, head_dim]`.
#[derive(Debug)]
struct Layer {
    keys: Tensor,
    values: Tensor,
}

/// Keys and values of all layers.
#[derive(Debug)]
pub(super) struct KvCache {
    layers: Vec<Layer>,
    context: usize,
    len: usize,
}

impl KvCache {
    /// An empty cache for `context` tokens. Allocates `2 * layers * kv_heads * context * head_dim` numbers.
    ///
    /// # Errors
    /// If the tensors cannot be made.
    pub(super) fn new(
        layers: usize,
        [kv_heads, context, head_dim]: [usize; 3],
        numbers: DType,
        device: &Device,
    ) -> Result<Self> {
        let zeros = || Tensor::zeros((kv_heads, context, head_dim), numbers, device);
        let layers =
            (0..layers).map(|_| Ok(Layer { keys: zeros()?, values: zeros()? })).collect::<Result<_>>()?;
        Ok(Self { layers, context, len: 0 })
    }

    /// Number of tokens held.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Number of tokens that fit.
    pub(super) fn context(&self) -> usize {
        self.context
    }

    /// Keys and values of each layer, `[kv_heads, context, head_dim]`.
    pub(super) fn tensors(&self) -> impl Iterator<Item = [&Tensor; 2]> {
        self.layers.iter().map(|layer| [&layer.keys, &layer.values])
    }

    /// Writes keys and values (`[kv_heads, n, head_dim]`) of the tokens after the ones held, and returns
    /// views of positions `from .. len + n` of both.
    ///
    /// # Errors
    /// If the shapes do not fit or there is no such layer.
    pub(super) fn extend(
        &self,
        layer: usize,
        keys: &Tensor,
        values: &Tensor,
        from: usize,
    ) -> Result<(Tensor, Tensor)> {
        let Some(layer) = self.layers.get(layer) else {
            candle_core::bail!("no layer {layer} in the cache");
        };
        let (_kv_heads, new, _head_dim) = keys.dims3()?;
        layer.keys.slice_set(keys, 1, self.len)?;
        layer.values.slice_set(values, 1, self.len)?;
        let count = (self.len + new).saturating_sub(from);
        Ok((layer.keys.narrow(1, from, count)?, layer.values.narrow(1, from, count)?))
    }

    /// Commits `count` tokens, which were written to every layer.
    pub(super) fn commit(&mut self, count: usize) {
        self.len = (self.len + count).min(self.context);
    }

    /// Forgets all but the first `len` tokens; `len` is at most what is held. Constant time.
    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(value: f32, count: usize) -> Tensor {
        Tensor::full(value, (2, count, 4), &Device::Cpu).unwrap()
    }

    #[test]
    fn the_cache_holds_committed_and_not_truncated_positions() {
        let mut cache = KvCache::new(1, [2, 5, 4], DType::F32, &Device::Cpu).unwrap();
        let (keys, _) = cache.extend(0, &filled(1.0, 3), &filled(1.0, 3), 0).unwrap();
        assert_eq!(keys.dims(), [2, 3, 4]);
        cache.commit(3);
        cache.truncate(1);
        cache.truncate(2);
        assert_eq!((cache.len(), cache.context()), (1, 5));
        let (_, values) = cache.extend(0, &filled(2.0, 1), &filled(2.0, 1), 0).unwrap();
        let values: Vec<Vec<Vec<f32>>> = values.to_vec3().unwrap();
        assert_eq!(values[1], [[1.0; 4], [2.0; 4]]);
        assert!(cache.extend(0, &filled(0.0, 5), &filled(0.0, 5), 0).is_err());
        assert!(cache.extend(1, &filled(0.0, 1), &filled(0.0, 1), 0).is_err());
    }
}
