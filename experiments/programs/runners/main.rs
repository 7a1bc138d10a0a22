//! Times of passes in this runner, beside `candle-transformers`' Llama on the same checkpoint.
//!
//!     cargo experiment runners --features peers -- [--model DIR | --random 110m] [--json]
//!
//! Both load one Hugging Face folder. First their logits are compared: if they differ by more than rounding
//! explains, there is nothing to measure. Then both run n new tokens after the same context, taking turns
//! within a round, and give the logits of the last one, which is all that Candle's Llama gives; what ours
//! takes for the logits of all, which verification needs, stands beside. Candle's Mistral has no tied
//! embeddings; where there is no sliding window its Llama is the same model, and that is what runs here.

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context, ensure};
use candle_core::{DType, Device, Tensor};
use candle_nn::{VarBuilder, VarMap};
use candle_transformers::models::llama::{Cache, Config, Llama, LlamaConfig};
use clap::Parser;
use domino::{
    TokenId,
    model::{
        Model, Rows,
        candle::{CandleModel, Format, LoadOptions, RandomModel},
    },
};
use serde_json::{Value, json};

/// New tokens of a pass.
const COUNTS: [usize; 5] = [1, 2, 4, 8, 16];
/// Largest difference of logits allowed, relative to the largest: sums in another order.
const TOLERANCE: f32 = 1e-4;
/// Runners of a pass, with the rows that they give.
const WAYS: [&str; 3] = ["candle-transformers, last row", "domino, last row", "domino, all rows"];

/// Measures passes of this runner and of candle-transformers.
#[derive(Debug, Parser)]
struct Args {
    /// A Llama or Mistral in safetensors, without biases and sliding window.
    #[arg(long, default_value = "models/domino-small")]
    model: PathBuf,
    /// A checkpoint of random weights in f32 instead, as Candle would begin to train it: 13m, 110m or 1b.
    #[arg(long, value_name = "SHAPE", conflicts_with = "model")]
    random: Option<String>,
    /// Tokens in the cache before each pass.
    #[arg(long, default_value_t = 128)]
    context: usize,
    /// Number of times that each pass is measured.
    #[arg(long, default_value_t = 15)]
    repeats: usize,
    /// Print one object instead of a table.
    #[arg(long)]
    json: bool,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    ensure!(args.context > 0 && args.repeats > 0, "a context and repeats of at least 1 are needed");
    let (name, scratch);
    let folder = match &args.random {
        Some(shape) => {
            scratch = tempfile::tempdir()?;
            write_random(shape, scratch.path())?;
            name = format!("random {shape} f32");
            scratch.path()
        }
        None => {
            name = args.model.display().to_string();
            &args.model
        }
    };
    let most = args.context + COUNTS[COUNTS.len() - 1];
    let mut options = LoadOptions::default();
    options.context = Some(most);
    let mut own = CandleModel::load(folder, &options)?;
    let vocabulary = u32::try_from(own.vocabulary_size())?;
    let tokens: Vec<u32> =
        (0..u32::try_from(most)?).map(|index| index.wrapping_mul(7919) % vocabulary).collect();
    let mut peer = Peer::load(folder, &tokens[..args.context])?;
    let tokens: Vec<TokenId> = tokens.into_iter().map(TokenId::new).collect();
    let (before, new) = tokens.split_at(args.context);
    let distance = distance(&mut own, &peer, before, new)?;
    ensure!(distance <= TOLERANCE, "the logits differ by {distance:.1e} of the largest: not the same model");
    let times = measure(&mut own, &mut peer, new, args.repeats)?;
    print(&args, &name, distance, &times);
    Ok(())
}

/// Candle's model and its cache after the context.
struct Peer {
    model: Llama,
    cache: Cache,
    /// The last row of the context.
    row: Vec<f32>,
    position: usize,
}

impl Peer {
    /// Loads the model in f32 and runs the context.
    fn load(folder: &Path, before: &[u32]) -> anyhow::Result<Self> {
        let config = std::fs::read_to_string(folder.join("config.json")).context("config.json")?;
        let config: Value = serde_json::from_str(&config)?;
        let plain = config["sliding_window"].is_null() && config["attention_bias"] != true;
        ensure!(plain, "candle-transformers' Llama has no sliding window and no biases");
        let head = |config: &LlamaConfig| config.hidden_size / config.num_attention_heads.max(1);
        let head_dim = config["head_dim"].as_u64();
        let config: LlamaConfig = serde_json::from_value(config)?;
        ensure!(
            head_dim.is_none_or(|size| u64::try_from(head(&config)).ok() == Some(size)),
            "candle-transformers' Llama has heads that share the hidden size"
        );
        let config: Config = config.into_config(false);
        let bytes = std::fs::read(folder.join("model.safetensors")).context("model.safetensors")?;
        let weights = VarBuilder::from_buffered_safetensors(bytes, DType::F32, &Device::Cpu)?;
        let model = Llama::load(weights, &config)?;
        let mut cache = Cache::new(true, DType::F32, &config, &Device::Cpu)?;
        let row = model.forward(&input(before)?, 0, &mut cache)?.flatten_all()?.to_vec1()?;
        Ok(Self { model, cache, row, position: before.len() })
    }

    /// The last row of a pass over `tokens` after the context, which it leaves as it was.
    fn forward(&self, tokens: &Tensor) -> anyhow::Result<Vec<f32>> {
        // Tensors are shared, so a copy costs nothing.
        let mut cache = self.cache.clone();
        Ok(self.model.forward(tokens, self.position, &mut cache)?.flatten_all()?.to_vec1()?)
    }
}

fn input(tokens: &[u32]) -> candle_core::Result<Tensor> {
    Tensor::new(tokens, &Device::Cpu)?.unsqueeze(0)
}

fn raw(tokens: &[TokenId]) -> Vec<u32> {
    tokens.iter().map(|token| token.raw()).collect()
}

/// Writes a checkpoint of random weights: Candle's own, before training.
fn write_random(shape: &str, folder: &Path) -> anyhow::Result<()> {
    let model = RandomModel::preset(shape, Format::F32)
        .with_context(|| format!("no shape {shape:?}: there are {}", RandomModel::PRESETS.join(", ")))?;
    let config = json!({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
        "hidden_size": model.hidden, "intermediate_size": model.intermediate,
        "num_hidden_layers": model.layers, "num_attention_heads": model.heads,
        "num_key_value_heads": model.kv_heads, "vocab_size": model.vocabulary,
        "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "rope_theta": 1e4, "tie_word_embeddings": true,
    });
    std::fs::write(folder.join("config.json"), config.to_string())?;
    let config: LlamaConfig = serde_json::from_value(config)?;
    let weights = VarMap::new();
    Llama::load(VarBuilder::from_varmap(&weights, DType::F32, &Device::Cpu), &config.into_config(false))?;
    weights.save(folder.join("model.safetensors"))?;
    Ok(())
}

/// Largest difference of the rows that both give, relative to the largest logit. Leaves the context in `own`.
fn distance(own: &mut CandleModel, peer: &Peer, before: &[TokenId], new: &[TokenId]) -> anyhow::Result<f32> {
    let (mut difference, mut largest) = (0.0_f32, 0.0_f32);
    let mut compare = |row: Option<&[f32]>, expected: &[f32]| -> anyhow::Result<()> {
        let row = row.filter(|row| row.len() == expected.len()).context("rows of other lengths")?;
        for (a, b) in row.iter().zip(expected) {
            ensure!(a.is_finite() && b.is_finite(), "a logit is not finite");
            difference = difference.max((a - b).abs());
            largest = largest.max(b.abs());
        }
        Ok(())
    };
    compare(own.forward(before, Rows::Last)?.last(), &peer.row)?;
    for count in COUNTS {
        let expected = peer.forward(&input(&raw(&new[..count]))?)?;
        compare(own.forward(&new[..count], Rows::Last)?.last(), &expected)?;
        own.truncate(before.len())?;
    }
    Ok(difference / largest)
}

/// Seconds of all repeats, by count and way.
type Times = Vec<[Vec<f64>; WAYS.len()]>;

/// Runs all passes in turns; the first round warms up.
fn measure(own: &mut CandleModel, peer: &mut Peer, new: &[TokenId], repeats: usize) -> anyhow::Result<Times> {
    let position = own.position();
    let mut times: Times = COUNTS.map(|_| Default::default()).into();
    for round in 0..=repeats {
        for (count, times) in COUNTS.into_iter().zip(&mut times) {
            let tokens = &new[..count];
            let input = input(&raw(tokens))?;
            // The first runner changes from round to round.
            for turn in 0..WAYS.len() {
                let way = (turn + round) % WAYS.len();
                let begun = Instant::now();
                match way {
                    0 => drop(peer.forward(&input)?),
                    1 => drop(own.forward(tokens, Rows::Last)?),
                    _ => drop(own.forward(tokens, Rows::All)?),
                }
                let taken = begun.elapsed().as_secs_f64();
                own.truncate(position)?;
                if round > 0 {
                    times[way].push(taken);
                }
            }
        }
    }
    Ok(times)
}

/// The median and the least, in milliseconds.
fn summary(seconds: &[f64]) -> [f64; 2] {
    let mut sorted = seconds.to_vec();
    sorted.sort_by(f64::total_cmp);
    [sorted.get(sorted.len() / 2), sorted.first()].map(|value| value.map_or(f64::NAN, |value| 1e3 * value))
}

fn print(args: &Args, name: &str, distance: f32, times: &Times) {
    let rows =
        COUNTS.iter().zip(times).map(|(count, times)| (*count, times.each_ref().map(|way| summary(way))));
    let rows: Vec<(usize, [[f64; 2]; 3])> = rows.collect();
    if args.json {
        let entry = |(count, ways): &(usize, [[f64; 2]; 3])| {
            let of = |[median, least]: [f64; 2]| json!({"median_ms": median, "least_ms": least});
            let ways = WAYS.iter().zip(ways).map(|(name, times)| ((*name).to_owned(), of(*times)));
            json!({"n": count, "times": ways.collect::<serde_json::Map<_, _>>()})
        };
        let rows: Vec<Value> = rows.iter().map(entry).collect();
        println!(
            "{}",
            json!({
                "model": name, "context": args.context, "repeats": args.repeats,
                "threads": std::thread::available_parallelism().map_or(1, usize::from),
                "difference_of_logits": distance, "passes": rows,
            })
        );
        return;
    }
    println!(
        "{name}, context {}, {} repeats, median / least; logits differ by {distance:.1e} of the largest\n",
        args.context, args.repeats
    );
    println!("| n | candle-transformers, ms | domino, ms | domino / candle | domino, all rows, ms |");
    println!("|---|---|---|---|---|");
    for (count, [peer, own, all]) in rows {
        println!(
            "| {count} | {:.2} / {:.2} | {:.2} / {:.2} | {:.2} / {:.2} | {:.2} / {:.2} |",
            peer[0],
            peer[1],
            own[0],
            own[1],
            own[0] / peer[0],
            own[1] / peer[1],
            all[0],
            all[1]
        );
    }
}
