//! `config.json` of a Hugging Face model folder, checked.
//!
//! Invariant: a [`Config`] describes a model that this runner computes exactly; whatever it would have to
//! ignore or guess is an error. Missing fields take the defaults of Hugging Face's `transformers`.

use serde::Deserialize;
use serde_json::Value;

use super::error::{ModelError, ModelErrorKind};
use crate::limits::TENSOR_ELEMENTS;

/// The architectures in words, for error messages.
pub(super) const SUPPORTED: &str = "LlamaForCausalLM and MistralForCausalLM";

/// Two architectures that differ in defaults and in the sliding window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Architecture {
    Llama,
    Mistral,
}

/// Sizes and constants of a model. All sizes are at least one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Config {
    pub(super) hidden: usize,
    pub(super) intermediate: usize,
    pub(super) layers: usize,
    pub(super) heads: usize,
    /// Key/value heads; divides `heads`.
    pub(super) kv_heads: usize,
    /// Even.
    pub(super) head_dim: usize,
    pub(super) vocabulary: usize,
    /// Most tokens the model was made for.
    pub(super) max_positions: usize,
    pub(super) norm_epsilon: f32,
    pub(super) rope_theta: f64,
    /// A token sees itself and the tokens before it, so many in all.
    pub(super) window: Option<usize>,
    /// Is the output matrix the embedding?
    pub(super) tied: bool,
}

/// As written in the file, but for the architecture.
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
    /// Not there, `null` and a number all differ.
    #[serde(default, deserialize_with = "present")]
    sliding_window: Option<Value>,
    #[serde(default)]
    tie_word_embeddings: bool,
    hidden_act: Option<String>,
    attention_bias: Option<Value>,
    mlp_bias: Option<Value>,
    quantization_config: Option<Value>,
}

/// A field that is there, `null` included.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

fn invalid(reason: impl Into<String>) -> ModelError {
    ModelErrorKind::InvalidConfig(reason.into()).into()
}

impl Config {
    /// Reads the text of `config.json`. One pass over it.
    ///
    /// # Errors
    /// If it is not JSON, lacks a field, asks for an unknown architecture or an unsupported variation, or
    /// its numbers do not fit each other.
    pub(super) fn parse(text: &str) -> Result<Self, ModelError> {
        let value: Value = serde_json::from_str(text).map_err(|error| {
            ModelError::with_source(ModelErrorKind::InvalidConfig("not JSON".into()), error)
        })?;
        let architecture = architecture(&value)?;
        let raw: Raw = serde_json::from_value(value).map_err(|error| invalid(error.to_string()))?;
        refuse_variations(&raw)?;
        let default_kv_heads = match architecture {
            Architecture::Llama => raw.num_attention_heads,
            Architecture::Mistral => 8,
        };
        let config = Self {
            hidden: raw.hidden_size,
            intermediate: raw.intermediate_size,
            layers: raw.num_hidden_layers,
            heads: raw.num_attention_heads,
            kv_heads: raw.num_key_value_heads.unwrap_or(default_kv_heads),
            head_dim: head_dim(&raw)?,
            vocabulary: raw.vocab_size,
            max_positions: raw.max_position_embeddings,
            norm_epsilon: norm_epsilon(&raw)?,
            rope_theta: rope_theta(&raw)?,
            window: window(architecture, raw.sliding_window.as_ref())?,
            tied: raw.tie_word_embeddings,
        };
        config.check()?;
        Ok(config)
    }

    /// Checks the sizes against each other.
    fn check(&self) -> Result<(), ModelError> {
        let sizes = [
            ("hidden_size", self.hidden),
            ("intermediate_size", self.intermediate),
            ("num_hidden_layers", self.layers),
            ("num_attention_heads", self.heads),
            ("num_key_value_heads", self.kv_heads),
            ("head_dim", self.head_dim),
            ("vocab_size", self.vocabulary),
            ("max_position_embeddings", self.max_positions),
        ];
        for (name, size) in sizes {
            if size == 0 || u32::try_from(size).is_err() {
                return Err(invalid(format!("{name} = {size} is not a possible size")));
            }
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            return Err(invalid(format!(
                "num_attention_heads = {} is not a multiple of num_key_value_heads = {}",
                self.heads, self.kv_heads
            )));
        }
        if !self.head_dim.is_multiple_of(2) {
            return Err(invalid(format!("head_dim = {} is odd", self.head_dim)));
        }
        let width =
            self.heads.checked_add(2 * self.kv_heads).and_then(|heads| heads.checked_mul(self.head_dim));
        let widest = width.map(|width| width.max(2 * self.intermediate).max(self.vocabulary));
        if widest.and_then(|widest| widest.checked_mul(self.hidden)).is_none_or(|size| size > TENSOR_ELEMENTS)
        {
            return Err(invalid("the sizes make a tensor of more than 2^40 elements"));
        }
        Ok(())
    }
}

/// The first name in `architectures`, else `model_type`.
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
        _ => Err(ModelErrorKind::UnknownArchitecture(name.to_owned()).into()),
    }
}

/// Refuses what would change the numbers and is not computed here.
fn refuse_variations(raw: &Raw) -> Result<(), ModelError> {
    let unsupported = |field, value: String| Err(ModelErrorKind::Unsupported { field, value }.into());
    if let Some(act) = raw.hidden_act.as_deref().filter(|&act| act != "silu" && act != "swish") {
        return unsupported("hidden_act", act.to_owned());
    }
    let switches = [
        ("attention_bias", &raw.attention_bias),
        ("mlp_bias", &raw.mlp_bias),
        ("rope_scaling", &raw.rope_scaling),
        ("quantization_config", &raw.quantization_config),
    ];
    for (field, value) in switches {
        // `Option<Value>` reads `null` as `None`.
        if let Some(value) = value.as_ref().filter(|value| **value != Value::Bool(false)) {
            return unsupported(field, value.to_string());
        }
    }
    let rope_type = raw.rope_parameters.as_ref().and_then(|parameters| parameters.get("rope_type"));
    match rope_type {
        Some(kind) if kind != "default" => unsupported("rope_parameters.rope_type", kind.to_string()),
        _ => Ok(()),
    }
}

fn head_dim(raw: &Raw) -> Result<usize, ModelError> {
    match raw.head_dim {
        Some(size) => Ok(size),
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

/// Newer files keep it in `rope_parameters`.
fn rope_theta(raw: &Raw) -> Result<f64, ModelError> {
    let nested = raw.rope_parameters.as_ref().and_then(|parameters| parameters.get("rope_theta"));
    let theta = nested.and_then(Value::as_f64).or(raw.rope_theta).unwrap_or(10_000.0);
    if !(theta.is_finite() && theta > 0.0) {
        return Err(invalid(format!("rope_theta = {theta} is not a positive number")));
    }
    Ok(theta)
}

fn window(architecture: Architecture, value: Option<&Value>) -> Result<Option<usize>, ModelError> {
    match (architecture, value) {
        (Architecture::Llama, _) | (Architecture::Mistral, Some(Value::Null)) => Ok(None),
        (Architecture::Mistral, None) => Ok(Some(4096)),
        (Architecture::Mistral, Some(value)) => value
            .as_u64()
            .and_then(|window| usize::try_from(window).ok())
            .filter(|&window| window > 0)
            .map(Some)
            .ok_or_else(|| invalid(format!("sliding_window = {value} is not a number of tokens"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn base() -> Value {
        json!({
            "architectures": ["MistralForCausalLM"], "hidden_size": 32, "intermediate_size": 64,
            "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 97,
            "max_position_embeddings": 64, "sliding_window": null
        })
    }

    fn with(field: &str, value: Value) -> Result<Config, ModelError> {
        let mut config = base();
        config[field] = value;
        Config::parse(&config.to_string())
    }

    #[test]
    fn defaults_are_those_of_transformers() {
        let config = Config::parse(&base().to_string()).unwrap();
        assert_eq!((config.head_dim, config.window, config.tied), (8, None, false));
        assert_eq!((config.rope_theta, config.norm_epsilon), (10_000.0, 1e-6));
        let mut bare = base();
        bare.as_object_mut().unwrap().remove("sliding_window");
        assert_eq!(Config::parse(&bare.to_string()).unwrap().window, Some(4096));
        bare["architectures"] = json!(["LlamaForCausalLM"]);
        assert_eq!(Config::parse(&bare.to_string()).unwrap().window, None);
        bare.as_object_mut().unwrap().remove("num_key_value_heads");
        assert_eq!(Config::parse(&bare.to_string()).unwrap().kv_heads, 4);
    }

    #[test]
    fn both_places_of_rope_theta() {
        assert_eq!(with("rope_theta", json!(5e5)).unwrap().rope_theta, 5e5);
        let nested = with("rope_parameters", json!({"rope_theta": 3e4, "rope_type": "default"}));
        assert_eq!(nested.unwrap().rope_theta, 3e4);
    }

    #[test]
    fn variations_are_refused_by_name() {
        for (field, value) in [
            ("hidden_act", json!("gelu")),
            ("rope_scaling", json!({"rope_type": "llama3", "factor": 8.0})),
            ("attention_bias", json!(true)),
            ("mlp_bias", json!(true)),
            ("quantization_config", json!({"bits": 4})),
        ] {
            let error = with(field, value).unwrap_err();
            assert!(matches!(error.kind(), ModelErrorKind::Unsupported { .. }), "{error}");
            assert!(error.to_string().contains(field), "{error}");
        }
        let error = with("rope_parameters", json!({"rope_type": "yarn"})).unwrap_err();
        assert!(error.to_string().contains("yarn"), "{error}");
        with("attention_bias", json!(false)).unwrap();
        with("rope_scaling", Value::Null).unwrap();
    }

    #[test]
    fn unknown_architectures_name_the_supported() {
        let error = with("architectures", json!(["GPT2LMHeadModel"])).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("GPT2LMHeadModel") && text.contains("MistralForCausalLM"), "{text}");
    }

    #[test]
    fn impossible_numbers_are_refused() {
        for (field, value) in [
            ("num_key_value_heads", json!(3)),
            ("num_key_value_heads", json!(0)),
            ("num_attention_heads", json!(0)),
            ("num_attention_heads", json!(5)),
            ("hidden_size", json!(-1)),
            ("hidden_size", json!(36)),
            ("hidden_size", json!(u64::MAX)),
            ("vocab_size", json!(u32::MAX)),
            ("intermediate_size", json!("many")),
            ("rms_norm_eps", json!(-1.0)),
            ("rope_theta", json!(0.0)),
            ("sliding_window", json!(0)),
            ("sliding_window", json!("all")),
            ("max_position_embeddings", Value::Null),
        ] {
            let result = with(field, value.clone());
            match (field, result) {
                // 4 heads of 9: odd; a large vocabulary alone is possible.
                ("vocab_size", result) => assert!(result.is_ok()),
                (_, result) => {
                    let error = result.expect_err(&format!("{field} = {value}"));
                    assert!(matches!(error.kind(), ModelErrorKind::InvalidConfig(_)), "{error}");
                }
            }
        }
        assert!(Config::parse("{").is_err() && Config::parse("[]").is_err());
    }
}
