//! Runs the kernels on the host, thread by thread, for tests that compare them with the CPU's runner.
//!
//! Products stand for cuBLAS: sums in the order of the inputs.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use candle_core::{CpuStorage, DType, InplaceOp1, Layout, Result, Tensor};

use super::driver::{Address, CardProduct, Driver, HostFailure, KernelArgument, Launch};

#[expect(unsafe_code, reason = "the kernels are C++")]
unsafe extern "C" {
    fn domino_card_launch(
        name: *const c_char,
        grid: *const c_uint,
        threads: c_uint,
        arguments: *mut *mut c_void,
        backwards: c_int,
    ) -> c_int;
    fn domino_card_product(
        numbers: *const c_char,
        weights: *const c_void,
        x: *const c_void,
        y: *mut f32,
        rows: c_int,
        inputs: c_int,
        outputs: c_int,
        stride: c_int,
    ) -> c_int;
}

/// Runs each kernel at once.
#[derive(Debug)]
pub(super) struct HostDriver {
    numbers: CString,
    /// Do the threads of a block run in the opposite order? A kernel without races computes the same.
    backwards: bool,
    /// The failure of one call, or of all from one on.
    failure: Option<HostFailure>,
    calls: AtomicU64,
}

impl HostDriver {
    pub(super) fn new(numbers: DType, backwards: bool, failure: Option<HostFailure>) -> Result<Self> {
        let name = match numbers {
            DType::F32 => c"f32",
            DType::F16 => c"f16",
            DType::BF16 => c"bf16",
            other => candle_core::bail!("no kernels for {other:?}"),
        };
        Ok(Self { numbers: name.to_owned(), backwards, failure, calls: AtomicU64::new(0) })
    }

    /// Counts a call.
    ///
    /// # Errors
    /// If it is to fail: with the words of a card's driver.
    fn call(&self) -> Result<()> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        match self.failure {
            Some(HostFailure { fault, after }) if call == after || call > after && !fault.is_passing() => {
                candle_core::bail!("DriverError({}, \"by a test\")", fault.name())
            }
            _ => Ok(()),
        }
    }
}

impl Driver for HostDriver {
    fn address(&self, tensor: &Tensor) -> Result<Address> {
        self.call()?;
        if !tensor.is_contiguous() {
            candle_core::bail!("a tensor that is not contiguous");
        }
        let finder = Finder(AtomicU64::new(0));
        tensor.inplace_op1(&finder)?;
        Ok(Address(finder.0.into_inner()))
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<()> {
        self.call()?;
        let name = CString::new(launch.kernel).map_err(candle_core::Error::wrap)?;
        let mut arguments = launch.arguments.to_vec();
        let mut pointers: Vec<*mut c_void> = arguments
            .iter_mut()
            .map(|argument| match argument {
                KernelArgument::Address(address) => (&raw mut address.0).cast(),
                KernelArgument::Number(number) => (&raw mut *number).cast(),
                KernelArgument::Float(number) => (&raw mut *number).cast(),
            })
            .collect();
        let (grid, backwards) = (launch.grid, c_int::from(self.backwards));
        #[expect(unsafe_code, reason = "the kernels are C++")]
        // SAFETY: the arguments are as many and of the kinds that the kernel of this name takes (the tests
        // run all of them), addresses are of tensors that the plan keeps, and grids are no larger than their
        // sizes.
        let code = unsafe {
            domino_card_launch(name.as_ptr(), grid.as_ptr(), launch.threads, pointers.as_mut_ptr(), backwards)
        };
        match code {
            0 => Ok(()),
            1 => candle_core::bail!("no kernel {}", launch.kernel),
            _ => candle_core::bail!("threads of {} wait for each other in vain", launch.kernel),
        }
    }

    fn product(&mut self, product: CardProduct) -> Result<()> {
        self.call()?;
        let CardProduct { weights, x, y, rows, inputs, outputs, stride } = product;
        let [weights, x, y] = [weights, x, y].map(pointer);
        #[expect(unsafe_code, reason = "the kernels are C++")]
        // SAFETY: the plan's addresses are of tensors of these sizes in the numbers of this driver.
        let code = unsafe {
            domino_card_product(self.numbers.as_ptr(), weights, x, y.cast(), rows, inputs, outputs, stride)
        };
        if code == 0 { Ok(()) } else { candle_core::bail!("no product of {:?}", self.numbers) }
    }

    fn write(&mut self, to: Address, words: usize, fill: &mut dyn FnMut(&mut [u32])) -> Result<()> {
        self.call()?;
        let mut room = vec![0; words];
        fill(&mut room);
        #[expect(unsafe_code, reason = "tensors are known by their addresses")]
        // SAFETY: the address is of a tensor of at least as many words, which the plan keeps.
        unsafe {
            std::ptr::copy_nonoverlapping(room.as_ptr(), pointer(to).cast(), words);
        }
        Ok(())
    }

    fn read(&mut self, from: Address, words: &mut [u32]) -> Result<()> {
        self.call()?;
        #[expect(unsafe_code, reason = "tensors are known by their addresses")]
        // SAFETY: the address is of a tensor of at least as many words, which the plan keeps.
        unsafe {
            std::ptr::copy_nonoverlapping(pointer(from).cast(), words.as_mut_ptr(), words.len());
        }
        Ok(())
    }

    fn run(&mut self, queue: &dyn Fn(&mut dyn Driver) -> Result<()>) -> Result<()> {
        queue(self)
    }
}

fn pointer(address: Address) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(usize::try_from(address.0).unwrap_or_default())
}

/// Finds where a tensor's numbers lie.
struct Finder(AtomicU64);

impl InplaceOp1 for Finder {
    fn name(&self) -> &'static str {
        "address"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let start = layout.start_offset();
        let address = match storage {
            CpuStorage::U32(numbers) => numbers[start..].as_mut_ptr().expose_provenance(),
            CpuStorage::F32(numbers) => numbers[start..].as_mut_ptr().expose_provenance(),
            CpuStorage::F16(numbers) => numbers[start..].as_mut_ptr().expose_provenance(),
            CpuStorage::BF16(numbers) => numbers[start..].as_mut_ptr().expose_provenance(),
            _ => candle_core::bail!("a tensor of numbers that no kernel takes"),
        };
        self.0.store(u64::try_from(address)?, Ordering::Relaxed);
        Ok(())
    }
}
