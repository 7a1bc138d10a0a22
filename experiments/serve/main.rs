//! Tokens a second in mistral.rs' engine: unconstrained, with its own constraint, with domino's masks, and with domino's
//! drafts; beside domino's own runner. The texts of one prompt take turns. Processor time is measured besides, which other
//! work on the machine disturbs less.

mod engines;
#[path = "../prompts.rs"]
mod prompts;

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Parser;
use domino::{
    Compiler, Grammar, Limits, Syntax,
    mistralrs::Guesses,
    proposer::{Learning, Pass, Prior},
};
use serde_json::json;

use crate::{
    engines::{Engines, Kind, Run, Task},
    prompts::prompts,
};

/// The paper's grammars, with their names in llguidance's notation.
const GRAMMARS: [(&str, &str); 5] = [
    ("json", "json_basic"),
    ("gsm8k", "gsm8k"),
    ("xml_person", "xml_person"),
    ("rpg", "rpg_template"),
    ("c", "c_simple"),
];

/// Measures mistral.rs with grammars against mistral.rs without.
#[derive(Debug, Parser)]
struct Args {
    /// Grammars of the paper to measure. Default: all five.
    grammars: Vec<String>,
    /// The model's folder.
    #[arg(long, default_value = "models/domino-small")]
    model: PathBuf,
    /// A folder of priors, one NAME.prior for each grammar.
    #[arg(long, default_value = "models/domino-small/priors")]
    priors: PathBuf,
    /// A folder with the grammars in llguidance's notation. Default: peers/grammars in the folder that DOMINO_SHARED
    /// names; without it mistral.rs' own constraint is left out.
    #[arg(long)]
    lark: Option<PathBuf>,
    /// Runs measured, after one that is not counted.
    #[arg(long, default_value_t = 10)]
    runs: usize,
    /// Kinds to measure, by their numbers in the table's columns from 0. Default: all.
    #[arg(long, value_delimiter = ',')]
    kinds: Vec<usize>,
    /// Most tokens of a text.
    #[arg(long, default_value_t = 128)]
    tokens: usize,
    /// Temperature of the draws.
    #[arg(long, default_value_t = 1.0)]
    temperature: f64,
    /// Most rows of a pass with drafts, all of them used; otherwise drafts are as long as pays.
    #[arg(long)]
    gamma: Option<usize>,
    /// Print each grammar as a line of JSON.
    #[arg(long)]
    json: bool,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    ensure!(args.runs > 0 && args.tokens > 1, "there is nothing to measure");
    for name in &args.grammars {
        ensure!(GRAMMARS.iter().any(|(known, _)| known == name), "{name} is none of the paper's grammars");
    }
    let lark = args
        .lark
        .clone()
        .or_else(|| Some(PathBuf::from(std::env::var_os("DOMINO_SHARED")?).join("peers/grammars")));
    if lark.is_none() {
        eprintln!(
            "mistral.rs' own constraint is LEFT OUT: DOMINO_SHARED names no folder, and --lark neither"
        );
    }
    let mut engines = Engines::load(&args.model, args.gamma)?;
    let wanted = |name: &str| args.grammars.is_empty() || args.grammars.iter().any(|wanted| wanted == name);
    if !args.json {
        println!("| grammar | {} | tokens a pass |", Kind::ALL.map(Kind::name).join(" | "));
        println!("|{}", "---|".repeat(Kind::ALL.len() + 2));
    }
    for (name, lark_name) in GRAMMARS.into_iter().filter(|(name, _)| wanted(name)) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let read = |path: &Path| std::fs::read_to_string(path).with_context(|| path.display().to_string());
        let text = read(&root.join("grammars").join(name).with_extension("gbnf"))?;
        let grammar = Grammar::parse(Syntax::Gbnf, &text, &Limits::default())?;
        let grammar = Compiler::new(engines.vocabulary().clone()).compile(&grammar)?;
        grammar.grow_trees();
        let file = args.priors.join(name).with_extension("prior");
        let bytes = std::fs::read(&file).with_context(|| file.display().to_string())?;
        let prior = Prior::from_bytes(&bytes, &grammar)?;
        let task = Task {
            prompts: prompts(root, name, engines.tokenizer())?,
            guesses: Guesses::new(&grammar, engines.tokenizer(), prior, Learning::Fixed),
            lark: lark
                .as_ref()
                .map(|folder| read(&folder.join(lark_name).with_extension("lark")))
                .transpose()?,
            grammar,
            tokens: args.tokens,
            temperature: args.temperature,
        };
        let runs = measure(&mut engines, &task, args.runs, &args.kinds)?;
        print(&args, name, &runs);
    }
    let cost = engines.pass_cost();
    let rows =
        [1, 2, 3, 4, 6, 8, 10, 13, 17].map(|rows| format!("{rows}: {:.2}", cost.relative(Pass::whole(rows))));
    eprintln!("passes by rows, relative to one row: {}", rows.join(", "));
    Ok(())
}

/// Runs of all kinds by turns, the first left out.
fn measure(
    engines: &mut Engines,
    task: &Task,
    count: usize,
    kinds: &[usize],
) -> anyhow::Result<Vec<[Option<Run>; Kind::ALL.len()]>> {
    let mut runs = Vec::new();
    for number in 0..=count {
        let mut row = [const { None }; Kind::ALL.len()];
        for turn in 0..Kind::ALL.len() {
            let at = (number + turn) % Kind::ALL.len();
            if !kinds.is_empty() && !kinds.contains(&at) {
                continue;
            }
            row[at] = engines.run(Kind::ALL[at], task, number)?;
        }
        let texts =
            [Kind::Masks, Kind::Drafts].map(|kind| row[kind as usize].as_ref().map(|run| &run.tokens));
        ensure!(
            texts[0] == texts[1] || texts.contains(&None),
            "run {number}: drafts have changed the text: {texts:?}"
        );
        if number > 0 {
            runs.push(row);
        }
    }
    Ok(runs)
}

/// Seconds of a run, by one clock or another.
type Clock = fn(&Run) -> f64;

/// Tokens a second over all runs, and the median of the ratios to the unconstrained run of the same turn; by time or by
/// processor time.
fn rates(
    runs: &[[Option<Run>; Kind::ALL.len()]],
    kind: Kind,
    seconds: fn(&Run) -> f64,
) -> Option<(f64, f64)> {
    let rate = |runs: &[&Run]| {
        let count: usize = runs.iter().map(|run| run.count).sum();
        let seconds: f64 = runs.iter().map(|run| seconds(run)).sum();
        (count > 0 && seconds > 0.0).then(|| count as f64 / seconds)
    };
    let ratio = |row: &[Option<Run>; Kind::ALL.len()]| {
        let own = row[kind as usize].as_ref()?;
        Some(rate(&[own])? / rate(&[row[Kind::Unconstrained as usize].as_ref()?])?)
    };
    let mut ratios: Vec<f64> = runs.iter().filter_map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let all: Vec<&Run> = runs.iter().filter_map(|row| row[kind as usize].as_ref()).collect();
    Some((rate(&all)?, ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN)))
}

fn print(args: &Args, name: &str, runs: &[[Option<Run>; Kind::ALL.len()]]) {
    let sum = |number: fn(&Run) -> usize| -> usize {
        runs.iter().filter_map(|row| row[Kind::Drafts as usize].as_ref()).map(number).sum()
    };
    let (passes, tokens) = (sum(|run| run.passes), sum(|run| run.tokens.len()));
    let (drafted, accepted) = (sum(|run| run.drafted), sum(|run| run.accepted));
    let clocks: [(&str, Clock); 2] =
        [("time", |run| run.seconds), ("processor time", |run| run.processor_seconds)];
    if args.json {
        let found = clocks.map(|(clock, seconds)| {
            let kinds = Kind::ALL.into_iter().filter_map(|kind| {
                let (rate, ratio) = rates(runs, kind, seconds)?;
                Some((kind.name().to_owned(), json!({ "tokens_per_second": rate, "median_ratio": ratio })))
            });
            (clock.to_owned(), kinds.collect::<serde_json::Map<_, _>>().into())
        });
        let line = json!({
            "grammar": name, "runs": runs.len(), "by": found.into_iter().collect::<serde_json::Map<_, _>>(),
            "passes": passes, "tokens": tokens, "drafted": drafted, "accepted": accepted,
        });
        return println!("{line}");
    }
    for (clock, seconds) in clocks {
        let cells = Kind::ALL.map(|kind| match rates(runs, kind, seconds) {
            Some((rate, ratio)) => format!("{rate:.0} ({ratio:.2})"),
            None => "-".to_owned(),
        });
        let per_pass = tokens as f64 / passes.max(1) as f64;
        println!("| {name}, {clock} | {} | {per_pass:.2} |", cells.join(" | "));
    }
}
