//! Qwen 2 and 2.5, with biases of queries, keys and values; Qwen 3, with norms of heads, perhaps with
//! experts; and the text of the models of both that see.

use super::{Architecture, PLAIN};
use crate::model::error::ModelError;
use crate::model::files::config::{Config, LayerSet, Window};
use crate::model::files::fields::ModelFields;

pub(super) const QWEN2: Architecture = Architecture {
    folders: &[
        "Qwen2ForCausalLM",
        "qwen2",
        "Qwen2VLForConditionalGeneration",
        "qwen2_vl",
        "Qwen2_5_VLForConditionalGeneration",
        "qwen2_5_vl",
    ],
    files: &["qwen2", "qwen2vl"],
    defaults: &[("num_key_value_heads", 32), ("sliding_window", 4096), ("max_window_layers", 28)],
    describe: |fields, config| {
        config.biases.qkv |= fields.file().is_none();
        windowed(fields, config)
    },
    ..PLAIN
};

pub(super) const QWEN3: Architecture = Architecture {
    folders: &["Qwen3ForCausalLM", "qwen3", "Qwen3VLForConditionalGeneration", "qwen3_vl"],
    files: &["qwen3", "qwen3vl"],
    defaults: &[
        ("num_key_value_heads", 32),
        ("head_dim", 128),
        ("sliding_window", 4096),
        ("max_window_layers", 28),
    ],
    biases: &["attention_bias"],
    describe: |fields, config| {
        config.norms.heads = true;
        windowed(fields, config)
    },
    ..PLAIN
};

pub(super) const QWEN3_MOE: Architecture = Architecture {
    folders: &["Qwen3MoeForCausalLM", "qwen3_moe"],
    files: &["qwen3moe", "qwen3vlmoe"],
    defaults: &[("num_key_value_heads", 4), ("sliding_window", 4096), ("max_window_layers", 0)],
    experts: true,
    biases: &["attention_bias"],
    describe: |fields, config| {
        config.norms.heads = true;
        if let (Some(experts), None) = (&mut config.experts, fields.file()) {
            experts.normalised = fields.switch("norm_topk_prob")?.unwrap_or_default();
        }
        windowed(fields, config)
    },
    ..PLAIN
};

/// Sets the window, which `use_sliding_window` must ask for.
fn windowed(fields: &ModelFields<'_>, config: &mut Config) -> Result<(), ModelError> {
    let tokens = fields.window()?;
    if let (Some(tokens), Some(_)) = (tokens, fields.file()) {
        return Err(fields.unsupported(["", "attention.sliding_window"], tokens));
    }
    if fields.switch("use_sliding_window")? != Some(true) {
        return Ok(());
    }
    let first = fields.size(["max_window_layers", ""])?.unwrap_or_default();
    let layers = fields.window_layers(config.layers)?.unwrap_or(LayerSet::From(first));
    config.window = tokens.map(|tokens| Window { tokens, layers });
    Ok(())
}
