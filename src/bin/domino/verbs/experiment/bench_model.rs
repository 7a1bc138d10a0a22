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

/// The command `domino bench-model`: its flags, and what they mean.
#[derive(Debug)]
struct BenchModel<'a> {
    flags: &'a LowBenchModel,
    /// The model of random weights, if it is one.
    random: Option<RandomModel>,
    load: LoadOptions,
    by: RunBy,
}

impl LowBenchModel {
    fn resolve(&self) -> Result<BenchModel<'_>, BadInput> {
        let preset = |name: &String| {
            RandomModel::preset(name, self.format).ok_or_else(|| {
                let known = RandomModel::PRESETS.join(", ");
                BadInput::new(format!("no shape {name:?}")).hint(format!("there are {known}"))
            })
        };
        let random = self.random.as_ref().map(preset).transpose()?;
        let mut load = self.device.load_options()?;
        load.exact_products = self.exact_products;
        if self.instructions.is_some() && self.device.is_of_tensors() {
            return Err(BadInput::new("--instructions: only where the CPU runs the model")
                .hint("leave --device, --precision or --instructions out"));
        }
        load.instructions = self.instructions;
        load.context = Some(self.room());
        if self.most == 0 || self.repeats == 0 {
            return Err(BadInput::new("nothing to measure: -n and --repeats must be at least 1"));
        }
        Ok(BenchModel { random, load, by: self.device.resolve(), flags: self })
    }

    /// The number of tokens that a pass may have in the cache.
    fn room(&self) -> usize {
        self.prompt.max(self.context + self.most)
    }
}

/// Measures and prints the times.
pub(crate) fn run(flags: &LowBenchModel, json: bool, _cache: &CacheFolder) -> Result<Exit> {
    let command = &flags.resolve()?;
    join_threads(flags.device.threads);
    let (mut model, name) = load(command)?;
    progress::watch_interrupts();
    let tokens = any_tokens(flags.room(), model.vocabulary_size());
    let (before, new) = tokens.split_at(flags.context);
    let (mut prompt, mut times) = (PassTimes::default(), PassTimes::default());
    let bar = progress::bar("measuring", flags.repeats);
    // The first round warms up.
    for round in 0..=flags.repeats {
        if round == 1 {
            (prompt, times) = (PassTimes::default(), PassTimes::default());
        }
        if flags.prompt > 0 {
            model.truncate(0)?;
            prompt.pass(&mut model, &tokens[..flags.prompt], Rows::Last)?;
        }
        if !before.is_empty() && (round == 0 || flags.prompt > 0) {
            model.truncate(0)?;
            model.forward(before, Rows::Last)?;
        }
        for n in 1..=flags.most {
            if flags.accepted > 0 {
                let first = flags.context.saturating_sub(flags.accepted);
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
    print(command, &name, &model, [&times, &prompt], json)?;
    Ok(Exit::Success)
}

/// Loads or makes the model, and names it.
fn load(command: &BenchModel) -> Result<(Runner, String)> {
    let BenchModel { flags, random, load, by, .. } = command;
    if let (Some(random), Some(name)) = (random, &flags.random) {
        let made = progress::during("making weights", || Runner::random(random, load, by.tensors()));
        let exact = if flags.exact_products { ", exact products" } else { "" };
        let made = made.map_err(|error| BadInput::new(error.to_string()))?;
        return Ok((made, format!("random {name} {}{exact}", flags.format)));
    }
    let path = model::locate(flags.model.as_deref())?;
    let name = path.display().to_string();
    let loaded = progress::during(format!("loading {name}"), || Runner::load(&path, load, *by))?;
    tell_idle_quantising(&path, load);
    Ok((loaded, name))
}

/// Describes the device, and the numbers or instructions in use if they are not the model's or the best.
fn device(command: &BenchModel) -> String {
    match (command.by.tensors(), command.flags.instructions) {
        (Some(place), _) => format!("{place} in {}", place.precision),
        (None, Some(instructions)) => format!("cpu with {instructions}"),
        (None, None) => "cpu".into(),
    }
}

fn print(
    command: &BenchModel,
    name: &str,
    model: &Runner,
    [times, prompt]: [&PassTimes; 2],
    json: bool,
) -> Result<()> {
    let (median, least) = (times.median(1), times.least(1));
    let (flags, tokens) = (command.flags, command.flags.prompt);
    let whole = (tokens > 0).then(|| [prompt.median(tokens), prompt.least(tokens)]);
    let mut out = terminal::stdout();
    let threads = flags.device.threads.map_or_else(threads, NonZeroUsize::get);
    if json {
        let point = |n| {
            json!({
                "n": n,
                "median_seconds": times.median(n),
                "least_seconds": times.least(n),
                "ratio": times.median(n) / median,
                "ratio_of_least": times.least(n) / least,
            })
        };
        let curve: Vec<_> = (1..=flags.most).map(point).collect();
        let mut object = json!({
            "model": name, "device": device(command), "context": flags.context,
            "repeats": flags.repeats, "threads": threads, "curve": curve,
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
    writeln!(out, "{name} on {device}, context {}, {} repeats", flags.context, flags.repeats)?;
    writeln!(out, "  n   median ms   t(n)/t(1)    least ms   t(n)/t(1)")?;
    for n in 1..=flags.most {
        let [ms, fast] = [times.median(n), times.least(n)].map(|seconds| 1e3 * seconds);
        let [ratio, of_least] = [1e-3 * ms / median, 1e-3 * fast / least];
        writeln!(out, "{n:3} {ms:11.3} {ratio:11.2} {fast:11.3} {of_least:11.2}")?;
    }
    if let Some([median, least]) = whole.map(|whole| whole.map(|seconds| 1e3 * seconds)) {
        writeln!(out, "prompt of {tokens} tokens: median {median:.1} ms, least {least:.1} ms")?;
    }
    Ok(())
}
