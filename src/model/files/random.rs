//! Models of random weights, for measurements: the time of a pass depends on sizes and formats alone.

use half::f16;

use super::config::{Config, DeltaNet, LayerSet, Rope, Scaling};
use super::weights::Weights;
use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::formats::Format;
use crate::split_mix::SplitMix64;

/// Sizes of a model like Llama or Qwen 3.5 whose weights are random, for measurements.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RandomModel {
    /// Width of the stream between layers.
    pub hidden: usize,
    /// Width inside a layer.
    pub intermediate: usize,
    /// Blocks of attention and multilayer perceptron.
    pub layers: usize,
    /// Heads of queries; they share `hidden`, or have 256 numbers each if there are states.
    pub heads: usize,
    /// Heads of keys and values.
    pub kv_heads: usize,
    /// True if three of four layers have the state of a gated delta net, of 32 heads.
    pub states: bool,
    /// Number of tokens. The output matrix is the embedding.
    pub vocabulary: usize,
    /// Number format of matrices.
    pub format: Format,
}

impl RandomModel {
    /// Names that [`preset`](Self::preset) knows.
    pub const PRESETS: [&str; 5] = ["13m", "110m", "1b", "7b", "qwen3.5-4b"];

    /// Returns a well-known shape: `13m` (the shipped model's), `110m` (12 layers of 768), `1b` (22 of 2048),
    /// `7b` (32 of 4096) or `qwen3.5-4b` (32 of 2560, of which 24 have states; with 32,000 tokens as all).
    #[must_use]
    pub fn preset(name: &str, format: Format) -> Option<Self> {
        let [hidden, intermediate, layers, heads, kv_heads] = match name.to_ascii_lowercase().as_str() {
            "13m" => [256, 768, 6, 8, 4],
            "110m" => [768, 2048, 12, 12, 12],
            "1b" => [2048, 5632, 22, 32, 4],
            "7b" => [4096, 11008, 32, 32, 32],
            "qwen3.5-4b" => [2560, 9216, 32, 16, 4],
            _ => return None,
        };
        let states = name.eq_ignore_ascii_case("qwen3.5-4b");
        Some(Self { hidden, intermediate, layers, heads, kv_heads, states, vocabulary: 32_000, format })
    }

    /// The configuration of the model.
    pub(crate) fn config(&self) -> Result<Config, ModelError> {
        let head_dim =
            if self.states { 256 } else { self.hidden.checked_div(self.heads).unwrap_or_default() };
        let net = DeltaNet {
            key_heads: 16,
            value_heads: 32,
            key_dim: 128,
            value_dim: 128,
            width: 4,
            is_converted: true,
        };
        let config = Config {
            hidden: self.hidden,
            intermediate: self.intermediate,
            layers: self.layers,
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_dim,
            vocabulary: self.vocabulary,
            max_positions: 1 << 20,
            norm_epsilon: 1e-5,
            rope: Rope { theta: 1e4, scaling: Scaling::None },
            rotary_dim: if self.states { head_dim / 4 } else { head_dim },
            attention: if self.states { LayerSet::Each(4) } else { LayerSet::All },
            gated: self.states,
            delta: self.states.then_some(net),
            tied: true,
            ..Config::default()
        };
        config.check().map_err(ModelErrorKind::InvalidConfig)?;
        Ok(config)
    }
}

/// The weights of a [`RandomModel`], made as they are asked for.
#[derive(Debug)]
pub(crate) struct RandomWeights {
    format: Format,
    blocks: RandomBlocks,
}

impl RandomWeights {
    /// Makes matrices in `format`, the same each time.
    pub(crate) fn new(format: Format) -> Self {
        Self { format, blocks: RandomBlocks::new(1) }
    }

    fn blocks_of(&self, columns: usize) -> Result<usize, ModelError> {
        if columns.is_multiple_of(self.format.block()) {
            return Ok(columns / self.format.block());
        }
        let reason = format!("rows of {columns} numbers are no whole blocks of {}", self.format);
        Err(ModelErrorKind::InvalidConfig(reason).into())
    }
}

impl Weights for RandomWeights {
    fn format(&self, _name: &str, shape: &[usize]) -> Result<Format, ModelError> {
        match *shape {
            [_, columns] => self.blocks_of(columns).map(|_| self.format),
            _ => Ok(Format::F32),
        }
    }

    fn read(
        &mut self,
        name: &str,
        shape: &[usize],
        each: &mut dyn FnMut(Format, &[u8]),
    ) -> Result<(), ModelError> {
        let format = self.format(name, shape)?;
        let [rows, columns] = *shape else { return Ok(()) };
        let blocks = self.blocks_of(columns)?;
        let mut stored = Vec::new();
        for _ in 0..rows {
            stored.clear();
            self.blocks.write(format, blocks, &mut stored);
            each(format, &stored);
        }
        Ok(())
    }

    fn vector(&mut self, _name: &str, length: usize) -> Result<Vec<f32>, ModelError> {
        Ok(vec![1.0; length])
    }
}

/// Generator of random blocks.
#[derive(Debug)]
pub(crate) struct RandomBlocks {
    random: SplitMix64,
}

impl RandomBlocks {
    /// Starts the generator; the same seed makes the same blocks.
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: SplitMix64::new(seed) }
    }

    /// Draws a number uniformly from -0.05 .. 0.05.
    fn small(&mut self) -> f32 {
        #[expect(clippy::cast_precision_loss, reason = "24 bits fit")]
        let unit = (self.random.bits() >> 40) as f32 / 16_777_216.0;
        0.1 * unit - 0.05
    }

    /// Appends `blocks` blocks of numbers of about -0.1 to 0.1.
    pub(crate) fn write(&mut self, format: Format, blocks: usize, out: &mut Vec<u8>) {
        let factor = |value: f32| f16::from_f32(value).to_le_bytes();
        for _ in 0..blocks {
            match format {
                Format::F32 => out.extend(self.small().to_le_bytes()),
                Format::F16 => out.extend(factor(self.small())),
                Format::Bf16 => out.extend(half::bf16::from_f32(self.small()).to_le_bytes()),
                _ => {
                    let start = out.len();
                    let end = start + format.block_bytes();
                    while out.len() < end {
                        out.extend(self.random.bits().to_le_bytes());
                    }
                    out.truncate(end);
                    let block = &mut out[start..];
                    // A number is factor * quant + other, or factor * scale * quant - other * scale.
                    match format {
                        Format::Q6K => block[208..].copy_from_slice(&factor(2e-5)),
                        Format::Q4K | Format::Q5K => {
                            block[..2].copy_from_slice(&factor(2e-4));
                            block[2..4].copy_from_slice(&factor(1.5e-3));
                        }
                        Format::Q8_0 => block[..2].copy_from_slice(&factor(8e-4)),
                        _ => {
                            block[..2].copy_from_slice(&factor(1e-2));
                            if matches!(format, Format::Q4_1 | Format::Q5_1) {
                                block[2..4].copy_from_slice(&factor(-0.08));
                            }
                        }
                    }
                }
            }
        }
    }
}
