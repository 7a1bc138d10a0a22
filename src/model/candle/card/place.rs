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
