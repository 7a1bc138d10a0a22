//! Substrings of a long text: from a grammar with `SUBSTRING_OF` to its masks. `cargo measure substrings`.
//!
//! The text is the source of this program, cut to 10,000, 100,000 and 1,000,000 bytes, or to `--bytes N`.
//! `--vocabulary NAME` is a folder of `data/tokenizers` in `DOMINO_SHARED` (default `tekken-131k`), `--rounds
//! N` the number of rounds (default 5). Times are medians of wall time, with empty tables of the vocabulary.
//!
//! The table has the times of reading the grammar and compiling it; of the mask before any text; of the mask
//! behind the opening quote, which is of all substrings; and mean and slowest of mask and step along 50
//! quotations of 400 bytes.

use std::{
    env, fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use clap::Parser;
use domino::{Compiler, Grammar, Limits, Patience, Syntax, TokenId, Vocabulary};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measure the parts of long texts.
#[derive(Debug, Parser)]
struct Args {
    /// Length of the text, in bytes.
    #[arg(long, default_values_t = [10_000, 100_000, 1_000_000])]
    bytes: Vec<usize>,
    /// A folder of tokenizers.
    #[arg(long, default_value = "tekken-131k")]
    vocabulary: String,
    /// Number of rounds.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Number of quotations, and bytes of each.
const QUOTATIONS: usize = 50;
const QUOTED: usize = 400;

/// Appends all sources in a folder, in the order of their names.
fn sources(folder: &Path, text: &mut String) -> std::io::Result<()> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, text)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(path)?);
        }
    }
    Ok(())
}

/// Escapes a text for a string of GBNF.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t")
}

/// The longest token at each place of a text.
fn tokens(vocabulary: &Vocabulary, text: &str) -> Vec<TokenId> {
    let (mut found, mut rest) = (Vec::new(), text.as_bytes());
    while !rest.is_empty() {
        let token = |length: usize| Some((vocabulary.token_of(&rest[..length])?, length));
        let (token, length) = (1..=rest.len().min(64)).rev().find_map(token).expect("a token for each byte");
        found.push(token);
        rest = &rest[length..];
    }
    found
}

/// Parts of the text, each in tokens.
fn quotations(vocabulary: &Vocabulary, text: &str) -> Vec<Vec<TokenId>> {
    let quotation = |number: usize| {
        let begin = text.len() / QUOTATIONS * number;
        let part: String = text.chars().skip(begin).take(QUOTED.min(text.len() / 2)).collect();
        tokens(vocabulary, &part)
    };
    (0..QUOTATIONS).map(quotation).collect()
}

/// Medians of the times of the rounds, in milliseconds.
fn medians(rounds: &mut [[Duration; 5]]) -> [f64; 5] {
    std::array::from_fn(|column| {
        rounds.sort_by_key(|round| round[column]);
        rounds[rounds.len() / 2][column].as_secs_f64() * 1e3
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    let shared = env::var_os("DOMINO_SHARED").map(PathBuf::from);
    let shared = shared.ok_or("DOMINO_SHARED names no folder with tokenizers")?;
    let file = shared.join("data/tokenizers").join(&args.vocabulary).join("tokenizer.json");
    let vocabulary = Vocabulary::from_tokenizer_file(&file)?;
    let mut source = String::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../src"), &mut source)?;
    println!("{}, median of {}", args.vocabulary, args.rounds);
    println!(
        "{:>9}  {:>13} {:>13} {:>13} {:>13} {:>13}",
        "bytes", "compiled ms", "first ms", "in quotes ms", "step mean us", "slowest us"
    );
    for &bytes in &args.bytes {
        let end = (0..=bytes.min(source.len())).rev().find(|&end| source.is_char_boundary(end)).unwrap_or(0);
        let text = &source[..end];
        let grammar = format!("root ::= \"<q>\" SUBSTRING_OF(\"{}\") \"</q>\"\n", quoted(text));
        let quotations = quotations(&vocabulary, text);
        let mut rounds = Vec::new();
        for _ in 0..args.rounds {
            let begun = Instant::now();
            let grammar = Grammar::parse(Syntax::Gbnf, &grammar, &Limits::default())?;
            let compiled = Compiler::new(vocabulary.clone()).compile(&grammar)?;
            let made = begun.elapsed();
            let mut constraint = compiled.constraint().patient(Patience::whole());
            constraint.mask()?;
            let first = begun.elapsed();
            constraint.advance_bytes(b"<q>")?;
            let allowed = constraint.mask()?.len();
            let within = begun.elapsed();
            assert!(allowed > 0, "no part of the text may follow");
            let mut steps = Vec::new();
            for quotation in &quotations {
                let mut constraint = constraint.fork();
                for &token in quotation {
                    let step = Instant::now();
                    let allowed = constraint.mask()?.contains(token);
                    constraint.advance(token)?;
                    steps.push(step.elapsed());
                    assert!(allowed, "a token of the text that the mask lacks");
                }
            }
            let mean = steps.iter().sum::<Duration>() / u32::try_from(steps.len())?;
            let slowest = steps.iter().max().copied().unwrap_or_default();
            rounds.push([made, first - made, within - first, mean, slowest]);
        }
        let [compiled, first, within, mean, slowest] = medians(&mut rounds);
        println!(
            "{:>9}  {compiled:>13.1} {first:>13.1} {within:>13.1} {:>13.2} {:>13.1}",
            text.len(),
            mean * 1e3,
            slowest * 1e3
        );
    }
    Ok(())
}
