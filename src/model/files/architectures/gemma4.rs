//! Gemma 4, its text, without experts. Layers that see all have longer heads than those with the window,
//! and perhaps their keys as values; in the small models, each layer has inputs of its own, and the last
//! ones have the keys and values of others.

use std::collections::BTreeSet;

use domino_engine::gguf::MetadataValue;
use serde_json::Value;

use super::{Architecture, PLAIN};
use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::files::FREQUENCIES;
use crate::model::files::config::{Activation, Config, LayerSet, Norms, Rope, Scaling, SharedKeys, Window};
use crate::model::files::fields::ModelFields;
use crate::model::files::rope_fields::{rope, rotary_share};

pub(super) const GEMMA4: Architecture = Architecture {
    folders: &[
        "Gemma4ForCausalLM",
        "gemma4_text",
        "Gemma4ForConditionalGeneration",
        "gemma4",
        "Gemma4UnifiedForCausalLM",
        UNIFIED,
        "Gemma4UnifiedForConditionalGeneration",
        "gemma4_unified",
    ],
    files: &["gemma4"],
    names: &[
        ("layer_scalar.weight", "layer_scalar"),
        ("per_layer_token_embd", "model.embed_tokens_per_layer"),
        ("per_layer_model_proj", "model.per_layer_model_projection"),
        ("per_layer_proj_norm", "model.per_layer_projection_norm"),
    ],
    theta: 1e6,
    tied: true,
    activation: Activation::GeluTanh,
    describe,
    ..PLAIN
};

/// The text of a model that is one for text, pictures and sound, and has no inputs of layers.
const UNIFIED: &str = "gemma4_unified_text";
const WINDOWED: &str = "sliding_attention";
const KV_HEADS: [&str; 2] = ["num_key_value_heads", "attention.head_count_kv"];
const INNER: [&str; 2] = ["intermediate_size", "feed_forward_length"];

#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "computed in f32")]
fn describe(fields: &ModelFields<'_>, config: &mut Config) -> Result<(), ModelError> {
    config.norms = Norms { heads: true, after: true, values: true, less_one: false };
    config.scales.embedding = (config.hidden as f64).sqrt() as f32;
    config.scales.attention = Some(1.0);
    let cap = fields.number(["final_logit_softcapping", "final_logit_softcapping"])?;
    config.scales.cap = cap.filter(|&cap| cap != 0.0).map(|cap| cap as f32);
    if fields.value("model_type").is_none_or(|kind| kind != UNIFIED) {
        let size = fields.required(["hidden_size_per_layer_input", "embedding_length_per_layer_input"])?;
        config.layer_inputs = Some(size).filter(|&size| size > 0);
    }
    refuse_variations(fields)?;
    let windowed = windowed(fields, config.layers)?;
    let first = |in_window| (0..config.layers).find(|&layer| windowed.has(layer) == in_window).unwrap_or(0);
    let [global, local] = [first(false), first(true)];
    let shared = fields.size(["num_kv_shared_layers", "attention.shared_kv_layers"])?.unwrap_or(0);
    let wide = fields.switch("use_double_wide_mlp")? == Some(true);
    let inner = fields.size_of(INNER, config.layers.saturating_sub(1))?.unwrap_or_default();
    let inner = if wide { inner.saturating_mul(2) } else { inner };
    config.shared = SharedKeys { layers: shared, intermediate: inner };
    match fields.file() {
        None => {
            config.scales.by_layer = true;
            config.keys_as_values = fields.switch("attention_k_eq_v")? == Some(true);
            config.window_heads = Some([config.kv_heads, config.head_dim]);
            [config.kv_heads, config.head_dim] = global_heads(fields, config, global)?;
            if fields.value("rope_parameters").is_none_or(Value::is_null) {
                config.rope.scaling = Scaling::Proportional { share: 0.25, factor: 1.0 };
            }
            config.window_rope = Some(rope(fields, WINDOWED, 1e4)?);
        }
        Some(gguf) => {
            let has = |part: &str| gguf.tensor(&format!("blk.{global}.{part}.weight")).is_some();
            config.scales.by_layer = has("layer_output_scale");
            config.keys_as_values = !has("attn_v");
            let size = fields.required(["", "attention.key_length_swa"])?;
            let [usual, own] = [global, local].map(|layer| fields.size_of(KV_HEADS, layer));
            config.window_heads = Some([own?.unwrap_or(config.kv_heads), size]);
            config.kv_heads = usual?.unwrap_or(config.kv_heads);
            let theta = fields.number(["", "rope.freq_base_swa"])?.unwrap_or(config.rope.theta);
            config.window_rope = Some(Rope { theta, scaling: Scaling::None });
            if gguf.tensor(FREQUENCIES).is_none() {
                return Err(ModelErrorKind::MissingTensor(FREQUENCIES.to_owned()).into());
            }
        }
    }
    config.rotary_dim = config.head_dim;
    let tokens = fields.window()?.ok_or_else(|| fields.invalid("there is no window"))?;
    config.window = Some(Window { tokens, layers: windowed });
    Ok(())
}

/// The layers that have the window, which the files name one by one.
fn windowed(fields: &ModelFields<'_>, layers: usize) -> Result<LayerSet, ModelError> {
    let setting = ["layer_types", "attention.sliding_window_pattern"];
    let missing = || fields.invalid(format!("{} does not name each layer", fields.name(setting)));
    match fields.metadata(setting[1]) {
        Some(MetadataValue::Bools(all)) if all.len() == layers => {
            let own: BTreeSet<usize> = (0..layers).filter(|&layer| all[layer]).collect();
            Ok(LayerSet::Only(own))
        }
        _ => fields.window_layers(layers)?.ok_or_else(missing),
    }
}

/// Key/value heads and the size of a head of a layer that sees all, in a folder: newer ones have what differs
/// by the number of the layer.
fn global_heads(fields: &ModelFields<'_>, config: &Config, layer: usize) -> Result<[usize; 2], ModelError> {
    let usual = [config.kv_heads, config.head_dim];
    if let Some(all) = fields.value("per_layer_config").filter(|all| !all.is_null()) {
        let own = |name| all.get(layer.to_string()).and_then(|own| own.get(name)).map(Value::as_u64);
        let size = |name, usual| own(name).map_or(Some(usual), |size| usize::try_from(size?).ok());
        let sizes = size("num_key_value_heads", usual[0]).zip(size("head_dim", usual[1]));
        let (heads, size) = sizes.ok_or_else(|| fields.invalid("per_layer_config has no sizes"))?;
        return Ok([heads, size]);
    }
    let heads = match config.keys_as_values {
        true => fields.size(["num_global_key_value_heads", ""])?,
        false => None,
    };
    Ok([heads.unwrap_or(usual[0]), fields.required(["global_head_dim", ""])?])
}

/// Refuses settings that would change the numbers and that this runner does not compute.
fn refuse_variations(fields: &ModelFields<'_>) -> Result<(), ModelError> {
    if fields.switch("enable_moe_block")? == Some(true) {
        return Err(fields.unsupported(["enable_moe_block", ""], true));
    }
    let bidirectional = "use_bidirectional_attention";
    if let Some(all) = fields.value(bidirectional).filter(|what| !what.is_null() && **what != "vision") {
        return Err(fields.unsupported([bidirectional, ""], all));
    }
    let setting = ["partial_rotary_factor", "rope.dimension_count_swa"];
    let local = fields.size(["", "attention.key_length_swa"])?;
    if let Some(size) = fields.size(["", setting[1]])?.filter(|&size| Some(size) != local) {
        return Err(fields.unsupported(setting, size));
    }
    match rotary_share(fields, WINDOWED)?.filter(|&share| share != 1.0) {
        Some(share) => Err(fields.unsupported(setting, share)),
        None => Ok(()),
    }
}
