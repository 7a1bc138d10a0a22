//! llama.cpp as the engine of the program.

use std::{num::NonZeroUsize, path::Path, sync::OnceLock};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use domino::model::candle::ModelError;
use domino_cli::{
    BadInput,
    engine::{ModelTraits, OtherBatch, OtherEngine, OtherModel, WantedModel},
};
use domino_llama_cpp::{LlamaCppBatch, LlamaCppModel, LlamaCppOptions, has_cards};

/// The heading of this engine's flags in help.
const HEADING: &str = "llama.cpp";

const EXACT: &str = "Write a token a pass: no drafts, and no passes that several texts share";

const EXACT_LONG: &str = "\
Write a token a pass: no drafts, and no passes that several texts share.

Masks are exact with this flag and without, so every text is of the grammar. But llama.cpp's logits differ \
in their last bits between passes over one token and over several. By default drafts are made: texts come \
from the same distribution up to that rounding, but the text of a seed may be another than without drafts.";

/// llama.cpp, with its flags.
#[derive(Debug, Default)]
pub(crate) struct LlamaCpp {
    flags: OnceLock<Flags>,
}

/// Values of this engine's flags.
#[derive(Debug, Clone, Copy, Default)]
struct Flags {
    gpu_layers: Option<u32>,
    exact: bool,
}

impl LlamaCpp {
    /// The engine before the command line is read.
    pub(crate) const fn new() -> Self {
        Self { flags: OnceLock::new() }
    }

    fn flags(&self) -> Flags {
        self.flags.get().copied().unwrap_or_default()
    }

    fn options(&self, wanted: &WantedModel) -> LlamaCppOptions {
        let Flags { gpu_layers, exact } = self.flags();
        let mut options = LlamaCppOptions::default();
        options.gpu_layers = gpu_layers;
        options.context = wanted.context;
        options.threads = wanted.threads;
        options.apart = exact;
        options
    }

    fn traits(&self, made_for: usize, can_roll_back: bool) -> ModelTraits {
        let no_drafts = match (self.flags().exact, can_roll_back) {
            (true, _) => Some("--exact: a token a pass".to_owned()),
            (false, false) => Some("a recurrent model cannot take back what it has read".to_owned()),
            (false, true) => None,
        };
        ModelTraits { made_for, no_drafts }
    }
}

impl OtherEngine for LlamaCpp {
    fn name(&self) -> &'static str {
        "llama.cpp"
    }

    fn program(&self) -> &'static str {
        "domino-llama-cpp"
    }

    fn flags(&self, command: Command) -> Command {
        let usual = if has_cards() { "all" } else { "0" };
        let layers = Arg::new("gpu_layers")
            .long("gpu-layers")
            .value_name("N")
            .value_parser(value_parser!(u32))
            .help(format!(
                "Hold this many layers on the card, from the last one on. Default of this build: {usual}"
            ))
            .help_heading(HEADING);
        let exact = Arg::new("exact")
            .long("exact")
            .action(ArgAction::SetTrue)
            .help(EXACT)
            .long_help(EXACT_LONG)
            .help_heading(HEADING);
        command.arg(layers).arg(exact)
    }

    fn take(&self, matches: &ArgMatches) -> Result<(), BadInput> {
        let gpu_layers = matches.get_one::<u32>("gpu_layers").copied();
        if gpu_layers.is_some_and(|layers| layers > 0) && !has_cards() {
            let hint = "build it with the feature cuda, metal or vulkan, or leave the flag out";
            return Err(BadInput::new("--gpu-layers: this program was built without cards").hint(hint));
        }
        // There is one command line in a process.
        let _ = self.flags.set(Flags { gpu_layers, exact: matches.get_flag("exact") });
        Ok(())
    }

    fn load(&self, file: &Path, wanted: &WantedModel) -> Result<OtherModel, BadInput> {
        let model = LlamaCppModel::load(file, &self.options(wanted)).map_err(|error| bad(&error))?;
        let traits = self.traits(model.made_for(), model.can_roll_back());
        Ok(OtherModel { model: Box::new(model), traits })
    }

    fn load_batch(
        &self,
        file: &Path,
        texts: NonZeroUsize,
        wanted: &WantedModel,
    ) -> Result<OtherBatch, BadInput> {
        let model = LlamaCppBatch::load(file, texts, &self.options(wanted)).map_err(|error| bad(&error))?;
        let traits = self.traits(model.made_for(), model.can_roll_back());
        Ok(OtherBatch { model: Box::new(model), traits })
    }
}

/// A model that cannot be loaded, as bad input.
fn bad(error: &ModelError) -> BadInput {
    BadInput::new(error.to_string())
}
