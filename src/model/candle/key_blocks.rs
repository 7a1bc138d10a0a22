//! How the CPU's cache keeps keys: in blocks of 16 positions, the same number of all of them next to each other.
//!
//! So the scores of 16 keys are one chain of multiply-adds in a vector each, and no sum over a vector's lanes is
//! needed, which would take longer than the products.

use candle_core::{CpuStorage, InplaceOp2, Layout, Result, Tensor};

/// Positions of a block.
pub(super) const KEYS: usize = 16;

/// The shape of the keys of a layer, `[heads, blocks, head_dim, KEYS]`, with room for `context` positions.
pub(super) fn shape([heads, context, head_dim]: [usize; 3]) -> (usize, usize, usize, usize) {
    (heads, context.div_ceil(KEYS), head_dim, KEYS)
}

/// Writes `keys` (`[heads, n, head_dim]`) to their places in `blocks`, from `position` on.
///
/// # Errors
/// If they do not fit.
pub(super) fn write(blocks: &Tensor, keys: &Tensor, position: usize) -> Result<()> {
    blocks.inplace_op2(keys, &Write { position })
}

struct Write {
    position: usize,
}

impl InplaceOp2 for Write {
    fn name(&self) -> &'static str {
        "write-keys"
    }

    fn cpu_fwd(
        &self,
        blocks: &mut CpuStorage,
        blocks_layout: &Layout,
        keys: &CpuStorage,
        keys_layout: &Layout,
    ) -> Result<()> {
        let (own_heads, own_blocks, size, _) = blocks_layout.shape().dims4()?;
        let (heads, count, head_dim) = keys_layout.shape().dims3()?;
        let CpuStorage::F32(blocks) = blocks else { candle_core::bail!("keys are f32") };
        let contiguous = blocks_layout.is_contiguous() && keys_layout.is_contiguous();
        let fit = heads == own_heads && head_dim == size && self.position + count <= own_blocks * KEYS;
        if !(contiguous && fit) {
            candle_core::bail!("keys do not fit the cache");
        }
        let blocks = &mut blocks[blocks_layout.start_offset()..];
        let keys = &keys.as_slice::<f32>()?[keys_layout.start_offset()..];
        let heads = keys.chunks_exact(count * size).zip(blocks.chunks_exact_mut(own_blocks * size * KEYS));
        for (keys, blocks) in heads {
            for (position, key) in (self.position..).zip(keys.chunks_exact(size)) {
                let block = &mut blocks[position / KEYS * size * KEYS..][..size * KEYS];
                let places = block.iter_mut().skip(position % KEYS).step_by(KEYS);
                places.zip(key).for_each(|(place, number)| *place = *number);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device};

    use super::*;

    #[test]
    fn a_number_of_sixteen_keys_lies_together() {
        let sizes = [2, 40, 3];
        let blocks = Tensor::zeros(shape(sizes), DType::F32, &Device::Cpu).unwrap();
        let keys = Tensor::arange(0.0_f32, 2.0 * 20.0 * 3.0, &Device::Cpu).unwrap();
        let keys = keys.reshape((2, 20, 3)).unwrap();
        write(&blocks, &keys, 10).unwrap();
        // Rewriting some changes nothing else.
        write(&blocks, &keys.narrow(1, 4, 2).unwrap().contiguous().unwrap(), 14).unwrap();
        let blocks: Vec<Vec<Vec<f32>>> =
            blocks.flatten(1, 1).unwrap().flatten_to(1).unwrap().to_vec3().unwrap();
        for (head, position, number) in
            [(0, 10, 0), (0, 15, 2), (1, 16, 1), (1, 29, 2), (0, 9, 0), (1, 30, 1)]
        {
            let expected = match position {
                10..30 => (head * 20 + position - 10) * 3 + number,
                _ => 0,
            };
            assert_eq!(blocks[head * 3 + position / KEYS][number][position % KEYS], expected as f32);
        }
        assert!(write(&Tensor::zeros(shape(sizes), DType::F32, &Device::Cpu).unwrap(), &keys, 29).is_err());
    }
}
