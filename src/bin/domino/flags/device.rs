//! `--device`, `--precision`, `--quantize` and `--kv`: the choice of the library's runner and of its device;
//! `--context` and `--engine`.

use std::num::NonZeroUsize;

use clap::{Args, ValueEnum};
use domino::model::candle::{CardMode, Format, KvFormat, LoadOptions, Placement, Precision};

use crate::{session::runner::Card, terminal::failure::BadInput};

/// Flags of the device that runs the model, and of its numbers.
#[derive(Debug, Args)]
pub(crate) struct LowDevice {
    /// Run the model on cpu, cuda (the first NVIDIA card) or cuda:INDEX. Cards need their own build of the
    /// program (experiments/cuda).
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

/// The value of `--engine`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineName {
    /// Domino's own runner.
    Domino,
    /// mistral.rs.
    Mistralrs,
}

/// The flag of how long texts may be.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct LowContext {
    /// Make room for this many tokens of a text, its prompt included. Default: as many as the model was made
    /// for where memory allows, else half as many and so on; on a card at most 4096.
    #[arg(long, value_name = "N")]
    context: Option<NonZeroUsize>,
}

impl LowContext {
    /// Adds the room to options for loading the model.
    pub(crate) fn beside(self, options: LoadOptions) -> LoadOptions {
        let mut options = options;
        options.context = self.context.map(NonZeroUsize::get);
        options
    }
}

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
