//! Models as they are stored: configurations and tensors of Hugging Face folders and GGUF files, or made up.

pub(super) mod architectures;
pub(super) mod config;
mod fields;
mod gguf;
pub(super) mod random;
mod rope_fields;
mod safetensors;
pub(super) mod weights;

use std::path::Path;

use self::config::{Config, Scaling};
use self::weights::{Weights, read_text};
use self::{gguf::GgufWeights, safetensors::Safetensors};
use super::error::{ModelError, ModelErrorKind};
use domino_engine::gguf::{Gguf, is_gguf};

/// Calls `then` with the opened weights and the configuration of the model at `path`. Nothing large was read
/// or allocated.
pub(crate) fn with_weights<T>(
    path: &Path,
    then: impl FnOnce(&mut dyn Weights, Config) -> Result<T, ModelError>,
) -> Result<T, ModelError> {
    if !is_gguf(path) {
        let (config, architecture) = architectures::of_folder(&read_text(&path.join("config.json"))?)?;
        return then(&mut Safetensors::open(path, architecture.names)?, config);
    }
    let gguf = Gguf::open(path)?;
    let (mut config, architecture) = architectures::of_file(&gguf)?;
    let paired = architecture.is_paired.then_some(config.head_dim);
    let mut weights = GgufWeights::open(&gguf, paired, config.norms.after)?;
    if gguf.tensor(FREQUENCIES).is_some() {
        config.rope.scaling = Scaling::Factors(weights.vector(FREQUENCIES, config.rotary_dim / 2)?);
        config.rope.check().map_err(ModelErrorKind::InvalidMetadata)?;
    }
    then(&mut weights, config)
}

/// The tensor of a GGUF file that has the factors of the rope's frequencies.
pub(super) const FREQUENCIES: &str = "rope_freqs.weight";
