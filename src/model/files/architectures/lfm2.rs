//! LFM2: short convolutions between gates in place of attention, in all but a few layers.

use serde_json::Value;

use super::{Architecture, PLAIN};
use crate::model::error::ModelError;
use crate::model::files::config::{Config, Convolution, LayerSet};
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
    if fields.switch("conv_bias")? == Some(true) {
        return Err(fields.unsupported(["conv_bias", ""], true));
    }
    #[expect(clippy::cast_possible_truncation, reason = "the models compute in f32")]
    if let Some(epsilon) = fields.number(["norm_eps", ""])? {
        config.norm_epsilon = epsilon as f32;
    }
    if fields.file().is_none() && fields.switch("block_auto_adjust_ff_dim")? != Some(false) {
        config.intermediate = adjusted(fields, config.intermediate)?;
    }
    let kinds = fields.value("layer_types").and_then(Value::as_array);
    let kinds = kinds.map(|kinds| kinds.iter().map(|kind| kind == "conv").collect());
    // In GGUF files the layers that convolve have no heads of keys.
    let heads = fields.metadata("attention.head_count_kv").and_then(|heads| heads.as_integers());
    let heads = || heads.map(|heads| heads.iter().map(|&heads| heads == 0).collect());
    let listed: Option<Vec<bool>> = kinds.or_else(heads);
    let listed = listed.filter(|listed| listed.len() == config.layers);
    let listed = listed.ok_or_else(|| fields.invalid("nothing tells for each layer whether it convolves"))?;
    let width = fields.required(["conv_L_cache", "shortconv.l_cache"])?;
    config.convolution = Some(Convolution { width, layers: LayerSet::Listed(listed) });
    Ok(())
}

/// The width of the multilayer perceptron, which folders have before it is fitted.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "widths are far below 2^52, and rounded down as `transformers` does"
)]
fn adjusted(fields: &ModelFields<'_>, width: usize) -> Result<usize, ModelError> {
    let factor = fields.number(["block_ffn_dim_multiplier", ""])?.unwrap_or(1.0);
    let fitted = (factor * (2 * width / 3) as f64) as usize;
    let multiple = fields.required(["block_multiple_of", ""])?;
    fitted.checked_next_multiple_of(multiple).ok_or_else(|| fields.invalid("block_multiple_of does not fit"))
}
