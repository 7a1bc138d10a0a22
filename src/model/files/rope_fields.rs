//! Readers of the frequencies of rotary position embedding, from `config.json` and from GGUF metadata.
//!
//! Newer folders keep all about them in `rope_parameters`, perhaps for each kind of layers by itself; older
//! ones the scaling in `rope_scaling`.

use serde_json::Value;

use domino_engine::gguf::MetadataValue;

use super::config::{Rope, Scaling};
use super::fields::ModelFields;
use crate::model::error::ModelError;

const FACTOR: [&str; 2] = ["", "rope.scaling.factor"];
const ORIGINAL: [&str; 2] = ["", "rope.scaling.original_context_length"];

/// Reads the frequencies of the layers that `layer_types` calls `kind`. The base is `theta` where the files
/// have none.
///
/// # Errors
/// If they are not understood, or of a kind that this runner does not compute.
pub(crate) fn rope(fields: &ModelFields<'_>, kind: &str, theta: f64) -> Result<Rope, ModelError> {
    if fields.file().is_some() {
        let scaling = of_file(fields)?;
        return Ok(Rope { theta: fields.number(["", "rope.freq_base"])?.unwrap_or(theta), scaling });
    }
    let base = number(fields, kind, "rope_theta")?;
    let nested = nested(fields, kind);
    let parameters = match fields.value("rope_scaling") {
        None | Some(Value::Null) => nested.map(|nested| ("rope_parameters", nested)),
        Some(scaling) => Some(("rope_scaling", scaling)),
    };
    let scaling = match parameters {
        Some((place, parameters)) => of_folder(fields, place, parameters)?,
        None => Scaling::None,
    };
    Ok(Rope { theta: base.unwrap_or(theta), scaling })
}

/// Reads the share of a head that rotates, of the layers that `layer_types` calls `kind`; `None` if a folder
/// does not say, or the frequencies do.
///
/// # Errors
/// If it is no number.
pub(crate) fn rotary_share(fields: &ModelFields<'_>, kind: &str) -> Result<Option<f64>, ModelError> {
    let scaling = nested(fields, kind).and_then(|nested| nested.get("rope_type"));
    if scaling.is_some_and(|scaling| scaling == "proportional") {
        return Ok(None);
    }
    number(fields, kind, "partial_rotary_factor")
}

/// All about the frequencies of some layers, where newer folders keep it.
fn nested<'a>(fields: &ModelFields<'a>, kind: &str) -> Option<&'a Value> {
    fields.value("rope_parameters").map(|all| all.get(kind).unwrap_or(all))
}

/// A number in either of its places in a folder.
fn number(fields: &ModelFields<'_>, kind: &str, field: &'static str) -> Result<Option<f64>, ModelError> {
    match nested(fields, kind).and_then(|nested| nested.get(field)).and_then(Value::as_f64) {
        Some(number) => Ok(Some(number)),
        None => fields.number([field, ""]),
    }
}

/// Reads the scaling that `parameters`, the value of field `place`, describe.
fn of_folder(
    fields: &ModelFields<'_>,
    place: &'static str,
    parameters: &Value,
) -> Result<Scaling, ModelError> {
    let kind = parameters.get("rope_type").or_else(|| parameters.get("type"));
    let optional = |field: &str| match parameters.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_f64()
            .map(Some)
            .ok_or_else(|| fields.invalid(format!("{place}.{field} = {value} is no number"))),
    };
    let number =
        |field: &str| optional(field)?.ok_or_else(|| fields.invalid(format!("{place} has no {field}")));
    let original = || match optional("original_max_position_embeddings")? {
        Some(original) => Ok(original),
        None => fields.number(["max_position_embeddings", ""]).map(Option::unwrap_or_default),
    };
    match kind.map(|kind| kind.as_str().unwrap_or_default()) {
        None if place == "rope_parameters" => Ok(Scaling::None),
        // The three parts of a position are the same everywhere in a text.
        Some("default" | "mrope") => Ok(Scaling::None),
        Some("linear") => Ok(Scaling::Linear(number("factor")?)),
        Some("proportional") => Ok(Scaling::Proportional {
            share: optional("partial_rotary_factor")?.unwrap_or(1.0),
            factor: optional("factor")?.unwrap_or(1.0),
        }),
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
            let kind = kind.unwrap_or(parameters);
            Err(fields.unsupported([if place == "rope_scaling" { SCALING } else { PARAMETERS }, ""], kind))
        }
    }
}

const SCALING: &str = "rope_scaling.rope_type";
const PARAMETERS: &str = "rope_parameters.rope_type";

/// Reads the scaling of a GGUF file.
fn of_file(fields: &ModelFields<'_>) -> Result<Scaling, ModelError> {
    for tensor in ["rope_factors_long.weight", "rope_factors_short.weight"] {
        if fields.file().is_some_and(|gguf| gguf.tensor(tensor).is_some()) {
            return Err(fields.unsupported(["", "rope"], tensor));
        }
    }
    let required = |setting| {
        fields.number(setting)?.ok_or_else(|| fields.invalid(format!("there is no {}", fields.name(setting))))
    };
    match fields.metadata("rope.scaling.type").map(|kind| MetadataValue::as_str(kind).unwrap_or_default()) {
        None | Some("none") => Ok(Scaling::None),
        Some("linear") => Ok(Scaling::Linear(required(FACTOR)?)),
        Some("yarn") => {
            let attention = ["", "rope.scaling.attn_factor"];
            fields.refuse(attention, fields.number(attention)?, |factor| *factor == 1.0)?;
            let factor = required(FACTOR)?;
            Ok(Scaling::Yarn {
                factor,
                beta_fast: 32.0,
                beta_slow: 1.0,
                original: required(ORIGINAL)?,
                attention: if factor <= 1.0 { 1.0 } else { 0.1 * factor.ln() + 1.0 },
                truncate: true,
            })
        }
        Some(other) => Err(fields.unsupported(["", "rope.scaling.type"], other)),
    }
}
