//! Values of metadata.

use super::reader::{HeadFault, HeadReader};

/// A value. All integers are one kind, all floats another.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MetadataValue {
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
    pub(super) fn read(reader: &mut HeadReader) -> Result<Self, HeadFault> {
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
    pub(crate) fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Integer(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// Returns a number.
    pub(crate) fn as_f64(&self) -> Option<f64> {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "what is asked for is a float")]
            Self::Integer(number) => Some(*number as f64),
            Self::Float(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns a truth value.
    pub(crate) fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns a text.
    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns a list of texts.
    pub(crate) fn as_strings(&self) -> Option<&[String]> {
        match self {
            Self::Strings(texts) => Some(texts),
            _ => None,
        }
    }

    /// Returns a list of integers.
    pub(crate) fn as_integers(&self) -> Option<&[i64]> {
        match self {
            Self::Integers(numbers) => Some(numbers),
            _ => None,
        }
    }

    /// Returns a list of floats.
    pub(crate) fn as_floats(&self) -> Option<&[f32]> {
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
