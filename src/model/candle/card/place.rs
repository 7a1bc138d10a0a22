//! The devices that kernels are run on, and the choice of kernels for passes over few tokens on a card.

use std::{fmt, str::FromStr};

use candle_core::{DType, Device};

use super::driver::Driver;
#[cfg(feature = "card-host")]
use super::driver::HostFailure;

/// The device that kernels are run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::model::candle) enum Where {
    /// The card that tensors are on.
    Card,
    /// Thread by thread on the host; the threads of a block in this order or in the opposite one.
    #[cfg(feature = "card-host")]
    Host {
        /// Is it the opposite one?
        backwards: bool,
        /// The failure of a call, in tests of failures.
        failure: Option<HostFailure>,
    },
}

impl Where {
    /// Opens the driver of a place, for models in these numbers.
    ///
    /// # Errors
    /// If this build has no kernels for the device, or not in these numbers.
    pub(super) fn open(self, device: &Device, numbers: DType) -> candle_core::Result<Box<dyn Driver>> {
        match self {
            #[cfg(feature = "cuda")]
            Self::Card => Ok(Box::new(super::cuda::CudaDriver::new(device, numbers)?)),
            #[cfg(feature = "card-host")]
            Self::Host { backwards, failure } => {
                Ok(Box::new(super::host::HostDriver::new(numbers, backwards, failure)?))
            }
            #[cfg(not(feature = "cuda"))]
            Self::Card => {
                candle_core::bail!("this build has no kernels in {numbers:?} for {:?}", device.location())
            }
        }
    }
}

/// Can a card of this compute capability run Candle's products with blocks, which were compiled for `built`,
/// as `CUDA_COMPUTE_CAP` has it? They are machine code of one capability, and a launch of them on another
/// card fails without a word.
#[cfg_attr(not(any(feature = "cuda", test)), expect(dead_code, reason = "only builds for cards have them"))]
pub(in crate::model::candle) fn runs_blocks(built: &str, card: (i32, i32)) -> bool {
    let digits: String = built.chars().filter(char::is_ascii_digit).collect();
    let Ok(built) = digits.parse::<i32>() else { return false };
    let (built, card) = (if built < 20 { 10 * built } else { built }, 10 * card.0 + card.1);
    // From 90 on nvcc is asked for code that only this very card runs.
    if built < 90 { (built..built / 10 * 10 + 10).contains(&card) } else { built == card }
}

/// The kernels of passes over few tokens on a card, and so whether a text there depends on what shares a
/// pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum CardMode {
    /// Our kernels at one width: a row does not depend on its neighbours, so a text with drafts is the text
    /// without. Quantised weights become numbers of the precision, which takes two to eight times their
    /// memory.
    #[default]
    Exact,
    /// Candle's tensors: quantised weights stay in ggml's blocks. Texts with drafts may be others.
    Blocks,
}

impl CardMode {
    /// All modes, in the order of their documentation.
    pub const ALL: [Self; 2] = [Self::Exact, Self::Blocks];
}

impl fmt::Display for CardMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exact => "exact",
            Self::Blocks => "blocks",
        })
    }
}

impl FromStr for CardMode {
    type Err = String;

    /// Finds a mode by its name.
    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|mode| mode.to_string() == name);
        found.ok_or_else(|| format!("{name:?} is neither exact nor blocks"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_run_on_cards_of_the_capability_they_were_compiled_for() {
        for (built, card, runs) in [
            ("80", (8, 0), true),
            ("80", (8, 9), true),
            ("8.0", (8, 6), true),
            ("89", (8, 6), false),
            ("80", (9, 0), false),
            ("90", (9, 0), true),
            ("sm_90a", (9, 0), true),
            ("90", (8, 0), false),
            ("100", (10, 3), false),
            ("120", (12, 0), true),
            ("", (8, 0), false),
        ] {
            assert_eq!(runs_blocks(built, card), runs, "{built:?} on {card:?}");
        }
    }

    #[test]
    fn modes_are_read_from_their_names() {
        for mode in CardMode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        for name in ["", "Exact", "exact ", "block", "tensors", "fast"] {
            assert!(name.parse::<CardMode>().is_err(), "{name:?}");
        }
        assert_eq!(CardMode::default(), CardMode::Exact);
    }
}
