//! Llama and Mistral models from Hugging Face folders, on the CPU with Candle.
//!
//! Owns loading and the passes. Invariants: the cache is whole between calls: a call that fails has not
//! changed it; a row of logits has the same bits however the tokens were split into passes. Weights are
//! upcast to `f32`.

mod attention;
mod config;
mod error;
mod kv_cache;
mod llama;
mod matrix;
mod ops;
mod weights;

use std::path::Path;

pub use error::{ModelError, ModelErrorKind};

use self::{config::Config, kv_cache::KvCache, llama::Llama, weights::Weights};
use super::{Logits, Model, Rows};
use crate::{ids::TokenId, limits::DEFAULT_CONTEXT};

/// Tokens run at a time, so that the memory of a long prompt's pass is bounded.
const CHUNK: usize = 256;

/// How to load a [`CandleModel`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadOptions {
    /// Tokens to make room for. Default: as many as the model was made for, at most 4096. The cache is
    /// allocated at once; see [`CandleModel::estimate`].
    pub context: Option<usize>,
    /// Most memory to use, in bytes. Default: no limit. Checked before anything is allocated.
    pub memory_limit: Option<u64>,
}

/// Memory that a model takes, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryEstimate {
    /// Weights as `f32`.
    pub weights: u64,
    /// Keys and values of the whole context, and the rotation tables.
    pub cache: u64,
    /// The most that one pass takes on top, for at most 256 tokens at once.
    pub pass: u64,
}

impl MemoryEstimate {
    /// All together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.weights.saturating_add(self.cache).saturating_add(self.pass)
    }

    fn new(config: &Config, context: usize) -> Self {
        let product = |factors: &[usize]| {
            factors
                .iter()
                .fold(4_u64, |bytes, &factor| bytes.saturating_mul(u64::try_from(factor).unwrap_or(u64::MAX)))
        };
        let Config { hidden, intermediate, layers, heads, kv_heads, head_dim, vocabulary, .. } = *config;
        let matrices = if config.tied { 1 } else { 2 };
        let width = (2 * heads + 2 * kv_heads) * head_dim + 3 * intermediate + 2;
        let queries = CHUNK.min(context);
        let row = 3 * intermediate + 4 * hidden + 3 * heads * head_dim + vocabulary;
        Self {
            weights: product(&[layers, hidden, width])
                .saturating_add(product(&[matrices, hidden, vocabulary])),
            cache: product(&[2, layers, kv_heads, context, head_dim])
                .saturating_add(product(&[context, head_dim])),
            pass: product(&[heads, context]).saturating_add(product(&[queries, row])),
        }
    }
}

/// A Llama or Mistral model with its cache.
#[derive(Debug)]
pub struct CandleModel {
    llama: Llama,
    cache: KvCache,
}

impl CandleModel {
    /// Loads a Hugging Face folder: `config.json`, and `model.safetensors` or the shards that
    /// `model.safetensors.index.json` names, in F32, F16 or BF16. Reads every weight once; takes about a
    /// second per GB.
    ///
    /// # Errors
    /// If a file is missing, unreadable, damaged or cut short; if the architecture or a variation of it is
    /// not supported; if a tensor is missing or does not fit the configuration; if the context or the
    /// memory asked for cannot be had.
    pub fn load(folder: impl AsRef<Path>, options: &LoadOptions) -> Result<Self, ModelError> {
        let folder = folder.as_ref();
        let (config, context, memory) = prepare(folder, options)?;
        let limit = options.memory_limit.unwrap_or(u64::MAX - 1);
        if memory.total() > limit {
            return Err(ModelErrorKind::Memory { needed: memory.total(), limit }.into());
        }
        let mut weights = Weights::open(folder)?;
        let (layers, kv_heads, head_dim) = (config.layers, config.kv_heads, config.head_dim);
        let llama = Llama::load(&mut weights, config, context)?;
        Ok(Self { llama, cache: KvCache::new(layers, kv_heads, context, head_dim)? })
    }

    /// What [`load`](Self::load) would take, from `config.json` alone.
    ///
    /// # Errors
    /// As far as `config.json` and the context are concerned, those of [`load`](Self::load).
    pub fn estimate(folder: impl AsRef<Path>, options: &LoadOptions) -> Result<MemoryEstimate, ModelError> {
        prepare(folder.as_ref(), options).map(|(_, _, memory)| memory)
    }

    /// Runs checked tokens chunk by chunk; on error the cache may hold some of them.
    fn run(&mut self, tokens: &[u32], rows: Rows) -> Result<Vec<f32>, ModelError> {
        let mut values = Vec::new();
        for chunk in tokens.chunks(CHUNK) {
            let some = self.llama.forward(chunk, rows, &self.cache)?;
            match rows {
                Rows::Last => values = some,
                Rows::All if values.is_empty() => values = some,
                Rows::All => values.extend(some),
            }
            self.cache.commit(chunk.len());
        }
        Ok(values)
    }
}

impl Model for CandleModel {
    type Error = ModelError;

    fn position(&self) -> usize {
        self.cache.len()
    }

    fn context(&self) -> usize {
        self.cache.context()
    }

    fn vocabulary_size(&self) -> usize {
        self.llama.vocabulary_size()
    }

    fn forward(&mut self, tokens: &[TokenId], rows: Rows) -> Result<Logits, ModelError> {
        let (position, context, vocabulary) = (self.position(), self.context(), self.vocabulary_size());
        if tokens.is_empty() {
            return Err(ModelErrorKind::NoTokens.into());
        }
        if let Some(&token) = tokens.iter().find(|token| token.index() >= vocabulary) {
            return Err(ModelErrorKind::UnknownToken { token, vocabulary }.into());
        }
        if tokens.len() > context - position {
            return Err(ModelErrorKind::TooLong { position, tokens: tokens.len(), context }.into());
        }
        let tokens: Vec<u32> = tokens.iter().map(|token| token.raw()).collect();
        match self.run(&tokens, rows) {
            Ok(values) => Ok(Logits::new(values, vocabulary)),
            Err(error) => {
                self.cache.truncate(position);
                Err(error)
            }
        }
    }

    fn truncate(&mut self, position: usize) -> Result<(), ModelError> {
        if position > self.position() {
            return Err(ModelErrorKind::PastEnd { asked: position, position: self.position() }.into());
        }
        self.cache.truncate(position);
        Ok(())
    }
}

/// The configuration, the context in tokens and the memory needed.
fn prepare(folder: &Path, options: &LoadOptions) -> Result<(Config, usize, MemoryEstimate), ModelError> {
    let config = Config::parse(&read_text(&folder.join("config.json"))?)?;
    let supported = config.max_positions;
    let context = options.context.unwrap_or(supported.min(DEFAULT_CONTEXT));
    if context == 0 || context > supported {
        return Err(ModelErrorKind::Context { asked: context, supported }.into());
    }
    let memory = MemoryEstimate::new(&config, context);
    Ok((config, context, memory))
}

/// The text of a file.
fn read_text(path: &Path) -> Result<String, ModelError> {
    std::fs::read_to_string(path).map_err(|error| file_error(path, error))
}

/// A file that cannot be opened or read.
fn file_error(path: &Path, error: std::io::Error) -> ModelError {
    let kind = match error.kind() {
        std::io::ErrorKind::NotFound => ModelErrorKind::MissingFile(path.to_owned()),
        _ => ModelErrorKind::Unreadable(path.to_owned()),
    };
    ModelError::with_source(kind, error)
}
