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

use self::placement::{Place, WeightForm};
use self::transformer::{KvCache, TensorTransformer};
use super::card::{CacheSize, CardChooser, CardEngine, CardRow, ROWS, row_bytes};
use crate::ids::{TokenId, as_u64};
use crate::limits::DEFAULT_CONTEXT;
use crate::model::cpu::batch::{ONLY, check_inputs};
use crate::model::cpu::load::{LoadOptions, needs};
use crate::model::cpu::{CHUNK, MemoryEstimate, available_memory, transformer::tensors};
use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::files::random::{RandomModel, RandomWeights};
use crate::model::files::{config::Config, weights::Weights, with_weights};
use crate::model::{BatchInput, BatchModel, GraphCounts, Kept, Logits, Model, Rows, formats::KvFormat};

/// A model with its caches, as tensors of a device. As a [`Model`] it has its first sequence.
///
/// On a card rows do not depend on what shares a pass, if the kernels compute the model: heads of at most 256
/// numbers, and no more than Llama, Mistral or Qwen to 3 have. Other rows do in their last bits, unlike those
/// of [`CandleModel`](super::CandleModel): products are summed as the device's library likes.
#[derive(Debug)]
pub struct TensorModel {
    // Dropped before the tensors that it has addresses of.
    engine: Option<CardEngine>,
    /// The chooser of tokens on a card.
    chooser: Option<CardChooser>,
    transformer: TensorTransformer,
    caches: Vec<KvCache>,
}

impl TensorModel {
    /// Loads a model as [`CandleModel::load`](super::CandleModel::load) does, to `placement`. Reads every
    /// weight once. Quantised weights stay in their blocks. The card's kernels multiply exactly with those of
    /// Q4_K, Q5_K, Q6_K and Q8_0, as which they take Q4_0 and Q5_0; others become numbers of the placement's
    /// precision. Elsewhere products round their inputs to eight bits, unless by
    /// [`LoadOptions::exact_products`] all weights become numbers, of two to eight times the memory.
    ///
    /// # Errors
    /// All errors of [`CandleModel::load`](super::CandleModel::load), and a device that cannot be used. The
    /// check of free memory is of the computer's: what a card has is not known before it runs out.
    pub fn load(
        path: impl AsRef<Path>,
        options: &LoadOptions,
        placement: Placement,
    ) -> Result<Self, ModelError> {
        Self::load_batch(path, NonZeroUsize::MIN, options, placement)
    }

    /// Loads a model with room for `sequences` texts, each of the whole context.
    ///
    /// # Errors
    /// Those of [`load`](Self::load).
    pub fn load_batch(
        path: impl AsRef<Path>,
        sequences: NonZeroUsize,
        options: &LoadOptions,
        placement: Placement,
    ) -> Result<Self, ModelError> {
        let place = placement.open(options.exact_products)?;
        with_weights(path.as_ref(), |weights, config| {
            Self::from_weights(weights, config, sequences, options, &place)
        })
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
        let mut weights = RandomWeights::new(model.format);
        Self::from_weights(&mut weights, model.config()?, NonZeroUsize::MIN, options, &place)
    }

    fn from_weights(
        weights: &mut dyn Weights,
        config: Config,
        sequences: NonZeroUsize,
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
        let place = &place.with_passes(CardEngine::computes(&config));
        // The cache is as large as the context from the first on.
        let mut asked = options.clone();
        asked.context.get_or_insert(config.max_positions.min(DEFAULT_CONTEXT));
        let (context, _) = needs(weights, &config, sequences, &asked)?;
        let (taken, texts) = (size(weights, &config, place)?, sequences.get());
        check_memory(taken, &config, [context, texts], options.memory_limit, place)?;
        let sizes = [config.kv_heads, context, config.head_dim];
        let (layers, device) = (config.cache_layers(), &place.device);
        let caches = KvCache::several(texts, layers, sizes, place.precision, device)?;
        let transformer = TensorTransformer::load(weights, config, context, place)?;
        let config = transformer.config();
        let weights = caches.first().and_then(|first| transformer.weights(first));
        let room = CacheSize { context, texts };
        let engine = place.kernels.zip(weights).filter(|_| place.passes);
        let engine = engine.map(|(on, weights)| CardEngine::new(on, config, room, &weights)).transpose()?;
        let chooser = match (&engine, place.kernels) {
            (Some(engine), _) => Some(engine.chooser()),
            (None, Some(on)) => Some(CardChooser::open(on, device, place.precision, config.vocabulary)?),
            (None, None) => None,
        };
        Ok(Self { engine, chooser, transformer, caches })
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
        let mut launched = self.launch_all(&[BatchInput { sequence: ONLY, tokens, rows }])?;
        launched.pop().ok_or_else(|| ModelErrorKind::NoSuchSequence(ONLY).into())
    }

    /// Runs inputs, whose rows stay on the device. On an error all caches are as before.
    fn launch_all(&mut self, inputs: &[BatchInput<'_>]) -> Result<Vec<DeviceRows>, ModelError> {
        check_inputs(inputs, self.transformer.config().vocabulary, |sequence| {
            self.caches.get(sequence).map(|cache| [cache.len(), cache.context()])
        })?;
        let before = self.lens();
        let launched = self.run(inputs);
        if launched.is_err() {
            self.go_back(&before);
        }
        launched
    }

    /// Numbers of tokens that the caches hold.
    fn lens(&self) -> Vec<usize> {
        self.caches.iter().map(KvCache::len).collect()
    }

    /// Takes all caches back to as many tokens.
    fn go_back(&mut self, lens: &[usize]) {
        self.caches.iter_mut().zip(lens).for_each(|(cache, &len)| cache.truncate(len));
    }

    /// Runs checked inputs; on error the caches may hold some of them. Each has at least one row.
    ///
    /// Kernels of our own run the tokens of all inputs in the same passes, but for what comes before the
    /// wanted rows where that is long. Which tokens Candle runs, and in which chunks, is decided by those
    /// before the wanted rows alone: a draft, whose rows are all wanted, changes no bit of the rest.
    fn run(&mut self, inputs: &[BatchInput<'_>]) -> Result<Vec<DeviceRows>, ModelError> {
        let (mut parts, mut rows) = (Vec::with_capacity(inputs.len()), Vec::new());
        for &BatchInput { sequence, tokens, rows: asked } in inputs {
            let wanted = asked.count(tokens.len()).max(1);
            let mut rest: Vec<u32> = tokens.iter().map(|token| token.raw()).collect();
            let Some(engine) = &self.engine else {
                parts.push((self.run_tensors(sequence, &rest, wanted)?, 0..0));
                continue;
            };
            if rest.len() - wanted > ROWS && !engine.runs_prompts() {
                let last = rest.split_off(rest.len() - wanted);
                self.run_tensors(sequence, &rest, 0)?;
                rest = last;
            }
            let positions = self.caches[sequence].len()..;
            let row = |(&token, position)| CardRow { token, position, text: sequence };
            rows.extend(rest.iter().zip(positions).map(row));
            parts.push((Vec::new(), rows.len() - wanted..rows.len()));
            self.caches[sequence].commit(rest.len());
        }
        let passes = self.engine.iter().flat_map(|engine| rows.chunks(ROWS).map(move |rows| (engine, rows)));
        for ((engine, rows), first) in passes.zip((0..).step_by(ROWS)) {
            engine.pass(rows)?;
            for (parts, range) in &mut parts {
                let (from, to) = (range.start.max(first), range.end.min(first + rows.len()));
                if from < to {
                    parts.push(engine.logits(from - first, to - from)?);
                }
            }
        }
        let rows = parts.into_iter().map(|(parts, _)| DeviceRows::new(&parts, self.chooser.clone()));
        Ok(rows.collect::<candle_core::Result<_>>()?)
    }

    /// Runs tokens by Candle's operations, and returns the last `wanted` rows, in parts.
    fn run_tensors(
        &mut self,
        sequence: usize,
        tokens: &[u32],
        wanted: usize,
    ) -> Result<Vec<Tensor>, ModelError> {
        let mut parts = Vec::new();
        let mut later = tokens.len();
        let cache = &mut self.caches[sequence];
        for chunk in tokens.chunks(CHUNK) {
            later -= chunk.len();
            let wanted = wanted.saturating_sub(later).min(chunk.len());
            // A chunk without wanted rows makes one all the same.
            let made = self.transformer.forward(chunk, wanted.max(1), cache)?;
            if wanted > 0 {
                parts.push(made);
            }
            cache.commit(chunk.len());
        }
        Ok(parts)
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
    [context, texts]: [usize; 2],
    limit: Option<u64>,
    place: &Place,
) -> Result<(), ModelErrorKind> {
    let kv = if place.precision == DType::F32 { KvFormat::F32 } else { KvFormat::F16 };
    let all = context.saturating_mul(texts);
    let mut memory = MemoryEstimate::new(config, kv, [context, all, texts], weights);
    let cache = memory.cache;
    if place.kernels.is_some() {
        let free = place.free().or(limit).unwrap_or(u64::MAX);
        let fits = weights.saturating_add(cache) <= free;
        let needs = ModelErrorKind::CardMemory { weights, cache, context: all, free };
        return if fits { Ok(()) } else { Err(needs) };
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
        let bytes = match (place.form(format, inputs), shape.as_slice()) {
            (WeightForm::Card(format), _) => row_bytes(format, inputs).saturating_mul(count / inputs.max(1)),
            (WeightForm::Blocks(_), _) => {
                let stored = (count / format.block()).saturating_mul(format.block_bytes());
                // On the CPU Candle makes panels beside them, of up to 1.4 times their size.
                if place.is_cpu() { stored.saturating_mul(5) / 2 } else { stored }
            }
            (WeightForm::Floats, [_, _]) => count.saturating_mul(place.precision.size_in_bytes()),
            (WeightForm::Floats, _) => count.saturating_mul(size_of::<f32>()),
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
        self.caches[ONLY].len()
    }

    fn context(&self) -> usize {
        self.caches[ONLY].context()
    }

    fn vocabulary_size(&self) -> usize {
        self.transformer.config().vocabulary
    }

    /// All rows that a pass of the kernels has room for, since each of their passes has as many.
    fn tokens_at_once(&self) -> NonZeroUsize {
        NonZeroUsize::new(ROWS).filter(|_| self.engine.is_some()).unwrap_or(NonZeroUsize::MIN)
    }

    fn forward(&mut self, tokens: &[TokenId], rows: Rows<'_>) -> Result<Logits, ModelError> {
        let mut all = BatchModel::forward(self, &[BatchInput { sequence: ONLY, tokens, rows }])?;
        all.pop().ok_or_else(|| ModelErrorKind::NoSuchSequence(ONLY).into())
    }

    fn begin(&mut self, tokens: &[TokenId], rows: Rows<'_>) -> Result<Option<Kept<ModelError>>, ModelError> {
        Ok(Some(Box::new(self.launch(tokens, rows)?)))
    }

    fn truncate(&mut self, position: usize) -> Result<(), ModelError> {
        BatchModel::truncate(self, ONLY, position)
    }
}

impl BatchModel for TensorModel {
    type Error = ModelError;

    fn sequences(&self) -> usize {
        self.caches.len()
    }

    fn position(&self, sequence: usize) -> usize {
        self.caches.get(sequence).map_or(0, KvCache::len)
    }

    fn context(&self) -> usize {
        self.caches[ONLY].context()
    }

    fn vocabulary_size(&self) -> usize {
        self.transformer.config().vocabulary
    }

    fn forward(&mut self, inputs: &[BatchInput<'_>]) -> Result<Vec<Logits>, ModelError> {
        let before = self.lens();
        let launched = self.launch_all(inputs)?;
        let rows = launched.iter().zip(inputs);
        let rows: Result<Vec<Logits>, ModelError> = rows
            .map(|(rows, input)| Ok(rows.fetch()?.part(0, input.rows.count(input.tokens.len()))))
            .collect();
        if rows.is_err() {
            self.go_back(&before);
        }
        rows
    }

    fn truncate(&mut self, sequence: usize, position: usize) -> Result<(), ModelError> {
        let cache = self.caches.get_mut(sequence).ok_or(ModelErrorKind::NoSuchSequence(sequence))?;
        if position > cache.len() {
            return Err(ModelErrorKind::PastEnd { asked: position, position: cache.len() }.into());
        }
        cache.truncate(position);
        Ok(())
    }
}
