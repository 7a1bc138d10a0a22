//! The interface of whatever runs kernels: a card, or, in tests, the host.

use candle_core::{Result, Tensor};

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

/// `y[rows, outputs] = x[rows, inputs] * weights[outputs, inputs]^T`, each by rows; `y` has 32 bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct CardProduct {
    pub(super) weights: Address,
    pub(super) x: Address,
    pub(super) y: Address,
    pub(super) rows: i32,
    pub(super) inputs: i32,
    pub(super) outputs: i32,
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

    /// Queues what `queue` does, which is the same each time for a `width`: a driver may record it and replay
    /// that.
    ///
    /// # Errors
    /// Those of `queue`.
    fn run(&mut self, width: u32, queue: &dyn Fn(&mut dyn Driver) -> Result<()>) -> Result<()>;
}
