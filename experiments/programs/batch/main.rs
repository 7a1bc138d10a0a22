//! Throughput of several texts at once: 1, 2, 4 and 8, interleaved, with the same prompts and seeds.
//!
//!     cargo experiment batch -- [--rounds N] [--tokens N] [--at-once N,N] [--model DIR] [--speculate]
//!
//! Every text has its own constraint (the paper's five grammars in turn). That all sizes write the same texts
//! is checked on the way. With `--speculate` each size takes its turn without and with drafts.

use std::{
    collections::HashMap,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use anyhow::{Context, bail, ensure};
use clap::Parser;
use domino::{
    CompiledGrammar, Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary,
    decode::{BatchDecoder, BatchEvent, DecodeOptions, Sampling, SequenceId},
    model::candle::{CandleBatch, LoadOptions, join_threads},
    proposer::{BestOf, CountProposer, DraftLength, Drafter, Learning, Lookup, Prior},
    vocab::Tokenizer,
};

const GRAMMARS: [&str; 5] = ["json", "gsm8k", "xml_person", "rpg", "c"];

/// Measures the throughput of batches.
#[derive(Debug, Parser)]
struct Args {
    /// The model's folder or file.
    #[arg(long, default_value = "models/domino-small")]
    model: PathBuf,
    /// Place of the tokenizer, if it is not with the model.
    #[arg(long)]
    tokenizer: Option<PathBuf>,
    /// Number of times that all texts are generated at each size; medians are printed.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Most tokens of a text.
    #[arg(long, default_value_t = 128)]
    tokens: usize,
    /// Numbers of texts at once, measured in turn.
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1,2,4,8")]
    at_once: Vec<NonZeroUsize>,
    /// Leave the grammars out.
    #[arg(long)]
    free: bool,
    /// Draft with the priors that come with the model; where it has none, by what each text teaches.
    #[arg(long, conflicts_with = "free")]
    speculate: bool,
}

/// A text to be generated.
struct Request {
    prompt: Vec<TokenId>,
    grammar: Option<CompiledGrammar>,
    prior: Option<Arc<CountProposer>>,
    options: DecodeOptions,
}

/// All requests once.
struct Round {
    seconds: f64,
    tokens: usize,
    passes: usize,
    texts: Vec<Vec<TokenId>>,
}

/// The rounds of one size and way of drafting.
struct Cell {
    size: NonZeroUsize,
    drafts: bool,
    /// Rounds in the order in which they were made.
    rounds: Vec<Round>,
}

impl Cell {
    fn median(&self) -> &Round {
        let mut rounds: Vec<&Round> = self.rounds.iter().collect();
        rounds.sort_unstable_by(|one, other| one.seconds.total_cmp(&other.seconds));
        rounds[rounds.len() / 2]
    }
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

impl Round {
    /// Tokens a second.
    fn rate(&self) -> f64 {
        count(self.tokens) / self.seconds
    }

    fn tokens_per_pass(&self) -> f64 {
        count(self.tokens) / count(self.passes)
    }
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    ensure!(args.rounds > 0 && args.tokens > 0, "there is nothing to measure");
    join_threads(None);
    let tokenizer = args.tokenizer.as_ref().unwrap_or(&args.model);
    let vocabulary = Vocabulary::from_tokenizer_file(tokenizer)?;
    let requests = requests(&args, &Tokenizer::from_tokenizer_file(tokenizer)?, &vocabulary)?;
    let (places, one) =
        (args.at_once.iter().max().context("there is nothing to measure")?, NonZeroUsize::MIN);
    let model = CandleBatch::load(&args.model, *places, &LoadOptions::default())?;
    let mut decoder = BatchDecoder::new(model, vocabulary)?;
    if args.speculate {
        decoder.calibrate()?;
    }
    // Warms caches of masks up, so that every size finds the same.
    let expected = round(&mut decoder, &requests, one, false)?.texts;
    let kinds: &[bool] = if args.speculate { &[false, true] } else { &[false] };
    let mut cells: Vec<Cell> = args
        .at_once
        .iter()
        .flat_map(|&size| kinds.iter().map(move |&drafts| (size, drafts)))
        .map(|(size, drafts)| Cell { size, drafts, rounds: Vec::new() })
        .collect();
    for number in 0..args.rounds {
        // Each cell is first in turn.
        let count = cells.len();
        for turn in 0..count {
            let cell = &mut cells[(turn + number) % count];
            let round = round(&mut decoder, &requests, cell.size, cell.drafts)?;
            ensure!(round.texts == expected, "a batch of {} wrote other texts", cell.size);
            cell.rounds.push(round);
        }
    }
    println!("{} texts, {} rounds", requests.len(), args.rounds);
    tell(&cells);
    Ok(())
}

/// Prints what several texts at once gain, and what drafts do.
fn tell(cells: &[Cell]) {
    println!(
        "| at once | drafts | tokens/s | to one after the other | to no drafts | tokens a pass | ms a pass |"
    );
    println!("|---|---|---|---|---|---|---|");
    let rate = |size: NonZeroUsize, drafts: bool| {
        whole(cells, size, drafts).map_or(f64::NAN, |cell| cell.median().rate())
    };
    for cell in cells {
        let (median, drafts) = (cell.median(), if cell.drafts { "yes" } else { "no" });
        let (size, own) = (cell.size, median.rate());
        let (alone, plain) = (own / rate(NonZeroUsize::MIN, cell.drafts), own / rate(size, false));
        let (a_pass, pass) = (median.tokens_per_pass(), 1e3 * median.seconds / count(median.passes));
        println!("| {size} | {drafts} | {own:.0} | {alone:.2} | {plain:.2} | {a_pass:.2} | {pass:.2} |");
    }
}

/// The cell of a size and way of drafting.
fn whole(cells: &[Cell], size: NonZeroUsize, drafts: bool) -> Option<&Cell> {
    cells.iter().find(|cell| (cell.size, cell.drafts) == (size, drafts))
}

/// Generates all texts, at most `size` at once.
fn round(
    decoder: &mut BatchDecoder<CandleBatch>,
    requests: &[Request],
    size: NonZeroUsize,
    drafts: bool,
) -> anyhow::Result<Round> {
    let begun = Instant::now();
    let passes = decoder.passes();
    let mut texts = vec![Vec::new(); requests.len()];
    let mut running: HashMap<SequenceId, usize> = HashMap::new();
    let mut next = 0;
    while next < requests.len() || !decoder.is_empty() {
        while next < requests.len() && decoder.len() < size.get() {
            let Request { prompt, grammar, prior, options } = &requests[next];
            let constraint = grammar.as_ref().map(CompiledGrammar::constraint);
            let sequence = match prior.as_ref().filter(|_| drafts) {
                Some(prior) => {
                    let proposer = BestOf::new(vec![Box::new(prior.another()), Box::new(Lookup::default())]);
                    let drafter = Drafter::new(Box::new(proposer), DraftLength::Auto);
                    decoder.add_with_drafter(prompt, constraint, options, drafter)?
                }
                None => decoder.add(prompt, constraint, options)?,
            };
            running.insert(sequence, next);
            next += 1;
        }
        for event in decoder.step() {
            match event {
                BatchEvent::Finished { sequence, generation } => {
                    let request = running.get(&sequence).context("a sequence that was added")?;
                    texts[*request] = generation.tokens;
                }
                BatchEvent::Failed { error, .. } => bail!(error),
                _ => {}
            }
        }
    }
    Ok(Round {
        seconds: begun.elapsed().as_secs_f64(),
        tokens: texts.iter().map(Vec::len).sum(),
        passes: decoder.passes() - passes,
        texts,
    })
}

/// All prompts of all grammars, mixed.
fn requests(args: &Args, tokenizer: &Tokenizer, vocabulary: &Vocabulary) -> anyhow::Result<Vec<Request>> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let prompts = std::fs::read_to_string(root.join("experiments/train/prompts.jsonl"))?;
    let mut requests = Vec::new();
    for name in GRAMMARS {
        let text = std::fs::read_to_string(root.join("grammars/paper").join(name).with_extension("gbnf"))?;
        let grammar = Grammar::parse(Syntax::Gbnf, &text, &Limits::default())?;
        let compiled = Compiler::new(vocabulary.clone()).compile(&grammar)?;
        compiled.grow_trees();
        let prior = match args.speculate {
            true => {
                let file = args.model.join("priors").join(name).with_extension("prior");
                let prior = match file.is_file() {
                    true => Prior::from_bytes(&std::fs::read(file)?, &compiled)?,
                    false => Prior::new(&compiled),
                };
                Some(Arc::new(CountProposer::new(prior, Learning::PerText)))
            }
            false => None,
        };
        for (number, line) in (0..).zip(prompts.lines()) {
            let line: serde_json::Value = serde_json::from_str(line)?;
            if line["task"] != name {
                continue;
            }
            let prompt = tokenizer.encode(line["prompt"].as_str().context("a prompt")?, true)?;
            let mut options = DecodeOptions::default();
            options.sampling = Sampling::with_temperature(1.0)?;
            (options.seed, options.max_new_tokens) = (number, args.tokens);
            requests.push((
                number % 5,
                Request {
                    prompt,
                    grammar: (!args.free).then(|| compiled.clone()),
                    prior: prior.clone(),
                    options,
                },
            ));
        }
    }
    requests.sort_by_key(|(turn, _)| *turn);
    ensure!(!requests.is_empty(), "no prompts");
    Ok(requests.into_iter().map(|(_, request)| request).collect())
}
