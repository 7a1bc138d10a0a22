//! Gemma 3, its text: norms on both sides of attention and of the multilayer perceptron, a scaled embedding,
//! and a window in all layers but each sixth, with frequencies of their own.

use super::{Architecture, PLAIN};
use crate::model::error::ModelError;
use crate::model::files::config::{Activation, Config, LayerSet, Norms, Rope, Scaling, Window};
use crate::model::files::fields::ModelFields;
use crate::model::files::rope_fields::rope;

pub(super) const GEMMA3: Architecture = Architecture {
    folders: &["Gemma3ForCausalLM", "gemma3_text", "Gemma3ForConditionalGeneration", "gemma3"],
    files: &["gemma3"],
    defaults: &[
        ("num_attention_heads", 8),
        ("num_key_value_heads", 4),
        ("head_dim", 256),
        ("vocab_size", 262_208),
        ("max_position_embeddings", 131_072),
        ("sliding_window", 4096),
    ],
    theta: 1e6,
    tied: true,
    biases: &["attention_bias"],
    activation: Activation::GeluTanh,
    describe,
    ..PLAIN
};

/// Layers of the model of 27 billion parameters. In GGUF files nothing else tells that its scale of attention
/// is another one.
const LAYERS_OF_27B: usize = 62;

#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "computed in f32")]
fn describe(fields: &ModelFields<'_>, config: &mut Config) -> Result<(), ModelError> {
    config.norms = Norms { heads: true, after: true, values: false, less_one: fields.file().is_none() };
    config.scales.embedding = (config.hidden as f64).sqrt() as f32;
    let scalar = match fields.file() {
        Some(_) if config.layers == LAYERS_OF_27B => config.hidden as f64 / config.heads as f64,
        Some(_) => config.head_dim as f64,
        None => fields.number(["query_pre_attn_scalar", ""])?.unwrap_or(256.0),
    };
    config.scales.attention = Some((1.0 / scalar.sqrt()) as f32);
    for setting in [["final_logit_softcapping", ""], ["attn_logit_softcapping", ""]] {
        fields.refuse(setting, fields.number(setting)?, |_| false)?;
    }
    let both = "use_bidirectional_attention";
    fields.refuse([both, ""], fields.switch(both)?, |both| !both)?;
    let period = fields.size(["sliding_window_pattern", "attention.sliding_window_pattern"])?.unwrap_or(6);
    let layers = fields.window_layers(config.layers)?.unwrap_or(LayerSet::ButEach(period));
    config.window = fields.window()?.map(|tokens| Window { tokens, layers });
    let kind = "sliding_attention";
    config.window_rope = Some(match fields.value("rope_parameters").and_then(|all| all.get(kind)) {
        Some(_) => rope(fields, kind, 1e4)?,
        None => {
            let theta = fields.number(["rope_local_base_freq", "rope.freq_base_swa"])?.unwrap_or(1e4);
            Rope { theta, scaling: Scaling::None }
        }
    });
    Ok(())
}
