//! Domino and llguidance on the same texts, in the same process, by the same clock, one text after the other.
//!
//! `cargo measure compare -- --vocab mistral32k`. Every mask of Domino is held against the exact one; a
//! wrong one ends the run with exit code 1, and so does a run that compared nothing. Masks of llguidance that
//! are not exact are counted. `experiments/programs/engine/README.md` says what is compared and what is not.

mod lane;
mod llguidance;
mod peers;
mod report;

/// Lines of JSON as the program reads them.
#[path = "../../src/bin/domino/files"]
#[allow(dead_code, reason = "the program uses more of it")]
mod files {
    pub(crate) mod lines;
}

/// The clock and the files of `domino trace`.
#[path = "../../src/bin/domino/verbs/experiment/trace"]
#[allow(dead_code, unused_imports, reason = "the program uses more of it, its tests too")]
mod trace {
    pub(crate) mod input;
    pub(crate) mod measure;
    pub(crate) mod walk;
}

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use clap::{Parser, ValueEnum};
use domino::{CompiledGrammar, Compiler, Grammar, Limits, Lookahead, Syntax, Vocabulary};
use serde_json::{Value, json};

use crate::{
    lane::{Contestant, Lane, Outcome},
    llguidance::Tables,
    trace::{
        input::{Expected, Traces},
        walk::{Setup, Trees},
    },
};

/// The engine whose masks need not be exact.
const LLGUIDANCE: &str = "llguidance";

/// The grammars of which there is a copy as printed in the paper.
const PRINTED: [&str; 2] = ["json_basic", "gsm8k"];

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
    /// Number of times that pass 1 is made; its times are medians.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    fresh: u32,
    /// Threads that Domino may grow eager trees on.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_024))]
    threads: u32,
    /// Time of growing Domino's trees, where two spellings are compared.
    #[arg(long, value_enum, default_value_t)]
    trees: Trees,
    /// Let llguidance force tokens, which is not exact.
    #[arg(long)]
    forcing: bool,
    /// File for the numbers.
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

/// A vocabulary for both engines.
struct Vocabularies {
    vocab: Vocab,
    domino: Vocabulary,
    llguidance: Tables,
}

/// Files of one grammar and vocabulary.
struct Texts {
    traces: Traces,
    expected: Expected,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let shared = env::var_os("DOMINO_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    for missing in ["peers", "data/tokenizers"].map(|folder| shared.join(folder)) {
        if !missing.exists() {
            eprintln!(
                "error: nothing was compared: {} is missing (DOMINO_SHARED names the folder)",
                missing.display()
            );
            return ExitCode::FAILURE;
        }
    }
    trace::walk::at_most(usize::try_from(args.threads).unwrap_or(usize::MAX));
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

/// Makes all comparisons asked for; returns `false` if a mask of Domino is wrong.
fn compare(args: &Args, shared: &Path) -> Result<bool, String> {
    let mut exact = true;
    let mut results = Vec::new();
    for &vocab in Vocab::value_variants() {
        if args.vocab.is_some_and(|asked| asked != vocab) {
            continue;
        }
        let vocabularies = read_vocabulary(args, shared, vocab)?;
        let mut tell = |grammar: &str, outcomes: &[Outcome]| {
            report::rows(grammar, outcomes);
            exact &= outcomes.iter().all(|outcome| outcome.is_exact() || outcome.name == LLGUIDANCE);
            let outcomes: Vec<Value> = outcomes.iter().map(Outcome::to_json).collect();
            results.push(json!({ "vocab": vocab.name(), "grammar": grammar, "outcomes": outcomes }));
        };
        let asked = |name: &&str| name.contains(&args.grammar);
        report::head(&format!(
            "{}: {} passes, pass 1 {} times; ratios are llguidance's time to Domino's",
            vocab.name(),
            args.passes,
            args.fresh
        ));
        for grammar in peers::GRAMMARS.into_iter().filter(asked) {
            tell(grammar, &engines(args, shared, &vocabularies, grammar)?);
        }
        report::head(&format!(
            "{}: the spelling printed in the paper; ratios are its time to the tidy one's",
            vocab.name()
        ));
        for grammar in PRINTED.into_iter().filter(asked) {
            tell(grammar, &spellings(args, shared, &vocabularies, grammar)?);
        }
        match vocab {
            Vocab::Mistral32k => report::ceiling("32k", &peers::SMALL),
            Vocab::Tekken131k => report::ceiling("131k", &peers::LARGE),
        }
    }
    if results.is_empty() {
        return Err(format!("nothing was compared: no grammar has {:?} in its name", args.grammar));
    }
    if let Some(file) = &args.json {
        let results = json!({
            "passes": args.passes, "fresh": args.fresh, "forcing": args.forcing, "threads": args.threads,
            "results": results,
        });
        fs::write(file, format!("{results:#}\n")).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(exact)
}

/// Reads a vocabulary for both engines, and prints the times.
fn read_vocabulary(args: &Args, shared: &Path, vocab: Vocab) -> Result<Vocabularies, String> {
    let tokenizer = shared.join("data/tokenizers").join(vocab.folder()).join("tokenizer.json");
    let begun = Instant::now();
    let vocabulary = Vocabulary::from_tokenizer_file(&tokenizer).map_err(|error| error.to_string())?;
    let eos = vocabulary.end_of_text()[0];
    let ours = begun.elapsed();
    let begun = Instant::now();
    let tables = Tables::read(&tokenizer, eos, args.forcing)
        .map_err(|error| format!("llguidance, {}: {error}", tokenizer.display()))?;
    let theirs = begun.elapsed();
    println!(
        "\n{}: tokenizer.json to tables in {ours:.1?} (domino), {theirs:.1?} (llguidance)",
        vocab.name()
    );
    Ok(Vocabularies { vocab, domino: vocabulary, llguidance: tables })
}

/// Compares Domino, in four ways, and llguidance on one grammar.
fn engines(
    args: &Args,
    shared: &Path,
    vocabularies: &Vocabularies,
    grammar: &str,
) -> Result<Vec<Outcome>, String> {
    let texts = texts(shared, vocabularies, grammar)?;
    let (gbnf, lark) = (read_grammar(shared, grammar, "gbnf")?, read_grammar(shared, grammar, "lark")?);
    let setup = |trees| Setup::new(vocabularies.domino.clone(), Lookahead::Unbounded, trees);
    let (lazy, eager, explored) = (setup(Trees::Lazy), setup(Trees::Eager), setup(Trees::Explored));
    let mut kept = setup(Trees::Lazy);
    kept.keep_tables(|compiler| compile(compiler, &gbnf))?;
    let ours = |setup: &Setup| setup.compile(|compiler| compile(compiler, &gbnf));
    let mut lanes: [&mut dyn Contestant; 5] = [
        &mut Lane::new("domino, lazy trees", || ours(&lazy)),
        &mut Lane::new("  tables kept", || ours(&kept)),
        &mut Lane::new("  eager trees", || ours(&eager)),
        &mut Lane::new("  explored", || ours(&explored)),
        &mut Lane::new(LLGUIDANCE, || vocabularies.llguidance.compile(&lark)),
    ];
    side_by_side(args, &texts, &mut lanes)
}

/// Compares Domino on two spellings of one grammar, with lazy and eager trees.
fn spellings(
    args: &Args,
    shared: &Path,
    vocabularies: &Vocabularies,
    grammar: &str,
) -> Result<Vec<Outcome>, String> {
    let texts = texts(shared, vocabularies, grammar)?;
    let tidy = read_grammar(shared, grammar, "gbnf")?;
    let printed = read_grammar(shared, &format!("{grammar}_listing"), "gbnf")?;
    let setup = Setup::new(vocabularies.domino.clone(), Lookahead::Unbounded, args.trees);
    let ours = |gbnf: &str| setup.compile(|compiler| compile(compiler, gbnf));
    let mut lanes: [&mut dyn Contestant; 2] =
        [&mut Lane::new("tidy", || ours(&tidy)), &mut Lane::new("printed", || ours(&printed))];
    side_by_side(args, &texts, &mut lanes)
}

/// Makes all passes, text by text with one engine after the other; each pass begins with another engine.
fn side_by_side(
    args: &Args,
    texts: &Texts,
    lanes: &mut [&mut dyn Contestant],
) -> Result<Vec<Outcome>, String> {
    for _ in 0..args.fresh {
        for (number, trace) in texts.traces.list.iter().enumerate() {
            lanes.iter_mut().try_for_each(|lane| lane.fresh(number, trace))?;
        }
        lanes.rotate_left(1);
    }
    // The first of these passes warms, the last looks at the masks again.
    for pass in 1..=args.passes + 1 {
        let counts = (2..=args.passes).contains(&pass);
        for (number, trace) in texts.traces.list.iter().enumerate() {
            lanes.iter_mut().try_for_each(|lane| lane.warm(number, trace, counts))?;
        }
        lanes.rotate_left(1);
    }
    let turns = usize::try_from(args.fresh + args.passes + 1).unwrap_or_default();
    lanes.rotate_right(turns % lanes.len());
    Ok(lanes.iter().map(|lane| lane.outcome(&texts.expected)).collect())
}

fn compile(compiler: &Compiler, gbnf: &str) -> Result<CompiledGrammar, String> {
    let grammar =
        Grammar::parse(Syntax::Gbnf, gbnf, &Limits::default()).map_err(|error| error.to_string())?;
    compiler.compile(&grammar).map_err(|error| error.to_string())
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
