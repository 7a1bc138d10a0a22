//! Mutation testing of the engine: mutants drawn by a fixed seed, all built at once, each run against the tests.
//!
//! A mutant that no test notices survives; each survivor is to be killed by a test, or explained. See `RECORD.md`.

mod points;
mod schemata;
mod trial;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use points::Point;
use rand::seq::SliceRandom;
use rand::{SeedableRng, rngs::SmallRng};
use serde_json::{Value, json};
use trial::{Build, Fate, Programs};

/// Draws mutants of the engine, builds them all at once in a copy of the repository, and runs the tests with each.
///
/// Results are appended to a file as they come; a run that was stopped goes on where it was.
#[derive(Parser)]
struct Arguments {
    /// How many mutants are drawn of all.
    #[arg(long, default_value_t = 300)]
    count: usize,
    /// Seed of the draw.
    #[arg(long, default_value_t = 14)]
    seed: u64,
    /// Folders of `src` whose files are mutated.
    #[arg(long, value_delimiter = ',', default_value = "constraint,parser,subterminal,decode,proposer")]
    parts: Vec<String>,
    /// Tests that are run before the rest of the integration tests: parts of their names.
    #[arg(long, value_delimiter = ',', default_value = "promises,decider,speculation,decode,hostile::")]
    first: Vec<String>,
    /// The repository.
    #[arg(long, default_value = ".")]
    root: PathBuf,
    /// Where the changed copy and the results are kept.
    #[arg(long)]
    out: PathBuf,
    /// Only say which mutants are drawn.
    #[arg(long)]
    list: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let sources = sources(&arguments)?;
    let drawn = draw(&arguments, &sources)?;
    if arguments.list {
        for point in drawn.iter().take(arguments.count) {
            println!("{}", point.name);
        }
        return Ok(());
    }
    let copy = arguments.out.join("tree");
    copy_tree(&arguments.root, &copy)?;
    let (chosen, programs) = build_all(&arguments, &sources, &drawn, &copy)?;
    try_all(&arguments, &chosen, &programs, &copy)
}

/// Paths and texts of the files that are mutated.
fn sources(arguments: &Arguments) -> Result<BTreeMap<String, String>> {
    let mut sources = BTreeMap::new();
    for part in &arguments.parts {
        let folder = arguments.root.join("src").join(part);
        for entry in walkdir::WalkDir::new(&folder).sort_by_file_name() {
            let path = entry?.into_path();
            let name = path.strip_prefix(&arguments.root)?.to_string_lossy().into_owned();
            let of_tests = name.ends_with("tests.rs") || name.contains("/tests/");
            if name.ends_with(".rs") && !of_tests {
                let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
                sources.insert(name, text);
            }
        }
    }
    ensure!(!sources.is_empty(), "there are no sources: is --root the repository?");
    Ok(sources)
}

/// All points, shuffled by the seed.
fn draw(arguments: &Arguments, sources: &BTreeMap<String, String>) -> Result<Vec<Point>> {
    let mut all = Vec::new();
    for (path, text) in sources {
        all.extend(points::points_of(path, text).with_context(|| path.clone())?);
    }
    println!(
        "{} mutants of {} files, {} drawn by seed {}",
        all.len(),
        sources.len(),
        arguments.count,
        arguments.seed
    );
    all.shuffle(&mut SmallRng::seed_from_u64(arguments.seed));
    Ok(all)
}

/// Copies what the tests need. Folders that are large and no part of it are left out.
fn copy_tree(root: &Path, copy: &Path) -> Result<()> {
    let of_tree = |entry: &walkdir::DirEntry| {
        let name = entry.file_name().to_string_lossy();
        entry.depth() == 0 || !(name == "target" || name == ".git")
    };
    for entry in walkdir::WalkDir::new(root).into_iter().filter_entry(of_tree) {
        let entry = entry?;
        let to = copy.join(entry.path().strip_prefix(root)?);
        if entry.file_type().is_dir() {
            fs::create_dir_all(&to)?;
        } else if entry.file_type().is_file() {
            write_if_other(&to, &fs::read(entry.path())?)?;
        }
    }
    Ok(())
}

/// So that cargo builds again only what changed.
fn write_if_other(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).ok().as_deref() != Some(bytes) {
        fs::write(path, bytes).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Writes the mutants into the copy and builds it, with others in place of those that do not compile.
fn build_all<'a>(
    arguments: &Arguments,
    sources: &BTreeMap<String, String>,
    drawn: &'a [Point],
    copy: &Path,
) -> Result<(Vec<(usize, &'a Point)>, Programs)> {
    let mut unviable = BTreeSet::new();
    loop {
        let viable = drawn.iter().enumerate().filter(|(number, _)| !unviable.contains(number));
        let chosen: Vec<_> = viable.take(arguments.count).collect();
        let mut changed = HashMap::new();
        for (path, text) in sources {
            let of_file = |point: &Point| point.name.starts_with(&format!("{path}:"));
            let here: Vec<_> = chosen.iter().copied().filter(|(_, point)| of_file(point)).collect();
            let text = schemata::with_mutants(text, &here);
            write_if_other(&copy.join(path), text.as_bytes())?;
            changed.insert(path.clone(), text);
        }
        let library = fs::read_to_string(arguments.root.join("src/lib.rs"))? + schemata::MODULE;
        write_if_other(&copy.join("src/lib.rs"), library.as_bytes())?;
        println!("building with {} mutants ({} do not compile)", chosen.len(), unviable.len());
        let errors = match trial::build(copy)? {
            Build::Done(programs) => return Ok((chosen, programs)),
            Build::Errors(errors) => errors,
        };
        let before = unviable.len();
        for (file, byte) in &errors {
            unviable.extend(changed.get(file).and_then(|text| schemata::mutant_at(text, *byte)));
        }
        ensure!(unviable.len() > before, "errors that no mutant makes: {errors:?}");
    }
}

/// Runs the tests with each mutant.
fn try_all(
    arguments: &Arguments,
    chosen: &[(usize, &Point)],
    programs: &Programs,
    copy: &Path,
) -> Result<()> {
    let results = arguments.out.join("results.jsonl");
    let known = fs::read_to_string(&results).unwrap_or_default();
    let known: HashMap<String, Value> = known
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .map(|result: Value| (result["mutant"].as_str().unwrap_or_default().to_owned(), result))
        .collect();
    let mut file = fs::OpenOptions::new().create(true).append(true).open(&results)?;
    let stages = stages(arguments, programs);
    let mut most = Vec::new();
    for (program, filters) in &stages {
        let started = Instant::now();
        let fate = trial::run(program, copy, None, filters, Duration::from_secs(3600))?;
        ensure!(fate == Fate::Survived, "without a mutant the tests fail: {fate:?}");
        println!(
            "{} {filters:?}: {:.0} s without a mutant",
            program.display(),
            started.elapsed().as_secs_f64()
        );
        most.push(started.elapsed() * 5 + Duration::from_secs(30));
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, (number, point)) in chosen.iter().enumerate() {
        let result = match known.get(&point.name) {
            Some(result) => result.clone(),
            None => {
                let mut fate = Fate::Survived;
                for ((program, filters), most) in stages.iter().zip(&most) {
                    fate = trial::run(program, copy, Some(*number), filters, *most)?;
                    if fate != Fate::Survived {
                        break;
                    }
                }
                let (what, by) = match &fate {
                    Fate::Killed(test) => ("killed", test.as_str()),
                    Fate::TimedOut => ("timed out", ""),
                    Fate::Survived => ("survived", ""),
                };
                let result = json!({ "mutant": point.name, "fate": what, "by": by });
                writeln!(file, "{result}")?;
                result
            }
        };
        let fate = match result["fate"].as_str() {
            Some("killed") => "killed",
            Some("timed out") => "timed out",
            _ => "survived",
        };
        *counts.entry(fate).or_default() += 1;
        println!(
            "{}/{} {fate} {} {}",
            index + 1,
            chosen.len(),
            point.name,
            result["by"].as_str().unwrap_or("")
        );
    }
    println!("{counts:?}");
    Ok(())
}

/// The tests in the order in which they are run: the quickest, those that look at the engine most, the rest.
fn stages<'a>(arguments: &Arguments, programs: &'a Programs) -> Vec<(&'a Path, Vec<String>)> {
    let rest = arguments.first.iter().flat_map(|name| ["--skip".to_owned(), name.clone()]).collect();
    vec![
        (&programs.unit, Vec::new()),
        (&programs.integration, arguments.first.clone()),
        (&programs.integration, rest),
    ]
}
