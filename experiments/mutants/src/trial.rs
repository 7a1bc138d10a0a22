//! Builds the changed sources once, and runs the tests with one mutant on.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// The programs of the tests.
pub(crate) struct Programs {
    pub(crate) unit: PathBuf,
    pub(crate) integration: PathBuf,
}

/// Of a build: the programs, or the places (file, byte) that do not compile.
pub(crate) enum Build {
    Done(Programs),
    Errors(BTreeSet<(String, usize)>),
}

/// Builds the tests of the package in `root`.
pub(crate) fn build(root: &Path) -> Result<Build> {
    let mut command = Command::new("cargo");
    command.current_dir(root).args(["test", "--no-run", "--locked", "--features", "oracle", "--lib"]);
    command.args(["--test", "main", "--message-format", "json"]).stdout(Stdio::piped());
    command.stderr(Stdio::null());
    let output = command.output().context("cargo cannot be run")?;
    let (mut unit, mut integration, mut errors) = (None, None, BTreeSet::new());
    for line in output.stdout.lines() {
        let Ok(message) = serde_json::from_str::<Value>(&line?) else { continue };
        if let Some(program) = message["executable"].as_str() {
            match message["target"]["kind"][0].as_str() {
                Some("lib") => unit = Some(PathBuf::from(program)),
                Some("test") => integration = Some(PathBuf::from(program)),
                _ => (),
            }
        }
        if message["message"]["level"] == "error" {
            let spans = message["message"]["spans"].as_array().cloned().unwrap_or_default();
            for span in spans.iter().filter(|span| span["is_primary"] == true) {
                let file = span["file_name"].as_str().unwrap_or_default().to_owned();
                errors.insert((file, span["byte_start"].as_u64().unwrap_or_default() as usize));
            }
        }
    }
    if let (true, Some(unit), Some(integration)) = (output.status.success(), unit, integration) {
        return Ok(Build::Done(Programs { unit, integration }));
    }
    ensure!(!errors.is_empty(), "the tests do not build, and no error names a place");
    Ok(Build::Errors(errors))
}

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The test that fails, or that the program ended without saying which.
    Killed(String),
    /// The tests did not end in time.
    TimedOut,
    Survived,
}

/// Runs one program of tests, with a mutant or none, until the first test fails.
pub(crate) fn run(
    program: &Path,
    root: &Path,
    mutant: Option<usize>,
    arguments: &[String],
    most: Duration,
) -> Result<Fate> {
    // A mutant may ask for all the memory that there is.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 16000000; exec \"$@\"", "sh"]).arg(program).args(arguments);
    command.current_dir(root).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    if let Some(mutant) = mutant {
        command.env("DOMINO_MUTANT", mutant.to_string());
    }
    let started = Instant::now();
    let mut child = command.spawn().with_context(|| format!("{} cannot be run", program.display()))?;
    let Some(stdout) = child.stdout.take() else { bail!("no output") };
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    let fate = loop {
        match lines.recv_timeout(most.saturating_sub(started.elapsed())) {
            Ok(line) => {
                let failed = line.strip_prefix("test ").and_then(|line| line.strip_suffix(" ... FAILED"));
                if let Some(test) = failed {
                    break Fate::Killed(test.to_owned());
                }
            }
            Err(mpsc::RecvTimeoutError::Timeout) => break Fate::TimedOut,
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                break if child.wait()?.success() {
                    Fate::Survived
                } else {
                    Fate::Killed("(aborted)".into())
                };
            }
        }
    };
    // It may have ended by itself.
    let _ = child.kill();
    child.wait()?;
    Ok(fate)
}
