//! Speculation by the paper's protocol: ten warm-ups, then a fixed prior; unconstrained, constrained and
//! speculative runs of the same prompts and seeds, interleaved.

#[path = "../../../tests/support/delegate.rs"]
mod delegate;
mod measure;
mod paced;
#[path = "../prompts.rs"]
mod prompts;
mod report;

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use clap::Parser;
use domino::{
    Compiler, Grammar, Limits, Syntax, Vocabulary,
    decode::{Decoder, Sampling},
    model::{
        Model,
        candle::{CandleModel, CardMode, LoadOptions, Placement, Precision, TensorModel, join_threads},
    },
    proposer::{DraftLength, Prior},
    vocab::Tokenizer,
};

use crate::{
    measure::{Cell, Protocol, Which},
    paced::{Pace, Paced},
    prompts::prompts,
    report::Row,
};

/// Measures speculation against unconstrained runs of the same model.
#[derive(Debug, Parser)]
struct Args {
    /// Shipped grammars to measure.
    #[arg(default_values = ["json", "gsm8k", "xml_person", "rpg", "c"])]
    grammars: Vec<String>,
    /// The model's folder.
    #[arg(long, default_value = "models/domino-small")]
    model: PathBuf,
    /// Runs that the prior is learnt from.
    #[arg(long, default_value_t = 10)]
    warmups: usize,
    /// A folder of priors to use instead of warm-ups, one NAME.prior for each grammar.
    #[arg(long)]
    priors: Option<PathBuf>,
    /// Runs measured.
    #[arg(long, default_value_t = 100)]
    runs: usize,
    /// Most tokens of a run.
    #[arg(long, default_value_t = 128)]
    tokens: usize,
    /// Temperature of the draws.
    #[arg(long, default_value_t = 1.0)]
    temperature: f64,
    /// Proposers to use.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["counts", "lookup"])]
    proposers: Vec<Which>,
    /// Drafts of up to so many tokens, instead of as long as pays.
    #[arg(long)]
    draft: Option<usize>,
    /// Let passes take as long as those of another model, for example 1:13.3,2:15.3,4:19.8,8:32.5,16:62.5
    /// (tokens and milliseconds): a replay of this model's acceptance at that one's pace.
    #[arg(long)]
    pace: Option<Pace>,
    /// Run the model on this device, cpu or cuda; texts that differ with drafts are counted on a card.
    #[arg(long, default_value = "cpu")]
    device: Placement,
    /// The numbers on a card.
    #[arg(long)]
    precision: Option<Precision>,
    /// The kernels on a card: exact, fast or blocks.
    #[arg(long)]
    card: Option<CardMode>,
    /// The folder with `grammars` and `experiments/train/prompts.jsonl`.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/.."))]
    root: PathBuf,
    /// Budget of seconds for all grammars together, in equal shares.
    #[arg(long)]
    seconds: Option<f64>,
    /// Write each cell as a line of JSON to this file.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    ensure!(args.runs > 0 && args.tokens > 1, "there is nothing to measure");
    join_threads(None);
    let length = match args.draft {
        Some(tokens) => DraftLength::up_to(tokens, 0.0)?,
        None => DraftLength::Auto,
    };
    #[expect(clippy::cast_precision_loss, reason = "a handful of grammars")]
    let share = args.grammars.len().max(1) as f64;
    let protocol = Protocol {
        sampling: Sampling::with_temperature(args.temperature)?,
        warmups: args.warmups,
        runs: args.runs,
        tokens: args.tokens,
        proposers: args.proposers.clone(),
        length,
        seconds: args.seconds.map_or(f64::INFINITY, |seconds| seconds / share),
        counts_differences: args.device.card.is_some(),
    };
    let options = LoadOptions::default();
    if args.device.card.is_none() {
        if args.precision.is_some() || args.card.is_some() {
            bail!("--precision and --card: only with --device cuda");
        }
        return measure(&args, &protocol, CandleModel::load(&args.model, &options)?);
    }
    let place = args.device.with_precision(args.precision.unwrap_or(args.device.precision));
    let place = place.with_mode(args.card.unwrap_or_default());
    measure(&args, &protocol, TensorModel::load(&args.model, &options, place)?)
}

/// Measures `model` on all grammars, prints the table and writes the file.
fn measure<M: Model>(args: &Args, protocol: &Protocol, model: M) -> anyhow::Result<()> {
    let vocabulary = Vocabulary::from_tokenizer_file(&args.model)?;
    let tokenizer = Tokenizer::from_tokenizer_file(&args.model)?;
    let model = Paced::new(model, args.pace.clone());
    let mut decoder = Decoder::builder(model).vocabulary(vocabulary.clone()).build()?;
    let mut rows = Vec::new();
    for name in &args.grammars {
        let grammars = args.root.join("grammars");
        let path = grammars.join("paper").join(name).with_extension("gbnf");
        let of_program = || grammars.join(name).with_extension("gbnf");
        let path = if path.is_file() { path } else { of_program() };
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let grammar = Grammar::parse(Syntax::Gbnf, &text, &Limits::default())?;
        let compiled = Compiler::new(vocabulary.clone()).compile(&grammar)?;
        compiled.grow_trees();
        let prompts = prompts(&args.root, name, &tokenizer)?;
        let given = match &args.priors {
            Some(folder) => {
                let file = folder.join(name).with_extension("prior");
                let bytes = std::fs::read(&file).with_context(|| file.display().to_string())?;
                Some(Prior::from_bytes(&bytes, &compiled)?)
            }
            None => None,
        };
        let cell = Cell { grammar: &compiled, prompts, given };
        let measured = cell.measure(&mut decoder, protocol)?;
        let row = Row::new(name, &measured);
        row.print(rows.is_empty());
        rows.push(row);
    }
    if let Some(file) = &args.out {
        let lines: Vec<String> = rows.iter().map(|row| row.json(protocol)).collect();
        std::fs::write(file, lines.join("\n") + "\n")?;
    }
    Ok(())
}
