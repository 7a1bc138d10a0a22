//! Runs a model's passes over few tokens, and chooses tokens from their rows.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use candle_core::{DType, Device, Result, Tensor};

use super::{
    CardMode,
    driver::{Address, Driver, KernelArgument, Launch},
    plan::{LARGEST_HEAD, PassPlan, WIDTH, inputs},
    weights::ModelWeights,
};
use crate::{ids::TokenId, model::files::config::Config, vocab::TokenSet};

/// The result of the kernel `choose` if it finds no token.
const NONE: u32 = u32::MAX;

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
    },
}

/// Passes over up to [`ROWS`] tokens by kernels of our own.
///
/// It shares the cache of keys and values with Candle's tensors, which run prompts.
pub(in crate::model::candle) struct CardEngine {
    shared: Arc<Mutex<QueueAndRoom>>,
    mode: CardMode,
    plan: PassPlan,
}

/// The parts that passes and choices share: the queue, and room for masks.
struct QueueAndRoom {
    driver: Box<dyn Driver>,
    masks: Address,
    found: Address,
    _kept: [Tensor; 2],
}

/// Most tokens of a pass.
pub(in crate::model::candle) const ROWS: usize = 16;

impl CardEngine {
    /// Says why the kernels cannot run `config`. `None`: they can.
    pub(in crate::model::candle) fn lacks(config: &Config) -> Option<String> {
        (config.head_dim > LARGEST_HEAD).then(|| {
            format!("its heads have {} numbers, and the kernels take {LARGEST_HEAD}", config.head_dim)
        })
    }

    /// The engine of a model whose tensors are on `device`. Makes buffers of some MB.
    ///
    /// # Errors
    /// If this build has no kernels for the device, the device has no room, or sizes are past those of the
    /// kernels.
    pub(in crate::model::candle) fn new(
        place: Where,
        mode: CardMode,
        config: &Config,
        context: usize,
        weights: &ModelWeights,
    ) -> Result<Self> {
        let device = weights.embedding.device();
        let driver = open(place, device, weights.embedding.dtype())?;
        let plan = PassPlan::new(&*driver, config, context, weights)?;
        let masks = Tensor::zeros(config.vocabulary.div_ceil(32), DType::U32, device)?;
        let found = Tensor::zeros(1, DType::U32, device)?;
        let shared = QueueAndRoom {
            masks: driver.address(&masks)?,
            found: driver.address(&found)?,
            _kept: [masks, found],
            driver,
        };
        Ok(Self { shared: Arc::new(Mutex::new(shared)), mode, plan })
    }

    /// Runs up to [`ROWS`] tokens, the first of which is at `position`: writes their keys and values to the
    /// cache, and returns their rows of logits (`[tokens, vocabulary]` in 32 bits). Does not wait.
    ///
    /// # Errors
    /// If there are more tokens, or the device fails.
    pub(in crate::model::candle) fn pass(&self, tokens: &[u32], position: usize) -> Result<Tensor> {
        let words = inputs(tokens, position)?;
        let width = if self.mode == CardMode::Fast && tokens.len() == 1 { 1 } else { WIDTH };
        {
            let mut shared = lock(&self.shared);
            shared.driver.write(self.plan.inputs(), &words)?;
            shared.driver.run(width, &|driver| self.plan.queue(driver, width))?;
        }
        // The next pass writes its rows where these are.
        self.plan.logits.narrow(0, 0, tokens.len())?.force_contiguous()
    }

    /// Makes greedy choices from rows of this engine.
    pub(in crate::model::candle) fn chooser(&self) -> CardChooser {
        CardChooser(Arc::clone(&self.shared))
    }
}

impl fmt::Debug for CardEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tensors = self.plan.tensors();
        f.debug_struct("CardEngine")
            .field("mode", &self.mode)
            .field("tensors", &tensors)
            .finish_non_exhaustive()
    }
}

/// Makes greedy choices from rows in the device's memory.
#[derive(Clone)]
pub(in crate::model::candle) struct CardChooser(Arc<Mutex<QueueAndRoom>>);

impl CardChooser {
    /// Returns the allowed token with the largest logit in row `index` of `logits` (`[rows, vocabulary]` in
    /// 32 bits); of equals the lowest id. `None` if no logit is above minus infinity, or one up to the set's
    /// size is NaN or plus infinity. Waits for the row.
    ///
    /// # Errors
    /// If there is no such row, or the device fails.
    pub(in crate::model::candle) fn likeliest(
        &self,
        logits: &Tensor,
        index: usize,
        allowed: &TokenSet,
    ) -> Result<Option<TokenId>> {
        let stride = logits.dim(1)?;
        let row = logits.narrow(0, index, 1)?;
        let width = stride.min(allowed.size());
        let words = allowed.words();
        let halves = words.iter().flat_map(|word| halves(*word));
        let words: Vec<u32> = halves.take(width.div_ceil(32)).collect();
        let mut shared = lock(&self.0);
        let QueueAndRoom { driver, masks, found, .. } = &mut *shared;
        driver.write(*masks, &words)?;
        let arguments = [
            KernelArgument::Address(driver.address(&row)?),
            KernelArgument::Address(*masks),
            KernelArgument::Address(*found),
            KernelArgument::Number(i32::try_from(stride)?),
            KernelArgument::Number(i32::try_from(width)?),
            KernelArgument::Number(i32::try_from(words.len())?),
        ];
        driver.launch(&Launch { kernel: "choose", grid: [1, 1, 1], threads: 256, arguments: &arguments })?;
        let mut token = [NONE];
        driver.read(*found, &mut token)?;
        Ok((token[0] != NONE).then(|| TokenId::new(token[0])))
    }
}

impl fmt::Debug for CardChooser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CardChooser")
    }
}

/// The lower and the upper half of a word.
fn halves(word: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = word.to_le_bytes();
    [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])]
}

/// Locks what is shared. A poisoned lock is used on: a call that panicked leaves no half-made state.
fn lock(shared: &Mutex<QueueAndRoom>) -> MutexGuard<'_, QueueAndRoom> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The driver of a place.
fn open(place: Where, device: &Device, numbers: DType) -> Result<Box<dyn Driver>> {
    match place {
        #[cfg(feature = "cuda")]
        Where::Card => Ok(Box::new(super::cuda::CudaDriver::new(device, numbers)?)),
        #[cfg(feature = "card-host")]
        Where::Host { backwards } => Ok(Box::new(super::host::HostDriver::new(numbers, backwards)?)),
        #[cfg(not(feature = "cuda"))]
        Where::Card => {
            candle_core::bail!("this build has no kernels in {numbers:?} for {:?}", device.location())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_in_order() {
        assert_eq!(halves(0x8000_0000_0000_0001), [1, 0x8000_0000]);
        assert_eq!(usize::try_from(WIDTH), Ok(ROWS));
    }
}
