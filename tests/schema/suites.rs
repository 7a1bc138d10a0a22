//! Suites of schemas with instances, decided by the engine byte by byte.
//!
//! The program `schema_suites` of `experiments/programs/schema` prints the counts; the tests here fail when
//! they drop.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use domino::{
    Compiler, Limits, TokenId, Vocabulary,
    grammar::json_schema::{SchemaError, SchemaErrorKind, SchemaOptions},
};
use serde::Deserialize;
use serde_json::Value;

/// A schema with valid and invalid texts.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// The group it is counted in.
    pub(crate) group: String,
    /// The name that failures are listed by.
    pub(crate) name: String,
    pub(crate) schema: String,
    pub(crate) tests: Vec<(String, bool)>,
}

/// Result of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Right,
    /// Numbers of the tests decided wrongly: valid ones refused, invalid ones accepted.
    Wrong(Vec<usize>, Vec<usize>),
    /// The schema was refused: keyword and message.
    Refused(String, String),
}

/// Counts of one group or of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) cases: usize,
    pub(crate) right: usize,
    pub(crate) valid_refused: usize,
    pub(crate) invalid_accepted: usize,
    pub(crate) refused: usize,
}

impl Counts {
    pub(crate) fn add(&mut self, outcome: &Outcome) {
        self.cases += 1;
        match outcome {
            Outcome::Right => self.right += 1,
            Outcome::Wrong(valid, invalid) => {
                self.valid_refused += usize::from(!valid.is_empty());
                self.invalid_accepted += usize::from(!invalid.is_empty());
            }
            Outcome::Refused(..) => self.refused += 1,
        }
    }
}

/// A decider of cases, each with a grammar of its own.
#[derive(Debug)]
pub(crate) struct Decider {
    compiler: Compiler,
    pub(crate) options: SchemaOptions,
}

impl Decider {
    pub(crate) fn new(options: SchemaOptions) -> Self {
        let end = TokenId::new(256);
        let bytes = Vocabulary::builder().all_bytes().special(end, "<end of text>").end_of_text(end).build();
        Self { compiler: Compiler::new(bytes.expect("a vocabulary of bytes")), options }
    }

    /// Decides a case; also returns the time of reading the schema and that of all the rest.
    pub(crate) fn decide(&self, case: &Case) -> (Outcome, Duration, Duration) {
        let start = Instant::now();
        let limits = Limits::default();
        let grammar = match self.options.parse(&case.schema, &limits) {
            Ok(schema) => schema.grammar,
            // If no value is valid, refusing the schema equals refusing all texts.
            Err(error) if *error.kind() == SchemaErrorKind::NoInstance => {
                let valid = case.tests.iter().enumerate().filter(|(_, (_, valid))| *valid);
                let valid: Vec<usize> = valid.map(|(index, _)| index).collect();
                let outcome =
                    if valid.is_empty() { Outcome::Right } else { Outcome::Wrong(valid, Vec::new()) };
                return (outcome, start.elapsed(), Duration::ZERO);
            }
            Err(error) => return (refused(&error), start.elapsed(), Duration::ZERO),
        };
        let read = start.elapsed();
        let compiled = match self.compiler.compile(&grammar) {
            Ok(compiled) => compiled,
            Err(error) => {
                return (Outcome::Refused("compile".to_owned(), error.to_string()), read, start.elapsed());
            }
        };
        let (mut valid_refused, mut invalid_accepted) = (Vec::new(), Vec::new());
        for (index, (text, valid)) in case.tests.iter().enumerate() {
            let mut state = compiled.constraint();
            let accepted = match state.advance_bytes(text.as_bytes()) {
                Ok(length) => length == text.len() && state.is_complete(),
                Err(error) => {
                    return (Outcome::Refused("step".to_owned(), error.to_string()), read, start.elapsed());
                }
            };
            match (accepted, valid) {
                (true, false) => invalid_accepted.push(index),
                (false, true) => valid_refused.push(index),
                _ => {}
            }
        }
        let outcome = if valid_refused.is_empty() && invalid_accepted.is_empty() {
            Outcome::Right
        } else {
            Outcome::Wrong(valid_refused, invalid_accepted)
        };
        (outcome, read, start.elapsed() - read)
    }
}

fn refused(error: &SchemaError) -> Outcome {
    let kind = format!("{:?} {}", error.kind(), error.keyword().unwrap_or_default());
    Outcome::Refused(kind.trim().to_owned(), error.message().to_owned())
}

#[derive(Debug, Deserialize)]
struct OfficialRow {
    draft: String,
    file: String,
    optional: bool,
    description: String,
    schema: Value,
    tests: Vec<Test>,
}

#[derive(Debug, Deserialize)]
struct MaskBenchRow {
    id: String,
    schema: Value,
    tests: Vec<Test>,
}

#[derive(Debug, Deserialize)]
struct Test {
    valid: bool,
    data: Value,
}

fn tests(tests: &[Test]) -> Vec<(String, bool)> {
    tests.iter().map(|test| (test.data.to_string(), test.valid)).collect()
}

/// Cases of the official suite, of the required or of the `optional` half.
pub(crate) fn official(file: &Path, draft: &str, optional: bool) -> Vec<Case> {
    rows::<OfficialRow>(file)
        .into_iter()
        .filter(|row| row.draft == draft && row.optional == optional)
        .map(|row| Case {
            name: format!("{}: {}", row.file, row.description),
            group: row.file,
            schema: row.schema.to_string(),
            tests: tests(&row.tests),
        })
        .collect()
}

/// Documents that the official suite refers to: address and text.
pub(crate) fn remotes(file: &Path) -> Vec<(String, String)> {
    #[derive(Deserialize)]
    struct Row {
        uri: String,
        schema: Value,
    }
    rows::<Row>(file).into_iter().map(|row| (row.uri, row.schema.to_string())).collect()
}

/// Rows of MaskBench.
pub(crate) fn maskbench(file: &Path) -> Vec<Case> {
    rows::<MaskBenchRow>(file)
        .into_iter()
        .map(|row| Case {
            group: row.id.split("---").next().unwrap_or_default().to_owned(),
            name: row.id,
            schema: row.schema.to_string(),
            tests: tests(&row.tests),
        })
        .collect()
}

fn rows<T: for<'de> Deserialize<'de>>(file: &Path) -> Vec<T> {
    let text = fs::read_to_string(file).expect("the file can be read");
    text.lines().map(|line| serde_json::from_str(line).expect("a row")).collect()
}

/// Decides all cases; calls `tell` after each.
pub(crate) fn run(
    decider: &Decider,
    cases: &[Case],
    mut tell: impl FnMut(&Case, &Outcome, Duration, Duration),
) -> (Counts, BTreeMap<String, Counts>) {
    let (mut all, mut groups) = (Counts::default(), BTreeMap::<String, Counts>::new());
    for case in cases {
        let (outcome, read, rest) = decider.decide(case);
        tell(case, &outcome, read, rest);
        all.add(&outcome);
        groups.entry(case.group.clone()).or_default().add(&outcome);
    }
    (all, groups)
}
