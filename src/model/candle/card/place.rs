//! The devices that kernels are run on.

use candle_core::{DType, Device, Result};

use super::driver::Driver;
#[cfg(feature = "card-host")]
use super::fault::HostFailure;

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
    pub(super) fn open(self, device: &Device, numbers: DType) -> Result<Box<dyn Driver>> {
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
