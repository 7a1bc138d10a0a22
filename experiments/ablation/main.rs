//! Which parts of the draft controller earn their keep: drafts without each part beside drafts with all.
//!
//!     cargo experiment ablation -- [--seeds N] [--tokens N] [--sequences N] [--prior shipped|none|model] [--fresh]
//!
//! All variants write the same texts in turn, in one process, so that what drifts is the same for all. The unit is a
//! prompt (or a group of prompts that share their passes); its ratio is that of the sums over seeds.

use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context, bail, ensure};
use clap::{Parser, ValueEnum};
use domino::{
    CompiledGrammar, Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary,
    decode::{BatchDecoder, BatchEvent, DecodeOptions, Decoder, DraftModel, Measured, Sampling},
    experiment::statistics::{self, Estimate},
    model::candle::{CandleBatch, CandleModel, LoadOptions, join_threads},
    proposer::{
        BestOf, CountProposer, DraftLength, Drafter, ForcedText, Learning, Lookup, Part, Prior, Propose,
        Without,
    },
    vocab::Tokenizer,
};

const GRAMMARS: [&str; 5] = ["json", "gsm8k", "xml_person", "rpg", "c"];

/// Measures the parts of the draft controller.
#[derive(Debug, Parser)]
struct Args {
    /// The model's folder.
    #[arg(long, default_value = "models/domino-small")]
    model: PathBuf,
    /// Texts of each prompt.
    #[arg(long, default_value_t = 4)]
    seeds: u64,
    /// The first of their seeds.
    #[arg(long, default_value_t = 100)]
    first: u64,
    /// How often each is written by each variant; the median counts.
    #[arg(long, default_value_t = 3)]
    repeats: usize,
    /// Most tokens of a text.
    #[arg(long, default_value_t = 96)]
    tokens: usize,
    /// How many texts share their passes.
    #[arg(long, default_value = "1")]
    sequences: NonZeroUsize,
    /// What guesses begin with.
    #[arg(long, value_enum, default_value = "shipped")]
    prior: Start,
    /// Only these variants, beside the whole.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// And one without all of these at once.
    #[arg(long, value_delimiter = ',')]
    together: Vec<String>,
    /// A drafter for each text, and what `calibrate` brings it, in place of parts left out.
    #[arg(long)]
    fresh: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Start {
    Shipped,
    None,
    /// Nothing, and the model itself drafts beside: guesses that take as long as what they save.
    Model,
}

/// A way to draft: without drafts, or without some parts.
struct Variant {
    name: &'static str,
    parts: Option<Without>,
    part: Option<Part>,
    calibrated: bool,
}

/// The grammars, and what guesses their texts.
struct Task {
    grammar: CompiledGrammar,
    counts: CountProposer,
    forced: ForcedText,
    /// The folder and vocabulary of the model that drafts.
    model: Option<(PathBuf, Vocabulary)>,
}

/// One text to be written.
struct Request {
    task: usize,
    prompt: Vec<TokenId>,
}

impl Task {
    fn drafter(&self, parts: Without) -> anyhow::Result<Drafter> {
        let proposers: Vec<Box<dyn Propose>> = vec![
            Box::new(self.counts.another().without(parts)),
            Box::new(self.forced.clone()),
            Box::new(Lookup::default()),
        ];
        let mut best = BestOf::new(proposers);
        if let Some((model, vocabulary)) = &self.model {
            let model = CandleModel::load(model, &LoadOptions::default())?;
            best = best.with_dear(Box::new(DraftModel::new(model, vocabulary, vocabulary)?));
        }
        Ok(Drafter::new(Box::new(best), DraftLength::Auto).without(parts))
    }
}

fn variants(args: &Args) -> anyhow::Result<Vec<Variant>> {
    let whole = Without::default();
    let part =
        |name, part| Variant { name, parts: Some(whole.and(part)), part: Some(part), calibrated: true };
    let mut all = vec![
        Variant { name: "whole", parts: Some(whole), part: None, calibrated: true },
        Variant { name: "whole again", parts: Some(whole), part: None, calibrated: true },
        Variant { name: "no drafts", parts: None, part: None, calibrated: true },
    ];
    if args.fresh {
        all.push(Variant { name: "calibrate", parts: Some(whole), part: None, calibrated: false });
    } else {
        all.extend([
            part("rest", Part::Rest),
            part("effort", Part::Effort),
            part("correction", Part::Correction),
            part("kinds", Part::Kinds),
            part("calibration", Part::Calibration),
            part("curve", Part::Curve),
            part("isotonic", Part::Isotonic),
            part("medians", Part::Medians),
            part("rows", Part::Rows),
            part("machine-pace", Part::MachinePace),
            part("text-pace", Part::TextPace),
            part("bound", Part::Bound),
        ]);
        if args.sequences.get() > 1 {
            all.extend([
                part("joint", Part::Joint),
                part("blocks", Part::Blocks),
                part("margin", Part::Margin),
            ]);
        }
    }
    let known =
        |name: &String| all.iter().find(|known| known.name == name.as_str()).and_then(|known| known.part);
    if !args.together.is_empty() {
        let parts =
            args.together.iter().map(|name| known(name).with_context(|| format!("{name} is no part")));
        let parts = parts.collect::<anyhow::Result<Vec<_>>>()?.into_iter().fold(whole, Without::and);
        all.push(Variant { name: "all of these", parts: Some(parts), part: None, calibrated: true });
    }
    if let Some(wrong) = args.only.iter().find(|name| all.iter().all(|known| known.name != name.as_str())) {
        bail!("{wrong} is no variant");
    }
    let wanted = |known: &Variant| {
        args.only.is_empty()
            || known.name == "all of these"
            || args.only.iter().any(|name| name == known.name)
    };
    Ok(all
        .into_iter()
        .enumerate()
        .filter(|(at, known)| *at < 3 || wanted(known))
        .map(|(_, known)| known)
        .collect())
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    ensure!(args.seeds > 0 && args.tokens > 0 && args.repeats > 0, "there is nothing to measure");
    join_threads(None);
    let vocabulary = Vocabulary::from_tokenizer_file(&args.model)?;
    let tokenizer = Tokenizer::from_tokenizer_file(&args.model)?;
    let (tasks, requests) = load(&args, &tokenizer, &vocabulary)?;
    let variants = variants(&args)?;
    let times = if args.sequences.get() == 1 {
        single(&args, &vocabulary, &tasks, &requests, &variants)?
    } else {
        batches(&args, &vocabulary, &tasks, &requests, &variants)?
    };
    report(&variants, &times);
    Ok(())
}

fn load(
    args: &Args,
    tokenizer: &Tokenizer,
    vocabulary: &Vocabulary,
) -> anyhow::Result<(Vec<Task>, Vec<Request>)> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let prompts = std::fs::read_to_string(root.join("experiments/train/prompts.jsonl"))?;
    let (mut tasks, mut requests) = (Vec::new(), Vec::new());
    for (task, name) in GRAMMARS.into_iter().enumerate() {
        let text = std::fs::read_to_string(root.join("grammars").join(name).with_extension("gbnf"))?;
        let grammar = Compiler::new(vocabulary.clone()).compile(&Grammar::parse(
            Syntax::Gbnf,
            &text,
            &Limits::default(),
        )?)?;
        grammar.grow_trees();
        let mut forced = ForcedText::new(tokenizer.clone(), vocabulary.clone());
        let prior = match args.prior {
            Start::Shipped => {
                let file = args.model.join("priors").join(name).with_extension("prior");
                Prior::from_bytes(&std::fs::read(file)?, &grammar)?
            }
            Start::None | Start::Model => {
                forced = forced.with_spellings();
                Prior::new(&grammar)
            }
        };
        let model = (args.prior == Start::Model).then(|| (args.model.clone(), vocabulary.clone()));
        tasks.push(Task { grammar, counts: CountProposer::new(prior, Learning::Text), forced, model });
        for (number, line) in prompts.lines().enumerate() {
            let line: serde_json::Value = serde_json::from_str(line)?;
            if line["task"] == name {
                let prompt = tokenizer.encode(line["prompt"].as_str().context("a prompt")?, true)?;
                requests.push((number % 5, Request { task, prompt }));
            }
        }
    }
    requests.sort_by_key(|(turn, _)| *turn);
    ensure!(!requests.is_empty(), "no prompts");
    Ok((tasks, requests.into_iter().map(|(_, request)| request).collect()))
}

fn options(args: &Args, seed: u64) -> anyhow::Result<DecodeOptions> {
    let mut options = DecodeOptions::default();
    options.sampling = Sampling::with_temperature(1.0)?;
    (options.seed, options.max_new_tokens) = (seed, args.tokens);
    Ok(options)
}

/// Seconds by prompt and variant, summed over seeds.
fn single(
    args: &Args,
    vocabulary: &Vocabulary,
    tasks: &[Task],
    requests: &[Request],
    variants: &[Variant],
) -> anyhow::Result<Vec<Vec<f64>>> {
    let model = CandleModel::load(&args.model, &LoadOptions::default())?;
    let mut decoder = Decoder::builder(model).vocabulary(vocabulary.clone()).build()?;
    // By variant and grammar: they learn from text to text, as in a program that writes many.
    let mut drafters: Vec<Vec<Option<Drafter>>> = variants
        .iter()
        .map(|variant| {
            tasks.iter().map(|task| variant.parts.map(|parts| task.drafter(parts)).transpose()).collect()
        })
        .collect::<anyhow::Result<_>>()?;
    let mut times = vec![vec![0.0; variants.len()]; requests.len()];
    // The first seed warms caches up.
    for (round, seed) in (args.first..=args.first + args.seeds).enumerate() {
        for (number, request) in requests.iter().enumerate() {
            let task = &tasks[request.task];
            decoder.set_constraint(Some(task.grammar.constraint()))?;
            *decoder.options_mut() = options(args, seed)?;
            let mut expected = None;
            let mut taken = vec![Vec::new(); variants.len()];
            for turn in 0..variants.len() * args.repeats {
                let which = (turn + round + number) % variants.len();
                let variant = &variants[which];
                let drafter = match variant.parts.filter(|_| args.fresh) {
                    Some(parts) => Some(task.drafter(parts)?),
                    None => drafters[which][request.task].take(),
                };
                decoder.set_drafter(drafter);
                let begun = Instant::now();
                if variant.calibrated {
                    decoder.calibrate()?;
                }
                let calibrated = begun.elapsed();
                let begun = if args.fresh { begun } else { begun + calibrated };
                let text = decoder.generate(&request.prompt)?;
                let seconds = begun.elapsed().as_secs_f64();
                ensure!(*expected.get_or_insert_with(|| text.tokens.clone()) == text.tokens, "another text");
                drafters[which][request.task] = decoder.set_drafter(None);
                taken[which].push(seconds);
            }
            if round > 0 {
                times[number].iter_mut().zip(taken).for_each(|(time, taken)| *time += median(taken));
            }
        }
    }
    Ok(times)
}

/// Seconds by group of prompts and variant, summed over nothing: each seed makes groups of its own.
fn batches(
    args: &Args,
    vocabulary: &Vocabulary,
    tasks: &[Task],
    requests: &[Request],
    variants: &[Variant],
) -> anyhow::Result<Vec<Vec<f64>>> {
    let model = CandleBatch::load(&args.model, args.sequences, &LoadOptions::default())?;
    let mut decoder = BatchDecoder::new(model, vocabulary.clone())?;
    let mut measured: Vec<Option<Measured>> = Vec::new();
    for variant in variants {
        decoder.without(variant.parts.unwrap_or_default(), None);
        decoder.calibrate()?;
        measured.push(Some(decoder.without(Without::default(), None)));
    }
    let mut times = Vec::new();
    for (round, seed) in (args.first..=args.first + args.seeds).enumerate() {
        for (number, group) in requests.chunks_exact(args.sequences.get()).enumerate() {
            let (mut taken, mut expected) = (vec![Vec::new(); variants.len()], None);
            for turn in 0..variants.len() * args.repeats {
                let which = (turn + round + number) % variants.len();
                let variant = &variants[which];
                let parts = variant.parts.unwrap_or_default();
                decoder.without(parts, measured[which].take().filter(|_| !args.fresh));
                let begun = Instant::now();
                if args.fresh && variant.calibrated && variant.parts.is_some() {
                    decoder.calibrate()?;
                }
                let texts = write(&mut decoder, group, tasks, &options(args, seed)?, variant)?;
                taken[which].push(begun.elapsed().as_secs_f64());
                ensure!(*expected.get_or_insert_with(|| texts.clone()) == texts, "another text");
                measured[which] = Some(decoder.without(Without::default(), None));
            }
            if round > 0 {
                times.push(taken.into_iter().map(median).collect());
            }
        }
    }
    Ok(times)
}

/// The texts of a group, in its order.
fn write(
    decoder: &mut BatchDecoder<CandleBatch>,
    group: &[Request],
    tasks: &[Task],
    options: &DecodeOptions,
    variant: &Variant,
) -> anyhow::Result<Vec<Vec<TokenId>>> {
    let mut names = Vec::new();
    for Request { task, prompt } in group {
        let task = &tasks[*task];
        let constraint = Some(task.grammar.constraint());
        names.push(match variant.parts {
            Some(parts) => decoder.add_with_drafter(prompt, constraint, options, task.drafter(parts)?)?,
            None => decoder.add(prompt, constraint, options)?,
        });
    }
    let mut texts = vec![Vec::new(); group.len()];
    while !decoder.is_empty() {
        for event in decoder.step() {
            match event {
                BatchEvent::Finished { sequence, generation } => {
                    let at = names.iter().position(|name| *name == sequence).context("a sequence")?;
                    texts[at] = generation.tokens;
                }
                BatchEvent::Failed { error, .. } => bail!(error),
                _ => {}
            }
        }
    }
    Ok(texts)
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_unstable_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// Ratios to the whole's seconds, with 95% intervals by the bootstrap over units.
fn report(variants: &[Variant], times: &[Vec<f64>]) {
    println!("{} units", times.len());
    println!("| without | time to the whole's | from | to |");
    println!("|---|---|---|---|");
    let of = |which: usize| -> Vec<statistics::Part> {
        let parts = times.iter().enumerate();
        parts.map(|(prompt, unit)| statistics::Part { prompt, above: unit[which], below: 1.0 }).collect()
    };
    for (which, variant) in variants.iter().enumerate().skip(1) {
        if let Some(Estimate { value, low, high, .. }) = statistics::relative(&of(which), &of(0)) {
            println!("| {} | {value:.3} | {low:.3} | {high:.3} |", variant.name);
        }
    }
}
