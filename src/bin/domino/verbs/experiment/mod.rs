//! `domino experiment`: runs a grid of texts by a definition, or those of several, one after the other, and
//! summarises them. Beside it are the other commands that measure.
//!
//! A record tells its origin: the command, and the commit of the program.

mod args;
pub(crate) mod bench_model;
pub(crate) mod retokenize;
pub(crate) mod trace;

use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};
use std::{io::Write, num::NonZeroUsize, process::Command};

use domino::experiment::outputs::{Beside, Outputs, TABLES};
use domino::experiment::summary::{self, Line};
use domino::experiment::{
    self, DEFAULT_MODEL, Definition, DraftSource, Ended, ExperimentError, GrammarTexts, Header, Loaded,
    ModelPart, ModelRecord, Others, Plan, Records, Row, Watch,
};
use domino::model::candle::{CandleModel, Format, LoadOptions, join_threads, threads};
use domino::{chat::ChatTemplate, experiment::methods::Programs, store::CacheFolder, vocab::Tokenizer};
use serde_json::{Value, json};

pub(crate) use self::args::LowExperiment;
use crate::terminal::failure::{BadInput, Exit, note};
use crate::terminal::{self, count, progress};
use crate::{engine, grammar::source::SHIPPED, session::model};

/// The default folder of records.
const RECORDS: &str = "experiments/records";

/// The file of the summary with all columns.
const SUMMARY: &str = "summary.md";

/// The grammars of the program.
struct OfProgram;

impl GrammarTexts for OfProgram {
    fn text(&self, name: &str) -> Option<&'static str> {
        SHIPPED.iter().find(|shipped| shipped.name == name).map(|shipped| shipped.text)
    }

    fn names(&self) -> Vec<&str> {
        SHIPPED.iter().map(|shipped| shipped.name).collect()
    }
}

/// Runs an experiment, or joins the shards of one.
pub(crate) fn run(flags: &LowExperiment, json: bool, cache: &CacheFolder) -> anyhow::Result<Exit> {
    if let Some(folder) = &flags.report {
        return report(folder, json);
    }
    let runs: Vec<Run> = flags.definitions.iter().map(|definition| Run { definition, flags }).collect();
    match (&runs[..], &flags.out) {
        ([run], _) => {
            let made = run.make(run.read()?, "", cache)?;
            tell(&made.folder, made.rows, made.ended == Ended::Complete, &made.lines, json)?;
            Ok(made.exit())
        }
        ([], Some(out)) => {
            let rows = experiment::merge(&flags.merge, out).map_err(failed)?;
            let header = experiment::read_header(out).map_err(failed)?;
            let lines = summarised(out, &header, &rows)?;
            tell(out, rows.len(), true, &lines, json)?;
            Ok(Exit::Success)
        }
        ([], None) => Err(BadInput::new("no folder for what is merged: give --out").into()),
        _ => flags.run_several(&runs, json, cache),
    }
}

/// A definition to run.
struct Run<'a> {
    definition: &'a Path,
    flags: &'a LowExperiment,
}

/// Runs that were made, with those that were there before.
struct RunsMade {
    folder: PathBuf,
    rows: usize,
    ended: Ended,
    lines: Vec<Line>,
}

impl RunsMade {
    fn exit(&self) -> Exit {
        match self.ended {
            Ended::Complete => Exit::Success,
            Ended::Stopped => Exit::Interrupted,
        }
    }
}

impl Run<'_> {
    /// Reads the definition. One of the model that comes with the program is of that of `DOMINO_MODEL` where
    /// the variable names one, and records have that name.
    fn read(&self) -> anyhow::Result<Definition> {
        let mut definition =
            Definition::read(self.definition, self.flags.quick, &OfProgram).map_err(failed)?;
        if let Some(named) = model::of_variable().filter(|_| definition.models == [DEFAULT_MODEL]) {
            definition.models = vec![named.to_string_lossy().into_owned()];
        }
        Ok(definition)
    }

    /// Makes the runs that are not there yet, and adds all up. `label` begins what is shown of progress.
    fn make(&self, definition: Definition, label: &str, cache: &CacheFolder) -> anyhow::Result<RunsMade> {
        let models = self.models(&definition)?;
        let draft = definition.draft_model.as_ref().map(|draft| self.draft(draft)).transpose()?;
        let other = definition.mistralrs_model.as_ref().map(|name| self.locate(name)).transpose()?;
        let header = self.header(&definition, &models, draft.as_ref(), other.as_deref())?;
        let folder = self.folder(&definition, &header);
        let plan = Plan::new(definition, self.flags.shard);
        let mut records = Records::open(&folder, &header).map_err(failed)?;
        // Continued records keep the command that began them, and their date.
        let header = experiment::read_header(&folder).map_err(failed)?;
        join_threads(self.flags.threads);
        progress::watch_interrupts();
        note!("{label}{} runs, records in {}", plan.runs(), folder.display());
        let mut load = |part: ModelPart| match (part, &draft) {
            (ModelPart::Draft, Some(DraftFile { name, path, options })) => load(name, path, options, cache),
            (ModelPart::Model(index), _) => {
                let name = &plan.definition().models[index];
                let definition = plan.definition();
                let loaded = load(name, &models[index], &LoadOptions::default(), cache)?;
                if definition.chat || definition.thinks() {
                    with_template(loaded, definition, &models[index], name)
                } else {
                    Ok(loaded)
                }
            }
            (ModelPart::Draft, None) => {
                let message = "the definition names none".to_owned();
                Err(ExperimentError::Model { name: "draft_model".to_owned(), message })
            }
        };
        let mut shown = ProgressBar { label: label.to_owned(), bar: None };
        let beside = self.definition.parent().unwrap_or(Path::new("")).to_owned();
        let paths = models.iter().map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()));
        let threads = self.flags.threads.map_or_else(threads, NonZeroUsize::get);
        let programs = Programs::new(beside, paths.collect(), threads);
        let host =
            engine::other().and_then(|engine| engine.methods(plan.definition(), &models, other.as_deref()));
        let others = Others { host: host.as_deref(), programs: Some(&programs), ..Others::default() };
        let ended = experiment::run_with::<CandleModel>(&plan, &mut records, &mut load, &mut shown, others);
        drop(shown);
        // The records so far are summarised even if a run failed.
        let rows = records.tabulate().map_err(failed)?;
        let lines = summarised(&folder, &header, &rows)?;
        let ended = ended.map_err(failed)?;
        if ended == Ended::Stopped {
            note!(
                "{} of {} runs are there; the same command goes on with the others",
                rows.len(),
                plan.runs()
            );
        }
        Ok(RunsMade { folder, rows: rows.len(), ended, lines })
    }

    /// Finds the paths of the models.
    fn models(&self, definition: &Definition) -> Result<Vec<PathBuf>, BadInput> {
        definition.models.iter().map(|name| self.locate(name)).collect()
    }

    /// Finds the path of a model. Paths are relative to the definition's folder, or else as for `--model`.
    fn locate(&self, name: &str) -> Result<PathBuf, BadInput> {
        let beside = self.definition.parent().unwrap_or(Path::new("")).join(name);
        if beside.exists() {
            return Ok(beside);
        }
        if name == DEFAULT_MODEL && !Path::new(name).exists() {
            return model::default_model();
        }
        model::locate(Some(Path::new(name)))
    }

    /// Finds the draft model, without loading it.
    fn draft(&self, source: &DraftSource) -> Result<DraftFile, BadInput> {
        let mut options = LoadOptions::default();
        if let Some(name) = &source.quantize {
            let format: Result<Format, _> = name.parse();
            let format = format.ok().filter(|format| format.is_quantised()).ok_or_else(|| {
                BadInput::new(format!(
                    "`draft_model` is to be quantised to {name:?}, which is no such format"
                ))
                .hint("for example q8_0 or q4_k")
            })?;
            options.quantize = Some(format);
        }
        if let Some(name) = &source.kv {
            options.kv = name.parse().map_err(|error: String| {
                BadInput::new(format!("`kv` of `draft_model`: {error}")).hint("for example f16")
            })?;
        }
        Ok(DraftFile { name: source.model.clone(), path: self.locate(&source.model)?, options })
    }

    fn header(
        &self,
        definition: &Definition,
        models: &[PathBuf],
        draft: Option<&DraftFile>,
        other: Option<&Path>,
    ) -> anyhow::Result<Header> {
        let mut records = Vec::new();
        let named = definition.models.iter().cloned().zip(models);
        let draft = draft.map(|draft| (format!("{} as draft model", draft.name), &draft.path));
        let named = named.chain(draft).map(|(name, path)| (name, path.as_path()));
        let other = definition.mistralrs_model.iter().map(|name| format!("{name} for mistral.rs")).zip(other);
        for (name, path) in named.chain(other) {
            let hash =
                progress::during(format!("reading {}", path.display()), || experiment::model_hash(path));
            records.push(ModelRecord { name, hash: hash.map_err(failed)? });
        }
        let mut header = Header::new(definition, self.flags.shard, records, SystemTime::now());
        header.command = command_line();
        header.commit = commit();
        Ok(header)
    }

    /// Chooses the folder of the records: the one that was named, the latest of this name that holds the same
    /// experiment, or a new one of today.
    fn folder(&self, definition: &Definition, header: &Header) -> PathBuf {
        let several = self.flags.definitions.len() > 1;
        if let Some(out) = &self.flags.out {
            return if several { out.join(&definition.name) } else { out.clone() };
        }
        let mut name = definition.name.clone();
        if self.flags.quick {
            name += "-quick";
        }
        if let Some(shard) = self.flags.shard {
            name += &format!("-{}", shard.to_string().replace('/', "-of-"));
        }
        let entries = std::fs::read_dir(RECORDS).into_iter().flatten().flatten();
        let mut begun: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(|path| {
                let file = path.file_name().and_then(|file| file.to_str()).unwrap_or_default();
                // A name follows a date of ten characters.
                file.get(10..).is_some_and(|rest| rest.strip_prefix('-') == Some(&*name))
            })
            .filter(|path| {
                experiment::read_header(path).is_ok_and(|found| found.differences(header).is_empty())
            })
            .collect();
        begun.sort();
        let today = || Path::new(RECORDS).join(format!("{}-{name}", experiment::date(SystemTime::now())));
        begun.pop().unwrap_or_else(today)
    }
}

/// A draft model that is not loaded yet.
struct DraftFile {
    name: String,
    path: PathBuf,
    options: LoadOptions,
}

/// Loads a model with its vocabulary and tokenizer.
fn load(
    name: &str,
    path: &Path,
    options: &LoadOptions,
    cache: &CacheFolder,
) -> Result<Loaded<CandleModel>, ExperimentError> {
    let bad = |error: &dyn std::fmt::Display| ExperimentError::Model {
        name: name.to_owned(),
        message: error.to_string(),
    };
    let vocabulary = model::vocabulary(path, cache).map_err(|error| bad(&error))?;
    let tokenizer = Tokenizer::from_tokenizer_file(path).map_err(|error| bad(&error))?;
    let model = CandleModel::load(path, options).map_err(|error| bad(&error))?;
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) };
    let priors = Some(folder.join("priors")).filter(|folder| folder.is_dir());
    Ok(Loaded { model, vocabulary, tokenizer, priors, template: None })
}

/// Adds the chat template that a model has: the one for functions where the definition has some.
fn with_template(
    loaded: Loaded<CandleModel>,
    definition: &Definition,
    path: &Path,
    name: &str,
) -> Result<Loaded<CandleModel>, ExperimentError> {
    let tools = definition.tasks.iter().any(|task| task.functions.is_some());
    let template = ChatTemplate::of_model(path, tools)
        .map_err(|source| ExperimentError::Template { model: name.to_owned(), source })?;
    Ok(Loaded { template, ..loaded })
}

/// Shows the records of a folder, complete or not.
fn report(folder: &Path, json: bool) -> anyhow::Result<Exit> {
    let (header, rows) = experiment::read(folder).map_err(failed)?;
    let beside = Beside::read(folder).map_err(failed)?;
    let outputs = Outputs::new(&header, &rows, &summary::summarise(&rows), &beside);
    let written = outputs.write(folder).map_err(failed)?;
    let mut out = terminal::stdout();
    if json {
        let files: Vec<String> = written.iter().map(|path| path.display().to_string()).collect();
        writeln!(out, "{}", json!({ "rows": rows.len(), "planned": outputs.planned, "files": files }))?;
    } else {
        for path in written {
            writeln!(out, "{}", path.display())?;
        }
        note!("tables, with links to the figures: {}", folder.join(TABLES).display());
    }
    Ok(Exit::Success)
}

/// Summarises the rows, and writes the summary beside them, with tables and figures.
fn summarised(folder: &Path, header: &Header, rows: &[Row]) -> anyhow::Result<Vec<Line>> {
    let lines = summary::summarise(rows);
    let json = serde_json::to_string_pretty(&lines)? + "\n";
    for (name, content) in
        [(SUMMARY, summary::markdown(&lines)), ("summary.csv", summary::csv(&lines)), ("summary.json", json)]
    {
        experiment::write_file(&folder.join(name), content.as_bytes()).map_err(failed)?;
    }
    let beside = Beside::read(folder).map_err(failed)?;
    Outputs::new(header, rows, &lines, &beside).write(folder).map_err(failed)?;
    Ok(lines)
}

/// Prints the summary of the rows.
fn tell(folder: &Path, rows: usize, complete: bool, lines: &[Line], json: bool) -> anyhow::Result<()> {
    let mut out = terminal::stdout();
    let tables = folder.join(TABLES);
    if json {
        let folder = folder.display().to_string();
        let tables = tables.display().to_string();
        let object = json!({
            "folder": folder, "rows": rows, "complete": complete, "tables": tables, "summary": lines,
        });
        writeln!(out, "{object}")?;
    } else {
        write!(out, "{}", summary::brief(lines))?;
        note!("all columns: {}; tables and figures: {}", folder.join(SUMMARY).display(), tables.display());
    }
    Ok(())
}

/// Converts an error of an experiment into one of the program.
fn failed(error: ExperimentError) -> anyhow::Error {
    match error.hint() {
        Some(hint) if error.is_bad_input() => BadInput::new(error.to_string()).hint(hint).into(),
        None if error.is_bad_input() => BadInput::from_library(&error).into(),
        // The error of a budget that was used up has a hint of its own.
        _ if matches!(error, ExperimentError::Run { .. }) => error.into(),
        Some(hint) => anyhow::anyhow!("{error}\nhint: {hint}"),
        None => error.into(),
    }
}

/// A bar on standard error.
struct ProgressBar {
    /// Text that stands before all that it says.
    label: String,
    bar: Option<indicatif::ProgressBar>,
}

impl Watch for ProgressBar {
    fn begun(&mut self, runs: usize, there: usize) {
        let bar = progress::bar(self.label.clone(), runs);
        bar.set_position(there as u64);
        bar.reset_eta();
        self.bar = Some(bar);
    }

    fn made(&mut self, row: &Row) {
        tracing::info!(run = row.run.key(), tokens = row.tokens.len(), seconds = row.seconds, "made a run");
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    fn doing(&mut self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{}{what}", self.label));
        }
    }

    fn stops(&self) -> bool {
        progress::interrupted()
    }
}

/// The file with the tables of all, and the one that each folder of records has.
const TABLES_OF_ALL: &str = "tables.md";

/// Outcome of one of the definitions.
struct OneOfSeveral {
    name: String,
    runs: usize,
    made: anyhow::Result<RunsMade>,
}

impl LowExperiment {
    /// Runs all definitions. A failure does not stop the others; it is reported at the end.
    fn run_several(&self, runs: &[Run], json: bool, cache: &CacheFolder) -> anyhow::Result<Exit> {
        // What is wrong with the last one should not come to light after an hour.
        let definitions = runs.iter().map(Run::read).collect::<anyhow::Result<Vec<_>>>()?;
        refuse_same_names(&definitions)?;
        for (run, definition) in runs.iter().zip(&definitions) {
            run.models(definition)?;
        }
        progress::watch_interrupts();
        let mut parts: Vec<OneOfSeveral> = Vec::new();
        let all = definitions.len();
        for (number, (run, definition)) in (1..).zip(runs.iter().zip(definitions)) {
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
        self.tell(&parts, json)?;
        end(parts)
    }

    /// Writes the tables of those that were run so far, if there is a folder for it.
    fn keep_tables(&self, parts: &[OneOfSeveral]) -> anyhow::Result<()> {
        let Some(out) = &self.out else { return Ok(()) };
        experiment::write_file(&out.join(TABLES_OF_ALL), tables(parts, out).as_bytes()).map_err(failed)
    }

    fn tell(&self, parts: &[OneOfSeveral], json: bool) -> anyhow::Result<()> {
        let mut written = terminal::stdout();
        if json {
            let parts: Vec<Value> = parts.iter().map(OneOfSeveral::to_json).collect();
            let tables = self.out.as_ref().map(|out| out.join(TABLES_OF_ALL).display().to_string());
            writeln!(written, "{}", json!({ "experiments": parts, "tables": tables }))?;
            return Ok(());
        }
        let out = self.out.clone().unwrap_or_default();
        write!(written, "{}", tables(parts, &out))?;
        if self.out.is_some() {
            note!("the tables of all: {}", out.join(TABLES_OF_ALL).display());
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
        let own = std::fs::read_to_string(folder.join(TABLES_OF_ALL)).unwrap_or_default();
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

/// The command that was given, with the program by its name alone. Absolute paths would reveal the folders of
/// a person, so they are made relative to the current folder, or reduced to the name of the file.
fn command_line() -> Vec<String> {
    let here = std::env::current_dir().unwrap_or_default();
    let mut words: Vec<String> =
        std::env::args_os().map(|word| shown(&word.to_string_lossy(), &here)).collect();
    if let Some(program) = words.first_mut() {
        *program = "domino".to_owned();
    }
    words
}

/// Removes absolute paths from a word of a command.
fn shown(word: &str, here: &Path) -> String {
    if let Some((flag, value)) = word.split_once('=').filter(|(flag, _)| flag.starts_with('-')) {
        return format!("{flag}={}", shown(value, here));
    }
    let path = Path::new(word);
    if !path.is_absolute() {
        return word.to_owned();
    }
    let inside = path.strip_prefix(here).ok().filter(|inside| !inside.as_os_str().is_empty());
    let name = inside.map(Path::as_os_str).or(path.file_name());
    name.map_or_else(|| word.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The commit of the program: the one that `DOMINO_COMMIT` named when it was built, or else that of the
/// working tree that it runs in, if that is one of this package. A tree whose files differ from its commit is
/// marked as modified.
fn commit() -> Option<String> {
    if let Some(commit) = option_env!("DOMINO_COMMIT") {
        return Some(commit.to_owned());
    }
    let root = git(&["rev-parse", "--show-toplevel"])?;
    let manifest = std::fs::read_to_string(Path::new(&root).join("src/bin/domino/Cargo.toml")).ok()?;
    let own = concat!("name = \"", env!("CARGO_PKG_NAME"), "\"");
    if !manifest.lines().any(|line| line == own) {
        return None;
    }
    let commit = git(&["rev-parse", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changes.is_empty() { commit } else { format!("{commit}, modified") })
}

/// Runs git and returns its output; `None` if there is no git or it fails.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).stdin(std::process::Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn commands_have_no_absolute_paths() {
        for (word, expected) in [
            ("experiment", "experiment"),
            ("d.toml", "d.toml"),
            ("../d.toml", "../d.toml"),
            ("/projects/domino/d.toml", "d.toml"),
            ("/projects/domino/a/d.toml", "a/d.toml"),
            ("/elsewhere/d.toml", "d.toml"),
            ("--out=/projects/domino/out", "--out=out"),
            ("--out=/tmp/out", "--out=out"),
            ("--shard", "--shard"),
            ("1/2", "1/2"),
            ("/", "/"),
        ] {
            assert_eq!(shown(word, Path::new("/projects/domino")), expected);
        }
    }
}
