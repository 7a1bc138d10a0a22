//! Several definitions, one after the other, and the tables of all in one file.

use std::path::{Path, PathBuf};
use std::{io::Write, time::Instant};

use domino::experiment::{self, Definition, Ended};
use domino::store::CacheFolder;
use serde_json::{Value, json};

use super::{RunsMade, args::Several, failed};
use crate::terminal::failure::{BadInput, Exit, note};
use crate::terminal::{self, count, progress};

/// The file with the tables of all, and the one that each folder of records has.
const TABLES: &str = "tables.md";

/// Outcome of one of the definitions.
struct OneOfSeveral {
    name: String,
    runs: usize,
    made: anyhow::Result<RunsMade>,
}

impl Several {
    /// Runs all definitions. A failure does not stop the others; it is reported at the end.
    pub(super) fn run(&self, cache: &CacheFolder) -> anyhow::Result<Exit> {
        // What is wrong with the last one should not come to light after an hour.
        let definitions = self.runs.iter().map(super::Run::read).collect::<anyhow::Result<Vec<_>>>()?;
        refuse_same_names(&definitions)?;
        for (run, definition) in self.runs.iter().zip(&definitions) {
            run.models(definition)?;
        }
        progress::watch_interrupts();
        let mut parts: Vec<OneOfSeveral> = Vec::new();
        let all = definitions.len();
        for (number, (run, definition)) in (1..).zip(self.runs.iter().zip(definitions)) {
            let (name, runs) = (definition.name.clone(), definition.runs());
            let label = format!("[{number}/{all}] {name}: ");
            let begun = Instant::now();
            let made = run.make(definition, &label, cache);
            match &made {
                Ok(RunsMade { ended: Ended::Complete, .. }) => {
                    note!("{label}done in {:.0} s", begun.elapsed().as_secs_f64());
                }
                Ok(_) => {}
                Err(error) => note!("{label}failed: {error:#}"),
            }
            parts.push(OneOfSeveral { name, runs, made });
            self.keep_tables(&parts)?;
            if progress::interrupted() {
                break;
            }
        }
        self.tell(&parts)?;
        end(parts)
    }

    /// Writes the tables of those that were run so far, if there is a folder for it.
    fn keep_tables(&self, parts: &[OneOfSeveral]) -> anyhow::Result<()> {
        let Some(out) = &self.out else { return Ok(()) };
        experiment::write_file(&out.join(TABLES), tables(parts, out).as_bytes()).map_err(failed)
    }

    fn tell(&self, parts: &[OneOfSeveral]) -> anyhow::Result<()> {
        let mut written = terminal::stdout();
        if self.json {
            let parts: Vec<Value> = parts.iter().map(OneOfSeveral::to_json).collect();
            let tables = self.out.as_ref().map(|out| out.join(TABLES).display().to_string());
            writeln!(written, "{}", json!({ "experiments": parts, "tables": tables }))?;
            return Ok(());
        }
        let out = self.out.clone().unwrap_or_default();
        write!(written, "{}", tables(parts, &out))?;
        if self.out.is_some() {
            note!("the tables of all: {}", out.join(TABLES).display());
        }
        Ok(())
    }
}

impl OneOfSeveral {
    fn to_json(&self) -> Value {
        match &self.made {
            Ok(RunsMade { folder, rows, ended, lines }) => json!({
                "name": self.name, "folder": folder.display().to_string(), "rows": rows,
                "planned": self.runs, "complete": *ended == Ended::Complete, "summary": lines,
            }),
            Err(error) => json!({ "name": self.name, "planned": self.runs, "error": format!("{error:#}") }),
        }
    }

    /// Says how far it came, in words.
    fn state(&self) -> String {
        match &self.made {
            Ok(RunsMade { ended: Ended::Complete, rows, .. }) => {
                format!("{}, all of them", count(rows, "run"))
            }
            Ok(RunsMade { rows, .. }) => format!("{rows} of {}", count(self.runs, "run")),
            Err(error) => format!("failed: {}", format!("{error:#}").replace('\n', "; ")),
        }
    }
}

/// Refuses two definitions whose records would go into one folder.
fn refuse_same_names(definitions: &[Definition]) -> Result<(), BadInput> {
    for (number, definition) in definitions.iter().enumerate() {
        if definitions[..number].iter().any(|other| other.name == definition.name) {
            return Err(BadInput::new(format!("two of the definitions are called {:?}", definition.name))
                .hint("give one of them another `name`: their records have folders of that name"));
        }
    }
    Ok(())
}

/// The tables of all, each under its name; links lead from the folder `out`.
fn tables(parts: &[OneOfSeveral], out: &Path) -> String {
    let mut text = format!("# {}\n\n", count(parts.len(), "experiment"));
    for part in parts {
        text += &format!("* {}: {}\n", part.name, part.state());
    }
    for RunsMade { folder, .. } in parts.iter().filter_map(|part| part.made.as_ref().ok()) {
        let own = std::fs::read_to_string(folder.join(TABLES)).unwrap_or_default();
        let place: PathBuf = folder.strip_prefix(out).unwrap_or(folder).to_owned();
        let link = format!("]({}/figures/", place.display());
        for line in own.lines() {
            let deeper = if line.starts_with('#') { "#" } else { "" };
            text += &format!("\n{deeper}{}", line.replace("](figures/", &link));
        }
        text.push('\n');
    }
    text
}

/// The exit of all: that of a failure if one failed, with its error; else that of an interruption, if there
/// was one.
fn end(parts: Vec<OneOfSeveral>) -> anyhow::Result<Exit> {
    let mut exit = Exit::Success;
    let mut failures = Vec::new();
    for OneOfSeveral { name, made, .. } in parts {
        match made {
            Ok(RunsMade { ended: Ended::Complete, .. }) => {}
            Ok(made) => exit = made.exit(),
            Err(error) => failures.push(error.context(format!("{name} failed"))),
        }
    }
    match failures.into_iter().next() {
        Some(first) => Err(first),
        None => Ok(exit),
    }
}
