//! Descriptions of models: shape, formats of the numbers, and memory.

use std::path::Path;

use serde_json::Value as Json;

use crate::model::cpu::transformer;
use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::files::{weights::read_text, with_weights};
use crate::model::formats::{Format, KvFormat};
use domino_engine::gguf::{Gguf, is_gguf};

/// A model's shape, formats and needs, of a Hugging Face folder or a GGUF file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelDescription {
    /// The kind of model, as its files call it, such as `LlamaForCausalLM` or `qwen2`.
    pub architecture: Option<String>,
    /// Name, if the files say one.
    pub name: Option<String>,
    /// Layers.
    pub layers: usize,
    /// Numbers that stand for a token between layers.
    pub hidden: usize,
    /// Numbers inside of a layer's multilayer perceptron.
    pub intermediate: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values, which heads of queries share.
    pub kv_heads: usize,
    /// Numbers of a head.
    pub head_dim: usize,
    /// Rows of the output product: at least as many as there are tokens.
    pub vocabulary: usize,
    /// Tokens that the model was made for.
    pub context: usize,
    /// Tokens that some layers see, if these do not see all.
    pub window: Option<usize>,
    /// True if the output product is by the embedding.
    pub tied: bool,
    /// Formats of the numbers, the most usual one first.
    pub formats: Vec<FormatShare>,
    /// Bytes that the weights take in memory.
    pub memory: u64,
    /// Layers of a text's cache, heads of keys and values, and numbers of a head, for each size of heads.
    caches: Vec<[usize; 3]>,
}

/// Share of a model that is stored in a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FormatShare {
    /// The format.
    pub format: Format,
    /// Parameters in it.
    pub parameters: u64,
    /// Bytes that they take in the files.
    pub bytes: u64,
}

impl ModelDescription {
    /// All parameters.
    #[must_use]
    pub fn parameters(&self) -> u64 {
        self.formats.iter().fold(0, |sum, share| sum.saturating_add(share.parameters))
    }

    /// Reads what the files at `path`, as for [`CandleModel::load`](super::CandleModel::load), say of the
    /// model: the configuration and the heads of the weights. Takes milliseconds, and for a GGUF file with
    /// many tokens some tens of them.
    ///
    /// # Errors
    /// Those of loading, but for a lack of memory and weights that cannot be read.
    pub fn of_model(path: impl AsRef<Path>) -> Result<Self, ModelError> {
        let path = path.as_ref();
        let (architecture, name) = names(path)?;
        with_weights(path, |weights, config| {
            let mut formats: Vec<FormatShare> = Vec::new();
            for (tensor, shape) in transformer::tensors(&config) {
                let format = weights.format(&tensor, &shape)?;
                let columns = shape.last().copied().unwrap_or(1);
                let rows = shape.iter().product::<usize>() / columns.max(1);
                let parameters = bounded(rows)?.saturating_mul(bounded(columns)?);
                let row = format.row_bytes(columns).unwrap_or_default();
                let bytes = bounded(rows)?.saturating_mul(bounded(row)?);
                match formats.iter_mut().find(|share| share.format == format) {
                    Some(share) => {
                        share.parameters = share.parameters.saturating_add(parameters);
                        share.bytes = share.bytes.saturating_add(bytes);
                    }
                    None => formats.push(FormatShare { format, parameters, bytes }),
                }
            }
            formats.sort_by_key(|share| std::cmp::Reverse(share.parameters));
            Ok(Self {
                architecture,
                name,
                layers: config.layers,
                hidden: config.hidden,
                intermediate: config.intermediate,
                heads: config.heads,
                kv_heads: config.kv_heads,
                head_dim: config.head_dim,
                vocabulary: config.vocabulary,
                context: config.max_positions,
                window: (0..config.layers).find_map(|layer| config.window_of(layer)),
                tied: config.tied,
                formats,
                memory: transformer::size(weights, &config)?,
                caches: config.caches(),
            })
        })
    }

    /// Bytes of the keys and values of `tokens` tokens of one text; `None` if they cannot be counted in a
    /// `u64`.
    #[must_use]
    pub fn cache(&self, kv: KvFormat, tokens: usize) -> Option<u64> {
        self.caches.iter().try_fold(0_u64, |sum, &[layers, heads, size]| {
            let factors = [Some(2), Some(layers), Some(heads), kv.bytes(size), Some(tokens)];
            let times = |bytes: u64, factor: Option<usize>| bytes.checked_mul(u64::try_from(factor?).ok()?);
            sum.checked_add(factors.into_iter().try_fold(1, times)?)
        })
    }
}

fn bounded(size: usize) -> Result<u64, ModelErrorKind> {
    let wrong = |_| ModelErrorKind::InvalidMetadata(format!("a tensor of {size} rows or columns"));
    u64::try_from(size).map_err(wrong)
}

/// Architecture and name of a model, by its files.
fn names(path: &Path) -> Result<(Option<String>, Option<String>), ModelError> {
    if is_gguf(path) {
        let gguf = Gguf::open(path)?;
        let text = |key: &str| gguf.get(key).and_then(|value| value.as_str()).map(str::to_owned);
        return Ok((text("general.architecture"), text("general.name")));
    }
    // A damaged file is an error where the whole of it is read.
    let config: Json = serde_json::from_str(&read_text(&path.join("config.json"))?).unwrap_or_default();
    let text = |value: &Json| value.as_str().map(str::to_owned);
    Ok((text(&config["architectures"][0]).or_else(|| text(&config["model_type"])), None))
}
