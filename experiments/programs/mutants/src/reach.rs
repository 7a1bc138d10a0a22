//! Relation of tests and mutants: which tests reach a mutant, so that it is run only against these.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::trial::{Fate, Programs, Trial};

/// A test, its time, and the mutants whose places it reaches.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    pub(crate) program: PathBuf,
    pub(crate) name: String,
    pub(crate) takes: Duration,
    reaches: BTreeSet<usize>,
}

/// Tests of one program that run in one process, quickest first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Batch {
    pub(crate) program: PathBuf,
    pub(crate) tests: Vec<String>,
    pub(crate) takes: Duration,
}

/// Runs every test by itself with no mutant on, and records what it reaches. Programs that a test starts
/// write to the same file. Tests that fail in the changed copy, as those that read the sources may, are left
/// out.
pub(crate) fn record(programs: &Programs, root: &Path, file: &Path) -> Result<Vec<Test>> {
    let mut tests = Vec::new();
    for program in [&programs.unit, &programs.integration] {
        for name in names(program)? {
            let _ = fs::remove_file(file);
            let started = Instant::now();
            let trial = Trial { program, root, tests: std::slice::from_ref(&name), most: NO_MUTANT };
            let fate = trial.run(None, Some(file))?;
            let takes = started.elapsed();
            if fate != Fate::Survived {
                println!("left out, since it fails without a mutant: {name}");
                continue;
            }
            let text = fs::read_to_string(file).unwrap_or_default();
            let reaches: BTreeSet<_> = text.lines().filter_map(|line| line.parse().ok()).collect();
            tests.push(Test { program: program.clone(), name, takes, reaches });
        }
    }
    ensure!(tests.iter().any(|test| !test.reaches.is_empty()), "no test reaches a mutant");
    tests.sort_by_key(|test| test.takes);
    Ok(tests)
}

/// A time limit above that of any test.
const NO_MUTANT: Duration = Duration::from_secs(600);

/// Names of a program's tests.
fn names(program: &Path) -> Result<Vec<String>> {
    let mut command = Command::new(program);
    let output = command.arg("--list").stderr(Stdio::null()).output();
    let output = output.with_context(|| format!("{} cannot be run", program.display()))?;
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// The tests that reach `mutant`, in order of their times, in batches whose times double. Most mutants end in
/// the first, and few processes are started for the others.
pub(crate) fn batches(tests: &[Test], mutant: usize) -> Vec<Batch> {
    let mut done: Vec<Batch> = Vec::new();
    let mut now: Vec<Batch> = Vec::new();
    let (mut sum, mut most) = (Duration::ZERO, FIRST_BATCH);
    for test in tests.iter().filter(|test| test.reaches.contains(&mutant)) {
        if sum + test.takes > most && !now.is_empty() {
            done.append(&mut now);
            sum = Duration::ZERO;
            most *= 2;
        }
        sum += test.takes;
        match now.iter_mut().find(|batch| batch.program == test.program) {
            Some(batch) => {
                batch.tests.push(test.name.clone());
                batch.takes += test.takes;
            }
            None => now.push(Batch {
                program: test.program.clone(),
                tests: vec![test.name.clone()],
                takes: test.takes,
            }),
        }
    }
    done.append(&mut now);
    done
}

const FIRST_BATCH: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_grow_and_hold_what_reaches_the_mutant() {
        let test = |program: &str, name: &str, ms: u64, reaches: &[usize]| Test {
            program: program.into(),
            name: name.into(),
            takes: Duration::from_millis(ms),
            reaches: reaches.iter().copied().collect(),
        };
        let tests = [
            test("a", "quick", 10, &[1, 2]),
            test("b", "other program", 20, &[1]),
            test("a", "not of this", 30, &[2]),
            test("a", "second", 1_900, &[1]),
            test("a", "long", 3_000, &[1]),
            test("a", "longest", 9_000, &[1]),
        ];
        let found: Vec<Vec<String>> = batches(&tests, 1).into_iter().map(|batch| batch.tests).collect();
        let expected: [&[&str]; 4] = [&["quick", "second"], &["other program"], &["long"], &["longest"]];
        assert_eq!(found, expected);
        assert_eq!(batches(&tests, 3), []);
    }
}
