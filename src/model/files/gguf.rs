//! Tensors of a GGUF file, or of all parts of one, under the names that Hugging Face gives them; and the
//! reader of a model's configuration from the metadata of the file.
//!
//! Invariant: rows come out in Hugging Face's order. For the architecture `llama`, GGUF files keep the two
//! numbers that are rotated together side by side, Hugging Face half a head apart.

use std::{fs::File, path::PathBuf};

use super::config::{Biases, Config, Rope, Scaling, Window};
use super::weights::{self, Weights};
use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::formats::{self, Format};
use domino_engine::gguf::{Gguf, MetadataValue, Tensor};

/// The weights of a GGUF file, opened but not read.
#[derive(Debug)]
pub(crate) struct GgufWeights<'a> {
    gguf: &'a Gguf,
    files: Vec<(PathBuf, File)>,
    /// Size of a head, if rows of queries and keys must be reordered.
    head_dim: Option<usize>,
}

impl<'a> GgufWeights<'a> {
    /// Opens the files. With `head_dim`, rows of queries and keys are reordered.
    ///
    /// # Errors
    /// If one cannot be opened.
    pub(crate) fn open(gguf: &'a Gguf, head_dim: Option<usize>) -> Result<Self, ModelError> {
        let open = |path: &PathBuf| {
            let file = File::open(path).map_err(|error| crate::model::error::file_error(path, error))?;
            Ok((path.clone(), file))
        };
        let files = gguf.files().iter().map(open).collect::<Result<_, ModelError>>()?;
        Ok(Self { gguf, files, head_dim })
    }

    /// Finds a tensor of shape `expected`; also gives its format and the bytes of a row.
    fn find(&self, name: &str, expected: &[usize]) -> Result<(&'a Tensor, Format, usize), ModelError> {
        let own = own_name(name);
        let tensor = self.gguf.tensor(&own).ok_or_else(|| ModelErrorKind::MissingTensor(own.clone()))?;
        if tensor.shape != expected {
            let (expected, found) = (expected.to_vec(), tensor.shape.clone());
            return Err(ModelErrorKind::Shape { tensor: own, expected, found }.into());
        }
        let format = Format::from_ggml(tensor.format).ok_or_else(|| ModelErrorKind::NumberFormat {
            tensor: own.clone(),
            format: formats::ggml_name(tensor.format),
        })?;
        let columns = expected.last().copied().unwrap_or(1);
        let row_bytes = format.row_bytes(columns).ok_or_else(|| {
            let reason = format!("tensor {own} has rows of {columns} numbers, which are no whole blocks");
            ModelErrorKind::InvalidMetadata(reason)
        })?;
        let rows = expected.iter().product::<usize>() / columns.max(1);
        let bytes = rows.checked_mul(row_bytes).and_then(|bytes| u64::try_from(bytes).ok());
        if bytes.is_none_or(|bytes| bytes > tensor.room) {
            let file = self.files.get(tensor.file).map(|(path, _)| path.clone()).unwrap_or_default();
            let reason = format!("cut short or damaged: tensor {own} has {} bytes", tensor.room);
            return Err(ModelErrorKind::DamagedWeights { file, reason }.into());
        }
        Ok((tensor, format, row_bytes))
    }
}

impl Weights for GgufWeights<'_> {
    fn format(&self, name: &str, shape: &[usize]) -> Result<Format, ModelError> {
        self.find(name, shape).map(|(_, format, _)| format)
    }

    fn read(
        &mut self,
        name: &str,
        expected: &[usize],
        each: &mut dyn FnMut(Format, &[u8]),
    ) -> Result<(), ModelError> {
        let (tensor, format, row_bytes) = self.find(name, expected)?;
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
        weights::read_rows((&*path, file), name, tensor.start, sizes, |stored| {
            is_finite &= format.has_finite_factors(stored);
            let Some(head) = head else { return each(format, stored) };
            ordered.clear();
            for head in stored.chunks_exact(head * size) {
                // A head has its pairs side by side: first come the left numbers of all, then the right ones.
                for side in 0..2 {
                    let own = head.chunks_exact(size).skip(side).step_by(2);
                    own.for_each(|row| ordered.extend_from_slice(row));
                }
            }
            each(format, &ordered);
        })?;
        if !is_finite {
            let reason = format!("damaged: tensor {} has a block whose factor is not finite", own_name(name));
            return Err(ModelErrorKind::DamagedWeights { file: path.clone(), reason }.into());
        }
        Ok(())
    }

    fn vector(&mut self, name: &str, length: usize) -> Result<Vec<f32>, ModelError> {
        let format = self.format(name, &[length])?;
        if format.block() > 1 {
            let (tensor, format) = (own_name(name), format!("{format:?}"));
            return Err(ModelErrorKind::NumberFormat { tensor, format }.into());
        }
        let mut values = Vec::with_capacity(length);
        self.read(name, &[length], &mut |format, stored| {
            values.extend(weights::floats(format, stored).unwrap_or_default());
        })?;
        Ok(values)
    }
}

/// The name of a tensor in GGUF files. Names that Hugging Face does not use stay as they are.
fn own_name(name: &str) -> String {
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
        "post_attention_layernorm" => "ffn_norm",
        "gate_proj" => "ffn_gate",
        "up_proj" => "ffn_up",
        "down_proj" => "ffn_down",
        other => other,
    };
    format!("blk.{layer}.{own}.{suffix}")
}

fn invalid(reason: impl Into<String>) -> ModelError {
    ModelErrorKind::InvalidMetadata(reason.into()).into()
}

/// Metadata under the prefix of a file's architecture, such as `llama.block_count`.
struct ArchitectureKeys<'a> {
    gguf: &'a Gguf,
    architecture: &'a str,
}

impl<'a> ArchitectureKeys<'a> {
    fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture)
    }

    fn get(&self, key: &str) -> Option<&'a MetadataValue> {
        self.gguf.get(&self.key(key))
    }

    /// Reads a size; `None` if the key is missing.
    fn optional_size(&self, key: &str) -> Result<Option<usize>, ModelError> {
        let size = |value: &MetadataValue| {
            let one = value.as_u64().and_then(|size| usize::try_from(size).ok());
            // Some files have one number for each layer: accepted if all are the same.
            let all = || match value.as_integers()? {
                [first, rest @ ..] if rest.iter().all(|size| size == first) => usize::try_from(*first).ok(),
                _ => None,
            };
            let wrong = || invalid(format!("{} is not one size: {value:?}", self.key(key)));
            one.or_else(all).ok_or_else(wrong)
        };
        self.get(key).map(size).transpose()
    }

    fn size(&self, key: &str) -> Result<usize, ModelError> {
        self.optional_size(key)?.ok_or_else(|| invalid(format!("there is no {}", self.key(key))))
    }

    fn number(&self, key: &str) -> Result<Option<f64>, ModelError> {
        let number = |value: &MetadataValue| {
            value.as_f64().ok_or_else(|| invalid(format!("{} is not a number: {value:?}", self.key(key))))
        };
        self.get(key).map(number).transpose()
    }

    fn unsupported(&self, key: &str, value: impl std::fmt::Display) -> ModelError {
        ModelErrorKind::Unsupported { field: self.key(key), value: value.to_string() }.into()
    }
}

/// Reads the configuration, and whether rows of queries and keys must be reordered (see
/// [`GgufWeights`]).
///
/// # Errors
/// If a key is missing or not what it should be, or asks for an unknown architecture or an unsupported
/// variation.
pub(crate) fn parse(gguf: &Gguf) -> Result<(Config, bool), ModelError> {
    let architecture = gguf.get("general.architecture").and_then(MetadataValue::as_str);
    let architecture = architecture.ok_or_else(|| invalid("there is no general.architecture"))?;
    if !["llama", "qwen2", "qwen3"].contains(&architecture) {
        return Err(ModelErrorKind::UnknownArchitecture(architecture.to_owned()).into());
    }
    let keys = ArchitectureKeys { gguf, architecture };
    if let Some(experts) = keys.optional_size("expert_count")?.filter(|&experts| experts > 0) {
        return Err(keys.unsupported("expert_count", experts));
    }
    let (hidden, heads) = (keys.size("embedding_length")?, keys.size("attention.head_count")?);
    let layers = keys.size("block_count")?;
    let head_dim = match keys.optional_size("attention.key_length")? {
        Some(size) => size,
        None if heads > 0 && hidden.is_multiple_of(heads) => hidden / heads,
        None => return Err(invalid(format!("{heads} heads cannot share a hidden size of {hidden} evenly"))),
    };
    for key in ["attention.value_length", "rope.dimension_count"] {
        if let Some(size) = keys.optional_size(key)?.filter(|&size| size != head_dim) {
            return Err(keys.unsupported(key, size));
        }
    }
    let embedding = gguf.tensor("token_embd.weight").and_then(|tensor| tensor.shape.first().copied());
    let missing = || ModelErrorKind::MissingTensor("token_embd.weight".into());
    let has = |name: &str| gguf.tensor(name).is_some();
    let epsilon = keys.number("attention.layer_norm_rms_epsilon")?.unwrap_or(1e-6);
    #[expect(clippy::cast_possible_truncation, reason = "the models compute in f32")]
    let config = Config {
        hidden,
        intermediate: keys.size("feed_forward_length")?,
        layers,
        heads,
        kv_heads: keys.optional_size("attention.head_count_kv")?.unwrap_or(heads),
        head_dim,
        vocabulary: embedding.ok_or_else(missing)?,
        max_positions: keys.size("context_length")?,
        norm_epsilon: epsilon as f32,
        rope: rope(&keys)?,
        window: window(&keys)?,
        tied: !has("output.weight"),
        biases: Biases {
            qkv: has("blk.0.attn_q.bias"),
            attention_out: has("blk.0.attn_output.bias"),
            mlp: has("blk.0.ffn_down.bias"),
        },
        head_norms: architecture == "qwen3",
    };
    config.check().map_err(invalid)?;
    Ok((config, architecture == "llama"))
}

fn rope(keys: &ArchitectureKeys<'_>) -> Result<Rope, ModelError> {
    for tensor in ["rope_factors_long.weight", "rope_factors_short.weight"] {
        if keys.gguf.tensor(tensor).is_some() {
            return Err(ModelErrorKind::Unsupported { field: "rope".into(), value: tensor.into() }.into());
        }
    }
    let theta = keys.number("rope.freq_base")?.unwrap_or(10_000.0);
    let factor = keys.number("rope.scaling.factor")?;
    let kind = keys.get("rope.scaling.type").map(|kind| kind.as_str().unwrap_or_default());
    let required =
        || factor.ok_or_else(|| invalid(format!("there is no {}", keys.key("rope.scaling.factor"))));
    let scaling = match kind {
        None | Some("none") => Scaling::None,
        Some("linear") => Scaling::Linear(required()?),
        Some("yarn") => {
            if let Some(other) = keys.number("rope.scaling.attn_factor")?.filter(|&factor| factor != 1.0) {
                return Err(keys.unsupported("rope.scaling.attn_factor", other));
            }
            let factor = required()?;
            let original = keys.number("rope.scaling.original_context_length")?;
            let missing =
                || invalid(format!("there is no {}", keys.key("rope.scaling.original_context_length")));
            Scaling::Yarn {
                factor,
                beta_fast: 32.0,
                beta_slow: 1.0,
                original: original.ok_or_else(missing)?,
                attention: if factor <= 1.0 { 1.0 } else { 0.1 * factor.ln() + 1.0 },
                truncate: true,
            }
        }
        Some(other) => return Err(keys.unsupported("rope.scaling.type", other)),
    };
    Ok(Rope { theta, scaling })
}

fn window(keys: &ArchitectureKeys<'_>) -> Result<Option<Window>, ModelError> {
    let tokens = keys.optional_size("attention.sliding_window")?.filter(|&tokens| tokens > 0);
    match tokens {
        Some(tokens) if keys.architecture != "llama" => {
            Err(keys.unsupported("attention.sliding_window", tokens))
        }
        tokens => Ok(tokens.map(|tokens| Window { tokens, layers: Vec::new() })),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

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
                let tensor = gguf.tensor(&own_name(&name)).unwrap();
                let format = Format::from_ggml(tensor.format).unwrap();
                let read = |bytes: &[u8]| {
                    std::fs::write(&path, bytes).unwrap();
                    GgufWeights::open(&gguf, Some(2)).unwrap().read(&name, &tensor.shape, &mut |_, _| ())
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
                        assert!(error.to_string().contains(&own_name(&name)), "{error}");
                    }
                }
                std::fs::write(&path, &whole).unwrap();
            }
        }
        assert!(tried > 20, "{tried}");
    }
}
