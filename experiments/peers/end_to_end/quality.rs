//! Effect of quantised weights, or keys and values, on the distribution of the next token, in Domino and in
//! llama.cpp.
//!
//!     cargo experiment quality -- small-f32.gguf small-q8_0.gguf tokens.txt [q8_0.rows]
//!     cargo experiment quality -- models/domino-small models/domino-small tokens.txt --kv q8_0
//!
//! The measure is the mean Kullback-Leibler divergence, in nats, of the quantised model's distribution from
//! that of the f32 file in this runner, over all positions of all texts. `tokens.txt` has the token ids of a
//! text on each line; a file of rows is what `llama_cpp rows` writes for the same texts.

use std::{
    fs::File,
    io::{BufReader, Read},
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use clap::Parser;
use domino::{
    TokenId,
    model::{
        Logits, Model, Rows,
        candle::{CandleModel, KvFormat, LoadOptions},
    },
};
use serde_json::json;

/// Measures the divergence of quantised models from the f32 one.
#[derive(Debug, Parser)]
struct Args {
    /// The model in f32.
    reference: PathBuf,
    /// The quantised model.
    quantised: PathBuf,
    /// Token ids, a text a line.
    tokens: PathBuf,
    /// Logits of the same texts from llama.cpp.
    rows: Option<PathBuf>,
    /// Number format of keys and values of the quantised model: f32, f16 or q8_0.
    #[arg(long, default_value = "f32")]
    kv: KvFormat,
}

/// Sums over positions.
#[derive(Debug, Default)]
struct Sums {
    divergences: Vec<f64>,
    /// Number of positions at which both have the same likeliest token.
    same: usize,
}

impl Sums {
    fn add(&mut self, reference: &[f32], other: &[f32]) {
        self.divergences.push(divergence(reference, other));
        self.same += usize::from(best(reference) == best(other));
    }

    /// The mean, its standard error, and the share of positions with the same likeliest token.
    fn object(&self) -> serde_json::Value {
        let count = self.divergences.len() as f64;
        let mean = self.divergences.iter().sum::<f64>() / count;
        let squares = self.divergences.iter().map(|value| (value - mean).powi(2));
        let variance = squares.sum::<f64>() / (count - 1.0);
        json!({
            "positions": self.divergences.len(),
            "mean_kl": mean,
            "standard_error": (variance / count).sqrt(),
            "same_best": self.same as f64 / count,
        })
    }
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let text = std::fs::read_to_string(&args.tokens).with_context(|| args.tokens.display().to_string())?;
    let texts = text
        .lines()
        .map(|line| line.split_whitespace().map(|id| Ok(TokenId::new(id.parse()?))).collect())
        .collect::<anyhow::Result<Vec<Vec<TokenId>>>>()?;
    let mut reference = load(&args.reference, &LoadOptions::default())?;
    let mut options = LoadOptions::default();
    options.kv = args.kv;
    let mut quantised = load(&args.quantised, &options)?;
    options.exact_products = true;
    let mut exact = load(&args.quantised, &options)?;
    let mut peer = args.rows.as_deref().map(rows).transpose()?;
    let (mut ours, mut unrounded, mut theirs) = (Sums::default(), Sums::default(), Sums::default());
    for tokens in &texts {
        let [reference, quantised, exact] =
            [logits(&mut reference, tokens)?, logits(&mut quantised, tokens)?, logits(&mut exact, tokens)?];
        for at in 0..tokens.len() {
            let row = reference.row(at).context("a row")?;
            ours.add(row, quantised.row(at).context("a row")?);
            unrounded.add(row, exact.row(at).context("a row")?);
            if let Some(peer) = &mut peer {
                theirs.add(row, &next_row(peer, row.len())?);
            }
        }
    }
    ensure!(ours.divergences.len() > 1, "{} has no texts", args.tokens.display());
    let peer = peer.map(|_| theirs.object());
    let (ours, unrounded) = (ours.object(), unrounded.object());
    println!("{}", json!({ "domino": ours, "exact products": unrounded, "llama.cpp": peer }));
    Ok(())
}

fn load(path: &Path, options: &LoadOptions) -> anyhow::Result<CandleModel> {
    CandleModel::load(path, options).with_context(|| path.display().to_string())
}

/// Rows of all positions of a text.
fn logits(model: &mut CandleModel, tokens: &[TokenId]) -> anyhow::Result<Logits> {
    model.truncate(0)?;
    Ok(model.forward(tokens, Rows::All)?)
}

fn rows(path: &Path) -> anyhow::Result<BufReader<File>> {
    Ok(BufReader::new(File::open(path).with_context(|| path.display().to_string())?))
}

fn next_row(file: &mut BufReader<File>, width: usize) -> anyhow::Result<Vec<f32>> {
    let mut bytes = vec![0; width * size_of::<f32>()];
    file.read_exact(&mut bytes).context("the file of rows is of other texts or another vocabulary")?;
    Ok(bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect())
}

/// Kullback-Leibler divergence of the distribution of `other` from that of `reference`, in nats.
fn divergence(reference: &[f32], other: &[f32]) -> f64 {
    let (p, q) = (log_sum(reference), log_sum(other));
    let terms = reference.iter().zip(other).map(|(&a, &b)| {
        let a = f64::from(a) - p;
        a.exp() * (a - (f64::from(b) - q))
    });
    terms.sum()
}

fn log_sum(row: &[f32]) -> f64 {
    let most = f64::from(row.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    most + row.iter().map(|&value| (f64::from(value) - most).exp()).sum::<f64>().ln()
}

fn best(row: &[f32]) -> Option<usize> {
    row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map(|(index, _)| index)
}
