//! Folders and GGUF files of models, opened: their configuration, and the source of their tensors.

use std::path::Path;

use super::{
    config::Config,
    config_gguf, config_json,
    gguf_weights::GgufWeights,
    rope::Scaling,
    safetensors::Safetensors,
    weights::{Weights, read_text},
};
use crate::{
    gguf::{Gguf, is_gguf},
    model::error::{ModelError, ModelErrorKind},
};

/// Calls `then` with the opened weights and the configuration of the model at `path`. Nothing large was read
/// or allocated.
pub(crate) fn with_weights<T>(
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
