//! The summary of all stages: sizes and times, the shapes of the parts of a JSON Schema, and its largest
//! automata.

use std::io::{self, Write};
use std::time::Instant;

use domino::inspect::{TerminalView, Warning, WarningKind};
use serde_json::{Map, Value, json};

use super::args::OutputForm;
use super::subject::{Origin, Subject, head, milliseconds, print_json, print_rest};
use crate::terminal::{describe, progress};
use crate::{grammar::compiler, terminal::failure::Paint};

/// Shows the sizes and times.
pub(super) fn show(subject: &Subject<'_>, out: &mut impl Write) -> io::Result<()> {
    let sizes = subject.inspection.sizes();
    let passes: Vec<(&str, f64)> =
        subject.inspection.pass_times().map(|pass| (pass.pass, milliseconds(pass.time))).collect();
    let start = Instant::now();
    progress::during("growing trees", || subject.compiled.grow_trees());
    let growing = start.elapsed();
    let trees = subject.inspection.trees();
    let nodes: usize = trees.iter().map(|tree| tree.nodes).sum();
    let memory = subject.inspection.memory();
    let start = Instant::now();
    let warnings = progress::during("looking for what costs", || subject.compiled.warnings());
    let searching = start.elapsed();
    if subject.command.form == OutputForm::Json {
        let mut object = head(subject, "all");
        object.insert(
            "sizes".to_owned(),
            json!({
                "rules": sizes.rules, "folded_rules": sizes.folded_rules,
                "rewritten_rules": sizes.rewritten_rules, "nonterminals": sizes.nonterminals,
                "productions": sizes.productions, "symbols": sizes.symbols, "terminals": sizes.terminals,
                "scanner_states": sizes.scanner_states, "byte_classes": sizes.byte_classes,
                "vocabulary": sizes.vocabulary, "trees": trees.len(), "tree_nodes": nodes,
            }),
        );
        let passes: Vec<Value> = passes.iter().map(|(pass, ms)| json!({ "pass": pass, "ms": ms })).collect();
        object.insert(
            "times".to_owned(),
            json!({
                "reading_ms": milliseconds(subject.reading), "compiling_ms": milliseconds(subject.compiling),
                "passes": passes, "trees_ms": milliseconds(growing), "warnings_ms": milliseconds(searching),
            }),
        );
        let parts: Vec<Value> =
            memory.iter().map(|memory| json!({ "part": memory.part, "bytes": memory.bytes })).collect();
        object.insert("memory".to_owned(), json!(parts));
        let list: Vec<Value> =
            warnings.iter().take(subject.limit()).map(|warning| warning_json(subject, warning)).collect();
        add_shapes(subject, &mut object);
        object.insert("warning_count".to_owned(), json!(warnings.len()));
        object.insert("warnings".to_owned(), json!(list));
        return print_json(out, &Value::Object(object));
    }
    writeln!(out, "{}", subject.command.grammar.name())?;
    let terminals = format!("terminals, {}", compiler::terminals_name(subject.command.terminals));
    let rows = [
        (sizes.rules, "rules"),
        (sizes.folded_rules, "of them are terminals, or parts of terminals"),
        (sizes.rewritten_rules, "of them had recursion that became repetition"),
        (sizes.nonterminals, "nonterminals"),
        (sizes.productions, "productions"),
        (sizes.symbols, "symbols in them"),
        (sizes.terminals, terminals.as_str()),
        (sizes.scanner_states, "states of their automata"),
        (sizes.byte_classes, "classes of bytes"),
        (sizes.vocabulary, "ids in the vocabulary"),
        (trees.len(), "subterminal trees"),
        (nodes, "nodes of trees"),
    ];
    for (count, what) in rows {
        writeln!(out, "  {count:>9}  {what}")?;
    }
    writeln!(out, "memory")?;
    for memory in memory {
        writeln!(out, "  {:>9}  bytes: {}", memory.bytes, memory.part)?;
    }
    show_shapes(subject, out)?;
    writeln!(out, "times")?;
    writeln!(out, "  {:>9.3}  ms reading the grammar", milliseconds(subject.reading))?;
    writeln!(out, "  {:>9.3}  ms compiling it", milliseconds(subject.compiling))?;
    for (pass, ms) in passes {
        writeln!(out, "  {ms:>9.3}    {pass}")?;
    }
    writeln!(out, "  {:>9.3}  ms growing all trees", milliseconds(growing))?;
    writeln!(out, "  {:>9.3}  ms looking for what costs", milliseconds(searching))?;
    writeln!(out, "warnings: {}", warnings.len())?;
    for warning in warnings.iter().take(subject.limit()) {
        print_warning(subject, warning, out)?;
    }
    print_rest(out, 2, subject.limit(), warnings.len())
}

fn print_warning(subject: &Subject<'_>, warning: &Warning, out: &mut impl Write) -> io::Result<()> {
    let paint = Paint::for_stdout();
    let kind = if warning.kind.is_grave() { paint.red("slow:") } else { paint.cyan("note:") };
    let rule = describe::one_line(&warning.rule_name);
    let origin = subject.origins.as_ref().and_then(|known| known.of_rule(&warning.rule_name, warning.span));
    let place = origin.map_or_else(|| subject.places.show(warning.span), |origin| origin.words());
    writeln!(out, "  {kind} rule {rule} ({place}): {}", describe::one_line(&warning.message))?;
    writeln!(out, "        hint: {}", describe::one_line(&warning.hint))
}

fn warning_json(subject: &Subject<'_>, warning: &Warning) -> Value {
    let kind = match warning.kind {
        WarningKind::Ambiguous => "ambiguous",
        WarningKind::RightRecursion => "right recursion",
        WarningKind::Undecided => "undecided",
        WarningKind::Overlap => "overlap",
        _ => "",
    };
    let mut object = json!({
        "kind": kind, "grave": warning.kind.is_grave(), "rule": warning.rule_name,
        "place": subject.places.show(warning.span), "others": warning.others, "message": warning.message,
        "hint": warning.hint, "before": String::from_utf8_lossy(&warning.before),
        "repeated": String::from_utf8_lossy(&warning.repeated),
        "early_cost": warning.early_cost, "late_cost": warning.late_cost, "threads": warning.threads,
    });
    let origin = subject.origins.as_ref().and_then(|known| known.of_rule(&warning.rule_name, warning.span));
    if let (Some(origin), Some(object)) = (origin, object.as_object_mut()) {
        origin.into(object);
    }
    object
}

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
fn add_shapes(subject: &Subject<'_>, object: &mut Map<String, Value>) {
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
fn show_shapes(subject: &Subject<'_>, out: &mut impl Write) -> io::Result<()> {
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
