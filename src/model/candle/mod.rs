//! Llama, Mistral and Qwen models from Hugging Face folders and GGUF files, with Candle: on the CPU with
//! matrix products of our own ([`CandleModel`]), on a card with Candle's ([`TensorModel`]).
//!
//! This file loads models and makes passes. Invariants: a call that fails leaves the cache as it was; a row
//! of logits has the same bits however the tokens were split into passes. Weights stay in the formats that
//! they are stored in; everything is computed in `f32`.

mod ahead;
mod attention;
mod batch;
mod card;
mod config;
mod config_gguf;
mod config_json;
mod cpu_cache;
mod description;
mod error;
mod exp;
mod format;
mod gguf_weights;
mod integer;
mod kernel;
mod kv_blocks;
mod kv_cache;
mod kv_format;
mod linear;
mod matrix;
mod memory;
mod names;
mod ops;
mod packing;
mod pages;
mod quantized;
mod random;
mod rope;
mod safetensors;
mod scheme;
mod selection;
mod tensor;
mod threads;
mod transformer;
mod weights;

use std::{num::NonZeroUsize, path::Path};

use serde_json::Value as Json;

pub use batch::CandleBatch;
pub use card::{CardFault, CardMode};
pub use description::{FormatShare, ModelDescription};
pub use error::{ModelError, ModelErrorKind};
pub use format::Format;
pub use integer::Instructions;
pub use kv_format::KvFormat;
pub use memory::{MemoryEstimate, available_memory};
pub use random::RandomModel;
pub use tensor::{DeviceRows, Placement, Precision, TensorModel};
pub use threads::{join_threads, threads};

use self::{
    batch::{ONLY, forward_alone},
    config::Config,
    gguf_weights::GgufWeights,
    kv_blocks::KEYS,
    quantized::Quantized,
    random::RandomWeights,
    rope::Scaling,
    safetensors::Safetensors,
    transformer::Transformer,
    weights::Weights,
};
use super::{Batch, BatchModel, Logits, Model, Rows};
use crate::{
    gguf::{Gguf, is_gguf},
    ids::TokenId,
    limits::DEFAULT_CONTEXT,
};

/// Tokens run at a time, so that the memory of a long prompt's pass is bounded.
const CHUNK: usize = 512;

/// Options for loading a [`CandleModel`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadOptions {
    /// Tokens that the cache has room for. Default: as many as the model was made for, at most 4096. The
    /// cache is allocated at once; see [`CandleModel::estimate`].
    pub context: Option<usize>,
    /// Tokens that all sequences of a [`CandleBatch`] hold at once, at most: memory for more is not asked
    /// for, and memory that they took beyond is given back once a sequence is empty. At least the context
    /// of one. Default: the context of each.
    pub tokens: Option<usize>,
    /// Most memory to use, in bytes; checked before any weight is read. Default: what the system says is
    /// free.
    pub memory_limit: Option<u64>,
    /// Multiplies quantised weights with exact inputs. Default: where the processor has any of
    /// [`Instructions`], inputs are rounded to eight bits in groups of 32, as llama.cpp rounds them, which
    /// takes a third of the time or less. [`TensorModel`] rounds them on every device, and unpacks the
    /// weights for exact products.
    pub exact_products: bool,
    /// Multiplies quantised weights with these instructions, to measure what other processors have; loading
    /// fails where the processor lacks them. Default: the best that it has. Without effect on exact products
    /// and on [`TensorModel`].
    pub instructions: Option<Instructions>,
    /// Quantises matrices that are stored as floats to this format, or to [`Format::Q8_0`] where their rows
    /// are no whole blocks of it (256 numbers in the K formats). Default: keep what is stored; a format of
    /// floats does the same. Only [`CandleModel`] and [`CandleBatch`] look at it.
    pub quantize: Option<Format>,
    /// Number format of keys and values in the cache. With fewer bytes, long contexts take less memory and
    /// time, and texts differ. Only [`CandleModel`] and [`CandleBatch`] look at it.
    pub kv: KvFormat,
}

/// A Llama, Mistral or Qwen model with its cache.
#[derive(Debug)]
pub struct CandleModel {
    /// A batch of one sequence.
    batch: CandleBatch,
}

impl CandleModel {
    /// Loads a Hugging Face folder (`config.json`, and `model.safetensors` or the shards that
    /// `model.safetensors.index.json` names, in F32, F16 or BF16), or a GGUF file (`*.gguf`; the first of the
    /// parts if it is in parts) in one of these formats or Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K.
    /// Reads every weight once, and packs them on all threads: 0.6 s for 1 GB in the page cache.
    ///
    /// # Errors
    /// If a file is missing, unreadable, damaged or cut short; if the architecture or a variation of it is
    /// not supported; if a tensor is missing or does not fit the configuration; if the context or the
    /// memory asked for cannot be had.
    pub fn load(path: impl AsRef<Path>, options: &LoadOptions) -> Result<Self, ModelError> {
        Ok(Self { batch: loaded(path.as_ref(), NonZeroUsize::MIN, options)? })
    }

    /// Makes a model of random weights, the same each time, to measure the time of passes. Takes some seconds
    /// for each GB.
    ///
    /// # Errors
    /// If the sizes do not fit each other or the format, or the context or the memory asked for cannot be
    /// had.
    pub fn random(model: &RandomModel, options: &LoadOptions) -> Result<Self, ModelError> {
        Ok(Self { batch: random_loaded(model, NonZeroUsize::MIN, options)? })
    }

    /// Memory that [`load`](Self::load) would take. Reads the configuration and the headers of the weights.
    ///
    /// # Errors
    /// Those of [`load`](Self::load), but for a lack of memory and weights that cannot be read.
    pub fn estimate(path: impl AsRef<Path>, options: &LoadOptions) -> Result<MemoryEstimate, ModelError> {
        with_weights(path.as_ref(), |weights, config| {
            quantized(weights, options, |weights| Ok(needs(weights, &config, NonZeroUsize::MIN, options)?.1))
        })
    }
}

impl Model for CandleModel {
    type Error = ModelError;

    fn position(&self) -> usize {
        self.batch.position(ONLY)
    }

    fn context(&self) -> usize {
        self.batch.context()
    }

    fn vocabulary_size(&self) -> usize {
        self.batch.vocabulary_size()
    }

    fn forward(&mut self, tokens: &[TokenId], rows: Rows<'_>) -> Result<Logits, ModelError> {
        forward_alone(&mut self.batch, tokens, rows)
    }

    fn truncate(&mut self, position: usize) -> Result<(), ModelError> {
        self.batch.truncate(ONLY, position)
    }

    /// Makes a batch of the model. The memory of its caches stays taken until there is a batch of fewer
    /// sequences, and is not held against [`LoadOptions::memory_limit`].
    fn as_batch(&mut self, sequences: NonZeroUsize) -> Result<Option<Batch<'_, ModelError>>, ModelError> {
        self.batch.resize(sequences)?;
        Ok(Some(&mut self.batch))
    }
}

/// Loads the model at `path` with room for `sequences` texts.
fn loaded(path: &Path, sequences: NonZeroUsize, options: &LoadOptions) -> Result<CandleBatch, ModelError> {
    with_weights(path, |weights, config| {
        quantized(weights, options, |weights| from_weights(weights, config, sequences, options))
    })
}

/// Calls `then` with the weights, quantised if the options say so.
fn quantized<T>(
    weights: &mut dyn Weights,
    options: &LoadOptions,
    then: impl FnOnce(&mut dyn Weights) -> T,
) -> T {
    match options.quantize {
        Some(format) => then(&mut Quantized::new(weights, format)),
        None => then(weights),
    }
}

/// Makes a model of random weights with room for `sequences` texts.
fn random_loaded(
    model: &RandomModel,
    sequences: NonZeroUsize,
    options: &LoadOptions,
) -> Result<CandleBatch, ModelError> {
    from_weights(&mut RandomWeights::new(model.format), model.config()?, sequences, options)
}

fn from_weights(
    weights: &mut dyn Weights,
    config: Config,
    sequences: NonZeroUsize,
    options: &LoadOptions,
) -> Result<CandleBatch, ModelError> {
    let (context, memory) = needs(weights, &config, sequences, options)?;
    let limit = options.memory_limit.or_else(available_memory).unwrap_or(u64::MAX);
    if memory.total() > limit {
        return Err(ModelErrorKind::Memory { needed: memory.total(), limit }.into());
    }
    if let Some(instructions) = options.instructions
        && !Instructions::available().contains(&instructions)
    {
        return Err(ModelErrorKind::Instructions(instructions).into());
    }
    let mut transformer = Transformer::load(weights, config, context)?;
    if options.exact_products {
        transformer.multiply_with(None);
    } else if options.instructions.is_some() {
        transformer.multiply_with(options.instructions);
    }
    Ok(CandleBatch::new(transformer, options.kv, context, sequences)?.holding(options.tokens))
}

/// Refuses tokens that a pass cannot run after `position` others, where there is room for `context`.
fn check_tokens(
    tokens: &[TokenId],
    vocabulary: usize,
    [position, context]: [usize; 2],
) -> Result<(), ModelErrorKind> {
    if tokens.is_empty() {
        return Err(ModelErrorKind::NoTokens);
    }
    if let Some(&token) = tokens.iter().find(|token| token.index() >= vocabulary) {
        return Err(ModelErrorKind::UnknownToken { token, vocabulary });
    }
    let tokens = tokens.len();
    if tokens > context - position {
        return Err(ModelErrorKind::TooLong { position, tokens, context });
    }
    Ok(())
}

/// Calls `then` with the opened weights and the configuration of the model at `path`. Nothing large was read
/// or allocated.
fn with_weights<T>(
    path: &Path,
    then: impl FnOnce(&mut dyn Weights, Config) -> Result<T, ModelError>,
) -> Result<T, ModelError> {
    if !is_gguf(path) {
        let config = config_json::parse(&read_text(&path.join("config.json"))?)?;
        return then(&mut Safetensors::open(path)?, config);
    }
    let gguf = Gguf::open(path)?;
    let (mut config, paired) = config_gguf::parse(&gguf)?;
    let mut weights = GgufWeights::open(&gguf, paired.then_some(config.head_dim))?;
    if gguf.tensor(FREQUENCIES).is_some() {
        config.rope.scaling = Scaling::Factors(weights.vector(FREQUENCIES, config.head_dim / 2)?);
        config.rope.check().map_err(ModelErrorKind::InvalidMetadata)?;
    }
    then(&mut weights, config)
}

/// The tensor of a GGUF file that has the factors of the rope's frequencies.
const FREQUENCIES: &str = "rope_freqs.weight";

/// Tokens of context to make room for, and memory of a model with caches for all sequences.
fn needs(
    weights: &dyn Weights,
    config: &Config,
    sequences: NonZeroUsize,
    options: &LoadOptions,
) -> Result<(usize, MemoryEstimate), ModelError> {
    let supported = config.max_positions;
    let context = options.context.unwrap_or(supported.min(DEFAULT_CONTEXT));
    if context == 0 || context > supported {
        return Err(ModelErrorKind::Context { asked: context, supported }.into());
    }
    let weights = transformer::size(weights, config)?;
    let all = context.checked_next_multiple_of(KEYS).unwrap_or(context).saturating_mul(sequences.get());
    let tokens = options.tokens.map_or(all, |tokens| tokens.clamp(context, all));
    Ok((context, MemoryEstimate::new(config, options.kv, context, tokens, weights)))
}

/// Reads the text of a file.
fn read_text(path: &Path) -> Result<String, ModelError> {
    std::fs::read_to_string(path).map_err(|error| file_error(path, error))
}

/// The error for a file that cannot be opened or read.
fn file_error(path: &Path, error: std::io::Error) -> ModelError {
    let kind = match error.kind() {
        std::io::ErrorKind::NotFound => ModelErrorKind::MissingFile(path.to_owned()),
        _ => ModelErrorKind::Unreadable(path.to_owned()),
    };
    ModelError::with_source(kind, error)
}

impl ModelDescription {
    /// Reads what the files at `path`, as for [`CandleModel::load`](CandleModel::load), say of the model: the
    /// configuration and the heads of the weights. Takes milliseconds, and for a GGUF file with many tokens
    /// some tens of them.
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
            })
        })
    }

    /// Bytes of the keys and values of `tokens` tokens of one text; `None` if they cannot be counted in a
    /// `u64`.
    #[must_use]
    pub fn cache(&self, kv: KvFormat, tokens: usize) -> Option<u64> {
        let factors =
            [Some(2), Some(self.layers), Some(self.kv_heads), kv.bytes(self.head_dim), Some(tokens)];
        factors.into_iter().try_fold(1_u64, |bytes, factor| bytes.checked_mul(u64::try_from(factor?).ok()?))
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
