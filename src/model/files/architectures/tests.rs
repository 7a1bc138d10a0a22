//! Configurations of models: defaults, variations, and what is refused.

use serde_json::json;

use super::*;
use crate::model::files::config::{Rope, Scales, Scaling};

fn parse(text: &str) -> Result<Config, ModelError> {
    Ok(of_folder(text)?.0)
}

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
    parse(&config.to_string())
}

#[test]
fn defaults_are_those_of_transformers() {
    let config = parse(&base().to_string()).unwrap();
    assert_eq!((config.head_dim, config.window_of(0), config.tied), (8, None, false));
    assert_eq!((config.rope.theta, config.norm_epsilon), (10_000.0, 1e-6));
    let mut bare = base();
    bare.as_object_mut().unwrap().remove("sliding_window");
    assert_eq!(parse(&bare.to_string()).unwrap().window_of(1), Some(4096));
    bare["architectures"] = json!(["LlamaForCausalLM"]);
    assert_eq!(parse(&bare.to_string()).unwrap().window, None);
    bare.as_object_mut().unwrap().remove("num_key_value_heads");
    assert_eq!(parse(&bare.to_string()).unwrap().kv_heads, 4);
}

#[test]
fn rope_theta_is_read_from_both_of_its_places() {
    assert_eq!(with("rope_theta", json!(5e5)).unwrap().rope.theta, 5e5);
    let nested = with("rope_parameters", json!({"rope_theta": 3e4, "rope_type": "default"}));
    assert_eq!(nested.unwrap().rope.theta, 3e4);
}

#[test]
fn layers_have_the_attention_windows_of_the_config() {
    let windows = |config: &Value| {
        let config = parse(&config.to_string()).unwrap();
        (0..2).map(|layer| config.window_of(layer)).collect::<Vec<_>>()
    };
    let mut config = base();
    config["architectures"] = json!(["Qwen2ForCausalLM"]);
    config["sliding_window"] = json!(5);
    assert_eq!(windows(&config), [None, None]);
    config["use_sliding_window"] = json!(true);
    // The default is a window in layers from 28 on, which this model does not have.
    assert_eq!(windows(&config), [None, None]);
    config["max_window_layers"] = json!(1);
    assert_eq!(windows(&config), [None, Some(5)]);
    config["layer_types"] = json!(["sliding_attention", "full_attention"]);
    assert_eq!(windows(&config), [Some(5), None]);
    config["layer_types"] = json!(["sliding_attention"]);
    assert!(parse(&config.to_string()).is_err());
}

#[test]
fn unsupported_variations_are_refused_by_name() {
    for (field, value) in [
        ("hidden_act", json!("gelu")),
        ("hidden_activation", json!("relu")),
        ("rope_scaling", json!({"rope_type": "dynamic", "factor": 8.0})),
        ("rope_scaling", json!({"type": "su"})),
        ("rope_scaling", json!(true)),
        ("partial_rotary_factor", json!(0.5)),
        ("attention_bias", json!(true)),
        ("mlp_bias", json!(true)),
        ("quantization_config", json!({"bits": 4})),
    ] {
        let error = with(field, value).unwrap_err();
        assert!(matches!(error.kind(), ModelErrorKind::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains(field), "{error}");
    }
    let error = with("rope_parameters", json!({"rope_type": "longrope"})).unwrap_err();
    assert!(error.to_string().contains("longrope"), "{error}");
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
fn numbers_that_fit_no_model_are_refused() {
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
        ("rope_scaling", json!({"type": "linear"})),
        ("rope_scaling", json!({"type": "linear", "factor": "much"})),
        ("rope_scaling", json!({"type": "linear", "factor": -1.0})),
        ("rope_scaling", json!({"rope_type": "llama3", "factor": 8.0})),
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
    assert!(parse("{").is_err() && parse("[]").is_err());
}

/// A `config.json` of a model of more than text, as its makers publish it: most sizes are left out.
#[test]
fn what_a_published_gemma_leaves_out_is_known() {
    let published = json!({
        "architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3",
        "text_config": {
            "hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text",
            "num_hidden_layers": 34, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
            "sliding_window": 1024
        },
        "vision_config": {"hidden_size": 1152, "num_hidden_layers": 27}
    });
    let config = parse(&published.to_string()).unwrap();
    assert_eq!((config.heads, config.kv_heads, config.head_dim), (8, 4, 256));
    assert_eq!((config.vocabulary, config.max_positions, config.tied), (262_208, 131_072, true));
    assert_eq!((config.window_of(4), config.window_of(5)), (Some(1024), None));
    assert_eq!((config.rope.theta, config.rope.scaling), (1e6, Scaling::Linear(8.0)));
    assert_eq!(config.window_rope, Some(Rope { theta: 1e4, scaling: Scaling::None }));
    assert_eq!(config.scales.attention, Some(0.0625));
}

/// Older folders name the layers that have attention by their numbers.
#[test]
fn lfm2_tells_its_layers_in_two_ways() {
    let mut config = json!({
        "architectures": ["Lfm2ForCausalLM"], "hidden_size": 1024, "block_ff_dim": 6656,
        "num_hidden_layers": 4, "num_attention_heads": 16, "vocab_size": 65536, "norm_eps": 1e-5,
        "max_position_embeddings": 128_000, "full_attn_idxs": [2], "rope_theta": 1e6
    });
    let of = |config: &Value| parse(&config.to_string());
    let old = of(&config).unwrap();
    assert_eq!(
        (old.convolution, [1, 2, 3].map(|layer| old.attention.has(layer))),
        (Some(3), [false, true, false])
    );
    // A layer's keys and values are 1024 numbers of a token, as many as a convolution's inputs.
    assert_eq!((old.intermediate, old.cache_layers(), old.places()), (4608, 4, vec![0, 1, 2, 3]));
    config["layer_types"] = json!(["conv", "conv", "full_attention", "conv"]);
    assert_eq!(of(&config).unwrap(), old);
    (config["hidden_size"], config["num_attention_heads"]) = (json!(2048), json!(32));
    assert_eq!((of(&config).unwrap().cache_layers(), of(&config).unwrap().places()), (7, vec![0, 2, 4, 5]));
    for (field, value) in [
        ("conv_L_cache", json!(0)),
        ("conv_L_cache", json!(u64::MAX)),
        ("conv_bias", json!(true)),
        ("layer_types", json!(["conv", "mamba", "full_attention", "conv"])),
        ("block_multiple_of", json!(0)),
        ("block_ff_dim", json!(u64::MAX)),
        ("block_ffn_dim_multiplier", json!(1.5)),
    ] {
        let mut wrong = config.clone();
        wrong[field] = value.clone();
        assert!(of(&wrong).is_err(), "{field} = {value}");
    }
    config["num_hidden_layers"] = json!(u32::MAX);
    config["layer_types"] = Value::Null;
    assert_eq!(of(&config).unwrap().cache_layers(), 1 + 2 * (u32::MAX as usize - 1));
}

#[test]
fn factors_of_granite_are_one_where_a_folder_has_none() {
    let mut config = base();
    config["architectures"] = json!(["GraniteForCausalLM"]);
    let scales = |config: &Value| parse(&config.to_string()).unwrap().scales;
    assert_eq!(scales(&config), Scales { attention: Some(1.0), ..Scales::default() });
    config["logits_scaling"] = json!(8.0);
    config["embedding_multiplier"] = json!(12.0);
    assert_eq!((scales(&config).logits, scales(&config).embedding), (0.125, 12.0));
    config["logits_scaling"] = json!(0.0);
    assert!(parse(&config.to_string()).is_err());
}

#[test]
fn groups_of_no_layers_are_refused() {
    for (name, field) in
        [("Gemma3ForCausalLM", "sliding_window_pattern"), ("SmolLM3ForCausalLM", "no_rope_layer_interval")]
    {
        let mut config = base();
        (config["architectures"], config[field]) = (json!([name]), json!(0));
        config["sliding_window"] = json!(16);
        assert!(parse(&config.to_string()).is_err(), "{name}");
    }
}

/// Sizes of the published model of four billion parameters, and what older files leave out.
#[test]
fn qwen_3_5_has_states_in_three_of_four_layers() {
    let published = json!({
        "architectures": ["Qwen3_5ForConditionalGeneration"],
        "text_config": {
            "hidden_size": 2560, "intermediate_size": 9216, "num_hidden_layers": 32,
            "num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 248_320,
            "max_position_embeddings": 262_144, "mtp_num_hidden_layers": 1, "tie_word_embeddings": true,
            "rope_parameters": {"mrope_interleaved": true, "mrope_section": [11, 11, 10], "rope_theta": 1e7,
                "rope_type": "default", "partial_rotary_factor": 0.25}
        },
        "tie_word_embeddings": true
    });
    let of = |config: &Value| parse(&config.to_string());
    let config = of(&published).unwrap();
    assert_eq!((config.head_dim, config.rotary_dim, config.rope.theta), (256, 64, 1e7));
    assert_eq!((config.cache_layers(), config.state_layers(), config.vocabulary), (8, 24, 248_320));
    assert_eq!(config.places()[..5], [0, 1, 2, 0, 3]);
    assert!(config.gated && config.tied && !config.is_plain());
    let delta = config.delta.unwrap();
    assert_eq!((delta.channels(), delta.values(), delta.width), (8192, 4096, 4));
    assert_eq!([0, 1, 2, 31].map(|head| delta.key_of(head)), [0, 0, 1, 15]);
    for (field, value) in [
        ("partial_rotary_factor", json!(1.5)),
        ("partial_rotary_factor", json!(0.001)),
        ("linear_num_key_heads", json!(5)),
        ("linear_num_key_heads", json!(0)),
        ("linear_conv_kernel_dim", json!(0)),
        ("linear_value_head_dim", json!(u32::MAX)),
        ("linear_num_value_heads", json!(u64::MAX)),
        ("full_attention_interval", json!("four")),
        ("full_attention_interval", json!(0)),
        ("num_hidden_layers", json!(u64::MAX)),
        ("layer_types", json!(["linear_attention"])),
    ] {
        let mut config = published.clone();
        config["text_config"]["rope_parameters"].as_object_mut().unwrap().remove("partial_rotary_factor");
        assert_eq!(of(&config).unwrap().rotary_dim, 64);
        config["text_config"][field] = value.clone();
        assert!(of(&config).is_err(), "{field} {value}");
    }
}

#[test]
fn experts_are_read_from_folders_and_what_is_not_computed_is_refused() {
    let published = json!({
        "architectures": ["Qwen3MoeForCausalLM"], "hidden_size": 2048, "intermediate_size": 6144,
        "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
        "vocab_size": 151_936, "max_position_embeddings": 40_960, "num_experts": 128,
        "num_experts_per_tok": 8, "moe_intermediate_size": 768, "norm_topk_prob": true,
        "decoder_sparse_step": 1, "mlp_only_layers": []
    });
    let config = parse(&published.to_string()).unwrap();
    let own = Experts { count: 128, used: 8, intermediate: 768, shared: 0, normalised: true };
    assert_eq!((config.experts.as_ref(), config.intermediate, config.norms.heads), (Some(&own), 6144, true));
    for (field, value) in [
        ("decoder_sparse_step", json!(2)),
        ("mlp_only_layers", json!([0])),
        ("num_experts", json!(4)),
        ("num_experts", json!(u64::MAX)),
        ("num_experts_per_tok", json!(0)),
        ("moe_intermediate_size", json!(u32::MAX)),
        ("moe_intermediate_size", json!(null)),
    ] {
        let mut config = published.clone();
        config[field] = value.clone();
        assert!(parse(&config.to_string()).is_err(), "{field} {value}");
    }
}
