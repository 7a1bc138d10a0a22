//! The models of `candle` with Candle's own products, on the CPU or on an NVIDIA card.
//!
//! Owns what is apart from [`CandleModel`](super::CandleModel): where tensors lie and in which numbers. The
//! transformer is one for all devices, so that tests on the CPU are tests of what a card runs; only a card
//! runs it fast. Invariant: the cache is whole between calls: a call that fails has not changed it.

mod factor;
mod placement;
mod rows;
mod transformer;

use std::{num::NonZeroUsize, path::Path};

use candle_core::{DType, Tensor};
pub use placement::{Placement, Precision};
pub use rows::DeviceRows;

use self::placement::Place;
use self::transformer::{KvCache, TensorTransformer};
use super::card::{CardChooser, CardEngine, ROWS};
use crate::ids::{TokenId, as_u64};
use crate::limits::DEFAULT_CONTEXT;
use crate::model::cpu::load::{LoadOptions, needs};
use crate::model::cpu::{CHUNK, MemoryEstimate, available_memory, batch::check_tokens, transformer::tensors};
use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::files::random::{RandomModel, RandomWeights};
use crate::model::files::{config::Config, weights::Weights, with_weights};
use crate::model::{GraphCounts, Kept, Logits, Model, Rows, formats::KvFormat};

/// Sequences in the cache.
const ONE: NonZeroUsize = NonZeroUsize::MIN;

/// A model with its cache, as tensors of a device.
///
/// On a card with [`CardMode::Exact`](super::CardMode::Exact) rows do not depend on what shares a pass.
/// Otherwise they do in their last bits, unlike those of [`CandleModel`](super::CandleModel): products are
/// summed as the device's library likes.
#[derive(Debug)]
pub struct TensorModel {
    // Dropped before the tensors that it has addresses of.
    engine: Option<CardEngine>,
    /// The chooser of tokens on a card.
    chooser: Option<CardChooser>,
    transformer: TensorTransformer,
    cache: KvCache,
}

impl TensorModel {
    /// Loads a model as [`CandleModel::load`](super::CandleModel::load) does, to `placement`. Quantised
    /// weights stay as they are stored, and products with them round their inputs to eight bits; with
    /// [`LoadOptions::exact_products`] they become numbers of the placement's precision, which takes two to
    /// eight times the memory. Reads every weight once.
    ///
    /// # Errors
    /// All errors of [`CandleModel::load`](super::CandleModel::load), and a device that cannot be used. The
    /// check of free memory is of the computer's: what a card has is not known before it runs out.
    pub fn load(
        path: impl AsRef<Path>,
        options: &LoadOptions,
        placement: Placement,
    ) -> Result<Self, ModelError> {
        let place = placement.open(options.exact_products)?;
        with_weights(path.as_ref(), |weights, config| Self::from_weights(weights, config, options, &place))
    }

    /// A model of random weights, the same as [`CandleModel::random`](super::CandleModel::random) makes. On a
    /// card weights of floats are made there, in no time, and are others.
    ///
    /// # Errors
    /// Those of [`CandleModel::random`](super::CandleModel::random), and if the device cannot be used.
    pub fn random(
        model: &RandomModel,
        options: &LoadOptions,
        placement: Placement,
    ) -> Result<Self, ModelError> {
        let mut place = placement.open(options.exact_products)?;
        place.makes = placement.card.is_some();
        Self::from_weights(&mut RandomWeights::new(model.format), model.config()?, options, &place)
    }

    fn from_weights(
        weights: &mut dyn Weights,
        config: Config,
        options: &LoadOptions,
        place: &Place,
    ) -> Result<Self, ModelError> {
        if config.is_for_cpu() {
            let reason = "states of delta nets, experts, and layers that share keys or have heads or inputs \
                          of their own, are computed on the CPU as stored (without a device or a \
                          precision), and on cards by llama.cpp";
            return Err(
                ModelErrorKind::Device { device: "a tensor model".into(), reason: reason.into() }.into()
            );
        }
        if place.passes
            && let Some(lack) = CardEngine::lacks(&config)
        {
            let reason = format!("{lack}; --card blocks runs such models, with texts that drafts may change");
            return Err(ModelErrorKind::Device { device: "the card".into(), reason }.into());
        }
        // The cache is as large as the context from the first on.
        let mut asked = options.clone();
        asked.context.get_or_insert(config.max_positions.min(DEFAULT_CONTEXT));
        let (context, _) = needs(weights, &config, ONE, &asked)?;
        check_memory(size(weights, &config, place)?, &config, context, options.memory_limit, place)?;
        let sizes = [config.kv_heads, context, config.head_dim];
        let cache = KvCache::new(config.cache_layers(), sizes, place.precision, &place.device)?;
        let transformer = TensorTransformer::load(weights, config, context, place)?;
        let config = transformer.config();
        let weights = transformer.weights(&cache).filter(|_| place.passes);
        let engine = place.kernels.zip(weights);
        let engine =
            engine.map(|(on, weights)| CardEngine::new(on, config, context, &weights)).transpose()?;
        let chooser = match (&engine, place.kernels) {
            (Some(engine), _) => Some(engine.chooser()),
            (None, Some(on)) => {
                Some(CardChooser::open(on, &place.device, place.precision, config.vocabulary)?)
            }
            (None, None) => None,
        };
        Ok(Self { engine, chooser, transformer, cache })
    }

    /// Tokens that the model was made for: the most that [`LoadOptions::context`] can ask for.
    #[must_use]
    pub fn made_for(&self) -> usize {
        self.transformer.config().max_positions
    }

    /// As [`forward`](Model::forward), but the rows stay on the device, where they may still be in the making
    /// when this returns: what is done in between, such as a mask, costs no time of the device.
    ///
    /// # Errors
    /// Those of [`forward`](Model::forward).
    pub fn launch(&mut self, tokens: &[TokenId], rows: Rows<'_>) -> Result<DeviceRows, ModelError> {
        check_tokens(tokens, self.vocabulary_size(), [self.cache.len(), self.cache.context()])?;
        let position = self.position();
        let tokens: Vec<u32> = tokens.iter().map(|token| token.raw()).collect();
        let launched = self.run(&tokens, rows);
        if launched.is_err() {
            self.cache.truncate(position);
        }
        launched
    }

    /// Runs checked tokens chunk by chunk; on error the cache may hold some of them.
    fn run(&mut self, tokens: &[u32], rows: Rows<'_>) -> Result<DeviceRows, ModelError> {
        let wanted = rows.count(tokens.len());
        match self.engine.take() {
            None => Ok(DeviceRows::new(&self.run_tensors(tokens, wanted)?, self.chooser.clone())?),
            Some(engine) => {
                let rows = self.run_kernels(&engine, tokens, wanted);
                self.engine = Some(engine);
                rows
            }
        }
    }

    /// Runs tokens by Candle's operations, and returns the last `wanted` rows, in parts.
    fn run_tensors(&mut self, tokens: &[u32], wanted: usize) -> Result<Vec<Tensor>, ModelError> {
        let mut parts = Vec::new();
        let mut later = tokens.len();
        for chunk in tokens.chunks(CHUNK) {
            later -= chunk.len();
            let wanted = wanted.saturating_sub(later).min(chunk.len());
            // A chunk without wanted rows makes one all the same.
            let made = self.transformer.forward(chunk, wanted.max(1), &self.cache)?;
            if wanted > 0 {
                parts.push(made);
            }
            self.cache.commit(chunk.len());
        }
        Ok(parts)
    }

    /// Runs tokens by kernels of our own, but for what comes before the wanted rows where that is long.
    ///
    /// Which tokens Candle runs, and in which chunks, is decided by those before the wanted rows alone: a
    /// draft, whose rows are all wanted, changes no bit of the rest.
    fn run_kernels(
        &mut self,
        engine: &CardEngine,
        tokens: &[u32],
        wanted: usize,
    ) -> Result<DeviceRows, ModelError> {
        let (before, last) = tokens.split_at(tokens.len() - wanted.max(1));
        if before.len() > ROWS {
            self.run_tensors(before, 0)?;
        } else if !before.is_empty() {
            engine.pass(before, self.cache.len())?;
            self.cache.commit(before.len());
        }
        let mut parts = Vec::new();
        for chunk in last.chunks(ROWS) {
            parts.push(engine.pass(chunk, self.cache.len())?);
            self.cache.commit(chunk.len());
        }
        Ok(DeviceRows::new(&parts, self.chooser.clone())?)
    }
}

/// Refuses a model whose weights take `weights` bytes if there is no room for it. Of a card only weights and
/// caches are counted, which are there to the byte; passes that find no room end in an error.
///
/// # Errors
/// [`ModelErrorKind::Memory`], and [`ModelErrorKind::CardMemory`].
fn check_memory(
    weights: u64,
    config: &Config,
    context: usize,
    limit: Option<u64>,
    place: &Place,
) -> Result<(), ModelErrorKind> {
    let kv = if place.precision == DType::F32 { KvFormat::F32 } else { KvFormat::F16 };
    let mut memory = MemoryEstimate::new(config, kv, [context, context, 1], weights);
    let cache = memory.cache;
    if place.kernels.is_some() {
        let free = place.free().or(limit).unwrap_or(u64::MAX);
        let fits = weights.saturating_add(cache) <= free;
        return if fits { Ok(()) } else { Err(ModelErrorKind::CardMemory { weights, cache, context, free }) };
    }
    if place.precision == DType::BF16 {
        memory.pass = memory.pass.saturating_add(widened(config));
    }
    let (needed, limit) = (memory.total(), limit.or_else(available_memory).unwrap_or(u64::MAX));
    if needed <= limit { Ok(()) } else { Err(ModelErrorKind::Memory { needed, limit }) }
}

/// Bytes that all weights take at `place`. Reads none of them.
///
/// # Errors
/// If a tensor is missing, or has another shape than `config` says or an unknown number format.
fn size(weights: &dyn Weights, config: &Config, place: &Place) -> Result<u64, ModelError> {
    tensors(config).try_fold(0_u64, |sum, (name, shape)| {
        let format = weights.format(&name, &shape)?;
        let inputs = shape.last().copied().unwrap_or(1);
        let count = shape.iter().fold(1, |count: usize, &size| count.saturating_mul(size));
        let bytes = match (place.keeps_blocks(format, inputs), shape.as_slice()) {
            (Some(_), _) => {
                let stored = (count / format.block()).saturating_mul(format.block_bytes());
                // On the CPU Candle makes panels beside them, of up to 1.4 times their size.
                if place.is_cpu() { stored.saturating_mul(5) / 2 } else { stored }
            }
            (None, [_, _]) => count.saturating_mul(place.precision.size_in_bytes()),
            (None, _) => count.saturating_mul(size_of::<f32>()),
        };
        Ok(sum.saturating_add(as_u64(bytes)))
    })
}

/// Bytes of the largest matrix in 32 bits, in which a product of bf16 is made on the CPU.
fn widened(config: &Config) -> u64 {
    let Config { hidden, intermediate, heads, kv_heads, head_dim, vocabulary, .. } = *config;
    let outputs = vocabulary.max(2 * intermediate).max((heads + 2 * kv_heads) * head_dim);
    as_u64(outputs.saturating_mul(hidden)).saturating_mul(4)
}

impl Model for TensorModel {
    type Error = ModelError;

    fn graphs(&self) -> Option<GraphCounts> {
        self.engine.as_ref()?.graphs()
    }

    fn position(&self) -> usize {
        self.cache.len()
    }

    fn context(&self) -> usize {
        self.cache.context()
    }

    fn vocabulary_size(&self) -> usize {
        self.transformer.config().vocabulary
    }

    /// All rows that a pass of the kernels has room for, since each of their passes has as many.
    fn tokens_at_once(&self) -> NonZeroUsize {
        NonZeroUsize::new(ROWS).filter(|_| self.engine.is_some()).unwrap_or(NonZeroUsize::MIN)
    }

    fn forward(&mut self, tokens: &[TokenId], rows: Rows<'_>) -> Result<Logits, ModelError> {
        let position = self.position();
        let fetched = self.launch(tokens, rows)?.fetch();
        if fetched.is_err() {
            self.cache.truncate(position);
        }
        fetched
    }

    fn begin(&mut self, tokens: &[TokenId], rows: Rows<'_>) -> Result<Option<Kept<ModelError>>, ModelError> {
        Ok(Some(Box::new(self.launch(tokens, rows)?)))
    }

    fn truncate(&mut self, position: usize) -> Result<(), ModelError> {
        if position > self.position() {
            return Err(ModelErrorKind::PastEnd { asked: position, position: self.position() }.into());
        }
        self.cache.truncate(position);
        Ok(())
    }
}
