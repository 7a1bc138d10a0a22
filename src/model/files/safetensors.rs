//! Tensors of a Hugging Face model folder: one safetensors file, or shards with an index.
//!
//! Invariant: reads go by a file's checked header, never past it, and every tensor has the shape that was
//! asked for.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::{fs::File, io::Read};

use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use serde::Deserialize;

use super::weights::{self, Weights};
use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::formats::Format;
use crate::{ids::as_u64, limits::SAFETENSORS_HEADER_BYTES};

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// The weights of a folder, opened but not read.
#[derive(Debug)]
pub(crate) struct Safetensors {
    shards: Vec<ShardFile>,
    /// Number of the shard that holds a tensor.
    shard_of: HashMap<String, usize>,
    /// The start of our names, and what names here have in place of it.
    prefix: Option<[&'static str; 2]>,
    /// Parts of our names, and what names here have in place of them.
    names: &'static [(&'static str, &'static str)],
}

/// The tensor that tells how a folder names its tensors.
const EMBEDDING: &str = "model.embed_tokens.weight";

/// Starts of our names, and what models of more than text have in place of them.
const PREFIXES: [[&str; 2]; 2] = [["model.", "model.language_model."], ["", "language_model."]];

#[derive(Debug)]
struct ShardFile {
    path: PathBuf,
    file: File,
    /// Place in the file, in bytes, where the tensors start.
    data_start: u64,
    header: Metadata,
}

#[derive(Deserialize)]
struct Index {
    weight_map: HashMap<String, String>,
}

impl Safetensors {
    /// Opens `model.safetensors`, or else the shards that `model.safetensors.index.json` names, and checks
    /// their headers. Tensors have other `names` here: parts of ours, and what is in place of them.
    ///
    /// # Errors
    /// If a file is missing, unreadable, damaged or cut short.
    pub(crate) fn open(
        folder: &Path,
        names: &'static [(&'static str, &'static str)],
    ) -> Result<Self, ModelError> {
        let single = folder.join(SINGLE);
        let index = folder.join(INDEX);
        let paths = if single.exists() || !index.exists() { vec![single] } else { shards(folder, &index)? };
        let shards = paths.into_iter().map(ShardFile::open).collect::<Result<Vec<_>, _>>()?;
        let shard_of: HashMap<String, usize> = shards
            .iter()
            .enumerate()
            .flat_map(|(index, shard)| shard.header.offset_keys().into_iter().map(move |name| (name, index)))
            .collect();
        let embedding = |start: &str| EMBEDDING.strip_prefix(start).unwrap_or(EMBEDDING);
        let has = |[start, own]: &[&str; 2]| shard_of.contains_key(&format!("{own}{}", embedding(start)));
        let prefix = PREFIXES.into_iter().find(has);
        Ok(Self { shards, shard_of, prefix, names })
    }

    /// The name of a tensor in this folder.
    fn own_name(&self, name: &str) -> String {
        let name = self.names.iter().fold(name.to_owned(), |name, (ours, own)| name.replace(ours, own));
        match self.prefix {
            Some([start, own]) => {
                name.strip_prefix(start).map_or_else(|| name.clone(), |rest| format!("{own}{rest}"))
            }
            None => name,
        }
    }

    /// Finds a tensor of shape `expected`: its shard, first byte and format.
    fn find(&self, name: &str, expected: &[usize]) -> Result<(usize, u64, Format), ModelError> {
        let name = self.own_name(name);
        let name = name.as_str();
        let missing = || ModelErrorKind::MissingTensor(name.to_owned());
        let place = weights::of_expert(name).filter(|_| !self.shard_of.contains_key(name));
        let fused = place.map(|(start, _, part)| match part {
            "down_proj.weight" => (format!("{start}down_proj"), false),
            _ => (format!("{start}gate_up_proj"), true),
        });
        let stored = fused.as_ref().map_or(name, |(name, _)| name);
        let index = *self.shard_of.get(stored).ok_or_else(missing)?;
        let shard = self.shards.get(index).ok_or_else(missing)?;
        let TensorInfo { dtype, shape, data_offsets } = shard.header.info(stored).ok_or_else(missing)?;
        let first = match (place, &fused) {
            (Some(place), Some((_, is_fused))) => weights::expert_rows(place, expected, shape, *is_fused),
            _ => (shape == expected || weights::is_vector(shape, expected)).then_some(0),
        };
        let Some(first) = first else {
            return Err(ModelErrorKind::Shape {
                tensor: name.to_owned(),
                expected: expected.to_vec(),
                found: shape.clone(),
            }
            .into());
        };
        let format = match dtype {
            Dtype::F32 => Format::F32,
            Dtype::F16 => Format::F16,
            Dtype::BF16 => Format::Bf16,
            other => {
                let format = format!("{other:?}");
                return Err(ModelErrorKind::NumberFormat { tensor: name.to_owned(), format }.into());
            }
        };
        let row = as_u64(format.block_bytes()).saturating_mul(as_u64(expected.last().copied().unwrap_or(1)));
        let start = shard.data_start.saturating_add(as_u64(data_offsets.0));
        Ok((index, start.saturating_add(row.saturating_mul(as_u64(first))), format))
    }
}

impl Weights for Safetensors {
    fn format(&self, name: &str, shape: &[usize]) -> Result<Format, ModelError> {
        self.find(name, shape).map(|(_, _, format)| format)
    }

    fn read(
        &mut self,
        name: &str,
        expected: &[usize],
        each: &mut dyn FnMut(Format, &[u8]),
    ) -> Result<(), ModelError> {
        let (index, start, format) = self.find(name, expected)?;
        // A vector is one row.
        let (rows, columns) = match *expected {
            [rows, columns] => (rows, columns),
            _ => (1, expected.iter().product()),
        };
        let missing = || ModelErrorKind::MissingTensor(name.to_owned());
        let shard = self.shards.get_mut(index).ok_or_else(missing)?;
        let sizes = [rows, columns * format.block_bytes(), 1];
        weights::read_rows((&shard.path, &mut shard.file), name, start, sizes, |rows| each(format, rows))
    }

    fn vector(&mut self, name: &str, length: usize) -> Result<Vec<f32>, ModelError> {
        let mut values = None;
        self.read(name, &[length], &mut |format, stored| values = weights::floats(format, stored))?;
        values.ok_or_else(|| ModelErrorKind::MissingTensor(name.to_owned()).into())
    }
}

/// The files that an index names, sorted and without duplicates.
fn shards(folder: &Path, index: &Path) -> Result<Vec<PathBuf>, ModelError> {
    let damaged = |reason: String| ModelErrorKind::DamagedWeights { file: index.to_owned(), reason };
    let text = super::weights::read_text(index)?;
    let parsed: Index = serde_json::from_str(&text)
        .map_err(|error| ModelError::with_source(damaged("not an index of weights".into()), error))?;
    let names: BTreeSet<String> = parsed.weight_map.into_values().collect();
    if names.is_empty() {
        return Err(damaged("it names no weights files".into()).into());
    }
    names
        .into_iter()
        .map(|name| {
            // A folder that someone else made must not make us read outside of it.
            if Path::new(&name).file_name().is_none_or(|file| file != name.as_str()) {
                return Err(damaged(format!("{name:?} is not the name of a file in the folder")).into());
            }
            Ok(folder.join(name))
        })
        .collect()
}

impl ShardFile {
    fn open(path: PathBuf) -> Result<Self, ModelError> {
        let mut file = File::open(&path).map_err(|error| crate::model::error::file_error(&path, error))?;
        let length = file.metadata().map_err(|error| crate::model::error::file_error(&path, error))?.len();
        let damaged =
            |reason: String| ModelError::from(ModelErrorKind::DamagedWeights { file: path.clone(), reason });
        let mut prefix = [0; 8];
        file.read_exact(&mut prefix).map_err(|_| damaged("too short for a safetensors file".into()))?;
        let header_length = u64::from_le_bytes(prefix);
        if header_length > SAFETENSORS_HEADER_BYTES.min(length.saturating_sub(8)) {
            return Err(damaged(format!(
                "not a safetensors file, or cut short: a header of {header_length} bytes in a file of \
                 {length}"
            )));
        }
        let mut header = Vec::new();
        (&mut file)
            .take(header_length)
            .read_to_end(&mut header)
            .map_err(|error| crate::model::error::file_error(&path, error))?;
        let header: Metadata = serde_json::from_slice(&header)
            .map_err(|error| damaged(format!("its header does not describe tensors: {error}")))?;
        let data_start = 8 + header_length;
        let expected = u64::try_from(header.data_len()).ok().and_then(|data| data.checked_add(data_start));
        if expected != Some(length) {
            return Err(damaged(format!(
                "cut short or damaged: {} bytes of tensors are described, {} are there",
                header.data_len(),
                length - data_start
            )));
        }
        Ok(Self { path, file, data_start, header })
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;
    use crate::model::cpu::products::matrix::read_matrix;

    fn file(tensors: &[(&str, &str, Vec<usize>, Vec<u8>)]) -> Vec<u8> {
        let mut header = serde_json::Map::new();
        let mut data: Vec<u8> = Vec::new();
        for (name, dtype, shape, bytes) in tensors {
            let offsets = [data.len(), data.len() + bytes.len()];
            header.insert(
                (*name).into(),
                serde_json::json!({"dtype": dtype, "shape": shape, "data_offsets": offsets}),
            );
            data.extend(bytes);
        }
        let header = serde_json::Value::Object(header).to_string();
        let mut bytes = u64::try_from(header.len()).unwrap().to_le_bytes().to_vec();
        bytes.extend(header.into_bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn formats_convert_and_parts_lie_one_below_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let first: Vec<f32> = (0..70 * 3).map(|n: u16| f32::from(n)).collect();
        let second = [0.5_f32, -1.0, 2.0];
        let bytes = file(&[
            ("a", "F32", vec![70, 3], first.iter().flat_map(|value| value.to_le_bytes()).collect()),
            ("b", "F16", vec![1, 3], second.iter().flat_map(|&v| f16::from_f32(v).to_le_bytes()).collect()),
            ("c", "BF16", vec![3], second.iter().flat_map(|&v| bf16::from_f32(v).to_le_bytes()).collect()),
        ]);
        std::fs::write(folder.path().join(SINGLE), bytes).unwrap();
        let mut weights = Safetensors::open(folder.path(), &[]).unwrap();
        assert_eq!(weights.vector("c", 3).unwrap(), second);
        let matrix = read_matrix(&mut weights, &[("a", 70), ("b", 1)], 3).unwrap();
        let rows = matrix.rows(&[0, 69, 70]).unwrap().to_vec2::<f32>().unwrap();
        assert_eq!(rows, [&first[..3], &first[207..], &second]);
    }

    #[test]
    fn every_cut_and_every_flipped_header_byte_is_an_error_or_a_value() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(SINGLE);
        let whole = file(&[("a", "F32", vec![2], vec![0; 8])]);
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let error = Safetensors::open(folder.path(), &[]).unwrap_err();
            assert!(matches!(error.kind(), ModelErrorKind::DamagedWeights { .. }), "{length}: {error}");
        }
        for index in 0..whole.len() {
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[index] ^= 1 << bit;
                std::fs::write(&path, &bytes).unwrap();
                if let Ok(mut weights) = Safetensors::open(folder.path(), &[]) {
                    let _ = weights.vector("a", 2);
                }
            }
        }
    }
}
