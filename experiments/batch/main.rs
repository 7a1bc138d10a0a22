//! Texts a second when several are generated at once: 1, 2, 4 and 8, interleaved, the same prompts and seeds.
//!
//!     cargo run --release --example batch -- [--rounds N] [--tokens N] [--model DIR] [--speculate]
//!
//! Every text has its own constraint (the paper's five grammars in turn). That all sizes write the same texts is
//! checked on the way.

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
    model::candle::{CandleBatch, LoadOptions},
    proposer::{BestOf, CountProposer, DraftLength, Drafter, Learning, Lookup, Prior},
    vocab::Tokenizer,
};

const SIZES: [usize; 4] = [1, 2, 4, 8];
const GRAMMARS: [&str; 5] = ["json", "gsm8k", "xml_person", "rpg", "c"];

/// Measures the throughput of batches.
#[derive(Debug, Parser)]
struct Args {
    /// The model's folder or file.
    #[arg(long, default_value = "models/domino-small")]
    model: PathBuf,
    /// Where the tokenizer is, if not with the model.
    #[arg(long)]
    tokenizer: Option<PathBuf>,
    /// How often all texts are generated at each size; the median is told.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Most tokens of a text.
    #[arg(long, default_value_t = 128)]
    tokens: usize,
    /// Leave the grammars out.
    #[arg(long)]
    free: bool,
    /// Draft with the priors that come with the model.
    #[arg(long, conflicts_with = "free")]
    speculate: bool,
}

/// What is to be written.
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

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    ensure!(args.rounds > 0 && args.tokens > 0, "there is nothing to measure");
    let tokenizer = args.tokenizer.as_ref().unwrap_or(&args.model);
    let vocabulary = Vocabulary::from_tokenizer_file(tokenizer)?;
    let requests = requests(&args, &Tokenizer::from_tokenizer_file(tokenizer)?, &vocabulary)?;
    let places = NonZeroUsize::new(SIZES[SIZES.len() - 1]).context("places")?;
    let model = CandleBatch::load(&args.model, places, &LoadOptions::default())?;
    let mut decoder = BatchDecoder::new(model, vocabulary)?;
    if args.speculate {
        decoder.calibrate()?;
    }
    // Warms caches of masks up, so that every size finds the same.
    let expected = round(&mut decoder, &requests, SIZES[0])?.texts;
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); SIZES.len()];
    let mut last = Vec::new();
    for number in 0..args.rounds {
        last.clear();
        // Each size is first in turn.
        for index in (0..SIZES.len()).map(|index| (index + number) % SIZES.len()) {
            let round = round(&mut decoder, &requests, SIZES[index])?;
            ensure!(round.texts == expected, "a batch of {} wrote other texts", SIZES[index]);
            times[index].push(round.seconds);
            last.push((index, round));
        }
    }
    last.sort_unstable_by_key(|(index, _)| *index);
    println!("{} texts, {} rounds", requests.len(), args.rounds);
    println!("| at once | tokens/s | to one after the other | tokens a pass | ms a pass |");
    println!("|---|---|---|---|---|");
    let mut alone = None;
    for ((_, round), times) in last.iter().zip(&mut times) {
        times.sort_unstable_by(f64::total_cmp);
        let seconds = times[times.len() / 2];
        #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
        let (tokens, passes) = (round.tokens as f64, round.passes as f64);
        let rate = tokens / seconds;
        let alone = *alone.get_or_insert(rate);
        let size = SIZES[last.iter().position(|(_, other)| std::ptr::eq(other, round)).unwrap_or(0)];
        let (gain, rows, pass) = (rate / alone, tokens / passes, 1e3 * seconds / passes);
        println!("| {size} | {rate:.0} | {gain:.2} | {rows:.2} | {pass:.2} |");
    }
    Ok(())
}

/// Generates all texts, never more than `size` at once.
fn round(
    decoder: &mut BatchDecoder<CandleBatch>,
    requests: &[Request],
    size: usize,
) -> anyhow::Result<Round> {
    let begun = Instant::now();
    let passes = decoder.passes();
    let mut texts = vec![Vec::new(); requests.len()];
    let mut running: HashMap<SequenceId, usize> = HashMap::new();
    let mut next = 0;
    while next < requests.len() || !decoder.is_empty() {
        while next < requests.len() && decoder.len() < size {
            let Request { prompt, grammar, prior, options } = &requests[next];
            let constraint = grammar.as_ref().map(CompiledGrammar::constraint);
            let sequence = match prior {
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
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let prompts = std::fs::read_to_string(root.join("experiments/train/prompts.jsonl"))?;
    let mut requests = Vec::new();
    for name in GRAMMARS {
        let text = std::fs::read_to_string(root.join("grammars").join(name).with_extension("gbnf"))?;
        let grammar = Grammar::parse(Syntax::Gbnf, &text, &Limits::default())?;
        let compiled = Compiler::new(vocabulary.clone()).compile(&grammar)?;
        compiled.grow_trees();
        let prior = match args.speculate {
            true => {
                let file = args.model.join("priors").join(name).with_extension("prior");
                let prior = Prior::from_bytes(&std::fs::read(file)?, &compiled)?;
                Some(Arc::new(CountProposer::new(prior, Learning::Text)))
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
