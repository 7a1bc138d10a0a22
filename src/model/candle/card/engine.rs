//! Runs a model's passes over few tokens.

use std::{fmt, num::NonZeroUsize};

use candle_core::{Result, Tensor};

use super::{
    CardMode,
    chooser::CardChooser,
    place::Where,
    plan::{LARGEST_HEAD, PassPlan, WIDTH, inputs},
    weights::ModelWeights,
};
use crate::model::files::config::Config;

/// Passes over up to [`ROWS`] tokens by kernels of our own.
///
/// It shares the cache of keys and values with Candle's tensors, which run prompts.
pub(in crate::model::candle) struct CardEngine {
    /// The queue of work is in it.
    chooser: CardChooser,
    mode: CardMode,
    plan: PassPlan,
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
        let driver = place.open(device, weights.embedding.dtype())?;
        let plan = PassPlan::new(&*driver, config, context, weights)?;
        Ok(Self { chooser: CardChooser::new(driver, device, config.vocabulary)?, mode, plan })
    }

    /// Runs up to [`ROWS`] tokens, the first of which is at `position`: writes their keys and values to the
    /// cache, and returns their rows of logits (`[tokens, vocabulary]` in 32 bits). Does not wait.
    ///
    /// # Errors
    /// If there are more tokens, or the device fails.
    pub(in crate::model::candle) fn pass(&self, tokens: &[u32], position: usize) -> Result<Tensor> {
        let words = inputs(tokens, position)?;
        let width = if self.mode == CardMode::Fast && tokens.len() == 1 { 1 } else { WIDTH };
        self.chooser.with_driver(|driver| {
            driver.write(self.plan.inputs(), words.len(), &mut |room| room.copy_from_slice(&words))?;
            driver.run(width, &|driver| self.plan.queue(driver, width))
        })?;
        // The next pass writes its rows where these are.
        self.plan.logits.narrow(0, 0, tokens.len())?.force_contiguous()
    }

    /// Tokens that a pass takes at the cost of one: all rows where each pass has all of them. Where a pass
    /// over one token is another, only measuring tells.
    pub(in crate::model::candle) fn tokens_at_once(&self) -> NonZeroUsize {
        NonZeroUsize::new(ROWS).filter(|_| self.mode.is_exact()).unwrap_or(NonZeroUsize::MIN)
    }

    /// The chooser of tokens from rows of this engine.
    pub(in crate::model::candle) fn chooser(&self) -> CardChooser {
        self.chooser.clone()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_has_as_many_rows_as_the_plan() {
        assert_eq!(usize::try_from(WIDTH), Ok(ROWS));
    }
}
