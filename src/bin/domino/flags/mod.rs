//! Groups of flags that several commands share, as they are typed. Each resolves to what it means, a type of
//! [`grammar`](crate::grammar) or [`session`](crate::session).
//!
//! Right here are those about the machine: budgets, the cache folder, the runner and its device.

pub(crate) mod drawing;
pub(crate) mod grammar;
pub(crate) mod schema;
pub(crate) mod speculate;
pub(crate) mod tools;

use std::{ffi::OsString, num::NonZeroUsize, path::PathBuf, time::Duration};

use clap::builder::{FalseyValueParser, PossibleValuesParser, TypedValueParser, ValueParser};
use clap::{Args, builder::ValueParserFactory};
use domino::model::candle::{Format, KvFormat, LoadOptions, Placement, Precision};
use domino::store::CacheFolder;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::engine::{self, EngineName};
use crate::{grammar::compiler, session::model::RunBy, terminal::failure::BadInput};

/// A type of the library whose values have names in flags, in rows and in requests.
pub(crate) trait ByName: Copy + PartialEq + Send + Sync + 'static {
    /// The names, with their values.
    const NAMES: &'static [(&'static str, Self)];
}

/// A value that is typed by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NamedValue<T>(pub(crate) T);

impl<T: ByName> NamedValue<T> {
    fn of(name: &str) -> Result<Self, String> {
        let found = T::NAMES.iter().find(|(known, _)| *known == name);
        found.map(|&(_, value)| Self(value)).ok_or_else(|| {
            let known: Vec<String> = T::NAMES.iter().map(|(name, _)| format!("`{name}`")).collect();
            format!("unknown variant `{name}`, expected one of {}", known.join(", "))
        })
    }
}

impl<T: ByName> ValueParserFactory for NamedValue<T> {
    type Parser = ValueParser;

    fn value_parser() -> ValueParser {
        let names = PossibleValuesParser::new(T::NAMES.iter().map(|(name, _)| *name));
        names.try_map(|name| Self::of(&name)).into()
    }
}

impl<'de, T: ByName> Deserialize<'de> for NamedValue<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::of(&String::deserialize(deserializer)?).map_err(Error::custom)
    }
}

impl<T: ByName> Serialize for NamedValue<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let named = T::NAMES.iter().find(|(_, value)| *value == self.0);
        named.map(|(name, _)| *name).serialize(serializer)
    }
}

/// Refuses the first of these flags that is given, for the reason `why`.
pub(crate) fn refuse(flags: &[(bool, &str)], why: impl FnOnce(&str) -> BadInput) -> Result<(), BadInput> {
    flags.iter().find(|(given, _)| *given).map_or(Ok(()), |(_, flag)| Err(why(flag)))
}

/// Flags of all commands that compile grammars: the time of a step, and the memory of a grammar.
#[derive(Debug, Args)]
pub(crate) struct LowBudgetFlags {
    /// Give a step (a mask, or a token of text) this many seconds before it ends in an error.
    ///
    /// Default: a fixed amount of work, the same on every machine, which takes one or two seconds; `serve`
    /// gives a step 2 s and the long steps of a text 30 s besides.
    #[arg(long, global = true, value_name = "SECONDS")]
    max_step_seconds: Option<f64>,
    /// Let a grammar take this much memory. Default: 432 MiB.
    ///
    /// It is that of its automata, and of what its texts share (parser sets, states, trees, masks).
    #[arg(long, global = true, value_name = "MIB")]
    max_memory: Option<usize>,
}

/// Least memory that a grammar can be compiled with, in MiB.
const LEAST_MIB: usize = 4;

impl LowBudgetFlags {
    /// Takes the flags for this run.
    pub(crate) fn install(&self) -> Result<(), BadInput> {
        let time = |seconds| Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
        let step_time = self.max_step_seconds.and_then(time);
        if let (Some(seconds), None) = (self.max_step_seconds, step_time) {
            let error = format!("--max-step-seconds {seconds}: a number of seconds above 0 is wanted");
            return Err(BadInput::new(error));
        }
        if let Some(mib) = self.max_memory.filter(|mib| *mib < LEAST_MIB) {
            return Err(BadInput::new(format!("--max-memory {mib}: at least {LEAST_MIB} MiB are needed")));
        }
        compiler::set_budgets(step_time, self.max_memory.map(|mib| mib.saturating_mul(1 << 20)));
        Ok(())
    }
}

/// Flags of the folder that keeps vocabularies, tables and trees between runs.
#[derive(Debug, Args)]
pub(crate) struct LowCacheFlags {
    /// Keep vocabularies and tables of grammars in this folder, so that the next run need not make them.
    /// Several runs may share it, and it may be deleted at any time. Default: domino in the user's cache
    /// folder. `trace` measures without it.
    #[arg(long, global = true, value_name = "DIR", env = "DOMINO_CACHE_DIR", hide_env_values = true)]
    cache_dir: Option<OsString>,
    /// Neither keep anything nor look for it.
    #[arg(
        long,
        global = true,
        env = "DOMINO_NO_CACHE",
        hide_env_values = true,
        value_parser = FalseyValueParser::new()
    )]
    no_cache: bool,
}

impl LowCacheFlags {
    /// Finds the folder that the flags and variables mean.
    pub(crate) fn resolve(&self) -> CacheFolder {
        if self.no_cache {
            return CacheFolder::none();
        }
        // Variables that are set to nothing mean that they are not set.
        let named = self.cache_dir.as_ref().filter(|folder| !folder.is_empty()).map(PathBuf::from);
        // A home that is no absolute path would put the cache wherever the program is run.
        let home = || dirs::cache_dir().filter(|folder| folder.is_absolute());
        let folder = named.or_else(|| Some(home()?.join("domino")));
        folder.map_or_else(CacheFolder::none, CacheFolder::new)
    }
}

/// Flags of the engine and the device that run the model, and of its numbers.
#[derive(Debug, Clone, Args)]
pub(crate) struct LowDevice {
    /// Run the model by domino, this program's own runner, or by another engine that the program has.
    /// --device, --precision, --quantize and --kv are for domino.
    ///
    /// Other programs with the same commands have other engines: domino-llama-cpp (llama.cpp) and
    /// domino-mistralrs (mistralrs). Default: the other engine, where the program has one.
    #[arg(long, value_name = "ENGINE")]
    engine: Option<EngineName>,
    /// Run the model on cpu, cuda (the first NVIDIA card) or cuda:INDEX. Cards need their own build of the
    /// program (experiments/cuda).
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: Placement,
    /// The numbers on a card: f32, f16 or bf16 (default). On the CPU weights stay in the format they are
    /// stored in unless this is given: then the model runs as on a card, in these numbers, which is slower,
    /// and shows what a card would answer.
    #[arg(long, value_name = "P")]
    precision: Option<Precision>,
    /// Threads that share the work of a pass on the CPU.
    ///
    /// Default: what RAYON_NUM_THREADS says, or as many as there are cores.
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
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
    /// Does the program's other engine run the model?
    fn is_of_other(&self) -> bool {
        self.engine.map_or(engine::other().is_some(), |engine| engine == EngineName::Other)
    }

    /// Refuses flags that are for domino's own runner where another engine runs the model.
    fn check_other(&self) -> Result<(), BadInput> {
        let own = [
            (self.device.card.is_some(), "--device"),
            (self.precision.is_some(), "--precision"),
            (self.quantize.is_some(), "--quantize"),
            (self.kv.is_some(), "--kv"),
        ];
        let why = |flag: &str| BadInput::new(format!("{flag} is for the engine domino"));
        let why = |flag: &str| why(flag).hint("leave it out, or take --engine domino");
        if self.is_of_other() { refuse(&own, why) } else { Ok(()) }
    }

    /// Reads the flags as options for loading the model.
    pub(crate) fn load_options(&self) -> Result<LoadOptions, BadInput> {
        self.check_other()?;
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
        options.kv = self.kv.unwrap_or_default();
        Ok(options)
    }

    /// True if the model runs as tensors.
    pub(crate) fn is_of_tensors(&self) -> bool {
        self.device.card.is_some() || self.precision.is_some()
    }

    /// Says what runs the model.
    pub(crate) fn resolve(&self) -> RunBy {
        if self.is_of_other() {
            return RunBy::Other { threads: self.threads };
        }
        let tensors = self.is_of_tensors();
        let Self { device, precision, .. } = *self;
        match tensors {
            true => RunBy::Tensors(device.with_precision(precision.unwrap_or(device.precision))),
            false => RunBy::Stored,
        }
    }
}
