//! Origins in a JSON Schema: the shapes that its parts became, and the keywords behind automata and warnings.

use std::io::{self, Write};

use domino::{
    grammar::{
        Span,
        json_schema::{Outline, SchemaPlaces},
    },
    inspect::TerminalView,
};
use serde_json::{Map, Value, json};

use super::{Subject, print_rest};
use crate::{
    grammar::{budgets, source::GrammarText},
    terminal::describe,
};

/// Limit on the automata that are shown, the largest first.
const MOST_LARGE: usize = 5;

/// Keywords that make the automata of strings, and of numbers.
const OF_STRINGS: &[&str] = &["pattern", "format", "minLength", "maxLength", "enum", "const"];
const OF_NUMBERS: &[&str] =
    &["multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "enum", "const"];

/// Keywords that make no part of the grammar.
const REMARKS: &[&str] = &["title", "description", "default", "examples", "$comment", "$schema", "$id"];

/// Facts about the schema that a grammar was made of.
pub(super) struct Origins {
    places: SchemaPlaces,
    outline: Vec<Outline>,
    /// True if the outline is complete.
    whole: bool,
}

/// A place in a schema, with its keywords.
pub(super) struct Origin {
    pointer: String,
    keywords: Vec<String>,
}

impl Origins {
    /// Finds the origins of a schema, with up to `most` sets of values. `None` for other grammars.
    pub(super) fn of(text: &GrammarText, most: usize) -> Option<Self> {
        let (text, options) = text.schema()?;
        let places = SchemaPlaces::read(text)?;
        let (outline, whole) = options.outline(text, &budgets::limits(), most).ok()?;
        Some(Self { places, outline, whole })
    }

    /// Finds the origin of a rule with this name and span.
    pub(super) fn of_rule(&self, name: &str, span: Span) -> Option<Origin> {
        let pointer = self.places.pointer(span)?;
        let all = self.places.keywords(span).into_iter().filter(|keyword| !REMARKS.contains(keyword));
        let all: Vec<String> = all.map(str::to_owned).collect();
        let wanted = match name.split('~').next() {
            Some("strings") => OF_STRINGS,
            Some("numbers") => OF_NUMBERS,
            _ => return Some(Origin { pointer, keywords: all }),
        };
        let some: Vec<String> =
            all.iter().filter(|keyword| wanted.contains(&keyword.as_str())).cloned().collect();
        Some(Origin { pointer, keywords: if some.is_empty() { all } else { some } })
    }
}

impl Origin {
    /// Adds the origin to a JSON object.
    pub(super) fn into(self, object: &mut Map<String, Value>) {
        object.insert("pointer".to_owned(), self.pointer.into());
        object.insert("keywords".to_owned(), self.keywords.into());
    }

    /// Describes the origin for people.
    pub(super) fn words(&self) -> String {
        let keywords = self.keywords.join(", ");
        describe::one_line(&format!("{} ({keywords})", self.pointer))
    }
}

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
