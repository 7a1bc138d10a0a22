//! Rows of logits on the device that computed them.

#[cfg(feature = "card-host")]
use candle_core::Device;
use candle_core::{Result, Tensor};

use crate::model::{KeptRows, Logits, RowAnswer, RowChoice, candle::card::CardChooser, error::ModelError};

/// Rows of logits where [`TensorModel::launch`](super::TensorModel::launch) left them.
#[derive(Debug)]
pub struct DeviceRows {
    /// `[rows, vocabulary]`, in 32 bits.
    logits: Tensor,
    /// Chooser of tokens by kernels of the card, if there is one.
    chooser: Option<CardChooser>,
}

impl DeviceRows {
    /// The rows of `parts`, one below the other.
    pub(super) fn new(parts: &[Tensor], chooser: Option<CardChooser>) -> Result<Self> {
        let logits = match parts {
            [one] => one.clone(),
            parts => Tensor::cat(parts, 0)?,
        };
        Ok(Self { logits, chooser })
    }

    /// Copies of rows as if a card had left them, for tests of choices: kernels choose from them, thread by
    /// thread on the host. As for [`Placement::emulated`](super::Placement::emulated).
    ///
    /// # Errors
    /// If the tensor library fails.
    #[cfg(feature = "card-host")]
    pub fn emulated(rows: &Logits, backwards: bool) -> std::result::Result<Self, ModelError> {
        let numbers: Vec<f32> = (0..rows.rows()).filter_map(|row| rows.row(row)).flatten().copied().collect();
        let logits = Tensor::from_vec(numbers, (rows.rows(), rows.width()), &Device::Cpu)?;
        let chooser = CardChooser::emulated(rows.width(), backwards)?;
        Ok(Self { logits, chooser: Some(chooser) })
    }

    /// All rows, once they are done.
    ///
    /// # Errors
    /// If the pass or the copy fails.
    pub fn fetch(&self) -> std::result::Result<Logits, ModelError> {
        let (_rows, width) = self.logits.dims2()?;
        Ok(Logits::new(self.numbers(&self.logits)?, width))
    }

    /// The numbers of some rows, by page-locked memory from a card.
    fn numbers(&self, rows: &Tensor) -> Result<Vec<f32>> {
        match &self.chooser {
            Some(chooser) => chooser.fetch(rows),
            None => rows.flatten_all()?.to_vec1(),
        }
    }
}

impl KeptRows for DeviceRows {
    type Error = ModelError;

    fn rows(&self) -> usize {
        self.logits.dims().first().copied().unwrap_or_default()
    }

    fn choose(
        &self,
        first: usize,
        choices: &[RowChoice<'_>],
    ) -> std::result::Result<Option<Vec<RowAnswer>>, ModelError> {
        let Some(chooser) = &self.chooser else { return Ok(None) };
        Ok(Some(chooser.choose(&self.logits, first, choices)?))
    }

    fn row(&self, index: usize) -> std::result::Result<Vec<f32>, ModelError> {
        Ok(self.numbers(&self.logits.get(index)?)?)
    }

    fn wait(&self) -> std::result::Result<(), ModelError> {
        Ok(self.logits.device().synchronize()?)
    }
}
