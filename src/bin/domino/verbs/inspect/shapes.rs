//! Shapes of the parts of a JSON Schema, and its largest automata.

use std::io::{self, Write};

use domino::inspect::TerminalView;
use serde_json::{Map, Value, json};

use super::origins::Origin;
use super::subject::{Subject, print_rest};
use crate::terminal::describe;

/// Limit on the automata that are shown, the largest first.
const MOST_LARGE: usize = 5;

impl Subject<'_> {
    /// Finds the origin of a terminal, if the grammar is a schema.
    pub(super) fn origin(&self, terminal: &TerminalView) -> Option<Origin> {
        let origins = self.origins.as_ref()?;
        let rule = self.inspection.rules().find(|rule| rule.rule == terminal.rule)?;
        let spans = [terminal.span, rule.span];
        spans.into_iter().find_map(|span| origins.of_rule(&rule.name, span))
    }

    /// Finds the largest automata.
    fn largest(&self) -> Vec<TerminalView> {
        let mut terminals: Vec<TerminalView> = self.inspection.terminals().collect();
        terminals.sort_by_key(|terminal| std::cmp::Reverse(terminal.states));
        terminals.truncate(MOST_LARGE);
        terminals
    }
}

/// Adds the shapes of a schema and its largest automata to an object.
pub(super) fn add(subject: &Subject<'_>, object: &mut Map<String, Value>) {
    let Some(origins) = &subject.origins else { return };
    let shapes = origins.outline.iter();
    let shapes: Vec<Value> =
        shapes.map(|set| json!({ "pointer": set.pointer, "shapes": set.shapes })).collect();
    object.insert("shapes".to_owned(), shapes.into());
    object.insert("shapes_complete".to_owned(), origins.whole.into());
    let largest = subject.largest().into_iter().map(|terminal| {
        let mut row = Map::new();
        row.insert("terminal".to_owned(), terminal.terminal.raw().into());
        row.insert("states".to_owned(), terminal.states.into());
        row.insert("name".to_owned(), terminal.name.as_str().into());
        if let Some(origin) = subject.origin(&terminal) {
            origin.into(&mut row);
        }
        Value::Object(row)
    });
    object.insert("largest".to_owned(), largest.collect());
}

/// Shows the shapes of a schema and its largest automata.
pub(super) fn show(subject: &Subject<'_>, out: &mut impl Write) -> io::Result<()> {
    let Some(origins) = &subject.origins else { return Ok(()) };
    writeln!(out, "shapes")?;
    for set in &origins.outline {
        writeln!(out, "  {}", describe::one_line(&set.pointer))?;
        for shape in &set.shapes {
            writeln!(out, "      {}", describe::one_line(shape))?;
        }
    }
    if !origins.whole {
        writeln!(out, "  and more (--limit 0 shows all)")?;
    }
    writeln!(out, "largest automata")?;
    let largest = subject.largest();
    for terminal in &largest {
        let origin = subject.origin(terminal);
        let origin = origin.map_or_else(|| describe::one_line(&terminal.name), |origin| origin.words());
        writeln!(out, "  {:>9}  states: {origin}", terminal.states)?;
    }
    print_rest(out, 2, largest.len(), subject.inspection.terminals().len())
}
