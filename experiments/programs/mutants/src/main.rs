//! Mutation testing of the engine: mutants drawn by a fixed seed, all built at once, each run against the
//! tests.
//!
//! A mutant that no test notices survives; each survivor is to be killed by a test, or explained. See
//! `RECORD.md`.

mod points;
mod reach;
mod schemata;
mod trial;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use points::Point;
use rand::seq::SliceRandom;
use rand::{SeedableRng, rngs::SmallRng};
use reach::Batch;
use serde_json::{Value, json};
use trial::{Build, Fate, Programs, Trial};

/// Folders of `src` whose files are mutated unless others are named.
const PARTS: &str = "program,masks,machine,json_readers,session,questions,parser,subterminal,decode,proposer";

/// Draws mutants of the engine, builds them all at once in a copy of the repository, and runs the tests with
/// each.
///
/// Results are appended to a file as they come; a run that was stopped goes on where it was.
#[derive(Parser)]
struct Arguments {
    /// Number of mutants to draw.
    #[arg(long, default_value_t = 300)]
    count: usize,
    /// Seed of the draw.
    #[arg(long, default_value_t = 14)]
    seed: u64,
    /// Folders of `src` whose files are mutated.
    #[arg(long, value_delimiter = ',', default_value = PARTS)]
    parts: Vec<String>,
    /// The repository.
    #[arg(long, default_value = ".")]
    root: PathBuf,
    /// Folder for the changed copy and the results.
    #[arg(long)]
    out: PathBuf,
    /// Try again the survivors of an earlier run, against the tests of today.
    #[arg(long)]
    again: bool,
    /// Only say which mutants are drawn.
    #[arg(long)]
    list: bool,
    /// A file that names the mutants, one a line as `--list` prints them, in place of a draw.
    #[arg(long, value_name = "FILE")]
    named: Option<PathBuf>,
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

/// All points, shuffled by the seed, or those named.
fn draw(arguments: &Arguments, sources: &BTreeMap<String, String>) -> Result<Vec<Point>> {
    let mut all = Vec::new();
    for (path, text) in sources {
        all.extend(points::points_of(path, text).with_context(|| path.clone())?);
    }
    let (count, files) = (all.len(), sources.len());
    let Some(file) = &arguments.named else {
        println!("{count} mutants of {files} files, {} drawn by seed {}", arguments.count, arguments.seed);
        all.shuffle(&mut SmallRng::seed_from_u64(arguments.seed));
        return Ok(all);
    };
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let mut names: BTreeSet<&str> = text.lines().collect();
    all.retain(|point| names.remove(&*point.name));
    println!("{count} mutants of {files} files, {} named", all.len());
    if let Some(name) = names.first() {
        bail!("these sources have no mutant `{name}`");
    }
    Ok(all)
}

/// Copies all that the tests need. Large folders that they do not need are left out.
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

/// Writes a file only if it differs, so that cargo builds again only what changed.
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
        let library = fs::read_to_string(arguments.root.join("src/lib.rs"))? + &schemata::module(drawn.len());
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

/// Results of an earlier run; with `again` those of mutants that survived are left out.
fn known(path: &Path, again: bool) -> Vec<Value> {
    fs::read_to_string(path)
        .unwrap_or_default()
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|result: &Value| !(again && result["fate"] == "survived"))
        .collect()
}

/// Runs the tests that reach it with each mutant: the first batch of all mutants, then the second, so that
/// the easily killed are known soon.
fn try_all(
    arguments: &Arguments,
    chosen: &[(usize, &Point)],
    programs: &Programs,
    copy: &Path,
) -> Result<()> {
    let path = arguments.out.join("results.jsonl");
    let known = known(&path, arguments.again);
    let mut file = fs::File::create(&path)?;
    for result in &known {
        writeln!(file, "{result}")?;
    }
    let tests = reach::record(programs, copy, &arguments.out.join("reached"))?;
    println!("{} tests", tests.len());
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut open: Vec<_> = Vec::new();
    for &(number, point) in chosen {
        match known.iter().find(|result| result["mutant"] == point.name) {
            Some(result) => *counts.entry(result["fate"].as_str().unwrap_or("").into()).or_default() += 1,
            None => open.push((number, point, VecDeque::from(reach::batches(&tests, number)))),
        }
    }
    while !open.is_empty() {
        println!("{} mutants are open", open.len());
        for (number, point, mut batches) in std::mem::take(&mut open) {
            let none = batches.is_empty();
            let fate = match batches.pop_front() {
                Some(Batch { program, tests, takes }) => {
                    let most = takes * 5 + Duration::from_secs(5);
                    let trial = Trial { program: &program, root: copy, tests: &tests, most };
                    match trial.run(Some(number), None)? {
                        // A test may fail by chance, on a machine that is busy.
                        Fate::Killed(_) => trial.run(Some(number), None)?,
                        fate => fate,
                    }
                }
                None => Fate::Survived,
            };
            let (what, by) = match &fate {
                Fate::Killed(test) => ("killed", test.as_str()),
                Fate::TimedOut => ("timed out", ""),
                Fate::Survived if !batches.is_empty() => {
                    open.push((number, point, batches));
                    continue;
                }
                Fate::Survived if none => ("survived", "(no test reaches it)"),
                Fate::Survived => ("survived", ""),
            };
            writeln!(file, "{}", json!({ "mutant": point.name, "number": number, "fate": what, "by": by }))?;
            println!("{number} {what} {} {by}", point.name);
            *counts.entry(what.into()).or_default() += 1;
        }
    }
    println!("{counts:?}");
    Ok(())
}
