//! Settings in the files of a model: fields of `config.json`, or keys of GGUF metadata.
//!
//! Invariant: whatever is there and cannot be understood is an error that names it.

use std::collections::BTreeSet;

use serde_json::Value;

use domino_engine::gguf::{Gguf, MetadataValue};

use super::config::LayerSet;
use crate::model::error::{ModelError, ModelErrorKind};

/// Names of a setting: in `config.json`, and in GGUF metadata behind the architecture. One that a notation
/// lacks is empty.
pub(crate) type Setting = [&'static str; 2];

/// The fields of a model's files.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ModelFields<'a> {
    /// The fields of `config.json`; missing sizes have defaults.
    Folder { config: &'a Value, defaults: &'static [(&'static str, usize)] },
    /// The keys of a GGUF file, under the prefix of its architecture, such as `llama.block_count`.
    File { gguf: &'a Gguf, architecture: &'a str },
}

impl<'a> ModelFields<'a> {
    /// Returns the GGUF file; `None` for a folder.
    pub(crate) fn file(&self) -> Option<&'a Gguf> {
        match self {
            Self::Folder { .. } => None,
            Self::File { gguf, .. } => Some(gguf),
        }
    }

    /// A field of `config.json`, also if it is `null`. Models of more than text have what is said of text in
    /// `text_config`.
    pub(crate) fn value(&self, name: &str) -> Option<&'a Value> {
        let Self::Folder { config, .. } = self else { return None };
        config.get("text_config").and_then(|text| text.get(name)).or_else(|| config.get(name))
    }

    /// A key of GGUF metadata.
    pub(crate) fn metadata(&self, key: &str) -> Option<&'a MetadataValue> {
        let Self::File { gguf, architecture } = self else { return None };
        gguf.get(&format!("{architecture}.{key}"))
    }

    /// The name of a setting in this notation.
    pub(crate) fn name(&self, [folder, file]: Setting) -> String {
        match self {
            Self::Folder { .. } => folder.to_owned(),
            Self::File { architecture, .. } => format!("{architecture}.{file}"),
        }
    }

    pub(crate) fn invalid(&self, reason: impl Into<String>) -> ModelError {
        match self {
            Self::Folder { .. } => ModelErrorKind::InvalidConfig(reason.into()).into(),
            Self::File { .. } => ModelErrorKind::InvalidMetadata(reason.into()).into(),
        }
    }

    pub(crate) fn unsupported(&self, setting: Setting, value: impl std::fmt::Display) -> ModelError {
        ModelErrorKind::Unsupported { field: self.name(setting), value: value.to_string() }.into()
    }

    /// Refuses the value of a setting, if it is there and is not known to be computed.
    pub(crate) fn refuse<T: std::fmt::Display>(
        &self,
        setting: Setting,
        found: Option<T>,
        is_known: impl FnOnce(&T) -> bool,
    ) -> Result<(), ModelError> {
        match found.filter(|value| !is_known(value)) {
            Some(value) => Err(self.unsupported(setting, value)),
            None => Ok(()),
        }
    }

    /// Reads the layers that have the window, by their names in `layer_types`; `None` if there are none.
    pub(crate) fn window_layers(&self, layers: usize) -> Result<Option<LayerSet>, ModelError> {
        Ok(self.full_attention(layers, "sliding_attention")?.map(LayerSet::But))
    }

    /// Reads a size; `None` if it is missing.
    pub(crate) fn size(&self, setting: Setting) -> Result<Option<usize>, ModelError> {
        let of = |number: u64| usize::try_from(number).ok();
        let wrong = |value: String| self.invalid(format!("{} = {value} is not a size", self.name(setting)));
        match *self {
            Self::Folder { defaults, .. } => match self.value(setting[0]) {
                None | Some(Value::Null) => {
                    Ok(defaults.iter().find(|(name, _)| *name == setting[0]).map(|&(_, size)| size))
                }
                Some(value) => value.as_u64().and_then(of).map(Some).ok_or_else(|| wrong(value.to_string())),
            },
            Self::File { .. } => {
                let Some(value) = self.metadata(setting[1]) else { return Ok(None) };
                // Some files have one number for each layer. Tensors of other sizes will not fit the first.
                let first = || usize::try_from(*value.as_integers()?.iter().find(|&&size| size != 0)?).ok();
                let size = value.as_u64().and_then(of).or_else(first);
                size.map(Some).ok_or_else(|| wrong(format!("{value:?}")))
            }
        }
    }

    /// Reads a size of a layer, where files may have one for each.
    pub(crate) fn size_of(&self, setting: Setting, layer: usize) -> Result<Option<usize>, ModelError> {
        let all = self.metadata(setting[1]).and_then(MetadataValue::as_integers);
        match all.and_then(|all| all.get(layer)) {
            Some(&size) => Ok(usize::try_from(size).ok()),
            None => self.size(setting),
        }
    }

    /// Reads a size that must be there.
    pub(crate) fn required(&self, setting: Setting) -> Result<usize, ModelError> {
        self.size(setting)?.ok_or_else(|| self.invalid(format!("there is no {}", self.name(setting))))
    }

    /// Reads a number; `None` if it is missing.
    pub(crate) fn number(&self, setting: Setting) -> Result<Option<f64>, ModelError> {
        let wrong = |value: String| self.invalid(format!("{} = {value} is not a number", self.name(setting)));
        match (self.value(setting[0]), self.metadata(setting[1])) {
            (None | Some(Value::Null), None) => Ok(None),
            (Some(value), _) => value.as_f64().map(Some).ok_or_else(|| wrong(value.to_string())),
            (_, Some(value)) => value.as_f64().map(Some).ok_or_else(|| wrong(format!("{value:?}"))),
        }
    }

    /// Reads a switch of `config.json`; `None` if it is missing.
    pub(crate) fn switch(&self, name: &'static str) -> Result<Option<bool>, ModelError> {
        match self.value(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(on)) => Ok(Some(*on)),
            Some(value) => Err(self.unsupported([name, ""], value)),
        }
    }

    /// Reads the tokens of the sliding window. A field that is `null`, or a key that is zero, asks for none;
    /// a missing field has a default.
    pub(crate) fn window(&self) -> Result<Option<usize>, ModelError> {
        let tokens = self.size(["sliding_window", "attention.sliding_window"])?;
        Ok(match self {
            Self::Folder { .. } => tokens.filter(|_| self.value("sliding_window") != Some(&Value::Null)),
            Self::File { .. } => tokens.filter(|&tokens| tokens > 0),
        })
    }

    /// Reads the layers with attention to all tokens, by their names in `layer_types`; `None` if there are no
    /// names. The others are named `without`.
    pub(crate) fn full_attention(
        &self,
        layers: usize,
        without: &str,
    ) -> Result<Option<BTreeSet<usize>>, ModelError> {
        let Some(types) = self.value("layer_types").and_then(Value::as_array) else { return Ok(None) };
        if types.len() != layers {
            let reason = format!("layer_types has {} entries for {layers} layers", types.len());
            return Err(self.invalid(reason));
        }
        let sees_all = |(layer, kind): (usize, &Value)| match kind.as_str() {
            Some("full_attention") => Some(Ok(layer)),
            Some(other) if other == without => None,
            _ => Some(Err(self.unsupported(["layer_types", ""], kind))),
        };
        types.iter().enumerate().filter_map(sees_all).collect::<Result<_, _>>().map(Some)
    }
}
