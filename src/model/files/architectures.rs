//! The architectures that the runner reads, each as what it has beyond Llama's; and the reader of what all
//! have, from a folder or a GGUF file.
//!
//! One more architecture is one file beside these and one line of [`ALL`], if what it differs in is data of
//! [`Config`]; see the page on models.

mod gemma3;
mod gemma4;
mod granite;
mod lfm2;
mod llama;
mod qwen;
mod qwen35;
mod smollm3;

use serde_json::Value;

use domino_engine::gguf::{Gguf, MetadataValue};

use super::config::{Activation, Biases, Config, Experts};
use super::fields::ModelFields;
use super::rope_fields::{rope, rotary_share};
use crate::model::error::{ModelError, ModelErrorKind};

/// All architectures. Where two have a name in common, the first is taken.
const ALL: [&Architecture; 12] = [
    &llama::LLAMA,
    &llama::MISTRAL,
    &qwen::QWEN2,
    &qwen::QWEN3,
    &gemma3::GEMMA3,
    &gemma4::GEMMA4,
    &smollm3::SMOLLM3,
    &lfm2::LFM2,
    &granite::GRANITE,
    &qwen35::QWEN35,
    &qwen35::QWEN35_MOE,
    &qwen::QWEN3_MOE,
];

/// What an architecture has that its files need not say.
pub(crate) struct Architecture {
    /// Names in `architectures` of `config.json`, and then in its `model_type`.
    folders: &'static [&'static str],
    /// Names in `general.architecture` of GGUF files.
    files: &'static [&'static str],
    /// True if GGUF files keep the two numbers that are rotated together side by side.
    pub(crate) is_paired: bool,
    /// Parts of names of tensors, and what folders have in place of them.
    pub(crate) names: &'static [(&'static str, &'static str)],
    /// Sizes that a folder need not have, by their names there.
    defaults: &'static [(&'static str, usize)],
    /// Base of the frequencies, if a folder has none.
    theta: f64,
    /// Share of a head that rotates where a folder does not say; `None` if heads always rotate as a whole.
    rotary: Option<f64>,
    /// True if it has experts.
    experts: bool,
    /// True if the output matrix is the embedding where a folder does not say.
    tied: bool,
    /// Switches of biases that a folder may have on.
    biases: &'static [&'static str],
    activation: Activation,
    /// Sets what is beyond Llama's.
    describe: fn(&ModelFields<'_>, &mut Config) -> Result<(), ModelError>,
}

/// Llama's, without biases.
const PLAIN: Architecture = Architecture {
    folders: &[],
    files: &[],
    is_paired: false,
    names: &[],
    defaults: &[],
    theta: 10_000.0,
    rotary: None,
    experts: false,
    tied: false,
    biases: &[],
    activation: Activation::Silu,
    describe: |_, _| Ok(()),
};

/// Names of all architectures, for messages: those of folders, and of GGUF files.
pub(crate) fn names() -> [String; 2] {
    let folders: Vec<&str> = ALL.iter().filter_map(|one| one.folders.first().copied()).collect();
    let files: Vec<&str> = ALL.iter().flat_map(|one| one.files).copied().collect();
    [folders.join(", "), files.join(", ")]
}

/// Reads the text of `config.json`; also gives the architecture.
///
/// # Errors
/// If it is not JSON, lacks a field, asks for an unknown architecture or an unsupported variation, or its
/// numbers do not fit each other.
pub(crate) fn of_folder(text: &str) -> Result<(Config, &'static Architecture), ModelError> {
    let config: Value = serde_json::from_str(text)
        .map_err(|error| ModelError::with_source(ModelErrorKind::InvalidConfig("not JSON".into()), error))?;
    let missing =
        || ModelErrorKind::InvalidConfig("neither architectures nor model_type is there".to_owned());
    let name = config
        .get("architectures")
        .and_then(|names| names.get(0))
        .or_else(|| config.get("model_type"))
        .and_then(Value::as_str)
        .ok_or_else(missing)?;
    let own = ALL.into_iter().find(|one| one.folders.contains(&name));
    let own = own.ok_or_else(|| ModelErrorKind::UnknownArchitecture(name.to_owned()))?;
    Ok((read(own, &ModelFields::Folder { config: &config, defaults: own.defaults })?, own))
}

/// Reads the metadata of a GGUF file; also gives the architecture.
///
/// # Errors
/// If a key is missing or not what it should be, or asks for an unknown architecture or an unsupported
/// variation.
pub(crate) fn of_file(gguf: &Gguf) -> Result<(Config, &'static Architecture), ModelError> {
    let missing = || ModelErrorKind::InvalidMetadata("there is no general.architecture".to_owned());
    let name = gguf.get("general.architecture").and_then(MetadataValue::as_str).ok_or_else(missing)?;
    let own = ALL.into_iter().find(|one| one.files.contains(&name));
    let own = own.ok_or_else(|| ModelErrorKind::UnknownArchitecture(name.to_owned()))?;
    Ok((read(own, &ModelFields::File { gguf, architecture: name })?, own))
}

fn read(architecture: &Architecture, fields: &ModelFields<'_>) -> Result<Config, ModelError> {
    let hidden = fields.required(["hidden_size", "embedding_length"])?;
    let heads = fields.required(["num_attention_heads", "attention.head_count"])?;
    let head_dim = match fields.size(["head_dim", "attention.key_length"])? {
        Some(size) => size,
        None if heads > 0 && hidden.is_multiple_of(heads) => hidden / heads,
        None => {
            return Err(
                fields.invalid(format!("{heads} heads cannot share a hidden size of {hidden} evenly"))
            );
        }
    };
    refuse_variations(architecture, fields, head_dim)?;
    let experts = architecture.experts.then(|| experts(fields)).transpose()?;
    let (vocabulary, tied) = ends(architecture, fields)?;
    let epsilon = fields.number(["rms_norm_eps", "attention.layer_norm_rms_epsilon"])?.unwrap_or(1e-6);
    #[expect(clippy::cast_possible_truncation, reason = "the models compute in f32")]
    let mut config = Config {
        hidden,
        intermediate: match (fields.size(["block_ff_dim", ""])?, &experts) {
            (Some(size), _) => size,
            (None, Some(own)) => own.used.saturating_mul(own.intermediate).saturating_add(own.shared),
            (None, None) => fields.required(["intermediate_size", "feed_forward_length"])?,
        },
        layers: fields.required(["num_hidden_layers", "block_count"])?,
        heads,
        kv_heads: fields.size(["num_key_value_heads", "attention.head_count_kv"])?.unwrap_or(heads),
        head_dim,
        vocabulary,
        max_positions: fields.required(["max_position_embeddings", "context_length"])?,
        norm_epsilon: epsilon as f32,
        rope: rope(fields, "full_attention", architecture.theta)?,
        rotary_dim: rotary_dim(architecture, fields, head_dim)?,
        experts,
        tied,
        biases: biases(architecture, fields)?,
        activation: activation(architecture, fields)?,
        ..Config::default()
    };
    (architecture.describe)(fields, &mut config)?;
    config.check().map_err(|reason| fields.invalid(reason))?;
    Ok(config)
}

/// Experts, which all layers must have.
fn experts(fields: &ModelFields<'_>) -> Result<Experts, ModelError> {
    let counts = [["num_experts", "expert_count"], ["num_local_experts", "expert_count"]];
    let count = match fields.size(counts[1])? {
        Some(count) => count,
        None => fields.required(counts[0])?,
    };
    let (step, layers) = (["decoder_sparse_step", ""], "mlp_only_layers");
    fields.refuse(step, fields.size(step)?, |step| *step == 1)?;
    fields.refuse([layers, ""], fields.value(layers), |layers| **layers == serde_json::json!([]))?;
    let scale = ["", "expert_weights_scale"];
    fields.refuse(scale, fields.number(scale)?, |scale| *scale == 0.0 || *scale == 1.0)?;
    Ok(Experts {
        count,
        used: fields.required(["num_experts_per_tok", "expert_used_count"])?,
        intermediate: fields.required(["moe_intermediate_size", "expert_feed_forward_length"])?,
        shared: 0,
        normalised: true,
    })
}

/// Numbers of a head that rotate: files have the number, folders the share.
fn rotary_dim(
    architecture: &Architecture,
    fields: &ModelFields<'_>,
    head_dim: usize,
) -> Result<usize, ModelError> {
    let setting = ["partial_rotary_factor", "rope.dimension_count"];
    if fields.file().is_some() {
        let size = fields.size(setting)?.unwrap_or(head_dim);
        let known = size == head_dim || architecture.rotary.is_some();
        return known.then_some(size).ok_or_else(|| fields.unsupported(setting, size));
    }
    let share = rotary_share(fields, "full_attention")?.or(architecture.rotary).unwrap_or(1.0);
    if (share != 1.0 && architecture.rotary.is_none()) || !(0.0..=1.0).contains(&share) {
        return Err(fields.unsupported(setting, share));
    }
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "sizes of heads are small, and a share of one is not negative"
    )]
    Ok((head_dim as f64 * share) as usize)
}

/// The number of tokens, and whether the output matrix is the embedding.
fn ends(architecture: &Architecture, fields: &ModelFields<'_>) -> Result<(usize, bool), ModelError> {
    let Some(gguf) = fields.file() else {
        let tied = fields.switch("tie_word_embeddings")?.unwrap_or(architecture.tied);
        return Ok((fields.required(["vocab_size", ""])?, tied));
    };
    let embedding = gguf.tensor("token_embd.weight").and_then(|tensor| tensor.shape.first().copied());
    let missing = || ModelErrorKind::MissingTensor("token_embd.weight".into());
    Ok((embedding.ok_or_else(missing)?, gguf.tensor("output.weight").is_none()))
}

/// Refuses settings that would change the numbers and that this runner does not compute.
fn refuse_variations(
    architecture: &Architecture,
    fields: &ModelFields<'_>,
    head_dim: usize,
) -> Result<(), ModelError> {
    let experts = ["", "expert_count"];
    fields.refuse(experts, fields.size(experts)?, |count| *count == 0 || architecture.experts)?;
    let values = ["", "attention.value_length"];
    fields.refuse(values, fields.size(values)?, |size| *size == head_dim)?;
    let quantized = "quantization_config";
    fields.refuse([quantized, ""], fields.value(quantized), |value| value.is_null())
}

/// The products that have biases: folders say it, GGUF files have them.
fn biases(architecture: &Architecture, fields: &ModelFields<'_>) -> Result<Biases, ModelError> {
    if let Some(gguf) = fields.file() {
        let has = |part: &str| gguf.tensor(&format!("blk.0.{part}.bias")).is_some();
        return Ok(Biases { qkv: has("attn_q"), attention_out: has("attn_output"), mlp: has("ffn_down") });
    }
    let switch = |name: &'static str| {
        let on = fields.switch(name)?.unwrap_or_default();
        let known = !on || architecture.biases.contains(&name);
        known.then_some(on).ok_or_else(|| fields.unsupported([name, ""], on))
    };
    let attention = switch("attention_bias")?;
    Ok(Biases { qkv: attention, attention_out: attention, mlp: switch("mlp_bias")? })
}

fn activation(architecture: &Architecture, fields: &ModelFields<'_>) -> Result<Activation, ModelError> {
    let named = |name: &'static str| {
        let value = fields.value(name).filter(|value| !value.is_null())?;
        let known = value.as_str().and_then(Activation::named);
        Some(known.ok_or_else(|| fields.unsupported([name, ""], value)))
    };
    named("hidden_activation").or_else(|| named("hidden_act")).unwrap_or(Ok(architecture.activation))
}

#[cfg(test)]
mod tests;
