//! Llama, and Mistral, which is Llama with a window; GGUF files call both `llama`.

use super::{Architecture, PLAIN};
use crate::model::error::ModelError;
use crate::model::files::config::{Config, LayerSet, Window};
use crate::model::files::fields::ModelFields;

pub(super) const LLAMA: Architecture = Architecture {
    folders: &["LlamaForCausalLM", "llama"],
    files: &["llama"],
    is_paired: true,
    biases: &["attention_bias", "mlp_bias"],
    describe: |fields, config| if fields.file().is_some() { windowed(fields, config) } else { Ok(()) },
    ..PLAIN
};

pub(super) const MISTRAL: Architecture = Architecture {
    folders: &["MistralForCausalLM", "mistral"],
    defaults: &[("num_key_value_heads", 8), ("sliding_window", 4096)],
    describe: windowed,
    ..PLAIN
};

fn windowed(fields: &ModelFields<'_>, config: &mut Config) -> Result<(), ModelError> {
    config.window = fields.window()?.map(|tokens| Window { tokens, layers: LayerSet::All });
    Ok(())
}
