//! The interface of whatever runs kernels: a card, or, in tests, the host; and kinds of failures of a card,
//! from the driver's own names of errors.
//!
//! Errors of the driver come through the tensor library as text. Their names, such as
//! `CUDA_ERROR_OUT_OF_MEMORY`, are part of the driver's interface, so they are looked for there. What matters
//! to a caller is whether the card can still be used: running out of memory ends one text, a kernel that
//! failed ends the program's use of the card.

use std::fmt;

use candle_core::{Result, Tensor};

use crate::model::GraphCounts;

/// Address of a number in the device's memory, as kernels take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Address(pub(super) u64);

impl Address {
    /// The address that a kernel takes for "there is none".
    pub(super) const NONE: Self = Self(0);
}

/// An argument of a kernel.
#[derive(Debug, Clone, Copy)]
pub(super) enum KernelArgument {
    Address(Address),
    Number(i32),
    Float(f32),
}

/// A kernel to be run, by a grid of blocks.
#[derive(Debug)]
pub(super) struct Launch<'a> {
    pub(super) kernel: &'a str,
    pub(super) grid: [u32; 3],
    /// Threads of a block: a multiple of 32.
    pub(super) threads: u32,
    pub(super) arguments: &'a [KernelArgument],
}

/// `y[rows, outputs] = x[rows, inputs] * weights[outputs, inputs]^T`, each by rows; `y` has 32 bits, and
/// `stride` numbers from one row to the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct CardProduct {
    pub(super) weights: Address,
    pub(super) x: Address,
    pub(super) y: Address,
    pub(super) rows: i32,
    pub(super) inputs: i32,
    pub(super) outputs: i32,
    pub(super) stride: i32,
}

/// A queue of work on one stream. All is done in the order in which it was asked for.
pub(super) trait Driver: Send {
    /// Returns the address of the first number of a contiguous tensor of this device, which is fixed while
    /// the tensor lives.
    ///
    /// # Errors
    /// If the tensor is not contiguous, or on another device.
    fn address(&self, tensor: &Tensor) -> Result<Address>;

    /// Queues a kernel. Its arguments are addresses of tensors that are alive until the work is done.
    ///
    /// # Errors
    /// If there is no such kernel, or the device fails.
    fn launch(&mut self, launch: &Launch<'_>) -> Result<()>;

    /// Queues a product of the numbers of the driver. A row of it does not depend on other rows, and is the
    /// same at every place among as many.
    ///
    /// # Errors
    /// If the device fails.
    fn product(&mut self, product: CardProduct) -> Result<()>;

    /// Queues a write of `words` words, which `fill` puts in place of whatever is there: straight into memory
    /// that the device copies from.
    ///
    /// # Errors
    /// If the device fails.
    fn write(&mut self, to: Address, words: usize, fill: &mut dyn FnMut(&mut [u32])) -> Result<()>;

    /// Reads words once all that was queued is done.
    ///
    /// # Errors
    /// If what was queued or the copy fails.
    fn read(&mut self, from: Address, words: &mut [u32]) -> Result<()>;

    /// Queues what `queue` does, which is the same each time: a driver may record it and replay that.
    ///
    /// # Errors
    /// Those of `queue`.
    fn run(&mut self, queue: &dyn Fn(&mut dyn Driver) -> Result<()>) -> Result<()>;

    /// Counts what [`run`](Self::run) has done; `None` where nothing is ever replayed.
    fn graphs(&self) -> Option<GraphCounts> {
        None
    }
}

/// A failure of a card, by what can be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CardFault {
    /// No driver, or one that is older than the program's CUDA.
    Driver,
    /// No card of that number.
    Missing,
    /// Another process holds the card for itself.
    Held,
    /// The program holds no code for the card's compute capability.
    Capability,
    /// The card's memory is full. What was there before is still whole.
    Memory,
    /// A kernel failed. Nothing on the card can be used any more by this process.
    Dead,
}

/// A failure of the stand-in for a card.
#[cfg(feature = "card-host")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::model::candle) struct HostFailure {
    pub(in crate::model::candle) fault: CardFault,
    /// Number of calls that go well before it. If the fault does not pass, all later ones fail too.
    pub(in crate::model::candle) after: u64,
}

/// Names of the driver's errors, and what they mean here.
const NAMES: [(&str, CardFault); 24] = [
    ("CUDA_ERROR_NO_DEVICE", CardFault::Driver),
    ("CUDA_ERROR_NOT_INITIALIZED", CardFault::Driver),
    ("CUDA_ERROR_STUB_LIBRARY", CardFault::Driver),
    ("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", CardFault::Driver),
    ("CUDA_ERROR_SYSTEM_NOT_READY", CardFault::Driver),
    ("CUDA_ERROR_INVALID_DEVICE", CardFault::Missing),
    ("CUDA_ERROR_DEVICE_UNAVAILABLE", CardFault::Held),
    ("CUDA_ERROR_NO_BINARY_FOR_GPU", CardFault::Capability),
    ("CUDA_ERROR_INVALID_PTX", CardFault::Capability),
    // The program's assembly is of a newer CUDA than the driver's.
    ("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", CardFault::Driver),
    ("CUDA_ERROR_INVALID_SOURCE", CardFault::Capability),
    ("CUDA_ERROR_OUT_OF_MEMORY", CardFault::Memory),
    ("CUBLAS_STATUS_ALLOC_FAILED", CardFault::Memory),
    ("CUDA_ERROR_ILLEGAL_ADDRESS", CardFault::Dead),
    ("CUDA_ERROR_ILLEGAL_INSTRUCTION", CardFault::Dead),
    ("CUDA_ERROR_MISALIGNED_ADDRESS", CardFault::Dead),
    ("CUDA_ERROR_INVALID_ADDRESS_SPACE", CardFault::Dead),
    ("CUDA_ERROR_INVALID_PC", CardFault::Dead),
    ("CUDA_ERROR_LAUNCH_FAILED", CardFault::Dead),
    ("CUDA_ERROR_LAUNCH_TIMEOUT", CardFault::Dead),
    ("CUDA_ERROR_HARDWARE_STACK_ERROR", CardFault::Dead),
    ("CUDA_ERROR_ASSERT", CardFault::Dead),
    ("CUDA_ERROR_ECC_UNCORRECTABLE", CardFault::Dead),
    ("CUDA_ERROR_CONTEXT_IS_DESTROYED", CardFault::Dead),
];

impl CardFault {
    /// Finds the driver's name of an error in `text`. `None` if it holds none that is known.
    ///
    /// A name counts only as a whole word, so that `CUDA_ERROR_INVALID_DEVICE_...` is not taken for a missing
    /// card.
    pub(in crate::model) fn of(text: &str) -> Option<Self> {
        let mut words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
        words.find_map(|word| NAMES.iter().find(|(name, _)| *name == word).map(|(_, fault)| *fault))
    }

    /// Returns one of the driver's names of it.
    #[cfg(feature = "card-host")]
    pub(super) fn name(self) -> &'static str {
        NAMES.iter().find(|(_, fault)| *fault == self).map_or("an unknown failure", |(name, _)| name)
    }

    /// Can the process go on with the card, and only what it was doing has failed?
    #[must_use]
    pub fn is_passing(self) -> bool {
        self == Self::Memory
    }
}

impl fmt::Display for CardFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Driver => "no driver that fits; nvidia-smi says which one is there, CUDA 13's is needed",
            Self::Missing => "there is no card of that number; nvidia-smi lists them",
            Self::Held => "another process holds the card for itself; nvidia-smi lists processes",
            Self::Capability => {
                "this program has no code for the card's compute capability; build it with CUDA_COMPUTE_CAP"
            }
            Self::Memory => {
                "the card's memory is full; a shorter context (--context), numbers of 16 bits (bf16) or a \
                 smaller model need less"
            }
            Self::Dead => {
                "a kernel failed, and nothing on the card can be used any more: start the program again"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_driver_errors_map_to_faults() {
        for (text, expected) in [
            ("DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")", Some(CardFault::Memory)),
            ("DriverError(CUDA_ERROR_NO_DEVICE, \"no CUDA-capable device\")", Some(CardFault::Driver)),
            ("CUDA_ERROR_INVALID_DEVICE", Some(CardFault::Missing)),
            ("a: DriverError(CUDA_ERROR_DEVICE_UNAVAILABLE)", Some(CardFault::Held)),
            ("DriverError(CUDA_ERROR_INVALID_PTX, \"a PTX JIT\") in fused", Some(CardFault::Capability)),
            ("DriverError(CUDA_ERROR_ILLEGAL_ADDRESS, \"an illegal\")", Some(CardFault::Dead)),
            ("CublasError(CUBLAS_STATUS_ALLOC_FAILED)", Some(CardFault::Memory)),
            (
                "DriverError(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, \"the provided PTX\")",
                Some(CardFault::Driver),
            ),
            ("CUDA_ERROR_INVALID_DEVICE_FUNCTION", None),
            ("shape mismatch in matmul", None),
            ("", None),
        ] {
            assert_eq!(CardFault::of(text), expected, "{text}");
        }
    }

    #[test]
    fn only_the_fault_of_a_full_memory_is_passing() {
        for (name, fault) in NAMES {
            assert_eq!(CardFault::of(name), Some(fault), "names are whole words, each once");
            assert_eq!(fault.is_passing(), fault == CardFault::Memory);
            assert!(fault.to_string().len() > 30, "{fault:?} says what to do");
        }
    }
}
