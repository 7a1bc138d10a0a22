//! The head of GGUF files: metadata, and the places of the tensors. Knows nothing of tokenizers and models.
//!
//! Invariant: lengths in a file are believed only as far as the file is long, so that reading takes memory in
//! proportion to the file's head; every tensor lies within the file.

mod error;
mod reader;
mod value;

use std::{
    collections::HashMap,
    fs::File,
    io::BufReader,
    path::{Path, PathBuf},
};

pub(crate) use error::{GgufError, GgufErrorKind};
pub(crate) use value::MetadataValue;

use self::reader::HeadReader;

/// The first four bytes of a file.
const MAGIC: [u8; 4] = *b"GGUF";
/// Tensors start at multiples of this unless the file says otherwise.
const ALIGNMENT: u64 = 32;
/// Most dimensions of a tensor.
const DIMENSIONS: u32 = 4;

/// The head of a file, or of all files of a model in parts.
#[derive(Debug)]
pub(crate) struct Gguf {
    files: Vec<PathBuf>,
    metadata: HashMap<String, MetadataValue>,
    tensors: HashMap<String, Tensor>,
}

/// The place of a tensor, and the format of its numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tensor {
    /// Slowest first: rows, then columns.
    pub(crate) shape: Vec<usize>,
    /// The number of the format, as `ggml_type` counts them.
    pub(crate) format: u32,
    /// Index of its file.
    pub(crate) file: usize,
    /// Offset of its first byte in the file.
    pub(crate) start: u64,
    /// Bytes from there to the next tensor or the end of the file: an upper bound of its size.
    pub(crate) room: u64,
}

/// Has `path` the name of a GGUF file?
pub(crate) fn is_gguf(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf")) && !path.is_dir()
}

impl Gguf {
    /// Reads the head of the file at `path`, and those of the other parts if it is `…-00001-of-0000N.gguf`.
    ///
    /// # Errors
    /// If a file is missing, cannot be read, is not a GGUF file, is damaged or cut short.
    pub(crate) fn open(path: &Path) -> Result<Self, GgufError> {
        let mut gguf = Self { files: Vec::new(), metadata: HashMap::new(), tensors: HashMap::new() };
        parts(path).into_iter().try_for_each(|file| gguf.add(file))?;
        Ok(gguf)
    }

    /// Returns the value of a key. A model's own keys start with its architecture.
    pub(crate) fn get(&self, key: &str) -> Option<&MetadataValue> {
        self.metadata.get(key)
    }

    /// Returns the tensor with a name.
    pub(crate) fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.get(name)
    }

    /// The files, in the order of [`Tensor::file`].
    pub(crate) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Reads the head of one file; keys of earlier files take precedence.
    fn add(&mut self, path: PathBuf) -> Result<(), GgufError> {
        let file = File::open(&path).map_err(|error| GgufError::io(&path, error))?;
        let length = file.metadata().map_err(|error| GgufError::io(&path, error))?.len();
        let mut reader = HeadReader::new(BufReader::new(file), length);
        let index = self.files.len();
        let (metadata, tensors) = read(&mut reader, index).map_err(|error| error.in_file(&path, length))?;
        for (key, value) in metadata {
            self.metadata.entry(key).or_insert(value);
        }
        for (name, tensor) in tensors {
            if self.tensors.insert(name.clone(), tensor).is_some() {
                let reason = format!("tensor {name} is there twice");
                return Err(GgufError::new(GgufErrorKind::Damaged, &path, reason));
            }
        }
        self.files.push(path);
        Ok(())
    }
}

/// Lists the files of the model of which `path` is the first part.
fn parts(path: &Path) -> Vec<PathBuf> {
    let count = path.file_name().and_then(|name| name.to_str()).and_then(|name| {
        let (stem, count) = name.strip_suffix(".gguf")?.split_once("-00001-of-")?;
        let count: u32 = (count.len() == 5).then(|| count.parse().ok())??;
        (1..1000).contains(&count).then(|| (stem.to_owned(), count))
    });
    match count {
        Some((stem, count)) => (1..=count)
            .map(|part| path.with_file_name(format!("{stem}-{part:05}-of-{count:05}.gguf")))
            .collect(),
        None => vec![path.to_owned()],
    }
}

type HeadContents = (Vec<(String, MetadataValue)>, Vec<(String, Tensor)>);

/// Reads the head of file number `file`.
fn read(reader: &mut HeadReader, file: usize) -> Result<HeadContents, reader::HeadFault> {
    if reader.bytes::<4>()? != MAGIC {
        return Err(reader::HeadFault::NotGguf);
    }
    let version = reader.u32()?;
    if !(2..=3).contains(&version) {
        return Err(reader::HeadFault::Other(format!("version {version}; supported are 2 and 3")));
    }
    // A tensor takes at least 8 + 4 + 4 + 8 bytes, a key with its value at least 8 + 4 + 1.
    let tensor_count = reader.count(24)?;
    let key_count = reader.count(13)?;
    let mut metadata = Vec::with_capacity(key_count);
    for _ in 0..key_count {
        let key = reader.string()?;
        metadata.push((key, MetadataValue::read(reader)?));
    }
    let mut tensors = Vec::with_capacity(tensor_count);
    for _ in 0..tensor_count {
        let name = reader.string()?;
        let dimensions = reader.u32()?;
        if dimensions > DIMENSIONS {
            return Err(reader::HeadFault::Other(format!("tensor {name} has {dimensions} dimensions")));
        }
        let mut shape = Vec::new();
        for _ in 0..dimensions {
            let length = reader.u64()?;
            let too_long = || reader::HeadFault::Other(format!("tensor {name} has {length} rows or columns"));
            shape.push(usize::try_from(length).map_err(|_| too_long())?);
        }
        // The file has the fastest dimension first.
        shape.reverse();
        let (format, start) = (reader.u32()?, reader.u64()?);
        tensors.push((name, Tensor { shape, format, file, start, room: 0 }));
    }
    let own = metadata.iter().find(|(key, _)| key == "general.alignment");
    let alignment = own.map_or(Some(ALIGNMENT), |(_, value)| value.as_u64()).filter(|n| n.is_power_of_two());
    let alignment =
        alignment.ok_or_else(|| reader::HeadFault::Other("general.alignment is no power of two".into()))?;
    let data = reader.position().checked_next_multiple_of(alignment).ok_or(reader::HeadFault::Short)?;
    place(&mut tensors, data, reader.length())?;
    Ok((metadata, tensors))
}

/// Turns offsets from `data` on into offsets in a file of `length` bytes, and finds the room of each tensor.
fn place(tensors: &mut [(String, Tensor)], data: u64, length: u64) -> Result<(), reader::HeadFault> {
    for (name, tensor) in &mut *tensors {
        let start = data.checked_add(tensor.start).filter(|&start| start <= length);
        tensor.start = start.ok_or_else(|| reader::HeadFault::Cut(name.clone()))?;
    }
    let mut starts: Vec<u64> = tensors.iter().map(|(_, tensor)| tensor.start).collect();
    starts.sort_unstable();
    for (_, tensor) in tensors {
        let next = starts.partition_point(|&start| start <= tensor.start);
        tensor.room = starts.get(next).copied().unwrap_or(length) - tensor.start;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
