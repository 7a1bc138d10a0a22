//! Number formats of tensors: floats, and the blocks of ggml's quantisations.

use std::{fmt, str::FromStr};

use super::names::{by_name, name_of};

/// A number format of weights. Quantised ones keep a row's numbers in blocks, as ggml does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Floats of 32 bits.
    F32,
    /// IEEE half precision: 16 bits.
    F16,
    /// The upper half of a float of 32 bits.
    Bf16,
    /// Blocks of 32 numbers: 4.5 bits a number.
    Q4_0,
    /// Blocks of 32 numbers with an offset: 5 bits a number.
    Q4_1,
    /// Blocks of 32 numbers: 5.5 bits a number.
    Q5_0,
    /// Blocks of 32 numbers with an offset: 6 bits a number.
    Q5_1,
    /// Blocks of 32 numbers: 8.5 bits a number.
    Q8_0,
    /// Blocks of 256 numbers, with scales and offsets of 32 each: 4.5 bits a number.
    Q4K,
    /// Blocks of 256 numbers, with scales and offsets of 32 each: 5.5 bits a number.
    Q5K,
    /// Blocks of 256 numbers, with scales of 16 each: 6.6 bits a number.
    Q6K,
}

/// All formats and their names.
const ALL: [(Format, &str); 11] = [
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

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name_of(&ALL, self))
    }
}

impl FromStr for Format {
    type Err = String;

    /// Reads a name, in either case; the error names all.
    fn from_str(name: &str) -> Result<Self, String> {
        by_name(&ALL, name)
    }
}

/// All formats, for error messages.
pub(crate) const NAMES: &str = "F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K and Q6_K";

impl Format {
    /// The format with this number among `ggml_type`.
    pub(crate) fn from_ggml(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::F32,
            1 => Self::F16,
            2 => Self::Q4_0,
            3 => Self::Q4_1,
            6 => Self::Q5_0,
            7 => Self::Q5_1,
            8 => Self::Q8_0,
            12 => Self::Q4K,
            13 => Self::Q5K,
            14 => Self::Q6K,
            30 => Self::Bf16,
            _ => return None,
        })
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
        20 => "IQ4_NL",
        21 => "IQ3_S",
        22 => "IQ2_S",
        23 => "IQ4_XS",
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
