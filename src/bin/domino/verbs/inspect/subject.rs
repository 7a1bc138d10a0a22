//! The subject of all stages, and how they print it.

use std::io::{self, Write};
use std::time::Duration;

use domino::ids::{RuleId, TerminalId};
use domino::{CompiledGrammar, Vocabulary, inspect::Inspection};
use serde_json::{Value, json};

use super::{args::Inspect, origins::Origins};
use crate::{
    grammar::compiled::LineIndex, grammar::compiler::terminals_name, grammar::reading::Leaving,
    grammar::warned,
};

/// The data that the stages show.
pub(super) struct Subject<'a> {
    pub(super) command: &'a Inspect,
    pub(super) compiled: CompiledGrammar,
    pub(super) inspection: Inspection,
    pub(super) vocabulary: Vocabulary,
    pub(super) places: LineIndex,
    /// Origins in the schema; `None` if the grammar is no schema.
    pub(super) origins: Option<Origins>,
    /// The rule that was asked for.
    pub(super) rule: Option<RuleId>,
    /// The terminal that was asked for.
    pub(super) terminal: Option<TerminalId>,
    pub(super) reading: Duration,
    pub(super) compiling: Duration,
}

impl Subject<'_> {
    /// Limit on the rows shown of anything.
    pub(super) fn limit(&self) -> usize {
        self.command.limit
    }

    pub(super) fn rule_name(&self, rule: RuleId) -> &str {
        self.inspection.rule_name(rule).unwrap_or_default()
    }

    pub(super) fn rule_names(&self, rules: &[RuleId]) -> Vec<&str> {
        rules.iter().map(|&rule| self.rule_name(rule)).collect()
    }

    /// True if the terminal and one of these rules are those asked for, as far as any were.
    pub(super) fn wants(&self, terminal: TerminalId, rules: &[RuleId]) -> bool {
        self.terminal.is_none_or(|wanted| wanted == terminal)
            && self.rule.is_none_or(|wanted| rules.contains(&wanted))
    }
}

/// Makes the error of a text that leaves the language.
pub(super) fn left_language(leaving: &Leaving) -> anyhow::Error {
    let Leaving { line, column, what, .. } = leaving;
    anyhow::anyhow!("the text leaves the language at {line}:{column}: {what}")
}

/// Prints one JSON object.
pub(super) fn print_json(out: &mut impl Write, object: &Value) -> io::Result<()> {
    writeln!(out, "{object}")
}

/// Prints the number of rows that were left out, if there are any.
pub(super) fn print_rest(out: &mut impl Write, indent: usize, shown: usize, total: usize) -> io::Result<()> {
    if shown < total {
        writeln!(out, "{:indent$}and {} more (--limit 0 shows all)", "", total - shown)?;
    }
    Ok(())
}

/// Converts a time to milliseconds, rounded, for JSON and people.
pub(super) fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// Makes the fields that every JSON answer begins with.
pub(super) fn head(subject: &Subject<'_>, stage: &str) -> serde_json::Map<String, Value> {
    let mut map = serde_json::Map::new();
    map.insert("grammar".to_owned(), json!(subject.command.grammar.name()));
    map.insert("stage".to_owned(), json!(stage));
    map.insert("terminal_kind".to_owned(), json!(terminals_name(subject.command.terminals)));
    let warnings = subject.compiled.grammar_warnings();
    if !warnings.is_empty() {
        map.insert("grammar_warnings".to_owned(), warned::list(warnings));
    }
    map
}
