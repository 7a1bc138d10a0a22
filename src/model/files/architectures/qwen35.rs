//! Qwen 3.5, its text: three of four layers have the state of a gated delta net in place of attention, whose
//! heads have gates and rotate a quarter of their numbers. The layers that guess tokens beyond the next are
//! left out.

use super::{Architecture, PLAIN};
use crate::model::error::ModelError;
use crate::model::files::config::{Config, DeltaNet, LayerSet, Norms};
use crate::model::files::fields::ModelFields;

/// Sizes that are the same in all of these models, and that folders may leave out.
const DEFAULTS: [(&str, usize); 7] = [
    ("head_dim", 256),
    ("full_attention_interval", 4),
    ("linear_conv_kernel_dim", 4),
    ("linear_num_key_heads", 16),
    ("linear_num_value_heads", 32),
    ("linear_key_head_dim", 128),
    ("linear_value_head_dim", 128),
];

pub(super) const QWEN35: Architecture = Architecture {
    folders: &["Qwen3_5ForCausalLM", "qwen3_5_text", "Qwen3_5ForConditionalGeneration", "qwen3_5"],
    files: &["qwen35"],
    defaults: &DEFAULTS,
    rotary: Some(0.25),
    biases: &["attention_bias"],
    describe,
    ..PLAIN
};

/// Qwen 3.5 with experts, one of which all tokens have.
pub(super) const QWEN35_MOE: Architecture = Architecture {
    folders: &[
        "Qwen3_5MoeForCausalLM",
        "qwen3_5_moe_text",
        "Qwen3_5MoeForConditionalGeneration",
        "qwen3_5_moe",
    ],
    files: &["qwen35moe"],
    defaults: &DEFAULTS,
    experts: true,
    describe: |fields, config| {
        if let Some(experts) = &mut config.experts {
            experts.shared =
                fields.required(["shared_expert_intermediate_size", "expert_shared_feed_forward_length"])?;
        }
        describe(fields, config)
    },
    ..QWEN35
};

fn describe(fields: &ModelFields<'_>, config: &mut Config) -> Result<(), ModelError> {
    let is_converted = fields.file().is_some();
    config.norms = Norms { heads: true, less_one: !is_converted, ..Norms::default() };
    config.gated = true;
    let guessing = fields.size(["", "nextn_predict_layers"])?.unwrap_or_default();
    config.layers = config.layers.saturating_sub(guessing);
    let period = fields.size(["full_attention_interval", "full_attention_interval"])?.unwrap_or(4);
    let layers = fields.full_attention(config.layers, "linear_attention")?;
    config.attention = layers.map_or(LayerSet::Each(period), LayerSet::Only);
    let value_heads = fields.required(["linear_num_value_heads", "ssm.time_step_rank"])?;
    let key_dim = fields.required(["linear_key_head_dim", "ssm.state_size"])?;
    let value_dim = match fields.size(["", "ssm.inner_size"])? {
        Some(size) => size.checked_div(value_heads).unwrap_or_default(),
        None => fields.required(["linear_value_head_dim", "ssm.inner_size"])?,
    };
    config.delta = Some(DeltaNet {
        key_heads: fields.required(["linear_num_key_heads", "ssm.group_count"])?,
        value_heads,
        key_dim,
        value_dim,
        width: fields.required(["linear_conv_kernel_dim", "ssm.conv_kernel"])?,
        is_converted,
    });
    Ok(())
}
