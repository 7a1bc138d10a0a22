//! `domino bench-model`: the cost of a pass over n new tokens, relative to a pass over one.

use std::{io::Write, num::NonZeroUsize, path::PathBuf};

use anyhow::Result;
use clap::Args;
use domino::model::candle::{Format, Instructions, LoadOptions, RandomModel, join_threads, threads};
use domino::model::passes::{PassTimes, any_tokens};
use domino::model::{Model, Rows};
use domino::store::CacheFolder;
use serde_json::json;

use crate::flags::LowDevice;
use crate::session::model::{self, RunBy, Runner, tell_idle_quantising};
use crate::terminal::failure::{BadInput, Exit};
use crate::terminal::{self, progress};

/// Measure what a pass over n new tokens costs, relative to a pass over one: t(n)/t(1).
///
/// Speculation is worth the more, the flatter this curve is. Each pass goes on from the same context and
/// gives the logits of all its tokens, or, with a device, the likeliest token of each; passes of all n take
/// turns, so that all see the same machine. Medians and minima of the repeats are printed.
#[derive(Debug, Args)]
pub(crate) struct LowBenchModel {
    /// The model, as for `domino generate`.
    #[arg(long, short = 'm', value_name = "DIR|FILE|ID", conflicts_with = "random")]
    model: Option<PathBuf>,
    /// Random weights of a shape instead: 13m, 110m, 1b, 7b or qwen3.5-4b.
    #[arg(long, value_name = "SHAPE")]
    random: Option<String>,
    /// The number format of random weights: f32, f16, bf16, q8_0, q4_0, q4_k and others.
    // The flag of the same name for JSON Schemas stands in another section of help.
    #[arg(
        id = "random_format",
        long = "format",
        value_name = "FORMAT",
        default_value = "f32",
        requires = "random"
    )]
    format: Format,
    /// Multiply quantised weights with inputs as they are, in place of inputs rounded to eight bits: slower.
    #[arg(long)]
    exact_products: bool,
    /// Multiply quantised weights with these instructions of the processor in place of the best it has:
    /// avx512-vnni, avx-vnni or avx2.
    #[arg(long, value_name = "NAME", conflicts_with = "exact_products")]
    instructions: Option<Instructions>,
    #[command(flatten)]
    device: LowDevice,
    /// Measure passes over 1 to N new tokens.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 16)]
    most: usize,
    /// Tokens in the cache before each pass.
    #[arg(long, value_name = "N", default_value_t = 128)]
    context: usize,
    /// Tokens of these that came in a pass just before, and stay: a state sees them in the pass measured.
    #[arg(long, value_name = "N", default_value_t = 0)]
    accepted: usize,
    /// Measure a prompt of N tokens too: from an empty cache, for the logits of its last token.
    #[arg(long, value_name = "N", default_value_t = 0)]
    prompt: usize,
    /// Measure each pass this many times.
    #[arg(long, value_name = "N", default_value_t = 15)]
    repeats: usize,
}

/// The resolved command `domino bench-model`.
#[derive(Debug)]
pub(crate) struct BenchModel {
    source: ModelToBench,
    load: LoadOptions,
    by: RunBy,
    threads: Option<NonZeroUsize>,
    most: usize,
    context: usize,
    accepted: usize,
    prompt: usize,
    repeats: usize,
    json: bool,
}

#[derive(Debug)]
enum ModelToBench {
    /// A model named on the command line; `None` for the default model.
    Model(Option<PathBuf>),
    /// A model of random weights, with its name.
    Random(RandomModel, String),
}

impl LowBenchModel {
    pub(crate) fn resolve(self, json: bool) -> Result<BenchModel, BadInput> {
        let source = match self.random {
            None => ModelToBench::Model(self.model),
            Some(name) => {
                let random = RandomModel::preset(&name, self.format).ok_or_else(|| {
                    let known = RandomModel::PRESETS.join(", ");
                    BadInput::new(format!("no shape {name:?}")).hint(format!("there are {known}"))
                })?;
                let exact = if self.exact_products { ", exact products" } else { "" };
                ModelToBench::Random(random, format!("random {name} {}{exact}", self.format))
            }
        };
        let threads = self.device.threads;
        let mut load = self.device.load_options()?;
        load.exact_products = self.exact_products;
        if self.instructions.is_some() && self.device.is_of_tensors() {
            return Err(BadInput::new("--instructions: only where the CPU runs the model")
                .hint("leave --device, --precision or --instructions out"));
        }
        load.instructions = self.instructions;
        load.context = Some(self.prompt.max(self.context + self.most));
        let by = self.device.resolve();
        let Self { most, context, accepted, prompt, repeats, .. } = self;
        if most == 0 || repeats == 0 {
            return Err(BadInput::new("nothing to measure: -n and --repeats must be at least 1"));
        }
        Ok(BenchModel { source, load, by, threads, most, context, accepted, prompt, repeats, json })
    }
}

/// Measures and prints the times.
pub(crate) fn run(command: &BenchModel, _cache: &CacheFolder) -> Result<Exit> {
    join_threads(command.threads);
    let room = command.prompt.max(command.context + command.most);
    let (mut model, name) = load(&command.source, &command.load, command.by)?;
    progress::watch_interrupts();
    let tokens = any_tokens(room, model.vocabulary_size());
    let (before, new) = tokens.split_at(command.context);
    let (mut prompt, mut times) = (PassTimes::default(), PassTimes::default());
    let bar = progress::bar("measuring", command.repeats);
    // The first round warms up.
    for round in 0..=command.repeats {
        if round == 1 {
            (prompt, times) = (PassTimes::default(), PassTimes::default());
        }
        if command.prompt > 0 {
            model.truncate(0)?;
            prompt.pass(&mut model, &tokens[..command.prompt], Rows::Last)?;
        }
        if !before.is_empty() && (round == 0 || command.prompt > 0) {
            model.truncate(0)?;
            model.forward(before, Rows::Last)?;
        }
        for n in 1..=command.most {
            if command.accepted > 0 {
                let first = command.context.saturating_sub(command.accepted);
                model.truncate(first)?;
                model.forward(&before[first..], Rows::Last)?;
            }
            times.pass(&mut model, &new[..n], Rows::All)?;
            if progress::interrupted() {
                return Ok(Exit::Interrupted);
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    print(command, &name, &model, [&times, &prompt])?;
    Ok(Exit::Success)
}

fn load(source: &ModelToBench, options: &LoadOptions, by: RunBy) -> Result<(Runner, String)> {
    let bad = |error: &dyn std::error::Error| BadInput::new(error.to_string());
    match source {
        ModelToBench::Model(name) => {
            let path = model::locate(name.as_deref())?;
            let name = path.display().to_string();
            let loaded = progress::during(format!("loading {name}"), || Runner::load(&path, options, by))?;
            tell_idle_quantising(&path, options);
            Ok((loaded, name))
        }
        ModelToBench::Random(random, name) => {
            let made = progress::during("making weights", || Runner::random(random, options, by.tensors()));
            Ok((made.map_err(|error| bad(&error))?, name.clone()))
        }
    }
}

/// Describes the device, and the numbers or instructions in use if they are not the model's or the best.
fn device(command: &BenchModel) -> String {
    match (command.by.tensors(), command.load.instructions) {
        (Some(place), _) if place.card.is_some() => {
            format!("{place} in {}, {} kernels", place.precision, place.mode)
        }
        (Some(place), _) => format!("{place} in {}", place.precision),
        (None, Some(instructions)) => format!("cpu with {instructions}"),
        (None, None) => "cpu".into(),
    }
}

fn print(command: &BenchModel, name: &str, model: &Runner, [times, prompt]: [&PassTimes; 2]) -> Result<()> {
    let (median, least) = (times.median(1), times.least(1));
    let tokens = command.prompt;
    let whole = (tokens > 0).then(|| [prompt.median(tokens), prompt.least(tokens)]);
    let mut out = terminal::stdout();
    let threads = command.threads.map_or_else(threads, NonZeroUsize::get);
    if command.json {
        let point = |n| {
            json!({
                "n": n,
                "median_seconds": times.median(n),
                "least_seconds": times.least(n),
                "ratio": times.median(n) / median,
                "ratio_of_least": times.least(n) / least,
            })
        };
        let curve: Vec<_> = (1..=command.most).map(point).collect();
        let mut object = json!({
            "model": name, "device": device(command), "context": command.context,
            "repeats": command.repeats, "threads": threads, "curve": curve,
            "graphs": model.graphs(),
        });
        if command.by == RunBy::Stored {
            object["kv"] = command.load.kv.to_string().into();
        }
        if let Some([median, least]) = whole {
            object["prompt"] = json!({ "tokens": tokens, "median_seconds": median, "least_seconds": least });
        }
        writeln!(out, "{object}")?;
        return Ok(());
    }
    let device = device(command);
    writeln!(out, "{name} on {device}, context {}, {} repeats", command.context, command.repeats)?;
    writeln!(out, "  n   median ms   t(n)/t(1)    least ms   t(n)/t(1)")?;
    for n in 1..=command.most {
        let [ms, fast] = [times.median(n), times.least(n)].map(|seconds| 1e3 * seconds);
        let [ratio, of_least] = [1e-3 * ms / median, 1e-3 * fast / least];
        writeln!(out, "{n:3} {ms:11.3} {ratio:11.2} {fast:11.3} {of_least:11.2}")?;
    }
    if let Some([median, least]) = whole.map(|whole| whole.map(|seconds| 1e3 * seconds)) {
        writeln!(out, "prompt of {tokens} tokens: median {median:.1} ms, least {least:.1} ms")?;
    }
    Ok(())
}
