//! Formats of numbers, and the instructions that multiply them, by their names.

use std::{fmt, str::FromStr};

#[cfg(target_arch = "x86_64")]
use pulp::x86::V3;

/// Shows and reads the names in a table of all values.
macro_rules! named {
    ($kind:ty, $all:ident) => {
        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(name_of(&$all, self))
            }
        }

        impl FromStr for $kind {
            type Err = String;

            /// Reads a name, in either case; the error names all.
            fn from_str(name: &str) -> Result<Self, String> {
                by_name(&$all, name)
            }
        }
    };
}

/// A number format of weights, numbered as in `ggml_type`. Quantised ones keep a row's numbers in blocks, as
/// ggml does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Floats of 32 bits.
    F32 = 0,
    /// IEEE half precision: 16 bits.
    F16 = 1,
    /// The upper half of a float of 32 bits.
    Bf16 = 30,
    /// Blocks of 32 numbers: 4.5 bits a number.
    Q4_0 = 2,
    /// Blocks of 32 numbers with an offset: 5 bits a number.
    Q4_1 = 3,
    /// Blocks of 32 numbers: 5.5 bits a number.
    Q5_0 = 6,
    /// Blocks of 32 numbers with an offset: 6 bits a number.
    Q5_1 = 7,
    /// Blocks of 32 numbers: 8.5 bits a number.
    Q8_0 = 8,
    /// Blocks of 256 numbers, with scales and offsets of 32 each: 4.5 bits a number.
    Q4K = 12,
    /// Blocks of 256 numbers, with scales and offsets of 32 each: 5.5 bits a number.
    Q5K = 13,
    /// Blocks of 256 numbers, with scales of 16 each: 6.6 bits a number.
    Q6K = 14,
}

/// All formats and their names.
const FORMATS: [(Format, &str); 11] = [
    (Format::F32, "f32"),
    (Format::F16, "f16"),
    (Format::Bf16, "bf16"),
    (Format::Q4_0, "q4_0"),
    (Format::Q4_1, "q4_1"),
    (Format::Q5_0, "q5_0"),
    (Format::Q5_1, "q5_1"),
    (Format::Q8_0, "q8_0"),
    (Format::Q4K, "q4_k"),
    (Format::Q5K, "q5_k"),
    (Format::Q6K, "q6_k"),
];

named!(Format, FORMATS);

/// All formats, for error messages.
pub(crate) const NAMES: &str =
    "F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, IQ4_NL and IQ4_XS";

impl Format {
    /// The format with this number among `ggml_type`.
    pub(crate) fn from_ggml(number: u32) -> Option<Self> {
        FORMATS.into_iter().map(|(format, _)| format).find(|format| *format as u32 == number)
    }

    /// True if numbers are kept as quants of a few bits.
    #[must_use]
    pub fn is_quantised(self) -> bool {
        self.block() > 1
    }

    /// Numbers in a block.
    pub(crate) fn block(self) -> usize {
        match self {
            Self::F32 | Self::F16 | Self::Bf16 => 1,
            Self::Q4_0 | Self::Q4_1 | Self::Q5_0 | Self::Q5_1 | Self::Q8_0 => 32,
            Self::Q4K | Self::Q5K | Self::Q6K => 256,
        }
    }

    /// Bytes of a block, as stored.
    pub(crate) fn block_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::Q4_0 => 18,
            Self::Q4_1 => 20,
            Self::Q5_0 => 22,
            Self::Q5_1 => 24,
            Self::Q8_0 => 34,
            Self::Q4K => 144,
            Self::Q5K => 176,
            Self::Q6K => 210,
        }
    }

    /// Places in a block, in bytes, of its factors of 16 bits.
    fn factors(self) -> &'static [usize] {
        match self {
            Self::F32 | Self::F16 | Self::Bf16 => &[],
            Self::Q4_0 | Self::Q5_0 | Self::Q8_0 => &[0],
            Self::Q4_1 | Self::Q5_1 | Self::Q4K | Self::Q5K => &[0, 2],
            Self::Q6K => &[208],
        }
    }

    /// True if the factors of these stored blocks are finite. A block with another factor has no numbers.
    pub(crate) fn has_finite_factors(self, stored: &[u8]) -> bool {
        /// Exponent bits, which are all ones in infinity and NaN.
        const EXPONENT: u16 = 0x7c00;
        let factors = self.factors();
        let is_finite = |bytes: &[u8]| {
            bytes.first_chunk().is_some_and(|bytes| u16::from_le_bytes(*bytes) & EXPONENT != EXPONENT)
        };
        factors.is_empty()
            || stored
                .chunks_exact(self.block_bytes())
                .all(|block| factors.iter().all(|&place| is_finite(&block[place..])))
    }

    /// Bytes of a stored row of `columns` numbers; `None` if it is not whole blocks.
    pub(crate) fn row_bytes(self, columns: usize) -> Option<usize> {
        columns.is_multiple_of(self.block()).then(|| columns / self.block())?.checked_mul(self.block_bytes())
    }
}

/// The name of a number among `ggml_type` that is not supported.
pub(crate) fn ggml_name(number: u32) -> String {
    let name = match number {
        9 => "Q8_1",
        10 => "Q2_K",
        11 => "Q3_K",
        15 => "Q8_K",
        16 => "IQ2_XXS",
        17 => "IQ2_XS",
        18 => "IQ3_XXS",
        19 => "IQ1_S",
        21 => "IQ3_S",
        22 => "IQ2_S",
        24 => "I8",
        25 => "I16",
        26 => "I32",
        27 => "I64",
        28 => "F64",
        29 => "IQ1_M",
        34 => "TQ1_0",
        35 => "TQ2_0",
        39 => "MXFP4",
        _ => return format!("number format {number} of ggml"),
    };
    name.to_owned()
}

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
const KV_FORMATS: [(KvFormat, &str); 3] =
    [(KvFormat::F32, "f32"), (KvFormat::F16, "f16"), (KvFormat::Q8_0, "q8_0")];

named!(KvFormat, KV_FORMATS);

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

/// Processor instructions that multiply quantised weights. Outputs have the same bits with each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Instructions {
    /// AVX-512 VNNI: 16 outputs at a time.
    Avx512Vnni,
    /// AVX-VNNI: 8 outputs at a time.
    AvxVnni,
    /// AVX2 with FMA: 8 outputs at a time, by two or three instructions each.
    Avx2,
}

/// All instructions and their names, the best first.
const INSTRUCTIONS: [(Instructions, &str); 3] = [
    (Instructions::Avx512Vnni, "avx512-vnni"),
    (Instructions::AvxVnni, "avx-vnni"),
    (Instructions::Avx2, "avx2"),
];

named!(Instructions, INSTRUCTIONS);

impl Instructions {
    /// Instructions that this processor has, the best first. If there are none, products are made in floats.
    #[must_use]
    pub fn available() -> Vec<Self> {
        INSTRUCTIONS.into_iter().map(|(own, _)| own).filter(|own| own.is_available()).collect()
    }

    /// True if this processor has them.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn is_available(self) -> bool {
        match self {
            Self::Avx512Vnni => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512vnni")
            }
            Self::AvxVnni => is_x86_feature_detected!("avxvnni") && V3::is_available(),
            Self::Avx2 => V3::is_available(),
        }
    }

    /// True if this processor has them.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn is_available(self) -> bool {
        false
    }
}

/// The name of a value.
fn name_of<T: PartialEq>(all: &[(T, &'static str)], value: &T) -> &'static str {
    all.iter().find(|(own, _)| own == value).map_or("", |(_, name)| name)
}

/// The value of this name, in either case; the error lists all names.
pub(crate) fn by_name<T: Copy>(all: &[(T, &str)], name: &str) -> Result<T, String> {
    let found = all.iter().find(|(_, own)| own.eq_ignore_ascii_case(name)).map(|(value, _)| *value);
    found.ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|(_, name)| *name).collect();
        format!("{name:?} is none of {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_names_that_are_read_back_and_sizes() {
        for (format, name) in KV_FORMATS {
            assert_eq!((format.to_string().as_str(), name.to_uppercase().parse()), (name, Ok(format)));
        }
        assert_eq!("bf16".parse::<KvFormat>(), Err("\"bf16\" is none of f32, f16, q8_0".to_owned()));
        let bytes = |head_dim| KV_FORMATS.map(|(format, _)| format.bytes(head_dim));
        assert_eq!(bytes(64), [Some(256), Some(128), Some(68)]);
        // Two and a half groups have three factors.
        assert_eq!(bytes(80), [Some(320), Some(160), Some(86)]);
        assert_eq!(bytes(usize::MAX), [None; 3]);
    }
}

#[cfg(test)]
mod instructions_tests {
    use super::*;

    #[test]
    fn names_of_instructions_are_read_back() {
        for (own, name) in INSTRUCTIONS {
            assert_eq!((own.to_string().as_str(), name.to_uppercase().parse()), (name, Ok(own)));
        }
        assert!("sse".parse::<Instructions>().unwrap_err().contains("avx512-vnni, avx-vnni, avx2"));
    }
}
