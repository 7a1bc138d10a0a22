//! A null draft model with the target's tokens. Upstream's speculative pipeline needs a draft model, but the
//! real drafts come from the processor that stands in for its sampling.
//!
//! It has one layer, all zero, with a hidden size of one. Only its cache must have the shape of the target's
//! first layer, since upstream allocates caches once for both.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use mistralrs_candle::{DType, Device, Tensor};
use mistralrs_core::{
    DeviceMapSetting, NormalLoaderBuilder, NormalLoaderType, NormalSpecificConfig, Pipeline, TokenSource,
};
use serde_json::json;
use tokio::sync::Mutex;

use super::error::LoadError;

/// Size of its hidden state. With one, the product with the vocabulary, most of its pass, is a loop over the
/// tokens.
const HIDDEN: usize = 1;

/// Sizes that it must have in common with the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DraftShape {
    pub(super) tokens: usize,
    pub(super) kv_heads: usize,
    pub(super) head_dim: usize,
    pub(super) context: usize,
    pub(super) dtype: DType,
}

/// Loads a null draft for a target of this shape and tokenizer.
pub(super) fn load(
    shape: &DraftShape,
    tokenizer: &mistralrs_tokenizers::Tokenizer,
    device: &Device,
) -> Result<Arc<Mutex<dyn Pipeline + Send + Sync>>, LoadError> {
    let folder = Folder::new().map_err(|error| LoadError::NullDraft(error.to_string()))?;
    write(&folder.0, shape, tokenizer)?;
    let path = folder.0.display().to_string();
    NormalLoaderBuilder::new(NormalSpecificConfig::default(), None, None, Some(path), false, None)
        .build(Some(NormalLoaderType::Mistral))
        .and_then(|loader| {
            loader.load_model_from_hf(
                None,
                TokenSource::None,
                &shape.dtype,
                device,
                true,
                DeviceMapSetting::dummy(),
                None,
                None,
            )
        })
        .map_err(|error| LoadError::NullDraft(format!("{error:#}")))
}

/// A new temporary folder, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> std::io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("domino-null-draft-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            match fs::create_dir(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                created => return created.map(|()| Self(path)),
            }
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that cannot be removed is small, and in a place that is cleared.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn write(
    folder: &Path,
    shape: &DraftShape,
    tokenizer: &mistralrs_tokenizers::Tokenizer,
) -> Result<(), LoadError> {
    let failed = |error: &dyn std::fmt::Display| LoadError::NullDraft(error.to_string());
    let DraftShape { tokens, kv_heads, head_dim, context, .. } = shape;
    let config = json!({
        "architectures": ["MistralForCausalLM"],
        "model_type": "mistral",
        "vocab_size": tokens,
        "hidden_size": HIDDEN,
        "intermediate_size": HIDDEN,
        "num_hidden_layers": 1,
        "num_attention_heads": kv_heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
        "hidden_act": "silu",
        "max_position_embeddings": context,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10_000.0,
        "sliding_window": null,
        "tie_word_embeddings": true,
    });
    fs::write(folder.join("config.json"), config.to_string()).map_err(|error| failed(&error))?;
    // The model ends no text, but upstream demands tokens that would.
    fs::write(folder.join("generation_config.json"), r#"{"eos_token_id": 0}"#)
        .and_then(|()| fs::write(folder.join("tokenizer_config.json"), "{}"))
        .map_err(|error| failed(&error))?;
    tokenizer.save(folder.join("tokenizer.json"), false).map_err(|error| failed(&error))?;
    let weights = zeros(shape).map_err(|error| failed(&error))?;
    mistralrs_candle::safetensors::save(&weights, folder.join("model.safetensors"))
        .map_err(|error| failed(&error))
}

fn zeros(shape: &DraftShape) -> mistralrs_candle::Result<HashMap<String, Tensor>> {
    let heads = shape.kv_heads * shape.head_dim;
    let layer = |name: &str| format!("model.layers.0.{name}.weight");
    let shapes = [
        ("model.embed_tokens.weight".to_owned(), vec![shape.tokens, HIDDEN]),
        ("model.norm.weight".to_owned(), vec![HIDDEN]),
        (layer("input_layernorm"), vec![HIDDEN]),
        (layer("post_attention_layernorm"), vec![HIDDEN]),
        (layer("self_attn.q_proj"), vec![heads, HIDDEN]),
        (layer("self_attn.k_proj"), vec![heads, HIDDEN]),
        (layer("self_attn.v_proj"), vec![heads, HIDDEN]),
        (layer("self_attn.o_proj"), vec![HIDDEN, heads]),
        (layer("mlp.gate_proj"), vec![HIDDEN, HIDDEN]),
        (layer("mlp.up_proj"), vec![HIDDEN, HIDDEN]),
        (layer("mlp.down_proj"), vec![HIDDEN, HIDDEN]),
    ];
    shapes
        .into_iter()
        .map(|(name, dims)| Ok((name, Tensor::zeros(dims, shape.dtype, &Device::Cpu)?)))
        .collect()
}
