//! `--device`, `--precision`, `--quantize` and `--kv`: the choice of the library's runner and of its device.

use std::{num::NonZeroUsize, path::Path};

use clap::Args;
use domino::{
    TokenId,
    model::{
        Kept, Logits, Model, Rows,
        candle::{
            CandleModel, CardMode, Format, KvFormat, LoadOptions, ModelDescription, ModelError, Placement,
            Precision, RandomModel, TensorModel,
        },
    },
};

use crate::failure::{BadInput, Paint, note};

/// Where to run the model.
#[derive(Debug, Args)]
pub(crate) struct LowDevice {
    /// cpu, cuda (the first NVIDIA card) or cuda:INDEX. Cards need a build of the program of their own
    /// (experiments/cuda).
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: Placement,
    /// The numbers on a card: f32, f16 or bf16 (default). On the CPU weights stay in the format they are
    /// stored in unless this is given: then the model runs as on a card, in these numbers, which is slower,
    /// and shows what a card would answer.
    #[arg(long, value_name = "P")]
    precision: Option<Precision>,
    /// The kernels of passes over few tokens on a card.
    ///
    /// exact (default): a text with drafts is the text without, and quantised weights are unpacked. fast:
    /// some per cent quicker with one token, and drafts may change a text. blocks: Candle's tensors;
    /// quantised weights stay as they are stored, and drafts may change a text.
    #[arg(long, value_name = "KERNELS")]
    card: Option<CardMode>,
    /// Threads that share the work of a pass on the CPU.
    ///
    /// Default: what RAYON_NUM_THREADS says, or as many as there are cores.
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Quantise float matrices while loading: q8_0, q4_0, q4_1, q5_0, q5_1, q4_k, q5_k or q6_k.
    ///
    /// Rows that are no whole blocks of it (256 numbers in the K formats) become q8_0. Less memory, quicker
    /// passes, other texts. Matrices that are quantised already, as those of most GGUF files are, stay as
    /// they are.
    #[arg(long, value_name = "FORMAT", conflicts_with = "precision")]
    quantize: Option<Format>,
    /// Keep keys and values in this format: f32 (default), f16 or q8_0. Long contexts then take a half or a
    /// quarter of the memory, and less time; other texts.
    #[arg(long, value_name = "FORMAT", conflicts_with = "precision")]
    kv: Option<KvFormat>,
}

/// The device and the precision of a model that runs as tensors; `None` for the CPU with our own products.
pub(crate) type Card = Option<Placement>;

impl LowDevice {
    /// The value of `--threads`.
    pub(crate) fn threads(&self) -> Option<NonZeroUsize> {
        self.threads
    }

    /// Reads the flags as options for loading the model.
    pub(crate) fn load_options(&self) -> Result<LoadOptions, BadInput> {
        let mut options = LoadOptions::default();
        if self.quantize.is_some() && self.device.card.is_some() {
            return Err(BadInput::new("--quantize: only on the CPU").hint("leave --device or --quantize out"));
        }
        if let Some(format) = self.quantize.filter(|format| !format.is_quantised()) {
            return Err(BadInput::new(format!("--quantize {format}: floats are not quantised"))
                .hint("for example q8_0 or q4_k"));
        }
        options.quantize = self.quantize;
        if self.kv.is_some() && self.device.card.is_some() {
            return Err(BadInput::new("--kv: only on the CPU").hint("leave --device or --kv out"));
        }
        if self.card.is_some() && self.device.card.is_none() {
            return Err(
                BadInput::new("--card: only with --device cuda").hint("leave --card out, or name a card")
            );
        }
        options.kv = self.kv.unwrap_or_default();
        Ok(options)
    }

    /// True if the model runs as tensors.
    pub(crate) fn is_of_tensors(&self) -> bool {
        self.device.card.is_some() || self.precision.is_some()
    }

    pub(crate) fn resolve(self) -> Card {
        let tensors = self.is_of_tensors();
        let Self { device, precision, card, .. } = self;
        let device = device.with_mode(card.unwrap_or_default());
        tensors.then(|| device.with_precision(precision.unwrap_or(device.precision)))
    }
}

/// Warns where `--quantize` has changed nothing: matrices that are quantised already, as those of most GGUF
/// files are, stay as they are. Reads the heads of the weights once more.
pub(crate) fn tell_idle_quantising(path: &Path, options: &LoadOptions) {
    let Some(format) = options.quantize else { return };
    let mut plain = options.clone();
    plain.quantize = None;
    let sizes = [options, &plain].map(|options| CandleModel::estimate(path, options));
    // The same number of bytes means the same formats, since blocks of any format are smaller than floats.
    if let [Ok(quantised), Ok(stored)] = sizes
        && quantised.weights == stored.weights
    {
        let paint = Paint::for_stderr();
        let (path, warning) = (path.display(), paint.cyan("warning:"));
        note!("{warning} --quantize {format} changes nothing: the matrices of {path} are quantised already");
        note!("{} leave it out, or name a model in floats", paint.cyan("hint:"));
    }
}

/// Says once what quantised weights take where the card's kernels have them unpacked. Reads the heads of the
/// weights once more.
fn tell_unpacking(path: &Path, place: Placement) {
    let Ok(model) = ModelDescription::of_model(path) else { return };
    if let Some(bytes) = place.unpacked(&model) {
        let (paint, megabytes) = (Paint::for_stderr(), bytes.div_ceil(1_000_000));
        let precision = place.precision;
        note!("{} quantised weights become {precision}: {megabytes} MB on the card", paint.cyan("note:"));
        note!("{} --card blocks keeps them as they are; drafts may change texts then", paint.cyan("hint:"));
    }
}

/// A loaded model.
#[derive(Debug)]
pub(crate) enum Runner {
    Own(Box<CandleModel>),
    Tensors(Box<TensorModel>),
}

impl Runner {
    pub(crate) fn load(path: &Path, options: &LoadOptions, card: Card) -> Result<Self, ModelError> {
        match card {
            None => CandleModel::load(path, options).map(|model| Self::Own(Box::new(model))),
            Some(place) => {
                tell_unpacking(path, place);
                TensorModel::load(path, options, place).map(|model| Self::Tensors(Box::new(model)))
            }
        }
    }

    pub(crate) fn random(model: &RandomModel, options: &LoadOptions, card: Card) -> Result<Self, ModelError> {
        match card {
            None => CandleModel::random(model, options).map(|model| Self::Own(Box::new(model))),
            Some(place) => {
                TensorModel::random(model, options, place).map(|model| Self::Tensors(Box::new(model)))
            }
        }
    }
}

impl Model for Runner {
    type Error = ModelError;

    fn position(&self) -> usize {
        match self {
            Self::Own(model) => model.position(),
            Self::Tensors(model) => model.position(),
        }
    }

    fn context(&self) -> usize {
        match self {
            Self::Own(model) => model.context(),
            Self::Tensors(model) => model.context(),
        }
    }

    fn vocabulary_size(&self) -> usize {
        match self {
            Self::Own(model) => model.vocabulary_size(),
            Self::Tensors(model) => model.vocabulary_size(),
        }
    }

    fn tokens_at_once(&self) -> NonZeroUsize {
        match self {
            Self::Own(model) => model.tokens_at_once(),
            Self::Tensors(model) => model.tokens_at_once(),
        }
    }

    fn forward(&mut self, tokens: &[TokenId], rows: Rows) -> Result<Logits, ModelError> {
        match self {
            Self::Own(model) => model.forward(tokens, rows),
            Self::Tensors(model) => model.forward(tokens, rows),
        }
    }

    fn begin(&mut self, tokens: &[TokenId], rows: Rows<'_>) -> Result<Option<Kept<ModelError>>, ModelError> {
        match self {
            Self::Own(model) => model.begin(tokens, rows),
            Self::Tensors(model) => model.begin(tokens, rows),
        }
    }

    fn truncate(&mut self, position: usize) -> Result<(), ModelError> {
        match self {
            Self::Own(model) => model.truncate(position),
            Self::Tensors(model) => model.truncate(position),
        }
    }
}
