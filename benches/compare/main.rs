//! Domino and llguidance on the same texts, in the same process, by the same clock, one text after the other.
//!
//! `cargo bench --bench compare -- --vocab mistral32k`. Every mask of Domino is held against the exact one; a wrong
//! one ends the run with exit code 1. Masks of llguidance that are not exact are counted. See
//! `experiments/engine/README.md` for what is compared and what is not.

mod lane;
mod llguidance;
mod peers;
mod report;

/// The clock and the files, as `domino trace` has them.
#[path = "../../src/bin/domino/trace"]
#[allow(dead_code, unused_imports, reason = "the program uses more of it, its tests too")]
mod trace {
    pub(crate) mod engine;
    pub(crate) mod input;
    pub(crate) mod measure;
    pub(crate) mod spread;
    pub(crate) mod walk;
}

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use clap::{Parser, ValueEnum};
use domino::{Compiler, Grammar, Limits, Syntax, Vocabulary};
use serde_json::{Value, json};

use crate::{
    lane::{Lane, Outcome},
    llguidance::Tables,
    trace::{
        engine::Compiled,
        input::{Expected, Traces},
        walk::Engine,
    },
};

/// Compare Domino with llguidance on the shared traces.
#[derive(Debug, Parser)]
struct Args {
    /// The vocabulary; both if none is named.
    #[arg(long)]
    vocab: Option<Vocab>,
    /// Only grammars whose name contains this.
    #[arg(long, value_name = "NAME", default_value = "")]
    grammar: String,
    /// Passes: pass 1 on fresh grammars, the others warm.
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    passes: u32,
    /// How often pass 1 is done; its times are medians.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    fresh: u32,
    /// Let llguidance force tokens, which is not exact.
    #[arg(long)]
    forcing: bool,
    /// Where the numbers go.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A shared vocabulary, named as in the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Vocab {
    Mistral32k,
    Tekken131k,
}

impl Vocab {
    fn name(self) -> &'static str {
        match self {
            Self::Mistral32k => "mistral32k",
            Self::Tekken131k => "tekken131k",
        }
    }

    fn folder(self) -> &'static str {
        match self {
            Self::Mistral32k => "mistral-v1-32k",
            Self::Tekken131k => "tekken-131k",
        }
    }
}

/// A vocabulary as both engines have it.
struct Vocabularies {
    vocab: Vocab,
    compiler: Compiler,
    tables: Tables,
}

/// Files of one grammar and vocabulary.
struct Texts {
    traces: Traces,
    expected: Expected,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let shared = env::var_os("DOMINO_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"), PathBuf::from);
    for missing in ["peers", "data/tokenizers"].map(|folder| shared.join(folder)) {
        if !missing.exists() {
            println!(
                "NOTHING WAS COMPARED: {} is missing (DOMINO_SHARED names the folder)",
                missing.display()
            );
            return ExitCode::SUCCESS;
        }
    }
    match compare(&args, &shared) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("error: Domino made masks that are not exact");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Compares all that was asked for; `false` if a mask of Domino is wrong.
fn compare(args: &Args, shared: &Path) -> Result<bool, String> {
    let mut exact = true;
    let mut results = Vec::new();
    for &vocab in Vocab::value_variants() {
        if args.vocab.is_some_and(|asked| asked != vocab) {
            continue;
        }
        let vocabularies = read_vocabulary(args, shared, vocab)?;
        report::head(&format!(
            "{}: {} passes, pass 1 {} times; the ratio is llguidance / domino",
            vocab.name(),
            args.passes,
            args.fresh
        ));
        for grammar in peers::GRAMMARS.into_iter().filter(|name| name.contains(&args.grammar)) {
            let (ours, theirs) = engines(args, shared, &vocabularies, grammar)?;
            report::pair(grammar, &ours, &theirs);
            exact &= ours.is_exact();
            results.push(json!({
                "vocab": vocab.name(), "grammar": grammar, "outcomes": [ours.to_json(), theirs.to_json()],
            }));
        }
        report::head(&format!(
            "{}: the spelling printed in the paper; the ratio is printed / tidy",
            vocab.name()
        ));
        for grammar in ["json_basic", "gsm8k"].into_iter().filter(|name| name.contains(&args.grammar)) {
            let (tidy, printed) = spellings(args, shared, &vocabularies, grammar)?;
            report::pair(grammar, &tidy, &printed);
            exact &= tidy.is_exact() && printed.is_exact();
            results.push(json!({
                "vocab": vocab.name(), "grammar": grammar, "outcomes": [tidy.to_json(), printed.to_json()],
            }));
        }
        match vocab {
            Vocab::Mistral32k => report::ceiling("32k", &peers::SMALL),
            Vocab::Tekken131k => report::ceiling("131k", &peers::LARGE),
        }
    }
    if let Some(file) = &args.json {
        let results: Value = json!({ "passes": args.passes, "fresh": args.fresh, "forcing": args.forcing, "results": results });
        fs::write(file, format!("{results:#}\n")).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(exact)
}

/// Reads a vocabulary for both engines and tells what that takes.
fn read_vocabulary(args: &Args, shared: &Path, vocab: Vocab) -> Result<Vocabularies, String> {
    let tokenizer = shared.join("data/tokenizers").join(vocab.folder()).join("tokenizer.json");
    let begun = Instant::now();
    let vocabulary = Vocabulary::from_tokenizer_file(&tokenizer).map_err(|error| error.to_string())?;
    let eos = vocabulary.end_of_text()[0];
    let compiler = Compiler::new(vocabulary);
    let ours = begun.elapsed();
    let begun = Instant::now();
    let tables = Tables::read(&tokenizer, eos, args.forcing)
        .map_err(|error| format!("llguidance, {}: {error}", tokenizer.display()))?;
    let theirs = begun.elapsed();
    println!(
        "\n{}: tokenizer.json to tables in {ours:.1?} (domino), {theirs:.1?} (llguidance)",
        vocab.name()
    );
    Ok(Vocabularies { vocab, compiler, tables })
}

/// Domino and llguidance on one grammar.
fn engines(
    args: &Args,
    shared: &Path,
    vocabularies: &Vocabularies,
    grammar: &str,
) -> Result<(Outcome, Outcome), String> {
    let texts = texts(shared, vocabularies, grammar)?;
    let (gbnf, lark) = (read_grammar(shared, grammar, "gbnf")?, read_grammar(shared, grammar, "lark")?);
    let mut ours = Lane::new("domino", || compile(&vocabularies.compiler, &gbnf));
    let mut theirs = Lane::new("llguidance", || vocabularies.tables.compile(&lark));
    side_by_side(args, &texts.traces, &mut ours, &mut theirs)?;
    Ok((ours.outcome(&texts.expected), theirs.outcome(&texts.expected)))
}

/// Domino on two spellings of one grammar.
fn spellings(
    args: &Args,
    shared: &Path,
    vocabularies: &Vocabularies,
    grammar: &str,
) -> Result<(Outcome, Outcome), String> {
    let texts = texts(shared, vocabularies, grammar)?;
    let tidy = read_grammar(shared, grammar, "gbnf")?;
    let printed = read_grammar(shared, &format!("{grammar}_listing"), "gbnf")?;
    let mut tidy = Lane::new("tidy", || compile(&vocabularies.compiler, &tidy));
    let mut printed = Lane::new("printed", || compile(&vocabularies.compiler, &printed));
    side_by_side(args, &texts.traces, &mut tidy, &mut printed)?;
    Ok((tidy.outcome(&texts.expected), printed.outcome(&texts.expected)))
}

/// All passes, text by text with one engine and then with the other, which of them is first by turns.
fn side_by_side<A: Engine, B: Engine>(
    args: &Args,
    traces: &Traces,
    one: &mut Lane<'_, A>,
    other: &mut Lane<'_, B>,
) -> Result<(), String> {
    for pass in 0..args.fresh {
        for (number, trace) in traces.list.iter().enumerate() {
            if pass % 2 == 0 {
                one.fresh(number, trace)?;
                other.fresh(number, trace)?;
            } else {
                other.fresh(number, trace)?;
                one.fresh(number, trace)?;
            }
        }
    }
    // The first of these passes warms, the last looks at the masks again.
    for pass in 1..=args.passes + 1 {
        let counts = (2..=args.passes).contains(&pass);
        for (number, trace) in traces.list.iter().enumerate() {
            if pass % 2 == 0 {
                one.warm(number, trace, counts)?;
                other.warm(number, trace, counts)?;
            } else {
                other.warm(number, trace, counts)?;
                one.warm(number, trace, counts)?;
            }
        }
    }
    Ok(())
}

fn compile(compiler: &Compiler, gbnf: &str) -> Result<Compiled, String> {
    let grammar =
        Grammar::parse(Syntax::Gbnf, gbnf, &Limits::default()).map_err(|error| error.to_string())?;
    compiler.compile(&grammar).map(Compiled::new).map_err(|error| error.to_string())
}

fn texts(shared: &Path, vocabularies: &Vocabularies, grammar: &str) -> Result<Texts, String> {
    let vocab = vocabularies.vocab.name();
    let file = |path: String| -> Result<(String, Vec<u8>), String> {
        let path = shared.join("peers").join(path);
        let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok((path.display().to_string(), bytes))
    };
    let (name, json) = file(format!("traces/{grammar}.{vocab}.traces.json"))?;
    let traces = Traces::parse(&json, &name).map_err(|error| error.to_string())?;
    let (name, json) = file(format!("expected/{grammar}.{vocab}.json"))?;
    let expected = Expected::parse(&json, &name, &traces).map_err(|error| error.to_string())?;
    Ok(Texts { traces, expected })
}

fn read_grammar(shared: &Path, name: &str, ending: &str) -> Result<String, String> {
    let path = shared.join("peers/grammars").join(format!("{name}.{ending}"));
    fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
}
