//! The kernels on an NVIDIA card: launches on the device's stream, products by cuBLAS, and passes as captured
//! graphs.
//!
//! A pass is queued kernel by kernel the first time, which loads them. The second time it is captured as a
//! graph. Every later pass replays the graph, by one call. Nothing is allocated in a capture, and all that
//! differs between passes lies in memory that kernels read, so a replay is the same work. Where a capture
//! fails, passes stay as they were.
//!
//! Builds with the feature `experiments` read two variables: with `DOMINO_CARD_GRAPHS=off` nothing is
//! captured, and `DOMINO_CARD_PTX` names a file of kernels in place of those of the build.
//!
//! Words go to a card and come back through page-locked memory of the computer. Copies from it are queued at
//! once, while the card computes; memory that is not page-locked would first be copied by the driver. Parts
//! are handed out one behind the other and stay as they are until all are given back, which the owner does
//! once the copies are done.

use std::ffi::{c_uint, c_void};
use std::{borrow::Cow, collections::HashMap, fmt, ptr::NonNull, sync::Arc};

use candle_core::cuda_backend::CudaStorageSlice;
use candle_core::cuda_backend::cudarc::cublas::{self, sys as blas};
use candle_core::cuda_backend::cudarc::driver::sys::{
    CUgraphInstantiate_flags_enum, CUstreamCaptureMode_enum,
};
use candle_core::cuda_backend::cudarc::driver::{
    CudaFunction, CudaGraph, CudaStream, DevicePtr, LaunchConfig, PushKernelArg, result,
};
use candle_core::{CudaDevice, DType, Device, Error, Result, Storage, Tensor};

use super::driver::{Address, CardProduct, Driver, KernelArgument, Launch};
use crate::model::GraphCounts;

/// The kernels of the build.
const KERNELS: &str = include_str!(concat!(env!("OUT_DIR"), "/card.ptx"));

/// Page-locked words at first: masks of sixteen rows over 32,000 tokens, and more are locked when needed.
const FIRST_WORDS: usize = 1 << 15;
/// Words that all copies between two waits have room for, at most; one copy may be larger. Choices from 80
/// rows of 256,000 tokens take fewer. Without a bound, passes that nobody chooses from would lock ever more.
const MOST_WORDS: usize = 1 << 20;
/// Words of cuBLAS' workspace: 64 MiB, twice what its manual advises for the largest cards.
const WORKSPACE: usize = 1 << 24;

/// The stages of passes up to their replay.
enum Recording {
    /// There was no pass.
    Cold,
    /// A pass was run, kernel by kernel.
    Warm,
    Graph(CapturedPass),
    /// The capture failed, or is not wanted.
    Never,
}

/// A captured pass.
struct CapturedPass(CudaGraph);

#[expect(unsafe_code, reason = "cudarc's graphs are bare pointers")]
// SAFETY: graphs may be launched and dropped by any thread that has their context, which cudarc binds at each
// call; the driver that owns this one is used by one thread at a time.
unsafe impl Send for CapturedPass {}

/// The queue of a card.
pub(super) struct CudaDriver {
    device: CudaDevice,
    stream: Arc<CudaStream>,
    numbers: blas::cudaDataType_t,
    functions: HashMap<String, CudaFunction>,
    /// The kernels, as assembly that the driver compiles for its card.
    kernels: Cow<'static, str>,
    recording: Recording,
    counts: GraphCounts,
    /// The memory that words are copied from and to. `None`: the system gave none.
    pinned: Option<PinnedWords>,
    /// Memory in its place, which the driver copies before a call returns.
    spare: Vec<u32>,
    /// The memory that cuBLAS works in, the same in passes that are captured and in those that are not: it
    /// chooses its kernels by the room that they have.
    workspace: Tensor,
}

impl fmt::Debug for CudaDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaDriver").field("functions", &self.functions.len()).finish_non_exhaustive()
    }
}

impl CudaDriver {
    /// The driver of an opened card, for models in these numbers.
    ///
    /// # Errors
    /// If the device is no card, or the numbers are none of the kernels'.
    pub(super) fn new(device: &Device, numbers: DType) -> Result<Self> {
        let workspace = Tensor::zeros(WORKSPACE, DType::U32, device)?;
        let device = device.as_cuda_device()?.clone();
        let numbers = match numbers {
            DType::F32 => blas::cudaDataType_t::CUDA_R_32F,
            DType::F16 => blas::cudaDataType_t::CUDA_R_16F,
            DType::BF16 => blas::cudaDataType_t::CUDA_R_16BF,
            other => candle_core::bail!("no kernels for {other:?}"),
        };
        let stream = device.cuda_stream();
        let mut driver = Self {
            device,
            stream,
            numbers,
            functions: HashMap::new(),
            kernels: match variable("DOMINO_CARD_PTX") {
                Some(file) => std::fs::read_to_string(file)?.into(),
                None => KERNELS.into(),
            },
            recording: match variable("DOMINO_CARD_GRAPHS").is_some_and(|value| value == "off") {
                true => Recording::Never,
                false => Recording::Cold,
            },
            counts: GraphCounts::default(),
            pinned: None,
            spare: Vec::new(),
            workspace,
        };
        // A card or a driver that cannot take the kernels is found out before there is a text.
        driver.function("choose")?;
        driver.stream.context().bind_to_thread().map_err(Error::wrap)?;
        driver.pinned = PinnedWords::new(FIRST_WORDS);
        let (handle, at) = (*driver.device.cublas_handle().handle(), driver.address(&driver.workspace)?);
        #[expect(unsafe_code, reason = "cuBLAS trusts its arguments")]
        // SAFETY: the tensor has as many words, and goes after the handle has forgotten it (`drop`).
        unsafe { blas::cublasSetWorkspace_v2(handle, pointer(at), WORKSPACE * size_of::<u32>()) }
            .result()
            .map_err(Error::wrap)?;
        Ok(driver)
    }

    /// Frees `words` page-locked words, if the system gives any. Where they do not fit beside those that are
    /// handed out, waits for the copies under way, and locks more memory, so that later passes like this one
    /// need not wait.
    fn make_room(&mut self, words: usize) -> Result<()> {
        self.stream.context().bind_to_thread().map_err(Error::wrap)?;
        let Some(pinned) = &mut self.pinned else { return Ok(()) };
        if !pinned.has(words) {
            let wanted = pinned.used.saturating_add(words).min(MOST_WORDS).max(words);
            self.stream.synchronize().map_err(Error::wrap)?;
            pinned.clear();
            if pinned.size < wanted {
                self.pinned = PinnedWords::new(wanted.saturating_mul(2));
            }
        }
        Ok(())
    }

    fn function(&mut self, name: &str) -> Result<CudaFunction> {
        if let Some(function) = self.functions.get(name) {
            return Ok(function.clone());
        }
        let function = self.device.get_or_load_custom_func(name, "domino_card", &self.kernels)?;
        let function = function.into_cuda_function();
        self.functions.insert(name.to_owned(), function.clone());
        Ok(function)
    }

    /// Captures what `queue` does as a graph, without doing it. A capture ends whatever happens.
    fn capture(&mut self, queue: &dyn Fn(&mut dyn Driver) -> Result<()>) -> Result<CapturedPass> {
        let stream = Arc::clone(&self.stream);
        stream
            .begin_capture(CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
            .map_err(Error::wrap)?;
        let queued = queue(self);
        let ended = stream
            .end_capture(CUgraphInstantiate_flags_enum::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
        queued?;
        match ended.map_err(Error::wrap)? {
            Some(graph) => Ok(CapturedPass(graph)),
            None => candle_core::bail!("a capture without a graph"),
        }
    }
}

impl Driver for CudaDriver {
    fn address(&self, tensor: &Tensor) -> Result<Address> {
        if !tensor.is_contiguous() {
            candle_core::bail!("a tensor that is not contiguous");
        }
        let (storage, layout) = tensor.storage_and_layout();
        let Storage::Cuda(storage) = &*storage else {
            candle_core::bail!("a tensor that is not on the card")
        };
        let (address, size) = match &storage.slice {
            CudaStorageSlice::U32(numbers) => (numbers.device_ptr(&self.stream).0, size_of::<u32>()),
            CudaStorageSlice::F32(numbers) => (numbers.device_ptr(&self.stream).0, size_of::<f32>()),
            CudaStorageSlice::F16(numbers) => (numbers.device_ptr(&self.stream).0, size_of::<u16>()),
            CudaStorageSlice::BF16(numbers) => (numbers.device_ptr(&self.stream).0, size_of::<u16>()),
            _ => candle_core::bail!("a tensor of numbers that no kernel takes"),
        };
        Ok(Address(address + u64::try_from(layout.start_offset() * size)?))
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<()> {
        let function = self.function(launch.kernel)?;
        let mut builder = self.stream.launch_builder(&function);
        for argument in launch.arguments {
            match argument {
                KernelArgument::Address(address) => builder.arg(&address.0),
                KernelArgument::Number(number) => builder.arg(number),
                KernelArgument::Float(number) => builder.arg(number),
            };
        }
        let [x, y, z] = launch.grid;
        let config =
            LaunchConfig { grid_dim: (x, y, z), block_dim: (launch.threads, 1, 1), shared_mem_bytes: 0 };
        #[expect(unsafe_code, reason = "a kernel trusts its arguments")]
        // SAFETY: the arguments are as many and of the kinds that the kernel of this name takes, which tests
        // check on the host; addresses are of tensors that the plan keeps, and grids are no larger than their
        // sizes.
        unsafe { builder.launch(config) }.map_err(Error::wrap)?;
        Ok(())
    }

    fn product(&mut self, product: CardProduct) -> Result<()> {
        let CardProduct { weights, x, y, rows, inputs, outputs, stride } = product;
        let (one, zero) = (1.0_f32, 0.0_f32);
        let [weights, x, y] = [weights, x, y].map(pointer);
        let blas = self.device.cublas_handle();
        #[expect(unsafe_code, reason = "cuBLAS trusts its arguments")]
        // SAFETY: the plan's addresses are of tensors of these sizes, which it keeps; both scalars are read
        // at once. By columns, as cuBLAS counts, the rows of each matrix are columns: y^T = weights * x^T.
        unsafe {
            cublas::result::gemm_ex(
                *blas.handle(),
                blas::cublasOperation_t::CUBLAS_OP_T,
                blas::cublasOperation_t::CUBLAS_OP_N,
                outputs,
                rows,
                inputs,
                (&raw const one).cast(),
                weights,
                self.numbers,
                inputs,
                x,
                self.numbers,
                inputs,
                (&raw const zero).cast(),
                y,
                blas::cudaDataType_t::CUDA_R_32F,
                stride,
                blas::cublasComputeType_t::CUBLAS_COMPUTE_32F,
                blas::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
            )
        }
        .map_err(Error::wrap)
    }

    fn write(&mut self, to: Address, words: usize, fill: &mut dyn FnMut(&mut [u32])) -> Result<()> {
        self.make_room(words)?;
        let words = match self.pinned.as_mut().and_then(|pinned| pinned.take(words)) {
            Some(part) => part,
            None => {
                self.spare.resize(words, 0);
                self.spare.as_mut_slice()
            }
        };
        fill(words);
        #[expect(unsafe_code, reason = "tensors are known by their addresses")]
        // SAFETY: the address is of a tensor of at least as many words, which the plan keeps. Page-locked
        // words stay as they are until the stream was waited for; of others the driver takes a copy before it
        // returns.
        unsafe { result::memcpy_htod_async(to.0, words, self.stream.cu_stream()) }.map_err(Error::wrap)
    }

    fn read(&mut self, from: Address, words: &mut [u32]) -> Result<()> {
        self.make_room(words.len())?;
        let count = words.len();
        let room = match self.pinned.as_mut().and_then(|pinned| pinned.take(count)) {
            Some(part) => part,
            None => {
                self.spare.resize(count, 0);
                self.spare.as_mut_slice()
            }
        };
        #[expect(unsafe_code, reason = "tensors are known by their addresses")]
        // SAFETY: the address is of a tensor of at least as many words, and the words are waited for below.
        unsafe { result::memcpy_dtoh_async(room, from.0, self.stream.cu_stream()) }.map_err(Error::wrap)?;
        self.stream.synchronize().map_err(Error::wrap)?;
        words.copy_from_slice(room);
        self.pinned.iter_mut().for_each(PinnedWords::clear);
        Ok(())
    }

    fn run(&mut self, queue: &dyn Fn(&mut dyn Driver) -> Result<()>) -> Result<()> {
        if matches!(self.recording, Recording::Warm) {
            self.recording = match self.capture(queue) {
                Ok(graph) => Recording::Graph(graph),
                Err(error) => {
                    tracing::debug!(%error, "passes are not captured");
                    self.counts.capture_error = Some(error.to_string());
                    Recording::Never
                }
            };
        }
        if let Recording::Graph(graph) = &self.recording {
            self.counts.replayed += 1;
            return graph.0.launch().map_err(Error::wrap);
        }
        queue(self)?;
        self.counts.eager += 1;
        if matches!(self.recording, Recording::Cold) {
            self.recording = Recording::Warm;
        }
        Ok(())
    }

    fn graphs(&self) -> Option<GraphCounts> {
        Some(self.counts.clone())
    }
}

/// The value of a variable of experiments.
fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| cfg!(feature = "experiments") && !value.is_empty())
}

impl Drop for CudaDriver {
    fn drop(&mut self) {
        // Page-locked memory is given back once no copy has it in use, and in its context. Errors have been
        // said where they came up.
        let _ = self.stream.context().bind_to_thread();
        let _ = self.stream.synchronize();
        let handle = *self.device.cublas_handle().handle();
        #[expect(unsafe_code, reason = "cuBLAS trusts its arguments")]
        // SAFETY: the stream is the handle's own. Setting it gives cuBLAS its own workspace back.
        let _ = unsafe { cublas::result::set_stream(handle, self.stream.cu_stream().cast()) };
    }
}

fn pointer(address: Address) -> *mut c_void {
    address.0 as *mut c_void
}

/// Words that no copy has in use lie behind those that are handed out.
#[derive(Debug)]
struct PinnedWords {
    start: NonNull<u32>,
    size: usize,
    used: usize,
}

#[expect(unsafe_code, reason = "the memory is known by its address")]
// SAFETY: the memory is this value's own, and any thread may read and write it.
unsafe impl Send for PinnedWords {}

impl PinnedWords {
    /// Locks pages for `size` words, in the context that is bound to the thread. `None` if the system gives
    /// none.
    fn new(size: usize) -> Option<Self> {
        /// Ordinary memory, which the processor reads as quickly as it writes.
        const FLAGS: c_uint = 0;
        #[expect(unsafe_code, reason = "the driver hands out memory")]
        // SAFETY: a context is bound, and what comes back has room for as many words, aligned to pages.
        let start = unsafe { result::malloc_host(size.checked_mul(size_of::<u32>())?, FLAGS) }.ok()?;
        let start = NonNull::new(start.cast::<u32>())?;
        #[expect(unsafe_code, reason = "memory of the driver's is not initialised")]
        // SAFETY: there is room for as many words.
        unsafe {
            start.as_ptr().write_bytes(0, size);
        }
        Some(Self { start, size, used: 0 })
    }

    /// True if at least `words` words are not handed out.
    fn has(&self, words: usize) -> bool {
        words <= self.size - self.used
    }

    /// Hands out `words` words; `None` if fewer are left.
    fn take(&mut self, words: usize) -> Option<&mut [u32]> {
        if !self.has(words) {
            return None;
        }
        let from = self.used;
        self.used += words;
        #[expect(unsafe_code, reason = "the memory is known by its address")]
        // SAFETY: the words are inside of the memory, initialised, and no other part has them.
        Some(unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(from), words) })
    }

    /// Takes all words back. No copy may be under way.
    fn clear(&mut self) {
        self.used = 0;
    }
}

impl Drop for PinnedWords {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "the driver takes its memory back")]
        // SAFETY: the memory came from the driver, and no copy of it is under way: its owner has waited.
        let freed = unsafe { result::free_host(self.start.as_ptr().cast()) };
        if let Err(error) = freed {
            tracing::debug!(?error, "page-locked memory is not given back");
        }
    }
}
