//! Builds the changed sources once, and runs the tests with one mutant on.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::schemata::{REACHED, SWITCH};

/// The programs of the tests.
pub(crate) struct Programs {
    pub(crate) unit: PathBuf,
    pub(crate) integration: PathBuf,
}

/// Result of a build: the programs, or the places (file, byte) that do not compile.
pub(crate) enum Build {
    Done(Programs),
    Errors(BTreeSet<(String, usize)>),
}

/// Builds the tests of the package in `root`, better optimised than by default, since they run very often.
pub(crate) fn build(root: &Path) -> Result<Build> {
    let mut command = Command::new("cargo");
    command.current_dir(root).args(["test", "--no-run", "--locked", "--features", "oracle", "--lib"]);
    command.args(["--test", "main", "--message-format", "json"]).stdout(Stdio::piped());
    command.args(["--config", "profile.dev.package.domino-decoding.opt-level=2"]);
    command.env("CARGO_INCREMENTAL", "0").stderr(Stdio::null());
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

/// Fate of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// A test failed: its name, or a note that the program ended without naming one.
    Killed(String),
    /// The tests exceeded their time.
    TimedOut,
    Survived,
}

/// Some tests of one program, run one after the other in one process.
pub(crate) struct Trial<'a> {
    pub(crate) program: &'a Path,
    pub(crate) root: &'a Path,
    /// Full names of the tests.
    pub(crate) tests: &'a [String],
    /// Processor time after which the tests count as endless.
    pub(crate) most: Duration,
}

impl Trial<'_> {
    /// Runs the tests, with a mutant or none, until the first fails. The changed sources write the numbers of
    /// the places that they reach to `reached`.
    pub(crate) fn run(&self, mutant: Option<usize>, reached: Option<&Path>) -> Result<Fate> {
        // A mutant may ask for all the memory that there is. Processor time does not depend on other work on
        // the machine; programs that a test starts have the same limits.
        let limits = format!("ulimit -v 12000000; ulimit -t {}; exec \"$@\"", self.most.as_secs() + 1);
        let mut command = Command::new("sh");
        command.args(["-c", &limits, "sh"]).arg(self.program).args(["--test-threads", "1", "--exact"]);
        command.args(self.tests).current_dir(self.root);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        if let Some(mutant) = mutant {
            command.env(SWITCH, mutant.to_string());
        }
        if let Some(reached) = reached {
            command.env(REACHED, reached);
        }
        let started = Instant::now();
        let mut child =
            command.spawn().with_context(|| format!("{} cannot be run", self.program.display()))?;
        let Some(stdout) = child.stdout.take() else { bail!("no output") };
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        // A limit by the clock, for tests that wait without work.
        let most = self.most * 10 + Duration::from_secs(60);
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
                    let status = child.wait()?;
                    break match status.signal() {
                        _ if status.success() => Fate::Survived,
                        Some(SIGXCPU | SIGKILL) => Fate::TimedOut,
                        _ => Fate::Killed("(aborted)".into()),
                    };
                }
            }
        };
        // All of its group, for programs that a test has started; it may have ended by itself.
        let group = format!("-{}", child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        child.wait()?;
        Ok(fate)
    }
}

/// Signal that ends a process whose processor time is up, by default and where it does not listen.
const SIGXCPU: i32 = 24;
const SIGKILL: i32 = 9;
