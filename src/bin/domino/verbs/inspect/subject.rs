//! The subject of all stages, and how they print it, also as graphs in Graphviz's language.
//!
//! Of a JSON Schema there are origins: the shapes that its parts became, and the keywords behind automata and
//! warnings.

use std::io::{self, Write};
use std::{fmt::Write as _, time::Duration};

use domino::grammar::json_schema::{Outline, SchemaPlaces};
use domino::ids::{RuleId, TerminalId};
use domino::inspect::{Inspection, SymbolView};
use domino::{CompiledGrammar, Vocabulary, grammar::Span};
use serde_json::{Value, json};

use super::args::{LowInspect, OutputForm};
use crate::grammar::compiler::{self, terminals_name};
use crate::grammar::{compiled::LineIndex, reading::Leaving, source::GrammarText, warned};
use crate::terminal::{describe, extend};

/// The data that the stages show.
pub(super) struct Subject<'a> {
    pub(super) command: &'a LowInspect,
    /// The name of the grammar.
    pub(super) name: String,
    pub(super) form: OutputForm,
    /// True if tokens are those of a tokenizer, not the 256 bytes.
    pub(super) with_tokens: bool,
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

    /// The name of a symbol of a production, in a line.
    pub(super) fn symbol_name(&self, symbol: SymbolView) -> String {
        describe::one_line(&self.inspection.symbol_name(symbol).unwrap_or_default())
    }

    pub(super) fn terminal_name(&self, terminal: TerminalId) -> String {
        self.symbol_name(SymbolView::Terminal(terminal))
    }

    /// The kind of terminals, as `--terminals` names it.
    pub(super) fn terminal_kind(&self) -> &'static str {
        terminals_name(self.command.terminals.resolve())
    }

    pub(super) fn rule_names(&self, rules: &[RuleId]) -> Vec<&str> {
        rules.iter().map(|&rule| self.rule_name(rule)).collect()
    }

    /// True if the terminal and one of these rules are those asked for, as far as any were.
    pub(super) fn wants(&self, terminal: TerminalId, rules: &[RuleId]) -> bool {
        self.terminal.is_none_or(|wanted| wanted == terminal)
            && self.rule.is_none_or(|wanted| rules.contains(&wanted))
    }

    /// Prints one JSON object: what all stages say, then these fields.
    pub(super) fn print_json(&self, out: &mut impl Write, stage: &str, fields: Value) -> io::Result<()> {
        let kind = self.terminal_kind();
        let object = json!({ "grammar": self.name, "stage": stage, "terminal_kind": kind });
        let mut object = warned::with(object, self.compiled.grammar_warnings());
        extend(&mut object, fields);
        writeln!(out, "{object}")
    }
}

/// Makes the error of a text that leaves the language.
pub(super) fn left_language(leaving: &Leaving) -> anyhow::Error {
    let Leaving { line, column, what, .. } = leaving;
    anyhow::anyhow!("the text leaves the language at {line}:{column}: {what}")
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

/// Keywords that make the automata of strings, and of numbers.
const OF_STRINGS: &[&str] = &["pattern", "format", "minLength", "maxLength", "enum", "const"];
const OF_NUMBERS: &[&str] =
    &["multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "enum", "const"];

/// Keywords that make no part of the grammar.
const REMARKS: &[&str] = &["title", "description", "default", "examples", "$comment", "$schema", "$id"];

/// Facts about the schema that a grammar was made of.
pub(super) struct Origins {
    places: SchemaPlaces,
    pub(super) outline: Vec<Outline>,
    /// True if the outline is complete.
    pub(super) whole: bool,
}

/// The part of a source that something is made of: in words, and as fields of JSON.
pub(super) struct Origin {
    pub(super) words: String,
    pub(super) fields: Value,
}

impl Origins {
    /// Finds the origins of a schema, with up to `most` sets of values. `None` for other grammars.
    pub(super) fn of(text: &GrammarText, most: usize) -> Option<Self> {
        let (text, options) = text.schema()?;
        let places = SchemaPlaces::read(text)?;
        let (outline, whole) = options.outline(text, &compiler::limits(), most).ok()?;
        Some(Self { places, outline, whole })
    }

    /// Finds the origin of a rule with this name and span.
    pub(super) fn of_rule(&self, name: &str, span: Span) -> Option<Origin> {
        let pointer = self.places.pointer(span)?;
        let all = self.places.keywords(span).into_iter().filter(|keyword| !REMARKS.contains(keyword));
        let all: Vec<&str> = all.collect();
        let wanted = match name.split('~').next() {
            Some("strings") => OF_STRINGS,
            Some("numbers") => OF_NUMBERS,
            _ => &all[..],
        };
        let some: Vec<&str> = all.iter().copied().filter(|keyword| wanted.contains(keyword)).collect();
        let keywords = if some.is_empty() { all } else { some };
        let words = describe::one_line(&format!("{pointer} ({})", keywords.join(", ")));
        Some(Origin { words, fields: json!({ "pointer": pointer, "keywords": keywords }) })
    }
}

/// Limit on the characters of a line of a label; longer lines are cut.
const LABEL_CHARS: usize = 100;

/// A directed graph that is being written.
#[derive(Debug)]
pub(super) struct Graph {
    text: String,
    depth: usize,
}

impl Graph {
    /// Begins an empty graph, drawn from left to right.
    pub(super) fn new(name: &str) -> Self {
        let mut graph = Self { text: String::new(), depth: 1 };
        let _ = writeln!(graph.text, "digraph {} {{", quoted(name));
        graph.line("rankdir=LR; node [fontname=\"monospace\"]; edge [fontname=\"monospace\"];");
        graph
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{:1$}{text}", "", self.depth * 2);
    }

    /// Adds a node; line feeds in the label begin new lines.
    pub(super) fn node(&mut self, id: &str, label: &str, shape: &str) {
        self.line(&format!("{} [label={}, shape={shape}];", quoted(id), quoted(label)));
    }

    /// Adds an edge.
    pub(super) fn edge(&mut self, from: &str, to: &str, label: &str) {
        let label = if label.is_empty() { String::new() } else { format!(" [label={}]", quoted(label)) };
        self.line(&format!("{} -> {}{label};", quoted(from), quoted(to)));
    }

    /// Draws a box around the nodes and edges that `inside` adds.
    pub(super) fn cluster(&mut self, id: &str, label: &str, inside: impl FnOnce(&mut Self)) {
        self.line(&format!("subgraph {} {{", quoted(&format!("cluster {id}"))));
        self.depth += 1;
        self.line(&format!("label={};", quoted(label)));
        inside(self);
        self.depth -= 1;
        self.line("}");
    }

    /// Ends the graph and returns its text.
    pub(super) fn finish(mut self) -> String {
        self.text.push_str("}\n");
        self.text
    }
}

/// Quotes a string of the language. A backslash is doubled, so that it never begins an escape of Graphviz's.
/// Line feeds become its line breaks, other control characters are escaped visibly; long lines are cut.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for (at, line) in text.split('\n').enumerate() {
        if at > 0 {
            quoted.push_str("\\n");
        }
        for character in line.chars().take(LABEL_CHARS) {
            match character {
                '"' | '\\' => quoted.extend(['\\', character]),
                _ if character.is_control() => {
                    quoted.push_str(&format!("\\\\u{{{:x}}}", u32::from(character)))
                }
                _ => quoted.push(character),
            }
        }
        if line.chars().nth(LABEL_CHARS).is_some() {
            quoted.push_str("...");
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn quoted_strings_escape_quotes_and_have_a_length_limit() {
        assert_eq!(quoted("a\"b\\\"c\\"), r#""a\"b\\\"c\\""#);
        assert_eq!(quoted("a\nb\t\u{e9}"), "\"a\\nb\\\\u{9}\u{e9}\"");
        assert_eq!(quoted(&"\\".repeat(200)).len(), 2 + 2 * 100 + 3);
    }
}
