//! Tensors of a GGUF file, or of all parts of one, under the names that Hugging Face gives them.
//!
//! Invariant: rows come out in Hugging Face's order. For the architecture `llama`, GGUF files keep the two
//! numbers that are rotated together side by side, Hugging Face half a head apart.

use std::{fs::File, path::PathBuf};

use super::{
    error::{ModelError, ModelErrorKind},
    format::{self, Format},
    weights::{self, Weights},
};
use crate::gguf::{Gguf, Tensor};

/// The weights of a GGUF file, opened but not read.
#[derive(Debug)]
pub(super) struct GgufWeights<'a> {
    gguf: &'a Gguf,
    files: Vec<(PathBuf, File)>,
    /// Size of a head, if queries and keys are to be put in order.
    head_dim: Option<usize>,
}

impl<'a> GgufWeights<'a> {
    /// Opens the files; `head_dim` if queries and keys are to be put in order.
    ///
    /// # Errors
    /// If one cannot be opened.
    pub(super) fn open(gguf: &'a Gguf, head_dim: Option<usize>) -> Result<Self, ModelError> {
        let open = |path: &PathBuf| {
            let file = File::open(path).map_err(|error| super::file_error(path, error))?;
            Ok((path.clone(), file))
        };
        let files = gguf.files().iter().map(open).collect::<Result<_, ModelError>>()?;
        Ok(Self { gguf, files, head_dim })
    }

    /// A tensor of shape `expected`, and its format and bytes in a row.
    fn find(&self, name: &str, expected: &[usize]) -> Result<(&'a Tensor, Format, usize), ModelError> {
        let own = own_name(name);
        let tensor = self.gguf.tensor(&own).ok_or_else(|| ModelErrorKind::MissingTensor(own.clone()))?;
        if tensor.shape != expected {
            let (expected, found) = (expected.to_vec(), tensor.shape.clone());
            return Err(ModelErrorKind::Shape { tensor: own, expected, found }.into());
        }
        let format = Format::from_ggml(tensor.format).ok_or_else(|| ModelErrorKind::NumberFormat {
            tensor: own.clone(),
            format: format::ggml_name(tensor.format),
        })?;
        let columns = expected.last().copied().unwrap_or(1);
        let row_bytes = format.row_bytes(columns).ok_or_else(|| {
            let reason = format!("tensor {own} has rows of {columns} numbers, which are no whole blocks");
            ModelErrorKind::InvalidMetadata(reason)
        })?;
        let rows = expected.iter().product::<usize>() / columns.max(1);
        let bytes = rows.checked_mul(row_bytes).and_then(|bytes| u64::try_from(bytes).ok());
        if bytes.is_none_or(|bytes| bytes > tensor.room) {
            let file = self.files.get(tensor.file).map(|(path, _)| path.clone()).unwrap_or_default();
            let reason = format!("cut short or damaged: tensor {own} has {} bytes", tensor.room);
            return Err(ModelErrorKind::DamagedWeights { file, reason }.into());
        }
        Ok((tensor, format, row_bytes))
    }
}

impl Weights for GgufWeights<'_> {
    fn format(&self, name: &str, shape: &[usize]) -> Result<Format, ModelError> {
        self.find(name, shape).map(|(_, format, _)| format)
    }

    fn read(
        &mut self,
        name: &str,
        expected: &[usize],
        each: &mut dyn FnMut(Format, &[u8]),
    ) -> Result<(), ModelError> {
        let (tensor, format, row_bytes) = self.find(name, expected)?;
        let head = self.head_dim.filter(|_| name.contains(".q_proj.") || name.contains(".k_proj."));
        let missing = || ModelErrorKind::MissingTensor(name.to_owned());
        let (path, file) = self.files.get_mut(tensor.file).ok_or_else(missing)?;
        let (rows, size) = match expected {
            [rows, _] => (*rows, row_bytes),
            // Of a bias every number is a row.
            _ => (expected.iter().product(), format.block_bytes()),
        };
        let mut ordered = Vec::new();
        let sizes = [rows, size, head.unwrap_or(1)];
        weights::read_rows((path, file), name, tensor.start, sizes, |stored| match head {
            Some(head) => {
                ordered.clear();
                for head in stored.chunks_exact(head * size) {
                    // Pairs side by side: first the left ones of all, then the right ones.
                    for side in 0..2 {
                        let own = head.chunks_exact(size).skip(side).step_by(2);
                        own.for_each(|row| ordered.extend_from_slice(row));
                    }
                }
                each(format, &ordered);
            }
            None => each(format, stored),
        })
    }

    fn vector(&mut self, name: &str, length: usize) -> Result<Vec<f32>, ModelError> {
        let format = self.format(name, &[length])?;
        if format.block() > 1 {
            let (tensor, format) = (own_name(name), format!("{format:?}"));
            return Err(ModelErrorKind::NumberFormat { tensor, format }.into());
        }
        let mut values = Vec::with_capacity(length);
        self.read(name, &[length], &mut |format, stored| {
            values.extend(weights::floats(format, stored).unwrap_or_default());
        })?;
        Ok(values)
    }
}

/// The name of a tensor in GGUF files. Names that are not Hugging Face's stay as they are.
fn own_name(name: &str) -> String {
    let Some(rest) = name.strip_prefix("model.layers.") else {
        return match name {
            "model.embed_tokens.weight" => "token_embd.weight",
            "model.norm.weight" => "output_norm.weight",
            "lm_head.weight" => "output.weight",
            other => other,
        }
        .to_owned();
    };
    let parts: Vec<&str> = rest.split('.').collect();
    let (layer, part, suffix) = match *parts.as_slice() {
        [layer, _, part, suffix] => (layer, part, suffix),
        [layer, part, suffix] => (layer, part, suffix),
        _ => return name.to_owned(),
    };
    let own = match part {
        "q_proj" => "attn_q",
        "k_proj" => "attn_k",
        "v_proj" => "attn_v",
        "o_proj" => "attn_output",
        "q_norm" => "attn_q_norm",
        "k_norm" => "attn_k_norm",
        "input_layernorm" => "attn_norm",
        "post_attention_layernorm" => "ffn_norm",
        "gate_proj" => "ffn_gate",
        "up_proj" => "ffn_up",
        "down_proj" => "ffn_down",
        other => other,
    };
    format!("blk.{layer}.{own}.{suffix}")
}
