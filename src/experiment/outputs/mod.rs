//! The outputs of a record: the paper's tables and figure, in Markdown, CSV and SVG.
//!
//! Everything is made from rows alone, by way of their [summary](super::summary), so an incomplete record
//! gives the same tables with fewer texts. Every number has its interval and the number of its texts.

mod baseline;
mod distortion;
mod drafting;
mod figures;
mod paper;
mod speed;
mod svg;
mod table;
mod texts;

use std::path::{Path, PathBuf};

pub use figures::{Figure, Marks, Panel, Series};
pub use table::{Cell, Table};

use self::table::{groups, wrapped};
use super::definition::{Definition, WarmUpPrompts};
use super::enumeration::{Distribution, read_distributions};
use super::passes::{PassCurve, read_passes};
use super::statistics::{LEAST_PROMPTS, RESAMPLES};
use super::summary::{Line, PlainNames};
use super::{error::ExperimentError, header::Header, methods::MethodName, records::write_file, row::Row};

/// The file of all tables in a folder of records.
pub const TABLES: &str = "tables.md";

/// A sentence on the denominator of throughput.
const NO_GRAMMAR: &str = "Over unconstrained: relative to the tokens and seconds of all unconstrained texts \
    of the model together, of whatever grammar, as a pass is a pass. Tables \"of different texts\" compare \
    texts of other lengths and words.";

/// Measurements besides the runs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Beside {
    /// Costs of the models' passes.
    pub passes: Vec<PassCurve>,
    /// All texts of small languages, with their probabilities.
    pub distributions: Vec<Distribution>,
}

impl Beside {
    /// Reads the measurements in a folder of records.
    ///
    /// # Errors
    /// If a file cannot be read, or is damaged.
    pub fn read(folder: &Path) -> Result<Self, ExperimentError> {
        Ok(Self { passes: read_passes(folder)?, distributions: read_distributions(folder)? })
    }
}

/// All outputs of a record.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Outputs {
    /// The record's header.
    pub header: Header,
    /// Number of runs in the record.
    pub runs: usize,
    /// Number of runs that the definition plans, if known; a shard has fewer.
    pub planned: Option<usize>,
    /// Number of texts outside of the language despite a constraint, other than by being cut: there should be
    /// none.
    pub wrong: usize,
    /// Fewest and most prompts of a line of the summary.
    pub prompts: (usize, usize),
    /// A sentence on how methods were warmed up; nothing if none learns.
    pub warm_ups: Option<String>,
    /// Number of greedy texts whose methods had learnt from warm-ups on the same prompts: from the very
    /// texts.
    pub known_before: usize,
    /// Number of texts outside of the language that another engine's own constraint let through.
    pub others: usize,
    /// The tables.
    pub tables: Vec<Table>,
    /// The figures.
    pub figures: Vec<Figure>,
}

impl Outputs {
    /// Makes the outputs of these rows, their summary, and the measurements beside them.
    #[must_use]
    pub fn new(header: &Header, rows: &[Row], lines: &[Line], beside: &Beside) -> Self {
        let Beside { passes, distributions } = beside;
        let outline = Definition::outline(&header.definition);
        let prompts = || lines.iter().map(|line| line.prompts);
        let known = |row: &&Row| row.run.temperature <= 0.0 && row.seen == Some(true);
        let elsewhere: Vec<String> = outline.iter().flat_map(|definition| definition.elsewhere()).collect();
        let outside = rows.iter().filter(|row| row.run.k.is_some() && !row.prefix);
        let (others, wrong): (Vec<&Row>, Vec<&Row>) =
            outside.partition(|row| elsewhere.contains(&row.run.method));
        let warm_ups = outline.as_ref().and_then(warm_ups);
        let planned = outline.map(|definition| definition.runs());
        Self {
            header: header.clone(),
            runs: rows.len(),
            planned: planned.filter(|_| header.shard.is_none()),
            wrong: wrong.len(),
            prompts: (prompts().min().unwrap_or(0), prompts().max().unwrap_or(0)),
            warm_ups,
            known_before: rows.iter().filter(known).count(),
            others: others.len(),
            tables: baseline::same_texts(rows)
                .into_iter()
                .chain(baseline::control(rows))
                .chain(all_tables(lines))
                .chain(speed::side_by_side(lines, &elsewhere))
                .chain(distortion::tables(lines, rows, distributions))
                .chain(distortion::from_wishes(lines, rows))
                .chain(drafting::passes(passes))
                .collect(),
            figures: figures::all(lines).into_iter().chain(drafting::passes_figure(passes)).collect(),
        }
    }

    /// Writes them into a folder of records: `tables.md`, and the folders `tables` (CSV) and `figures` (SVG).
    /// Returns the paths.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<Vec<PathBuf>, ExperimentError> {
        let mut written = Vec::new();
        let mut put = |path: PathBuf, content: String| {
            write_file(&path, content.as_bytes())?;
            written.push(path);
            Ok::<_, ExperimentError>(())
        };
        for name in ["tables", "figures"] {
            let path = folder.join(name);
            std::fs::create_dir_all(&path).map_err(ExperimentError::io("make", path))?;
        }
        for table in &self.tables {
            put(folder.join("tables").join(&table.id).with_extension("csv"), table.csv())?;
        }
        for figure in &self.figures {
            put(folder.join("figures").join(&figure.id).with_extension("svg"), svg::draw(figure)?)?;
        }
        put(folder.join(TABLES), self.markdown())?;
        Ok(written)
    }

    /// Formats all tables in Markdown, with links to the figures.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = format!("# {}\n\n{}\n", self.name(), self.about());
        let provenance: Vec<String> = self.provenance().iter().map(|line| wrapped(line)).collect();
        text += &format!("\n{}\n", provenance.join("  \n"));
        for table in &self.tables {
            text += "\n";
            text += &table.markdown();
        }
        for figure in &self.figures {
            text += &format!(
                "\n## {}\n\n{}\n\n![{}](figures/{}.svg)\n",
                figure.title,
                wrapped(&figure.about),
                figure.title,
                figure.id
            );
        }
        text
    }

    /// The definition's name.
    fn name(&self) -> &str {
        self.header.definition.get("name").and_then(|name| name.as_str()).unwrap_or("experiment")
    }

    /// The question of the definition.
    fn about(&self) -> &str {
        self.header.definition.get("about").and_then(|about| about.as_str()).unwrap_or_default()
    }

    /// A sentence on the form of prompts, where that is not the raw one.
    fn template(&self) -> Option<String> {
        let definition = &self.header.definition;
        definition.get("chat").filter(|chat| chat.as_bool() == Some(true))?;
        let system = definition.get("system").and_then(|system| system.as_str());
        let system = system.map_or_else(String::new, |system| format!("; the system says {system:?}"));
        Some(format!("Prompts: as what a user says, in the model's chat template{system}."))
    }

    /// Makes a sentence about intervals.
    fn intervals(&self) -> String {
        let (fewest, most) = self.prompts;
        let number = if fewest == most { most.to_string() } else { format!("{fewest} to {most}") };
        match most {
            0 | 1 => {
                "Intervals: none, and - in their place, as all texts of a number go on from one prompt, and \
                it is prompts that the bootstrap draws again; n is the number of texts."
                    .to_owned()
            }
            2..LEAST_PROMPTS => format!(
                "Intervals: none, and - in their place, as a number has {number} prompts, and resamples of \
                 fewer than {LEAST_PROMPTS} say too little; n is the number of texts."
            ),
            _ => format!(
                "Intervals: 95%, by the bootstrap: the prompts of a number, {number}, each with all of its \
                 texts, were drawn again {RESAMPLES} times; of fewer than {LEAST_PROMPTS} prompts there is \
                 none, and - in its place. n is the number of texts."
            ),
        }
    }

    /// Lists the sources of the numbers, a line each.
    fn provenance(&self) -> Vec<String> {
        let Header { command, version, commit, models, machines, begun, shard, .. } = &self.header;
        let runs = match (self.planned, shard) {
            (Some(planned), _) if planned == self.runs => {
                let runs = if self.runs == 1 { "run" } else { "runs" };
                format!("{} {runs}, all of the definition", self.runs)
            }
            (Some(planned), _) => format!("{} of {planned} runs: the record is not whole", self.runs),
            (None, Some(shard)) => format!("{} runs of shard {shard}", self.runs),
            (None, None) => format!("{} runs", self.runs),
        };
        let machines: Vec<String> = machines
            .iter()
            .map(|machine| format!("{} cores of {}, {}", machine.cores, machine.processor, machine.system))
            .collect();
        let names = PlainNames::of(models.iter().map(|model| model.name.as_str()));
        let models: Vec<String> = models
            .iter()
            .map(|model| {
                let hash = model.hash.get(..16).unwrap_or(&model.hash);
                format!("{} (BLAKE3 {hash})", names.get(&model.name))
            })
            .collect();
        let commit = commit.as_deref().unwrap_or("unknown");
        let mut lines = vec![
            format!("Runs: {runs}, begun {begun}."),
            format!("Command: `{}`.", command.join(" ")),
            format!("Program: version {version}, commit {commit}."),
            format!("Model: {}.", models.join(", ")),
            format!("Machine: {}.", machines.join(" and ")),
            self.intervals(),
            NO_GRAMMAR.to_owned(),
            paper::DIFFERS.to_owned(),
        ];
        lines.extend(self.warm_ups.clone());
        lines.extend(self.template());
        if self.known_before > 0 {
            lines.push(format!(
                "SEEN: {} texts at temperature 0 go on from prompts that their methods had warmed up with: \
                 what was learnt from are these very texts. They are marked with a double dagger.",
                self.known_before
            ));
        }
        if self.others > 0 {
            lines.push(format!(
                "Other engines: {} texts that they kept to a grammar by their own constraints are not in the \
                 language.",
                self.others
            ));
        }
        if self.wrong > 0 {
            lines.push(format!(
                "WRONG: {} constrained texts left the language, which must not be.",
                self.wrong
            ));
        }
        lines
    }
}

/// Makes a sentence about the warm-ups of a definition; `None` if no method learns.
fn warm_ups(definition: &Definition) -> Option<String> {
    if !definition.method_names().any(MethodName::warms_up) {
        return None;
    }
    let texts: Vec<String> = definition.warm_ups.iter().map(ToString::to_string).collect();
    let on = match definition.warm_up_prompts {
        WarmUpPrompts::Apart => "prompts of their own, apart from those that are measured.",
        WarmUpPrompts::Measured if definition.temperatures.contains(&0.0) => {
            "the measured prompts, with other seeds (`warm_up_prompts = \"measured\"`, as in the paper). At \
             temperature 0 seeds make no difference, so the first prompts' measured texts are the very texts \
             that were learnt from."
        }
        WarmUpPrompts::Measured => {
            "the measured prompts, with other seeds (`warm_up_prompts = \"measured\"`, as in the paper)."
        }
    };
    Some(format!("Warm-ups: {} texts of each grammar on {on}", texts.join(", ")))
}

/// Makes all tables of the lines.
fn all_tables(lines: &[Line]) -> Vec<Table> {
    let mut tables = Vec::new();
    for group in groups(lines) {
        tables.push(texts::by_method(&group));
        tables.push(speed::by_method(&group));
        tables.extend(paper::tables(&group));
        tables.extend(texts::by_lookahead(&group));
        tables.extend(speed::by_length(&group));
        tables.extend(speed::by_lookahead_and_length(&group));
        tables.extend(speed::by_threshold(&group));
        tables.extend(speed::acceptance(&group));
        tables.extend(drafting::by_prior(&group));
        tables.extend(drafting::coupling(&group));
    }
    tables
}

#[cfg(test)]
mod tests;
