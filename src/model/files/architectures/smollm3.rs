//! SmolLM3: Llama, of which each fourth layer does not rotate.

use serde_json::Value;

use super::{Architecture, PLAIN};
use crate::model::files::config::{LayerSet, Window};

pub(super) const SMOLLM3: Architecture = Architecture {
    folders: &["SmolLM3ForCausalLM", "smollm3"],
    files: &["smollm3"],
    is_paired: true,
    defaults: &[("num_key_value_heads", 4), ("no_rope_layer_interval", 4)],
    theta: 2e6,
    tied: true,
    biases: &["attention_bias", "mlp_bias"],
    describe: |fields, config| {
        let period = fields.size(["no_rope_layer_interval", ""])?.unwrap_or(4);
        let listed = fields.value("no_rope_layers").and_then(Value::as_array);
        config.rotated = match listed {
            Some(layers) => {
                let still = layers.iter().enumerate().filter(|(_, layer)| layer.as_u64() == Some(0));
                LayerSet::But(still.map(|(layer, _)| layer).collect())
            }
            None => LayerSet::ButEach(period),
        };
        if fields.switch("use_sliding_window")? == Some(true) {
            let layers = fields.window_layers(config.layers)?.unwrap_or_default();
            config.window = fields.window()?.map(|tokens| Window { tokens, layers });
        }
        Ok(())
    },
    ..PLAIN
};
