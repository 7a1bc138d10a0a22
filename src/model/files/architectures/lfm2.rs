//! LFM2: short convolutions between gates in place of attention, in all but a few layers.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Architecture, PLAIN};
use crate::model::error::ModelError;
use crate::model::files::config::{Config, LayerSet};
use crate::model::files::fields::ModelFields;

pub(super) const LFM2: Architecture = Architecture {
    folders: &["Lfm2ForCausalLM", "lfm2"],
    files: &["lfm2"],
    names: &[
        ("input_layernorm", "operator_norm"),
        ("post_attention_layernorm", "ffn_norm"),
        ("self_attn.o_proj", "self_attn.out_proj"),
        ("q_norm", "q_layernorm"),
        ("k_norm", "k_layernorm"),
        ("mlp.gate_proj", "feed_forward.w1"),
        ("mlp.up_proj", "feed_forward.w3"),
        ("mlp.down_proj", "feed_forward.w2"),
        ("model.norm", "model.embedding_norm"),
    ],
    defaults: &[("num_key_value_heads", 8), ("conv_L_cache", 3), ("block_multiple_of", 256)],
    theta: 1e6,
    tied: true,
    describe,
    ..PLAIN
};

fn describe(fields: &ModelFields<'_>, config: &mut Config) -> Result<(), ModelError> {
    config.norms.heads = true;
    if let Some(tied) = fields.switch("tie_embedding")? {
        config.tied = tied;
    }
    fields.refuse(["conv_bias", ""], fields.switch("conv_bias")?, |bias| !bias)?;
    #[expect(clippy::cast_possible_truncation, reason = "the models compute in f32")]
    if let Some(epsilon) = fields.number(["norm_eps", ""])? {
        config.norm_epsilon = epsilon as f32;
    }
    if fields.file().is_none() && fields.switch("block_auto_adjust_ff_dim")? != Some(false) {
        config.intermediate = adjusted(fields, config.intermediate)?;
    }
    let attention = match fields.full_attention(config.layers, "conv")? {
        Some(layers) => Some(layers),
        None => listed(fields),
    };
    let missing = || fields.invalid("nothing tells which layers have attention");
    config.convolution = Some(fields.required(["conv_L_cache", "shortconv.l_cache"])?);
    config.attention = LayerSet::Only(attention.ok_or_else(missing)?);
    Ok(())
}

/// Reads the layers that have attention, from a list of them in older folders; in GGUF files, they are those
/// that have heads of keys.
fn listed(fields: &ModelFields<'_>) -> Option<BTreeSet<usize>> {
    if let Some(layers) = fields.value("full_attn_idxs").and_then(Value::as_array) {
        return layers.iter().map(|layer| usize::try_from(layer.as_u64()?).ok()).collect();
    }
    let heads = fields.metadata("attention.head_count_kv")?.as_integers()?;
    Some(heads.iter().enumerate().filter(|(_, heads)| **heads > 0).map(|(layer, _)| layer).collect())
}

/// The width of the multilayer perceptron, which folders have before it is fitted: two thirds of that,
/// rounded up to a multiple.
fn adjusted(fields: &ModelFields<'_>, width: usize) -> Result<usize, ModelError> {
    let factor = ["block_ffn_dim_multiplier", ""];
    fields.refuse(factor, fields.number(factor)?, |factor| *factor == 1.0)?;
    let fitted = width / 3 * 2 + width % 3 * 2 / 3;
    let multiple = fields.required(["block_multiple_of", ""])?;
    fitted.checked_next_multiple_of(multiple).ok_or_else(|| fields.invalid("block_multiple_of does not fit"))
}
