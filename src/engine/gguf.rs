//! The head of GGUF files: metadata, and the places of the tensors. Knows nothing of tokenizers and models.
//!
//! Invariant: lengths in a file are believed only as far as the file is long, so that reading takes memory in
//! proportion to the file's head; every tensor lies within the file.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::{collections::HashMap, fmt, fs::File, io};

use crate::ids::as_u64;

/// The first four bytes of a file.
const MAGIC: [u8; 4] = *b"GGUF";
/// Tensors start at multiples of this unless the file says otherwise.
const ALIGNMENT: u64 = 32;
/// Most dimensions of a tensor.
const DIMENSIONS: u32 = 4;

/// The head of a file, or of all files of a model in parts.
#[derive(Debug)]
pub struct Gguf {
    files: Vec<PathBuf>,
    metadata: HashMap<String, MetadataValue>,
    tensors: HashMap<String, Tensor>,
}

/// The place of a tensor, and the format of its numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// Slowest first: rows, then columns.
    pub shape: Vec<usize>,
    /// The number of the format, as `ggml_type` counts them.
    pub format: u32,
    /// Index of its file.
    pub file: usize,
    /// Offset of its first byte in the file.
    pub start: u64,
    /// Bytes from there to the next tensor or the end of the file: an upper bound of its size.
    pub room: u64,
}

/// Has `path` the name of a GGUF file?
pub fn is_gguf(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf")) && !path.is_dir()
}

impl Gguf {
    /// Reads the head of the file at `path`, and those of the other parts if it is `…-00001-of-0000N.gguf`.
    ///
    /// # Errors
    /// If a file is missing, cannot be read, is not a GGUF file, is damaged or cut short.
    pub fn open(path: &Path) -> Result<Self, GgufError> {
        let mut gguf = Self { files: Vec::new(), metadata: HashMap::new(), tensors: HashMap::new() };
        parts(path).into_iter().try_for_each(|file| gguf.add(file))?;
        Ok(gguf)
    }

    /// Returns the value of a key. A model's own keys start with its architecture.
    pub fn get(&self, key: &str) -> Option<&MetadataValue> {
        self.metadata.get(key)
    }

    /// Returns the tensor with a name.
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.get(name)
    }

    /// The files, in the order of [`Tensor::file`].
    pub fn files(&self) -> &[PathBuf] {
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
fn read(reader: &mut HeadReader, file: usize) -> Result<HeadContents, HeadFault> {
    if reader.bytes::<4>()? != MAGIC {
        return Err(HeadFault::NotGguf);
    }
    let version = reader.u32()?;
    if !(2..=3).contains(&version) {
        return Err(HeadFault::Other(format!("version {version}; supported are 2 and 3")));
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
            return Err(HeadFault::Other(format!("tensor {name} has {dimensions} dimensions")));
        }
        let mut shape = Vec::new();
        for _ in 0..dimensions {
            let length = reader.u64()?;
            let too_long = || HeadFault::Other(format!("tensor {name} has {length} rows or columns"));
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
        alignment.ok_or_else(|| HeadFault::Other("general.alignment is no power of two".into()))?;
    let data = reader.position().checked_next_multiple_of(alignment).ok_or(HeadFault::Short)?;
    place(&mut tensors, data, reader.length())?;
    Ok((metadata, tensors))
}

/// Turns offsets from `data` on into offsets in a file of `length` bytes, and finds the room of each tensor.
fn place(tensors: &mut [(String, Tensor)], data: u64, length: u64) -> Result<(), HeadFault> {
    for (name, tensor) in &mut *tensors {
        let start = data.checked_add(tensor.start).filter(|&start| start <= length);
        tensor.start = start.ok_or_else(|| HeadFault::Cut(name.clone()))?;
    }
    let mut starts: Vec<u64> = tensors.iter().map(|(_, tensor)| tensor.start).collect();
    starts.sort_unstable();
    for (_, tensor) in tensors {
        let next = starts.partition_point(|&start| start <= tensor.start);
        tensor.room = starts.get(next).copied().unwrap_or(length) - tensor.start;
    }
    Ok(())
}

/// A fault of a head.
#[derive(Debug)]
enum HeadFault {
    /// The file does not begin like a GGUF file.
    NotGguf,
    /// The file ends, or would have to be longer than it is.
    Short,
    /// A tensor of this name would lie past the end.
    Cut(String),
    /// Another fault, described in words.
    Other(String),
    /// Reading failed.
    Io(std::io::Error),
}

impl HeadFault {
    /// Converts the fault to an error about a file of `length` bytes.
    fn in_file(self, file: &Path, length: u64) -> GgufError {
        let damaged = |reason: String| GgufError::new(GgufErrorKind::Damaged, file, reason);
        match self {
            Self::NotGguf => damaged("not a GGUF file".into()),
            Self::Short => damaged(format!("cut short or damaged: {length} bytes do not hold what it says")),
            Self::Cut(name) => damaged(format!("cut short or damaged: tensor {name} lies past its end")),
            Self::Other(reason) => damaged(reason),
            Self::Io(error) => GgufError::io(file, error),
        }
    }
}

/// A position in a file.
#[derive(Debug)]
struct HeadReader {
    input: BufReader<File>,
    position: u64,
    length: u64,
}

impl HeadReader {
    /// Creates a reader at the start of a file of `length` bytes.
    fn new(input: BufReader<File>, length: u64) -> Self {
        Self { input, position: 0, length }
    }

    /// Number of bytes read.
    fn position(&self) -> u64 {
        self.position
    }

    /// Length of the file in bytes.
    fn length(&self) -> u64 {
        self.length
    }

    /// Reads the next `N` bytes.
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], HeadFault> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), HeadFault> {
        self.input.read_exact(bytes).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => HeadFault::Short,
            _ => HeadFault::Io(error),
        })?;
        self.position = self.position.saturating_add(as_u64(bytes.len()));
        Ok(())
    }

    fn u32(&mut self) -> Result<u32, HeadFault> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, HeadFault> {
        self.bytes().map(u64::from_le_bytes)
    }

    /// Reads a count of items that take at least `least` bytes each.
    fn count(&mut self, least: u64) -> Result<usize, HeadFault> {
        let count = self.u64()?;
        let fits =
            count.checked_mul(least).is_some_and(|bytes| bytes <= self.length.saturating_sub(self.position));
        if fits { usize::try_from(count).map_err(|_| HeadFault::Short) } else { Err(HeadFault::Short) }
    }

    /// Reads a string with its length. Bytes that are not UTF-8 become U+FFFD.
    fn string(&mut self) -> Result<String, HeadFault> {
        let mut bytes = vec![0; self.count(1)?];
        self.fill(&mut bytes)?;
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }
}

/// A value. All integers are one kind, all floats another.
#[derive(Debug, Clone, PartialEq)]
pub enum MetadataValue {
    /// Any integer.
    Integer(i128),
    /// A float of either size.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A text.
    String(String),
    /// Texts.
    Strings(Vec<String>),
    /// Integers.
    Integers(Vec<i64>),
    /// Floats.
    Floats(Vec<f32>),
    /// Truth values.
    Bools(Vec<bool>),
}

impl MetadataValue {
    /// Reads a value with its kind.
    fn read(reader: &mut HeadReader) -> Result<Self, HeadFault> {
        match reader.u32()? {
            6 => Ok(Self::Float(f64::from(f32::from_le_bytes(reader.bytes()?)))),
            7 => Ok(Self::Bool(reader.bytes::<1>()? != [0])),
            8 => reader.string().map(Self::String),
            9 => Self::list(reader),
            12 => Ok(Self::Float(f64::from_le_bytes(reader.bytes()?))),
            kind => integer(reader, kind).map(Self::Integer),
        }
    }

    /// Reads a list: the kind of its values, their number, and the values.
    fn list(reader: &mut HeadReader) -> Result<Self, HeadFault> {
        fn all<T>(
            reader: &mut HeadReader,
            size: u64,
            read: impl Fn(&mut HeadReader) -> Result<T, HeadFault>,
        ) -> Result<Vec<T>, HeadFault> {
            let count = reader.count(size)?;
            let mut values = Vec::with_capacity(count);
            for _ in 0..count {
                values.push(read(reader)?);
            }
            Ok(values)
        }
        match reader.u32()? {
            6 => all(reader, 4, |reader| reader.bytes().map(f32::from_le_bytes)).map(Self::Floats),
            7 => all(reader, 1, |reader| Ok(reader.bytes::<1>()? != [0])).map(Self::Bools),
            8 => all(reader, 8, HeadReader::string).map(Self::Strings),
            kind => {
                let least = match kind {
                    0 | 1 => 1,
                    2 | 3 => 2,
                    4 | 5 => 4,
                    _ => 8,
                };
                let integer = |reader: &mut HeadReader| {
                    i64::try_from(integer(reader, kind)?)
                        .map_err(|_| HeadFault::Other("an integer of a list is too large".into()))
                };
                all(reader, least, integer).map(Self::Integers)
            }
        }
    }

    /// Returns an integer that is not negative.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Integer(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// Returns a number.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "what is asked for is a float")]
            Self::Integer(number) => Some(*number as f64),
            Self::Float(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns a truth value.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns a text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns a list of texts.
    pub fn as_strings(&self) -> Option<&[String]> {
        match self {
            Self::Strings(texts) => Some(texts),
            _ => None,
        }
    }

    /// Returns a list of integers.
    pub fn as_integers(&self) -> Option<&[i64]> {
        match self {
            Self::Integers(numbers) => Some(numbers),
            _ => None,
        }
    }

    /// Returns a list of floats.
    pub fn as_floats(&self) -> Option<&[f32]> {
        match self {
            Self::Floats(numbers) => Some(numbers),
            _ => None,
        }
    }
}

/// Reads an integer of a kind of value.
fn integer(reader: &mut HeadReader, kind: u32) -> Result<i128, HeadFault> {
    Ok(match kind {
        0 => u8::from_le_bytes(reader.bytes()?).into(),
        1 => i8::from_le_bytes(reader.bytes()?).into(),
        2 => u16::from_le_bytes(reader.bytes()?).into(),
        3 => i16::from_le_bytes(reader.bytes()?).into(),
        4 => reader.u32()?.into(),
        5 => i32::from_le_bytes(reader.bytes()?).into(),
        10 => reader.u64()?.into(),
        11 => i64::from_le_bytes(reader.bytes()?).into(),
        _ => return Err(HeadFault::Other(format!("a value of unknown kind {kind}"))),
    })
}

/// Kinds of [`GgufError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GgufErrorKind {
    /// There is no such file.
    Missing,
    /// The file cannot be read.
    Unreadable,
    /// It is not a GGUF file, is damaged or cut short.
    Damaged,
}

/// A GGUF file that cannot be used.
#[derive(Debug)]
pub struct GgufError {
    pub kind: GgufErrorKind,
    pub file: PathBuf,
    /// The fault in the file, in words.
    pub reason: String,
}

impl GgufError {
    /// Creates an error of `kind` about `file`.
    pub fn new(kind: GgufErrorKind, file: &Path, reason: impl Into<String>) -> Self {
        Self { kind, file: file.to_owned(), reason: reason.into() }
    }

    /// Creates the error of a file that cannot be opened or read.
    fn io(file: &Path, error: io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::NotFound => GgufErrorKind::Missing,
            _ => GgufErrorKind::Unreadable,
        };
        Self::new(kind, file, error.to_string())
    }
}

impl fmt::Display for GgufError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.reason)
    }
}

impl std::error::Error for GgufError {}

#[cfg(test)]
mod tests;
