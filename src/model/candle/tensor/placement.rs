//! The device that a model's tensors lie on, and the numbers they are in.

use std::{fmt, str::FromStr};

use candle_core::{DType, Device, Tensor, quantized::GgmlDType};

#[cfg(feature = "card-host")]
use crate::model::candle::card::HostFailure;
use crate::model::candle::card::{CardFault, Where, kernel_format};
use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::{cpu::products::matrix::Matrix, files::weights::ggml, formats::Format};

/// The number format of weights that are not quantised, of keys and values, and of the stream between layers.
/// Norms, rotation, softmax and logits are computed in 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Precision {
    /// 32 bits.
    F32,
    /// 16 bits, IEEE: more exact than `Bf16`, but large numbers overflow.
    F16,
    /// The upper half of 32 bits. Candle has no such products for the CPU, so there they are made in 32 bits
    /// and rounded: what a card computes, but slow.
    Bf16,
}

/// A device and the numbers on it.
///
/// Written `cpu`, `cuda` or `cuda:INDEX`; on cards the numbers are `Bf16` unless said otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Placement {
    /// The index of an NVIDIA card, or `None` for the CPU.
    pub card: Option<usize>,
    /// The numbers.
    pub precision: Precision,
    /// The stand-in for a card, in tests.
    emulation: Option<Where>,
}

impl Placement {
    /// The CPU, in 32 bits.
    pub const CPU: Self = Self { card: None, precision: Precision::F32, emulation: None };

    /// A card, in 16 bits.
    #[must_use]
    pub fn cuda(index: usize) -> Self {
        Self { card: Some(index), precision: Precision::Bf16, ..Self::CPU }
    }

    /// The CPU, with the kernels of a card run thread by thread: slow, to test them without a card. A kernel
    /// without races computes the same whether the threads of a block run in order or `backwards`.
    #[cfg(feature = "card-host")]
    #[must_use]
    pub fn emulated(backwards: bool) -> Self {
        Self { emulation: Some(Where::Host { backwards, failure: None }), ..Self::CPU }
    }

    /// Returns the same stand-in for a card with a call to it that fails as a card does, after so many that
    /// go well: for tests of failures. After a failure that does not pass, no call goes well.
    #[cfg(feature = "card-host")]
    #[must_use]
    pub fn failing(self, fault: CardFault, after: u64) -> Self {
        let failure = Some(HostFailure { fault, after });
        let failing = |place| match place {
            Where::Host { backwards, .. } => Where::Host { backwards, failure },
            Where::Card => Where::Card,
        };
        Self { emulation: self.emulation.map(failing), ..self }
    }

    /// Returns the same device with these numbers.
    #[must_use]
    pub fn with_precision(self, precision: Precision) -> Self {
        Self { precision, ..self }
    }

    /// Opens the device; `unpacks`: quantised weights are to become numbers of the precision.
    pub(super) fn open(self, unpacks: bool) -> Result<Place, ModelError> {
        let precision = match self.precision {
            Precision::F32 => DType::F32,
            Precision::F16 => DType::F16,
            Precision::Bf16 => DType::BF16,
        };
        let device = match self.card {
            Some(index) => open_card(index).map_err(|error| {
                let reason = match candle_core::utils::cuda_is_available() {
                    true => CardFault::of(&error.to_string()).map_or_else(
                        || "no such card, or no driver for it".into(),
                        |fault| fault.to_string(),
                    ),
                    false => "this build has no CUDA: it takes the feature `cuda`".into(),
                };
                let kind = ModelErrorKind::Device { device: self.to_string(), reason };
                ModelError::with_source(kind, error)
            })?,
            None => Device::Cpu,
        };
        let kernels = self.emulation.or(self.card.map(|_| Where::Card));
        Ok(Place { device, precision, unpacks, kernels, passes: false, makes: false })
    }
}

/// Opens a card with a stream of its own, on which all work of a model is queued in order.
///
/// cudarc keeps two events for each tensor, to order streams among each other; making and dropping them is a
/// third of a short pass. Here there is one stream, so they are turned off before any tensor is made.
fn open_card(index: usize) -> candle_core::Result<Device> {
    let device = Device::new_cuda_with_stream(index)?;
    #[cfg(feature = "cuda")]
    #[expect(unsafe_code, reason = "the device is new: all its tensors are made and used on its one stream")]
    // SAFETY: without events nothing orders streams among each other. This context is of this device alone,
    // which has one stream, and no tensor goes to another device.
    unsafe {
        device.as_cuda_device()?.disable_event_tracking();
    }
    Ok(device)
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
        })
    }
}

impl FromStr for Precision {
    type Err = String;

    /// Reads a name: `f32`, `f16` or `bf16`.
    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "f32" => Ok(Self::F32),
            "f16" => Ok(Self::F16),
            "bf16" => Ok(Self::Bf16),
            _ => Err(format!("{name:?} is none of f32, f16 and bf16")),
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.card {
            Some(index) => write!(f, "cuda:{index}"),
            None => f.write_str("cpu"),
        }
    }
}

impl FromStr for Placement {
    type Err = String;

    /// `cpu`, `cuda` (the first card) or `cuda:INDEX`.
    fn from_str(name: &str) -> Result<Self, String> {
        let index = name.strip_prefix("cuda").map(|rest| rest.strip_prefix(':').unwrap_or("0"));
        match (name, index.map(str::parse)) {
            ("cpu", _) => Ok(Self::CPU),
            ("cuda", _) => Ok(Self::cuda(0)),
            (_, Some(Ok(index))) if name.starts_with("cuda:") => Ok(Self::cuda(index)),
            _ => Err(format!("{name:?} is none of cpu, cuda and cuda:INDEX")),
        }
    }
}

/// The form in which the weights of a matrix lie on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WeightForm {
    /// Numbers of the place.
    Floats,
    /// Blocks as Candle's products take them.
    Blocks(GgmlDType),
    /// Blocks of this format as the kernels take them.
    Card(Format),
}

/// An opened [`Placement`].
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) device: Device,
    pub(super) precision: DType,
    /// Do quantised weights become numbers of the precision? Otherwise they stay in blocks.
    pub(super) unpacks: bool,
    /// The device of kernels of our own. `None`: there are none.
    pub(super) kernels: Option<Where>,
    /// Do they run passes over few tokens? Otherwise they only choose tokens.
    pub(super) passes: bool,
    /// Are matrices of floats made here, of random numbers, and not read?
    pub(super) makes: bool,
}

/// Numbers unpacked at a time, about: 16 MB.
const PART: usize = 1 << 22;

impl Place {
    pub(super) fn is_cpu(&self) -> bool {
        self.device.is_cpu()
    }

    /// Bytes that are free on the card. `None` if it is none, or does not say.
    pub(super) fn free(&self) -> Option<u64> {
        #[cfg(feature = "cuda")]
        if let Ok(card) = self.device.as_cuda_device() {
            let (free, _all) = card.cuda_stream().context().mem_get_info().ok()?;
            return u64::try_from(free).ok();
        }
        None
    }

    /// This place for a model that the kernels `compute` or not. What they do not take becomes numbers, and
    /// so do blocks on a card that Candle's products with them were not compiled for.
    pub(super) fn with_passes(&self, compute: bool) -> Self {
        let passes = compute && self.kernels.is_some();
        Self { passes, unpacks: self.unpacks || passes || !self.runs_blocks(), ..self.clone() }
    }

    /// Can Candle's products with blocks run here?
    fn runs_blocks(&self) -> bool {
        #[cfg(feature = "cuda")]
        if let Ok(card) = self.device.as_cuda_device() {
            let found = card.cuda_stream().context().compute_capability();
            return found.is_ok_and(|found| {
                crate::model::candle::card::runs_blocks(env!("DOMINO_CUDA_COMPUTE_CAP"), found)
            });
        }
        true
    }

    /// Tells how rows of `inputs` weights of a format lie here. Candle takes blocks of 32 in pairs.
    pub(super) fn form(&self, format: Format, inputs: usize) -> WeightForm {
        match (kernel_format(format).filter(|_| self.passes), ggml(format)) {
            (Some(format), _) => WeightForm::Card(format),
            (None, Some(kind)) if !self.unpacks && inputs.is_multiple_of(64) => WeightForm::Blocks(kind),
            _ => WeightForm::Floats,
        }
    }

    /// A vector here, in 32 bits.
    pub(super) fn vector(&self, values: &[f32]) -> candle_core::Result<Tensor> {
        Tensor::new(values, &self.device)
    }

    /// A matrix of random numbers, even over -0.05 to 0.05, made here: a card takes no time for it, and a
    /// computer's processor some seconds for each GB.
    pub(super) fn random_matrix(&self, outputs: usize, inputs: usize) -> candle_core::Result<Tensor> {
        let step = (16 * PART / inputs.max(1)).max(1);
        let mut parts = Vec::new();
        let mut left = outputs;
        while left > 0 {
            let rows = left.min(step);
            // Devices make them in 32 bits only.
            parts
                .push(Tensor::rand(-0.05_f32, 0.05, (rows, inputs), &self.device)?.to_dtype(self.precision)?);
            left -= rows;
        }
        Tensor::cat(&parts, 0)
    }

    /// A matrix here, `[outputs, inputs]`. Unpacks it part by part.
    pub(super) fn matrix(&self, matrix: &Matrix) -> candle_core::Result<Tensor> {
        let rows = u32::try_from(matrix.outputs())?;
        let step = u32::try_from((PART / matrix.inputs().max(1)).max(1))?;
        let mut parts = Vec::new();
        let mut from = 0;
        while from < rows {
            let to = from.saturating_add(step).min(rows);
            let part = matrix.rows(&(from..to).collect::<Vec<u32>>())?;
            parts.push(part.to_dtype(self.precision)?.to_device(&self.device)?);
            from = to;
        }
        match <[Tensor; 1]>::try_from(parts) {
            Ok([whole]) => Ok(whole),
            Err(parts) => Tensor::cat(&parts, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placements_are_read_from_their_names() {
        assert_eq!("cpu".parse(), Ok(Placement::CPU));
        assert_eq!("cuda".parse(), Ok(Placement::cuda(0)));
        assert_eq!("cuda:3".parse(), Ok(Placement::cuda(3)));
        for name in ["", "cuda:", "cuda3", "cuda:x", "cuda:-1", "gpu"] {
            assert!(name.parse::<Placement>().is_err(), "{name:?}");
        }
        for placement in [Placement::CPU, Placement::cuda(2)] {
            assert_eq!(placement.to_string().parse(), Ok(placement));
        }
        for precision in [Precision::F32, Precision::F16, Precision::Bf16] {
            assert_eq!(precision.to_string().parse(), Ok(precision));
        }
    }

    #[test]
    fn random_matrices_are_small_numbers() {
        let place = Placement::CPU.with_precision(Precision::Bf16).open(true).unwrap();
        let matrix = place.random_matrix(70, 3).unwrap();
        assert_eq!((matrix.dims(), matrix.dtype()), (&[70, 3][..], DType::BF16));
        let numbers: Vec<f32> =
            matrix.to_dtype(DType::F32).unwrap().flatten_all().unwrap().to_vec1().unwrap();
        assert!(numbers.iter().all(|number| number.abs() <= 0.0502));
        assert!(numbers.iter().any(|number| *number < -0.02) && numbers.iter().any(|number| *number > 0.02));
    }

    #[test]
    fn a_matrix_in_parts_is_the_matrix() {
        let (inputs, outputs) = (2048, 2050);
        assert!(inputs * outputs > PART);
        let weights: Vec<f32> = (0_u16..2048).cycle().take(inputs * outputs).map(f32::from).collect();
        let mut matrix = Matrix::new(inputs);
        matrix.push(Format::F32, &weights.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>());
        let tensor = Placement::CPU.open(true).unwrap().matrix(&matrix).unwrap();
        assert_eq!(tensor.dims(), [outputs, inputs]);
        assert_eq!(tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap(), weights);
    }
}
