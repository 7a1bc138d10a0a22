//! The devices that kernels are run on.

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
}
