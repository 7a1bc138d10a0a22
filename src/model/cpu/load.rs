//! Models on the CPU, loaded: from folders and files, or of random weights; and the options for it.

use std::{num::NonZeroUsize, path::Path};

use super::batch::{CandleBatch, ONLY};
use super::transformer::{self, Transformer};
use super::{MemoryEstimate, available_memory, kv::KEYS};
use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::files::random::{RandomModel, RandomWeights};
use crate::model::files::weights::{Quantized, Weights};
use crate::model::files::{config::Config, with_weights};
use crate::model::formats::{Format, Instructions, KvFormat};
use crate::model::{Batch, BatchInput, BatchModel, Logits, Model, Rows};
use crate::{ids::TokenId, limits::DEFAULT_CONTEXT};

/// A model with its cache.
#[derive(Debug)]
pub struct CandleModel {
    /// A batch of one sequence.
    batch: CandleBatch,
}

impl CandleModel {
    /// Loads a Hugging Face folder (`config.json`, and `model.safetensors` or the shards that
    /// `model.safetensors.index.json` names, in F32, F16 or BF16), or a GGUF file (`*.gguf`; the first of the
    /// parts if it is in parts) in one of these formats or Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K,
    /// IQ4_NL, IQ4_XS (the last two become Q8_0). Reads every weight once, and packs them on all threads:
    /// 0.6 s for 1 GB in the page cache.
    ///
    /// # Errors
    /// If a file is missing, unreadable, damaged or cut short; if the architecture or a variation of it is
    /// not supported; if a tensor is missing or does not fit the configuration; if the context or the
    /// memory asked for cannot be had.
    pub fn load(path: impl AsRef<Path>, options: &LoadOptions) -> Result<Self, ModelError> {
        Ok(Self { batch: CandleBatch::load(path, NonZeroUsize::MIN, options)? })
    }

    /// Makes a model of random weights, the same each time, to measure the time of passes. Takes some seconds
    /// for each GB.
    ///
    /// # Errors
    /// If the sizes do not fit each other or the format, or the context or the memory asked for cannot be
    /// had.
    pub fn random(model: &RandomModel, options: &LoadOptions) -> Result<Self, ModelError> {
        Ok(Self { batch: CandleBatch::random(model, NonZeroUsize::MIN, options)? })
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

    /// Tokens that the model was made for: the most that [`LoadOptions::context`] can ask for.
    #[must_use]
    pub fn made_for(&self) -> usize {
        self.batch.made_for()
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
        let mut all = self.batch.forward(&[BatchInput { sequence: ONLY, tokens, rows }])?;
        all.pop().ok_or_else(|| ModelErrorKind::NoSuchSequence(ONLY).into())
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

/// Tokens of context to make room for, and memory of a model with caches for all sequences.
pub(crate) fn needs(
    weights: &dyn Weights,
    config: &Config,
    sequences: NonZeroUsize,
    options: &LoadOptions,
) -> Result<(usize, MemoryEstimate), ModelError> {
    let supported = config.max_positions;
    let weights = transformer::size(weights, config)?;
    let context = options.context.unwrap_or_else(|| usual_context(config, sequences, options, weights));
    if context == 0 || context > supported {
        return Err(ModelErrorKind::Context { asked: context, supported }.into());
    }
    let all = context.checked_next_multiple_of(KEYS).unwrap_or(context).saturating_mul(sequences.get());
    let tokens = options.tokens.map_or(all, |tokens| tokens.clamp(context, all));
    Ok((context, MemoryEstimate::new(config, options.kv, [context, tokens, sequences.get()], weights)))
}

/// Divisor of the memory beside weights and passes that gives the most for full caches, where nobody asks for
/// a context: the other half is for grammars, the system and other programs.
const CACHE_SHARE: u64 = 2;

/// Tokens of context where nobody asks for a number: as many as the model was made for, halved until full
/// caches fit.
fn usual_context(config: &Config, sequences: NonZeroUsize, options: &LoadOptions, weights: u64) -> usize {
    let least = config.max_positions.min(DEFAULT_CONTEXT);
    let limit = options.memory_limit.or_else(available_memory).unwrap_or(u64::MAX);
    let fits = |&context: &usize| {
        let tokens = context.saturating_mul(sequences.get());
        let need = MemoryEstimate::new(config, options.kv, [context, tokens, sequences.get()], weights);
        need.cache <= limit.saturating_sub(weights.saturating_add(need.pass)) / CACHE_SHARE
    };
    let halves = std::iter::successors(Some(config.max_positions), |context| Some(context / 2));
    halves.take_while(|&context| context > least).find(fits).unwrap_or(least)
}

impl CandleBatch {
    /// Tokens that the model was made for: the most that [`LoadOptions::context`] can ask for.
    #[must_use]
    pub fn made_for(&self) -> usize {
        self.config().max_positions
    }

    /// Loads as [`CandleModel::load`](CandleModel::load) does, with room for `sequences` texts. Each
    /// takes the memory of a cache as it grows, at most that of the whole context.
    ///
    /// # Errors
    /// All errors of [`CandleModel::load`](CandleModel::load).
    pub fn load(
        path: impl AsRef<Path>,
        sequences: NonZeroUsize,
        options: &LoadOptions,
    ) -> Result<Self, ModelError> {
        with_weights(path.as_ref(), |weights, config| {
            quantized(weights, options, |weights| from_weights(weights, config, sequences, options))
        })
    }

    /// Makes a model of random weights, as [`CandleModel::random`](CandleModel::random).
    ///
    /// # Errors
    /// Those of [`CandleModel::random`](CandleModel::random).
    pub fn random(
        model: &RandomModel,
        sequences: NonZeroUsize,
        options: &LoadOptions,
    ) -> Result<Self, ModelError> {
        from_weights(&mut RandomWeights::new(model.format), model.config()?, sequences, options)
    }
}

/// Options for loading a [`CandleModel`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadOptions {
    /// Tokens that the cache has room for. Default on the CPU: as many as the model was made for, or that, a
    /// half, a quarter and so on, until full caches take no more than half of the memory left beside the
    /// weights, but 4096 at least; on a card at most 4096. The addresses of the cache are allocated at once,
    /// on the CPU its memory is taken as a text grows; see
    /// [`CandleModel::estimate`](crate::model::candle::CandleModel::estimate).
    pub context: Option<usize>,
    /// Tokens that all sequences of a [`CandleBatch`] hold at once, at
    /// most: memory for more is not asked for, and memory that ended or shortened texts took is given back
    /// before others would take more. At least the context of one. Default: the context of each.
    pub tokens: Option<usize>,
    /// Most memory to use, in bytes; checked before any weight is read. Default: what the system says is
    /// free.
    pub memory_limit: Option<u64>,
    /// Multiplies quantised weights with exact inputs. Default: where the processor has any of
    /// [`Instructions`], inputs are rounded to eight bits in groups of 32, as llama.cpp rounds them, which
    /// takes a third of the time or less. [`TensorModel`](crate::model::candle::TensorModel) rounds them on
    /// every device, and unpacks the weights for exact products.
    pub exact_products: bool,
    /// Multiplies quantised weights with these instructions, to measure what other processors have; loading
    /// fails where the processor lacks them. Default: the best that it has. Without effect on exact products
    /// and on [`TensorModel`](crate::model::candle::TensorModel).
    pub instructions: Option<Instructions>,
    /// Quantises matrices that are stored as floats to this format, or to [`Format::Q8_0`] where their rows
    /// are no whole blocks of it (256 numbers in the K formats). Default: keep what is stored; a format of
    /// floats does the same. Only [`CandleModel`] and
    /// [`CandleBatch`] look at it.
    pub quantize: Option<Format>,
    /// Number format of keys and values in the cache. With fewer bytes, long contexts take less memory and
    /// time, and texts differ. Only [`CandleModel`] and
    /// [`CandleBatch`] look at it.
    pub kv: KvFormat,
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::model::files::config::{Activation, LayerSet, Norms, Scales, Scaling};

    #[derive(Deserialize)]
    struct Expected {
        tokens: Vec<u32>,
        logits: Vec<Vec<f32>>,
    }

    /// Largest difference to what `transformers` computed, relative to the largest logit, for a fixture whose
    /// description is changed.
    fn distance(fixture: &str, change: impl FnOnce(&mut Config)) -> f32 {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/model").join(fixture);
        let text = std::fs::read_to_string(folder.join("expected.json")).unwrap();
        let Expected { tokens, logits } = serde_json::from_str(&text).unwrap();
        let tokens: Vec<TokenId> = tokens.into_iter().map(TokenId::new).collect();
        let model = with_weights(&folder, |weights, mut config| {
            change(&mut config);
            from_weights(weights, config, NonZeroUsize::MIN, &LoadOptions::default())
        });
        let mut model = CandleModel { batch: model.unwrap() };
        let rows = model.forward(&tokens, Rows::All).unwrap();
        let (mut difference, mut largest) = (0.0_f32, 0.0_f32);
        for (index, expected) in logits.iter().enumerate() {
            for (a, b) in rows.row(index).unwrap().iter().zip(expected) {
                (difference, largest) = (difference.max((a - b).abs()), largest.max(b.abs()));
            }
        }
        difference / largest
    }

    #[test]
    fn a_mistake_in_a_description_shows() {
        type Mistake = (&'static str, &'static str, fn(&mut Config));
        let mistakes: [Mistake; 36] = [
            ("gemma3_tied", "norms as they are stored", |config| config.norms.less_one = false),
            ("gemma3_tied", "SiLU", |config| config.activation = Activation::Silu),
            ("gemma3_tied", "an unscaled embedding", |config| config.scales.embedding = 1.0),
            ("gemma3_tied", "the usual scale of attention", |config| config.scales.attention = None),
            ("gemma3_tied", "another base", |config| config.rope.theta = 1e4),
            ("gemma3_tied", "an unscaled base", |config| config.rope.scaling = Scaling::None),
            ("gemma3_tied", "one base", |config| config.window_rope = None),
            ("gemma3_tied", "one token more", |config| config.window.as_mut().unwrap().tokens += 1),
            ("gemma3_tied", "one token less", |config| config.window.as_mut().unwrap().tokens -= 1),
            ("gemma3_tied", "windows everywhere", |config| {
                config.window.as_mut().unwrap().layers = LayerSet::All;
            }),
            ("gemma3_tied", "a cap", |config| config.scales.cap = Some(30.0)),
            ("gemma3_tied", "a factor", |config| config.scales.added = 0.9),
            ("lfm2_tied", "heads that are not normalised", |config| config.norms = Norms::default()),
            ("smollm3_tied", "all layers rotate", |config| config.rotated = LayerSet::All),
            ("qwen3_vl", "heads that are not normalised", |config| config.norms = Norms::default()),
            ("granite_biases", "the usual scale of attention", |config| config.scales.attention = None),
            ("granite_biases", "logits that are multiplied", |config| config.scales.logits = 5.0),
            ("qwen3_5_tied", "norms as they are stored", |config| config.norms.less_one = false),
            ("qwen3_5_image", "half of a head rotates", |config| config.rotary_dim = 8),
            ("qwen3_5_image", "whole heads rotate", |config| config.rotary_dim = 16),
            ("qwen3_5_tied", "rates as they are stored, and keys of other heads", |config| {
                config.delta.as_mut().unwrap().is_converted = true;
            }),
            ("qwen3_moe_shares", "shares that sum to one", |config| {
                config.experts.as_mut().unwrap().normalised = true;
            }),
            ("qwen3_5_moe_shared", "one expert less", |config| config.experts.as_mut().unwrap().used -= 1),
            ("gemma4_shared", "values as they are", |config| config.norms.values = false),
            ("gemma4_shared", "the usual scale of attention", |config| config.scales.attention = None),
            ("gemma4_shared", "whole heads rotate", |config| config.rope.scaling = Scaling::None),
            ("gemma4_shared", "the first numbers rotate, in pairs of their own", |config| {
                (config.rope.scaling, config.rotary_dim) = (Scaling::None, 4);
            }),
            ("gemma4_shared", "one base", |config| config.window_rope = Some(config.rope.clone())),
            ("gemma4_shared", "no cap", |config| config.scales.cap = None),
            ("gemma4_shared", "no factors after layers", |config| config.scales.by_layer = false),
            ("gemma4_shared", "no inputs of layers", |config| config.layer_inputs = None),
            ("gemma4_shared", "norms less one", |config| config.norms.less_one = true),
            ("gemma4_shared", "one token less", |config| config.window.as_mut().unwrap().tokens -= 1),
            ("gemma4_image", "one token more", |config| config.window.as_mut().unwrap().tokens += 1),
            ("gemma4_image", "values as they are", |config| config.norms.values = false),
            ("gemma4_image", "SiLU", |config| config.activation = Activation::Silu),
        ];
        for (fixture, mistake, change) in mistakes {
            assert!(distance(fixture, |_| ()) < 1e-4, "{fixture}");
            let distance = distance(fixture, change);
            assert!(distance > 1e-3, "{fixture} with {mistake}: {distance}");
        }
        let doubled = distance("gemma3_tied", |config| {
            config.scales = Scales { logits: 2.0, ..config.scales };
        });
        assert!((doubled - 1.0).abs() < 1e-3, "{doubled}");
    }
}
