//! Llama, Mistral and Qwen models from Hugging Face folders, on the CPU with Candle.
//!
//! Owns loading and the passes. Invariants: the cache is whole between calls: a call that fails has not
//! changed it; a row of logits has the same bits however the tokens were split into passes. Weights are
//! upcast to `f32`.

mod attention;
mod config;
mod config_json;
mod error;
mod kv_cache;
mod linear;
mod matrix;
mod memory;
mod ops;
mod rope;
mod safetensors;
mod transformer;
mod weights;

use std::path::Path;

pub use error::{ModelError, ModelErrorKind};
pub use memory::MemoryEstimate;

use self::{config::Config, kv_cache::KvCache, safetensors::Safetensors, transformer::Transformer};
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
    /// Most memory to use, in bytes. Default: what the system says is free. Checked before any weight is read.
    pub memory_limit: Option<u64>,
}

/// A Llama, Mistral or Qwen model with its cache.
#[derive(Debug)]
pub struct CandleModel {
    transformer: Transformer,
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
        let Prepared { mut weights, config, context, memory } = prepare(folder.as_ref(), options)?;
        let limit = options.memory_limit.or_else(memory::available).unwrap_or(u64::MAX);
        if memory.total() > limit {
            return Err(ModelErrorKind::Memory { needed: memory.total(), limit }.into());
        }
        let (layers, kv_heads, head_dim) = (config.layers, config.kv_heads, config.head_dim);
        let transformer = Transformer::load(&mut weights, config, context)?;
        Ok(Self { transformer, cache: KvCache::new(layers, kv_heads, context, head_dim)? })
    }

    /// What [`load`](Self::load) would take. Reads `config.json` and the headers of the weights.
    ///
    /// # Errors
    /// Those of [`load`](Self::load), but for a lack of memory and weights that cannot be read.
    pub fn estimate(folder: impl AsRef<Path>, options: &LoadOptions) -> Result<MemoryEstimate, ModelError> {
        prepare(folder.as_ref(), options).map(|prepared| prepared.memory)
    }

    /// Runs checked tokens chunk by chunk; on error the cache may hold some of them.
    fn run(&mut self, tokens: &[u32], rows: Rows) -> Result<Vec<f32>, ModelError> {
        let mut values = Vec::new();
        for chunk in tokens.chunks(CHUNK) {
            let some = self.transformer.forward(chunk, rows, &self.cache)?;
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
        self.transformer.config().vocabulary
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

/// A model about to be loaded: nothing large was read or allocated.
struct Prepared {
    weights: Safetensors,
    config: Config,
    /// Tokens.
    context: usize,
    memory: MemoryEstimate,
}

fn prepare(folder: &Path, options: &LoadOptions) -> Result<Prepared, ModelError> {
    let config = config_json::parse(&read_text(&folder.join("config.json"))?)?;
    let supported = config.max_positions;
    let context = options.context.unwrap_or(supported.min(DEFAULT_CONTEXT));
    if context == 0 || context > supported {
        return Err(ModelErrorKind::Context { asked: context, supported }.into());
    }
    let weights = Safetensors::open(folder)?;
    let memory = MemoryEstimate::new(&config, context, transformer::size(&weights, &config)?);
    Ok(Prepared { weights, config, context, memory })
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
