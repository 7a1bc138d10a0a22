//! Reader of a model's configuration from the metadata of a GGUF file.

use super::{
    config::{Biases, Config, Window},
    rope::{Rope, Scaling},
};
use crate::{
    gguf::{Gguf, MetadataValue},
    model::error::{ModelError, ModelErrorKind},
};

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
/// [`GgufWeights`](super::gguf_weights::GgufWeights)).
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
