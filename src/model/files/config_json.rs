//! Reader of a model's configuration from `config.json` of a Hugging Face model folder.
//!
//! Missing fields take the defaults of Hugging Face's `transformers`.

use serde::Deserialize;
use serde_json::Value;

use super::config::{Biases, Config, Rope, Scaling, Window};
use crate::model::error::{ModelError, ModelErrorKind};

/// Architectures: they differ in defaults, biases, norms and the sliding window. Error messages name them all
/// (`FOLDERS` beside [`ModelErrorKind`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Architecture {
    Llama,
    Mistral,
    Qwen2,
    Qwen3,
}

/// Fields of the file, unchecked, without the architecture.
#[derive(Debug, Deserialize)]
struct Raw {
    hidden_size: usize,
    intermediate_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    num_key_value_heads: Option<usize>,
    head_dim: Option<usize>,
    vocab_size: usize,
    max_position_embeddings: usize,
    rms_norm_eps: Option<f64>,
    rope_theta: Option<f64>,
    rope_scaling: Option<Value>,
    rope_parameters: Option<Value>,
    partial_rotary_factor: Option<f64>,
    /// The field, where missing, `null` and a number all have different meanings.
    #[serde(default, deserialize_with = "present")]
    sliding_window: Option<Value>,
    #[serde(default)]
    use_sliding_window: bool,
    max_window_layers: Option<usize>,
    layer_types: Option<Vec<String>>,
    #[serde(default)]
    tie_word_embeddings: bool,
    hidden_act: Option<String>,
    attention_bias: Option<Value>,
    mlp_bias: Option<Value>,
    quantization_config: Option<Value>,
}

/// Reads a field that is present, also if it is `null`.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

fn invalid(reason: impl Into<String>) -> ModelError {
    ModelErrorKind::InvalidConfig(reason.into()).into()
}

fn unsupported(field: &str, value: impl Into<String>) -> ModelError {
    ModelErrorKind::Unsupported { field: field.into(), value: value.into() }.into()
}

/// Reads the text of `config.json`. One pass over it.
///
/// # Errors
/// If it is not JSON, lacks a field, asks for an unknown architecture or an unsupported variation, or its
/// numbers do not fit each other.
pub(crate) fn parse(text: &str) -> Result<Config, ModelError> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| ModelError::with_source(ModelErrorKind::InvalidConfig("not JSON".into()), error))?;
    let architecture = architecture(&value)?;
    let raw: Raw = serde_json::from_value(value).map_err(|error| invalid(error.to_string()))?;
    refuse_variations(&raw)?;
    let config = Config {
        hidden: raw.hidden_size,
        intermediate: raw.intermediate_size,
        layers: raw.num_hidden_layers,
        heads: raw.num_attention_heads,
        kv_heads: raw.num_key_value_heads.unwrap_or(match architecture {
            Architecture::Llama => raw.num_attention_heads,
            Architecture::Mistral => 8,
            Architecture::Qwen2 | Architecture::Qwen3 => 32,
        }),
        head_dim: head_dim(architecture, &raw)?,
        vocabulary: raw.vocab_size,
        max_positions: raw.max_position_embeddings,
        norm_epsilon: norm_epsilon(&raw)?,
        rope: rope(&raw)?,
        window: window(architecture, &raw)?,
        tied: raw.tie_word_embeddings,
        biases: biases(architecture, &raw)?,
        head_norms: architecture == Architecture::Qwen3,
    };
    config.check().map_err(invalid)?;
    Ok(config)
}

/// The architecture: the first name in `architectures`, or else `model_type`.
fn architecture(config: &Value) -> Result<Architecture, ModelError> {
    let name = config
        .get("architectures")
        .and_then(|names| names.get(0))
        .or_else(|| config.get("model_type"))
        .and_then(Value::as_str)
        .ok_or_else(|| invalid("neither architectures nor model_type is there"))?;
    match name {
        "LlamaForCausalLM" | "llama" => Ok(Architecture::Llama),
        "MistralForCausalLM" | "mistral" => Ok(Architecture::Mistral),
        "Qwen2ForCausalLM" | "qwen2" => Ok(Architecture::Qwen2),
        "Qwen3ForCausalLM" | "qwen3" => Ok(Architecture::Qwen3),
        _ => Err(ModelErrorKind::UnknownArchitecture(name.to_owned()).into()),
    }
}

/// Refuses settings that would change the numbers and that this runner does not compute.
fn refuse_variations(raw: &Raw) -> Result<(), ModelError> {
    if let Some(act) = raw.hidden_act.as_deref().filter(|&act| act != "silu" && act != "swish") {
        return Err(unsupported("hidden_act", act));
    }
    // `Option<Value>` reads `null` as `None`.
    if let Some(value) = &raw.quantization_config {
        return Err(unsupported("quantization_config", value.to_string()));
    }
    Ok(())
}

fn head_dim(architecture: Architecture, raw: &Raw) -> Result<usize, ModelError> {
    match raw.head_dim {
        Some(size) => Ok(size),
        None if architecture == Architecture::Qwen3 => Ok(128),
        None if raw.num_attention_heads > 0 && raw.hidden_size.is_multiple_of(raw.num_attention_heads) => {
            Ok(raw.hidden_size / raw.num_attention_heads)
        }
        None => Err(invalid(format!(
            "hidden_size = {} is not a multiple of num_attention_heads = {}, and there is no head_dim",
            raw.hidden_size, raw.num_attention_heads
        ))),
    }
}

fn norm_epsilon(raw: &Raw) -> Result<f32, ModelError> {
    let epsilon = raw.rms_norm_eps.unwrap_or(1e-6);
    if !(0.0..1.0).contains(&epsilon) {
        return Err(invalid(format!("rms_norm_eps = {epsilon} is not in 0..1")));
    }
    #[expect(clippy::cast_possible_truncation, reason = "the models compute in f32")]
    Ok(epsilon as f32)
}

/// Reads a switch, which may be missing or `null`.
fn switch(field: &str, value: Option<&Value>) -> Result<bool, ModelError> {
    match value {
        None => Ok(false),
        Some(Value::Bool(on)) => Ok(*on),
        Some(value) => Err(unsupported(field, value.to_string())),
    }
}

fn biases(architecture: Architecture, raw: &Raw) -> Result<Biases, ModelError> {
    let attention = switch("attention_bias", raw.attention_bias.as_ref())?;
    let mlp = switch("mlp_bias", raw.mlp_bias.as_ref())?;
    match architecture {
        Architecture::Llama => Ok(Biases { qkv: attention, attention_out: attention, mlp }),
        Architecture::Qwen3 if !mlp => Ok(Biases { qkv: attention, attention_out: attention, mlp }),
        Architecture::Qwen2 if !mlp => Ok(Biases { qkv: true, ..Biases::default() }),
        Architecture::Mistral if !attention && !mlp => Ok(Biases::default()),
        _ if mlp => Err(unsupported("mlp_bias", "true")),
        _ => Err(unsupported("attention_bias", "true")),
    }
}

/// Reads the frequencies. Newer files keep all about them in `rope_parameters`, older ones the scaling in
/// `rope_scaling`.
fn rope(raw: &Raw) -> Result<Rope, ModelError> {
    let nested = raw.rope_parameters.as_ref();
    let get = |parameters: Option<&Value>, field: &str| parameters.and_then(|p| p.get(field)).cloned();
    let theta = get(nested, "rope_theta").and_then(|theta| theta.as_f64()).or(raw.rope_theta);
    let partial = get(nested, "partial_rotary_factor").and_then(|part| part.as_f64());
    if let Some(part) = partial.or(raw.partial_rotary_factor).filter(|&part| part != 1.0) {
        return Err(unsupported("partial_rotary_factor", part.to_string()));
    }
    let (place, parameters) = match &raw.rope_scaling {
        Some(scaling) => ("rope_scaling", Some(scaling)),
        None => ("rope_parameters", nested),
    };
    let scaling = match parameters {
        Some(parameters) => scaling(place, parameters, raw.max_position_embeddings)?,
        None => Scaling::None,
    };
    Ok(Rope { theta: theta.unwrap_or(10_000.0), scaling })
}

/// Reads the scaling that `parameters`, the value of field `place`, describe.
fn scaling(place: &str, parameters: &Value, positions: usize) -> Result<Scaling, ModelError> {
    let kind = parameters.get("rope_type").or_else(|| parameters.get("type"));
    let optional = |field: &str| match parameters.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            value.as_f64().map(Some).ok_or_else(|| invalid(format!("{place}.{field} = {value} is no number")))
        }
    };
    let number = |field: &str| optional(field)?.ok_or_else(|| invalid(format!("{place} has no {field}")));
    #[expect(clippy::cast_precision_loss, reason = "positions are far below 2^52")]
    let positions = positions as f64;
    let original =
        || optional("original_max_position_embeddings").map(|original| original.unwrap_or(positions));
    match kind.map(|kind| kind.as_str().unwrap_or_default()) {
        None if place == "rope_parameters" => Ok(Scaling::None),
        Some("default") => Ok(Scaling::None),
        Some("linear") => Ok(Scaling::Linear(number("factor")?)),
        Some("llama3") => Ok(Scaling::Llama3 {
            factor: number("factor")?,
            low: number("low_freq_factor")?,
            high: number("high_freq_factor")?,
            original: original()?,
        }),
        Some("yarn") => {
            let factor = number("factor")?;
            let scale = |mscale: f64| if factor <= 1.0 { 1.0 } else { 0.1 * mscale * factor.ln() + 1.0 };
            let attention =
                match (optional("attention_factor")?, optional("mscale")?, optional("mscale_all_dim")?) {
                    (Some(attention), ..) => attention,
                    (None, Some(some), Some(all)) if some != 0.0 && all != 0.0 => scale(some) / scale(all),
                    _ => scale(1.0),
                };
            Ok(Scaling::Yarn {
                factor,
                beta_fast: optional("beta_fast")?.unwrap_or(32.0),
                beta_slow: optional("beta_slow")?.unwrap_or(1.0),
                original: original()?,
                attention,
                truncate: parameters.get("truncate").and_then(Value::as_bool).unwrap_or(true),
            })
        }
        _ => {
            let kind = kind.unwrap_or(parameters).to_string();
            Err(unsupported(&format!("{place}.rope_type"), kind))
        }
    }
}

/// The sliding window; `None` if no layer has one.
fn window(architecture: Architecture, raw: &Raw) -> Result<Option<Window>, ModelError> {
    let tokens = match &raw.sliding_window {
        Some(Value::Null) => None,
        None => Some(4096),
        Some(value) => Some(
            value
                .as_u64()
                .and_then(|window| usize::try_from(window).ok())
                .ok_or_else(|| invalid(format!("sliding_window = {value} is not a number of tokens")))?,
        ),
    };
    let layers = match architecture {
        Architecture::Llama => return Ok(None),
        Architecture::Mistral => Vec::new(),
        Architecture::Qwen2 | Architecture::Qwen3 if !raw.use_sliding_window => return Ok(None),
        Architecture::Qwen2 | Architecture::Qwen3 => match &raw.layer_types {
            Some(types) => layers(types, raw.num_hidden_layers)?,
            None => vec![false; raw.max_window_layers.unwrap_or(28).min(raw.num_hidden_layers)],
        },
    };
    Ok(tokens.map(|tokens| Window { tokens, layers }))
}

/// True for each layer that has the window, by the names in `layer_types`.
fn layers(types: &[String], layers: usize) -> Result<Vec<bool>, ModelError> {
    if types.len() != layers {
        return Err(invalid(format!("layer_types has {} entries for {layers} layers", types.len())));
    }
    let has = |kind: &String| match kind.as_str() {
        "sliding_attention" => Ok(true),
        "full_attention" => Ok(false),
        other => Err(unsupported("layer_types", other)),
    };
    types.iter().map(has).collect()
}

#[cfg(test)]
mod tests;
