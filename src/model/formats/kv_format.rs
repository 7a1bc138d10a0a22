//! Number formats of keys and values in the CPU's cache.

use std::{fmt, str::FromStr};

use super::names::{by_name, name_of};

/// The number format of keys and values in the cache of a
/// [`CandleModel`](crate::model::candle::CandleModel). Queries, weights of attention and sums are `f32` in
/// each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KvFormat {
    /// Floats of 32 bits: keys and values as the layers computed them.
    #[default]
    F32,
    /// IEEE half precision: 11 significant bits. Numbers beyond its range, 65,504, become the largest it has.
    F16,
    /// Blocks as in ggml, 8.5 bits a number: each key and each value of a head is rounded to whole numbers of
    /// -127 to 127 in groups of 32 (the last group of a head may have fewer), with an `f16` factor each.
    Q8_0,
}

/// Numbers of a head that share a factor in [`KvFormat::Q8_0`].
pub(crate) const GROUP: usize = 32;

/// All formats and their names.
const ALL: [(KvFormat, &str); 3] = [(KvFormat::F32, "f32"), (KvFormat::F16, "f16"), (KvFormat::Q8_0, "q8_0")];

impl fmt::Display for KvFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name_of(&ALL, self))
    }
}

impl FromStr for KvFormat {
    type Err = String;

    /// Reads a name, in either case; the error names all.
    fn from_str(name: &str) -> Result<Self, String> {
        by_name(&ALL, name)
    }
}

impl KvFormat {
    /// Bytes of a head's key or value; `None` if they cannot be counted in a `usize`.
    pub(crate) fn bytes(self, head_dim: usize) -> Option<usize> {
        match self {
            Self::F32 => head_dim.checked_mul(4),
            Self::F16 => head_dim.checked_mul(2),
            Self::Q8_0 => head_dim.checked_add(2 * head_dim.div_ceil(GROUP)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_names_that_are_read_back_and_sizes() {
        for (format, name) in ALL {
            assert_eq!((format.to_string().as_str(), name.to_uppercase().parse()), (name, Ok(format)));
        }
        assert_eq!("bf16".parse::<KvFormat>(), Err("\"bf16\" is none of f32, f16, q8_0".to_owned()));
        let bytes = |head_dim| ALL.map(|(format, _)| format.bytes(head_dim));
        assert_eq!(bytes(64), [Some(256), Some(128), Some(68)]);
        // Two and a half groups have three factors.
        assert_eq!(bytes(80), [Some(320), Some(160), Some(86)]);
        assert_eq!(bytes(usize::MAX), [None; 3]);
    }
}
