//! mistral.rs as the engine of the program, for every model of text that it loads.

mod drafting;
#[cfg(feature = "experiments")]
mod experiment;
mod load;
mod recorder;
mod writer;

use std::{path::Path, sync::Arc, sync::OnceLock};

use clap::{Arg, ArgMatches, Command, ValueEnum, builder::EnumValueParser};
use domino_cli::engine::OtherEngine;
use domino_cli::texts::{Loading, Pulse, TextEngine, WantedTexts};
use domino_cli::{BadInput, engine::WantedModel};
use mistralrs_candle::Device;
use mistralrs_core::{IsqType, ModelDType, parse_isq_value};

/// The engine of this program.
pub(crate) static MISTRAL_RS: MistralRsEngine = MistralRsEngine { flags: OnceLock::new() };

/// Names of the flags that only this engine has; the last is there in builds for cards.
const OWN: [&str; 3] = ["isq", "dtype", "cuda"];

/// mistral.rs, and what its flags say.
pub(crate) struct MistralRsEngine {
    /// Empty until the command line is read.
    flags: OnceLock<OwnFlags>,
}

/// The values of the flags that only this engine has.
#[derive(Debug, Clone, Default)]
struct OwnFlags {
    isq: Option<String>,
    dtype: Dtype,
    /// Number of the card; `None`: the CPU.
    card: Option<usize>,
}

/// Numbers that mistral.rs computes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Dtype {
    #[default]
    Auto,
    F32,
    F16,
    Bf16,
}

impl From<Dtype> for ModelDType {
    fn from(dtype: Dtype) -> Self {
        match dtype {
            Dtype::Auto => Self::Auto,
            Dtype::F32 => Self::F32,
            Dtype::F16 => Self::F16,
            Dtype::Bf16 => Self::BF16,
        }
    }
}

impl MistralRsEngine {
    fn flags(&self) -> OwnFlags {
        self.flags.get().cloned().unwrap_or_default()
    }
}

impl OtherEngine for MistralRsEngine {
    fn name(&self) -> &'static str {
        "mistralrs"
    }

    fn program(&self) -> &'static str {
        "domino-mistralrs"
    }

    fn flags(&self, command: Command) -> Command {
        /// The group of flags that `--help` shows these in.
        const HEADING: &str = "Engine mistralrs";
        let isq = Arg::new("isq").long("isq").value_name("Q").help_heading(HEADING);
        let isq = isq.help("Quantise the weights while loading: 4, 8, q4k, q8_0, ..");
        let dtype = Arg::new("dtype").long("dtype").value_name("TYPE").help_heading(HEADING);
        let dtype = dtype
            .value_parser(EnumValueParser::<Dtype>::new())
            .help("The numbers that are computed with. Default: auto");
        let command = command.arg(isq).arg(dtype);
        if !cfg!(feature = "cuda") {
            return command;
        }
        let card = Arg::new("cuda").long("cuda").value_name("INDEX").help_heading(HEADING);
        command.arg(
            card.value_parser(clap::value_parser!(usize))
                .help("Run the model on this NVIDIA card; the first is 0. Default: on the CPU"),
        )
    }

    fn take(&self, matches: &ArgMatches) -> Result<(), BadInput> {
        let words = matches.try_get_raw("engine").ok().flatten();
        let own = words.into_iter().flatten().any(|word| word == "domino");
        if let Some(flag) = OWN.iter().find(|flag| own && matches!(matches.try_contains_id(flag), Ok(true))) {
            return Err(BadInput::new(format!("--{flag} is for the engine mistralrs"))
                .hint("leave it out (--quantize is the engine domino's), or take --engine mistralrs"));
        }
        let flags = OwnFlags {
            isq: matches.get_one("isq").cloned(),
            dtype: matches.get_one("dtype").copied().unwrap_or_default(),
            card: if cfg!(feature = "cuda") { matches.get_one("cuda").copied() } else { None },
        };
        flags.isq(&Device::Cpu)?;
        // There is one command line.
        let _ = self.flags.set(flags);
        Ok(())
    }

    #[cfg(feature = "experiments")]
    fn methods(
        &self,
        definition: &domino::experiment::Definition,
        paths: &[std::path::PathBuf],
        other: Option<&Path>,
    ) -> Option<Box<dyn domino::experiment::methods::ExternalEngine>> {
        Some(Box::new(experiment::Engines::new(definition, paths, other)))
    }
}

impl OwnFlags {
    /// The kind of quantised weights, if they are to be quantised.
    fn isq(&self, device: &Device) -> Result<Option<IsqType>, BadInput> {
        let kind = self.isq.as_deref().map(|isq| parse_isq_value(isq, Some(device))).transpose();
        kind.map_err(|error| {
            BadInput::new(format!("--isq: {error}"))
                .hint("--isq takes bits (2 to 8) or a kind, such as q4k or q8_0")
        })
    }
}

impl TextEngine for MistralRsEngine {
    fn check(&self, wanted: &WantedTexts) -> Result<(), BadInput> {
        let WantedModel { context, threads } = wanted.model;
        let foreign = [(threads.is_some(), "--threads"), (context.is_some(), "--context")];
        if let Some((_, flag)) = foreign.iter().find(|(given, _)| *given) {
            return Err(BadInput::new(format!("{flag} is for the engine domino"))
                .hint("leave it out, or take --engine domino"));
        }
        // Its attention on the CPU reads the keys of the first text for all of a batch.
        if self.flags().card.is_none() && wanted.texts.get() > 1 {
            return Err(BadInput::new("mistral.rs 0.8.1 mixes up texts that it writes at once on the CPU")
                .hint("leave --max-seqs at 1, and requests wait for their turn; or take --engine domino"));
        }
        Ok(())
    }

    fn load_texts<'a>(
        &'a self,
        file: &'a Path,
        wanted: &'a WantedTexts,
        pulse: &'a Arc<Pulse>,
    ) -> Loading<'a> {
        let flags = self.flags();
        Box::pin(async move { load::load(&flags, file, wanted, pulse).await })
    }
}
