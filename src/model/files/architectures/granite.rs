//! Granite, dense: Llama with factors of the embedding, of attention, of what layers add, and of the logits.

use super::{Architecture, PLAIN};
use crate::model::error::ModelError;
use crate::model::files::config::{Config, Scales};
use crate::model::files::fields::{ModelFields, Setting};

pub(super) const GRANITE: Architecture = Architecture {
    folders: &["GraniteForCausalLM", "granite"],
    files: &["granite"],
    is_paired: true,
    biases: &["attention_bias", "mlp_bias"],
    describe,
    ..PLAIN
};

#[expect(clippy::cast_possible_truncation, reason = "the models compute in f32")]
fn describe(fields: &ModelFields<'_>, config: &mut Config) -> Result<(), ModelError> {
    // In GGUF files a factor of zero means none.
    let factor = |setting: Setting| {
        let is_given = |factor: &f64| *factor != 0.0 || fields.file().is_none();
        Ok::<_, ModelError>(fields.number(setting)?.filter(is_given))
    };
    // Without their fields, folders have no factors; GGUF files have the usual scale of attention, and must
    // have what the logits are divided by.
    let missing = fields.file().is_none().then_some(1.0);
    let attention = factor(["attention_multiplier", "attention.scale"])?.or(missing);
    let logits = ["logits_scaling", "logit_scale"];
    let divisor = fields.number(logits)?.or(missing);
    let divisor = divisor.ok_or_else(|| fields.invalid(format!("there is no {}", fields.name(logits))))?;
    config.scales = Scales {
        embedding: factor(["embedding_multiplier", "embedding_scale"])?.unwrap_or(1.0) as f32,
        attention: attention.map(|scale| scale as f32),
        added: factor(["residual_multiplier", "residual_scale"])?.unwrap_or(1.0) as f32,
        logits: (1.0 / divisor) as f32,
        ..Scales::default()
    };
    // GGUF files say here whether the layers rotate.
    let rotates = "rope.scaling.finetuned";
    match fields.metadata(rotates).filter(|value| value.as_bool() != Some(true)) {
        None => Ok(()),
        Some(value) => Err(fields.unsupported(["", rotates], format!("{value:?}"))),
    }
}
