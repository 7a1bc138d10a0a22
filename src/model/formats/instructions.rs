//! Processor instructions that products are made with.

use std::{fmt, str::FromStr};

#[cfg(target_arch = "x86_64")]
use pulp::x86::V3;

use super::names::{by_name, name_of};

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
const ALL: [(Instructions, &str); 3] = [
    (Instructions::Avx512Vnni, "avx512-vnni"),
    (Instructions::AvxVnni, "avx-vnni"),
    (Instructions::Avx2, "avx2"),
];

impl fmt::Display for Instructions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name_of(&ALL, self))
    }
}

impl FromStr for Instructions {
    type Err = String;

    /// Reads a name, in either case; the error names all.
    fn from_str(name: &str) -> Result<Self, String> {
        by_name(&ALL, name)
    }
}

impl Instructions {
    /// Instructions that this processor has, the best first. If there are none, products are made in floats.
    #[must_use]
    pub fn available() -> Vec<Self> {
        ALL.into_iter().map(|(own, _)| own).filter(|own| own.is_available()).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_instructions_are_read_back() {
        for (own, name) in ALL {
            assert_eq!((own.to_string().as_str(), name.to_uppercase().parse()), (name, Ok(own)));
        }
        assert!("sse".parse::<Instructions>().unwrap_err().contains("avx512-vnni, avx-vnni, avx2"));
    }
}
