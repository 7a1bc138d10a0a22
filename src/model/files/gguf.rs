//! Tensors of a GGUF file, or of all parts of one, under the names that Hugging Face gives them.
//!
//! Invariant: rows come out in Hugging Face's order. For some architectures, GGUF files keep the two numbers
//! that are rotated together side by side, Hugging Face half a head apart.

use std::{fs::File, path::PathBuf};

use half::f16;

use super::weights::{self, Weights};
use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::formats::{self, Format};
use domino_engine::gguf::{Gguf, Tensor};

/// The weights of a GGUF file, opened but not read.
#[derive(Debug)]
pub(crate) struct GgufWeights<'a> {
    gguf: &'a Gguf,
    files: Vec<(PathBuf, File)>,
    /// Size of a head, if rows of queries and keys must be reordered.
    head_dim: Option<usize>,
    /// True if what attention and the multilayer perceptron give is normalised.
    norms_after: bool,
}

impl<'a> GgufWeights<'a> {
    /// Opens the files. With `head_dim`, rows of queries and keys are reordered.
    ///
    /// # Errors
    /// If one cannot be opened.
    pub(crate) fn open(
        gguf: &'a Gguf,
        head_dim: Option<usize>,
        norms_after: bool,
    ) -> Result<Self, ModelError> {
        let open = |path: &PathBuf| {
            let file = File::open(path).map_err(|error| crate::model::error::file_error(path, error))?;
            Ok((path.clone(), file))
        };
        let files = gguf.files().iter().map(open).collect::<Result<_, ModelError>>()?;
        Ok(Self { gguf, files, head_dim, norms_after })
    }

    /// Finds a tensor of shape `expected`, or one in which it lies among those of all experts; also gives its
    /// format, the bytes of a row, and its first byte.
    fn find(&self, name: &str, expected: &[usize]) -> Result<(&'a Tensor, Format, usize, u64), ModelError> {
        let own = own_name(name, self.norms_after);
        let renamed =
            |(usual, other): (&str, &str)| Some(own.replace(usual, other)).filter(|name| *name != own);
        let other = || self.gguf.tensor(&OTHER_NAMES.into_iter().find_map(renamed)?);
        let both = || own.replace("_gate_exps.", "_gate_up_exps.").replace("_up_exps.", "_gate_up_exps.");
        let fused =
            || self.gguf.tensor(&both().replace("_gate_gate_", "_gate_")).map(|tensor| (tensor, true));
        let found = self.gguf.tensor(&own).or_else(other).map(|tensor| (tensor, false)).or_else(fused);
        let (tensor, is_fused) = found.ok_or_else(|| ModelErrorKind::MissingTensor(own.clone()))?;
        let first = match weights::of_expert(name) {
            Some(place) => weights::expert_rows(place, expected, &tensor.shape, is_fused),
            None => (tensor.shape == expected || weights::is_vector(&tensor.shape, expected)).then_some(0),
        };
        let Some(first) = first else {
            let (expected, found) = (expected.to_vec(), tensor.shape.clone());
            return Err(ModelErrorKind::Shape { tensor: own, expected, found }.into());
        };
        let levels = of_levels(tensor.format);
        let format = levels.map(|_| Format::Q8_0).or_else(|| Format::from_ggml(tensor.format));
        let format = format.ok_or_else(|| ModelErrorKind::NumberFormat {
            tensor: own.clone(),
            format: formats::ggml_name(tensor.format),
        })?;
        let columns = expected.last().copied().unwrap_or(1);
        let [numbers, bytes] = levels.unwrap_or([format.block(), format.block_bytes()]);
        let blocks = columns.is_multiple_of(numbers).then_some(columns / numbers);
        let row_bytes = blocks.and_then(|blocks| blocks.checked_mul(bytes)).ok_or_else(|| {
            let reason = format!("tensor {own} has rows of {columns} numbers, which are no whole blocks");
            ModelErrorKind::InvalidMetadata(reason)
        })?;
        let rows = expected.iter().product::<usize>() / columns.max(1);
        let bytes_of = |rows: usize| rows.checked_mul(row_bytes).and_then(|bytes| u64::try_from(bytes).ok());
        let bytes = first.checked_add(rows).and_then(bytes_of);
        if bytes.is_none_or(|bytes| bytes > tensor.room) {
            let file = self.files.get(tensor.file).map(|(path, _)| path.clone()).unwrap_or_default();
            let reason = format!("cut short or damaged: tensor {own} has {} bytes", tensor.room);
            return Err(ModelErrorKind::DamagedWeights { file, reason }.into());
        }
        let start = tensor.start.saturating_add(bytes_of(first).unwrap_or(u64::MAX));
        Ok((tensor, format, row_bytes, start))
    }
}

impl Weights for GgufWeights<'_> {
    fn format(&self, name: &str, shape: &[usize]) -> Result<Format, ModelError> {
        self.find(name, shape).map(|(_, format, ..)| format)
    }

    fn read(
        &mut self,
        name: &str,
        expected: &[usize],
        each: &mut dyn FnMut(Format, &[u8]),
    ) -> Result<(), ModelError> {
        let (tensor, format, row_bytes, start) = self.find(name, expected)?;
        let head = self.head_dim.filter(|_| name.contains(".q_proj.") || name.contains(".k_proj."));
        let missing = || ModelErrorKind::MissingTensor(name.to_owned());
        let (path, file) = self.files.get_mut(tensor.file).ok_or_else(missing)?;
        let (rows, size) = match expected {
            [rows, _] => (*rows, row_bytes),
            // Each number of a bias is a row.
            _ => (expected.iter().product(), format.block_bytes()),
        };
        let mut ordered = Vec::new();
        let mut is_finite = true;
        let sizes = [rows, size, head.unwrap_or(1)];
        let levels = of_levels(tensor.format);
        let mut give = |stored: &[u8]| {
            let made = levels.map(|[_, bytes]| as_q8_0(stored, bytes));
            let stored = made.as_deref().unwrap_or(stored);
            is_finite &= format.has_finite_factors(stored);
            each(format, stored);
        };
        weights::read_rows((&*path, file), name, start, sizes, |stored| {
            let Some(head) = head else { return give(stored) };
            ordered.clear();
            for head in stored.chunks_exact(head * size) {
                // A head has its pairs side by side: first come the left numbers of all, then the right ones.
                for side in 0..2 {
                    let own = head.chunks_exact(size).skip(side).step_by(2);
                    own.for_each(|row| ordered.extend_from_slice(row));
                }
            }
            give(&ordered);
        })?;
        if !is_finite {
            let reason = format!(
                "damaged: tensor {} has a block whose factor is not finite",
                own_name(name, self.norms_after)
            );
            return Err(ModelErrorKind::DamagedWeights { file: path.clone(), reason }.into());
        }
        Ok(())
    }

    fn vector(&mut self, name: &str, length: usize) -> Result<Vec<f32>, ModelError> {
        let format = self.format(name, &[length])?;
        if format.block() > 1 {
            let (tensor, format) = (own_name(name, self.norms_after), format!("{format:?}"));
            return Err(ModelErrorKind::NumberFormat { tensor, format }.into());
        }
        let mut values = Vec::with_capacity(length);
        self.read(name, &[length], &mut |format, stored| {
            values.extend(weights::floats(format, stored).unwrap_or_default());
        })?;
        Ok(values)
    }
}

/// The numbers that four bits mean in IQ4_NL and IQ4_XS.
const LEVELS: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// Numbers and bytes of a block of IQ4_NL or IQ4_XS, by its number among `ggml_type`; `None` for others.
fn of_levels(format: u32) -> Option<[usize; 2]> {
    match format {
        20 => Some([32, 18]),
        23 => Some([256, 136]),
        _ => None,
    }
}

/// Makes blocks of Q8_0 of blocks of IQ4_NL, whose numbers stay the same, or of IQ4_XS, of which the product
/// of two factors is rounded to 11 bits.
fn as_q8_0(stored: &[u8], bytes: usize) -> Vec<u8> {
    let mut made = Vec::new();
    let level = |bits: u8| LEVELS[usize::from(bits & 15)].cast_unsigned();
    for block in stored.chunks_exact(bytes) {
        // The quants are whole sixteens of bytes.
        let (head, quants) = block.split_at(bytes % 16);
        for (index, quants) in quants.chunks_exact(16).enumerate() {
            let factor = match *head {
                // Of each 32 numbers, two bits of their scale, and then four more that are lower.
                [d, e, high, higher, ref low @ ..] => {
                    let high = u16::from_le_bytes([high, higher]) >> (2 * index) & 3;
                    let low = low[index / 2] >> (4 * (index % 2)) & 15;
                    let scale = f32::from(16 * high + u16::from(low)) - 32.0;
                    f16::from_f32(f16::from_le_bytes([d, e]).to_f32() * scale)
                }
                _ => head.first_chunk().map_or(f16::ZERO, |bytes| f16::from_le_bytes(*bytes)),
            };
            made.extend(factor.to_le_bytes());
            made.extend(quants.iter().map(|&pair| level(pair)));
            made.extend(quants.iter().map(|&pair| level(pair >> 4)));
        }
    }
    made
}

/// Names of norms, and those that some architectures have in place of them: LFM2 and Qwen 3.5.
const OTHER_NAMES: [(&str, &str); 2] =
    [("output_norm", "token_embd_norm"), ("ffn_norm", "post_attention_norm")];

/// The name of a tensor in GGUF files. Names that Hugging Face does not use stay as they are. With norms
/// after attention and the multilayer perceptron, one name means another norm.
fn own_name(name: &str, norms_after: bool) -> String {
    let Some(rest) = name.strip_prefix("model.layers.") else {
        return match name {
            "model.embed_tokens.weight" => "token_embd.weight",
            "model.norm.weight" => "output_norm.weight",
            "lm_head.weight" => "output.weight",
            other => other,
        }
        .to_owned();
    };
    let parts: Vec<&str> = rest.split('.').collect();
    let (layer, part, suffix) = match *parts.as_slice() {
        [layer, "linear_attn", rate] => {
            let own = if rate == "A_log" { "ssm_a" } else { "ssm_dt.bias" };
            return format!("blk.{layer}.{own}");
        }
        [layer, "mlp", "experts", _, part, suffix] => {
            return format!("blk.{layer}.ffn_{}_exps.{suffix}", part.trim_end_matches("_proj"));
        }
        [layer, "mlp", "shared_expert", part, suffix] => {
            return format!("blk.{layer}.ffn_{}_shexp.{suffix}", part.trim_end_matches("_proj"));
        }
        [layer, "linear_attn", "norm", suffix] => (layer, "ssm_norm", suffix),
        [layer, "linear_attn", "out_proj", suffix] => (layer, "ssm_out", suffix),
        [layer, _, part, suffix] => (layer, part, suffix),
        [layer, part, suffix] => (layer, part, suffix),
        _ => return name.to_owned(),
    };
    let own = match part {
        "q_proj" => "attn_q",
        "k_proj" => "attn_k",
        "v_proj" => "attn_v",
        "o_proj" => "attn_output",
        "q_norm" => "attn_q_norm",
        "k_norm" => "attn_k_norm",
        "input_layernorm" => "attn_norm",
        "post_attention_layernorm" if norms_after => "post_attention_norm",
        "post_attention_layernorm" | "pre_feedforward_layernorm" => "ffn_norm",
        "post_feedforward_layernorm" => "post_ffw_norm",
        "per_layer_input_gate" => "inp_gate",
        "per_layer_projection" => "proj",
        "post_per_layer_input_norm" => "post_norm",
        "layer_scalar" => "layer_output_scale",
        "in_proj" => "shortconv.in_proj",
        "out_proj" => "shortconv.out_proj",
        "conv" => "shortconv.conv",
        "in_proj_qkv" => "attn_qkv",
        "in_proj_z" => "attn_gate",
        "in_proj_a" => "ssm_alpha",
        "in_proj_b" => "ssm_beta",
        "conv1d" => "ssm_conv1d",
        "gate" => "ffn_gate_inp",
        "shared_expert_gate" => "ffn_gate_inp_shexp",
        "gate_proj" => "ffn_gate",
        "up_proj" => "ffn_up",
        "down_proj" => "ffn_down",
        other => other,
    };
    format!("blk.{layer}.{own}.{suffix}")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Numbers, by their places, that the package `gguf` (0.19) reads from the blocks of the test below.
    const EXPECTED_NL: &[(usize, f32)] =
        &[(0, 1.899_536_1), (1, -6.348_449_7), (15, -1.099_731_4), (16, -6.348_449_7), (31, -3.249_206_5)];
    const EXPECTED_XS: &[(usize, f32)] = &[
        (0, -28.493_042),
        (17, 48.738_1),
        (40, -22.744_446),
        (63, 0.349_914_55),
        (64, 34.191_65),
        (100, -101.675_17),
        (130, -22.744_446),
        (165, 29.392_822),
        (200, 77.980_96),
        (255, -29.692_749),
    ];

    #[test]
    fn numbers_of_levels_are_those_that_ggml_reads() {
        for (format, head, expected) in [
            (20, &[0x66, 0x2a][..], EXPECTED_NL),
            (23, &[0x66, 0x2a, 0x39, 0xc6, 0x71, 0xe2, 0x4d, 0xb8], EXPECTED_XS),
        ] {
            let [numbers, bytes] = of_levels(format).unwrap();
            let quants = (0..bytes - head.len()).map(|place| (37 * place + 11).to_le_bytes()[0]);
            let made = as_q8_0(&head.iter().copied().chain(quants).collect::<Vec<u8>>(), bytes);
            let all: Vec<f32> = made
                .chunks_exact(34)
                .flat_map(|block| {
                    let factor = f16::from_le_bytes([block[0], block[1]]).to_f32();
                    block[2..].iter().map(move |quant| factor * f32::from(quant.cast_signed()))
                })
                .collect();
            assert_eq!(all.len(), numbers);
            for &(index, expected) in expected {
                let number = all[index];
                assert!((number - expected).abs() <= expected.abs() / 2048.0, "{index}: {number}");
                assert!(format == 23 || number == expected, "{number} {expected}");
            }
        }
    }

    #[test]
    fn a_block_whose_factor_is_not_finite_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.gguf");
        let mut tried = 0;
        for name in ["llama_q8_0", "llama_q4_0", "qwen2_q4_k_m", "qwen3_q5_k_m", "mistral_q6_k"] {
            let file = format!("tests/fixtures/gguf/{name}.gguf");
            let whole = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
            std::fs::write(&path, &whole).unwrap();
            for part in ["mlp.gate_proj", "mlp.down_proj", "self_attn.v_proj", "self_attn.q_proj"] {
                let name = format!("model.layers.0.{part}.weight");
                let gguf = Gguf::open(&path).unwrap();
                let tensor = gguf.tensor(&own_name(&name, false)).unwrap();
                let format = Format::from_ggml(tensor.format).unwrap();
                let read = |bytes: &[u8]| {
                    std::fs::write(&path, bytes).unwrap();
                    GgufWeights::open(&gguf, Some(2), false).unwrap().read(
                        &name,
                        &tensor.shape,
                        &mut |_, _| (),
                    )
                };
                assert!(read(&whole).is_ok(), "{name}");
                for factor in 0..format.block_bytes() / 2 {
                    let mut damaged = whole.clone();
                    let start = usize::try_from(tensor.start).unwrap() + format.block_bytes() + 2 * factor;
                    // Infinite in 16 bits.
                    damaged[start..start + 2].copy_from_slice(&0xfc00_u16.to_le_bytes());
                    let is_factor = match format {
                        Format::Q4K | Format::Q5K | Format::Q4_1 | Format::Q5_1 => factor < 2,
                        Format::Q6K => factor == 104,
                        Format::Q4_0 | Format::Q5_0 | Format::Q8_0 => factor == 0,
                        _ => false,
                    };
                    let done = read(&damaged);
                    assert_eq!(done.is_err(), is_factor, "{name} {format} {factor}");
                    tried += usize::from(is_factor);
                    if let Err(error) = done {
                        assert!(error.to_string().contains(&own_name(&name, false)), "{error}");
                    }
                }
                std::fs::write(&path, &whole).unwrap();
            }
        }
        assert!(tried > 20, "{tried}");
    }
}
