//! A small model of random weights, in a folder.

use std::path::Path;

use serde_json::json;

const BYTE_LEVEL: &str = include_str!("../fixtures/byte_level.json");
const VOCABULARY: usize = 282;
const WIDTH: usize = 32;
const INNER: usize = 64;

/// Writes a folder with a Llama of one layer and the byte-level tokenizer.
pub(crate) fn write_model(folder: &Path) {
    let config = json!({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": WIDTH,
        "intermediate_size": INNER, "num_hidden_layers": 1, "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": VOCABULARY, "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": false,
        "eos_token_id": 278,
    });
    let kv = WIDTH / 2;
    let layer = "model.layers.0";
    let tensors = [
        ("model.embed_tokens.weight".to_owned(), vec![VOCABULARY, WIDTH]),
        (format!("{layer}.input_layernorm.weight"), vec![WIDTH]),
        (format!("{layer}.self_attn.q_proj.weight"), vec![WIDTH, WIDTH]),
        (format!("{layer}.self_attn.k_proj.weight"), vec![kv, WIDTH]),
        (format!("{layer}.self_attn.v_proj.weight"), vec![kv, WIDTH]),
        (format!("{layer}.self_attn.o_proj.weight"), vec![WIDTH, WIDTH]),
        (format!("{layer}.post_attention_layernorm.weight"), vec![WIDTH]),
        (format!("{layer}.mlp.gate_proj.weight"), vec![INNER, WIDTH]),
        (format!("{layer}.mlp.up_proj.weight"), vec![INNER, WIDTH]),
        (format!("{layer}.mlp.down_proj.weight"), vec![WIDTH, INNER]),
        ("model.norm.weight".to_owned(), vec![WIDTH]),
        ("lm_head.weight".to_owned(), vec![VOCABULARY, WIDTH]),
    ];
    let mut header = serde_json::Map::new();
    let mut data: Vec<u8> = Vec::new();
    let mut state = 1_u32;
    for (name, shape) in tensors {
        let start = data.len();
        for _ in 0..shape.iter().product() {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let weight = f32::from(u16::try_from(state >> 16).unwrap()) / 32768.0 - 1.0;
            data.extend((weight * 0.3).to_le_bytes());
        }
        header.insert(name, json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, data.len()] }));
    }
    let header = serde_json::to_vec(&header).unwrap();
    let length = u64::try_from(header.len()).unwrap().to_le_bytes();
    std::fs::write(folder.join("model.safetensors"), [&length[..], &header, &data].concat()).unwrap();
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
    std::fs::write(folder.join("tokenizer.json"), BYTE_LEVEL).unwrap();
}
