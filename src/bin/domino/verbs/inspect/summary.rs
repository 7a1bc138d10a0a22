//! The summary of all stages: sizes and times, the shapes of the parts of a JSON Schema, and its largest
//! automata.

use std::io::{self, Write};
use std::time::Instant;

use domino::inspect::{TerminalView, Warning, WarningKind};
use serde_json::{Value, json};

use super::args::OutputForm;
use super::subject::{Origin, Subject, milliseconds, print_rest};
use crate::terminal::failure::Paint;
use crate::terminal::{describe, extend, progress};

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
    let terminals = format!("terminals, {}", subject.terminal_kind());
    let rows = [
        ("rules", sizes.rules, "rules"),
        ("folded_rules", sizes.folded_rules, "of them are terminals, or parts of terminals"),
        ("rewritten_rules", sizes.rewritten_rules, "of them had recursion that became repetition"),
        ("nonterminals", sizes.nonterminals, "nonterminals"),
        ("productions", sizes.productions, "productions"),
        ("symbols", sizes.symbols, "symbols in them"),
        ("terminals", sizes.terminals, terminals.as_str()),
        ("scanner_states", sizes.scanner_states, "states of their automata"),
        ("byte_classes", sizes.byte_classes, "classes of bytes"),
        ("vocabulary", sizes.vocabulary, "ids in the vocabulary"),
        ("trees", trees.len(), "subterminal trees"),
        ("tree_nodes", nodes, "nodes of trees"),
    ];
    let shown = warnings.iter().take(subject.limit());
    if subject.form == OutputForm::Json {
        let passes = passes.iter().map(|(pass, ms)| json!({ "pass": pass, "ms": ms }));
        let memory = memory.iter().map(|memory| json!({ "part": memory.part, "bytes": memory.bytes }));
        let mut fields = json!({
            "sizes": Value::from_iter(rows.map(|(name, count, _)| (name, count))),
            "times": {
                "reading_ms": milliseconds(subject.reading), "compiling_ms": milliseconds(subject.compiling),
                "passes": passes.collect::<Value>(), "trees_ms": milliseconds(growing),
                "warnings_ms": milliseconds(searching),
            },
            "memory": memory.collect::<Value>(),
        });
        extend(&mut fields, shapes_json(subject));
        fields["warning_count"] = warnings.len().into();
        fields["warnings"] = shown.map(|warning| warning_json(subject, warning)).collect();
        return subject.print_json(out, "all", fields);
    }
    writeln!(out, "{}", subject.name)?;
    for (_, count, what) in rows {
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
    for warning in shown {
        print_warning(subject, warning, out)?;
    }
    print_rest(out, 2, subject.limit(), warnings.len())
}

fn print_warning(subject: &Subject<'_>, warning: &Warning, out: &mut impl Write) -> io::Result<()> {
    let paint = Paint::for_stdout();
    let kind = if warning.kind.is_grave() { paint.red("slow:") } else { paint.cyan("note:") };
    let rule = describe::one_line(&warning.rule_name);
    let origin = subject.origins.as_ref().and_then(|known| known.of_rule(&warning.rule_name, warning.span));
    let place = origin.map_or_else(|| subject.places.show(warning.span), |origin| origin.words);
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
    extend(&mut object, origin.map(|origin| origin.fields));
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

/// Makes the fields about the shapes of a schema and its largest automata.
fn shapes_json(subject: &Subject<'_>) -> Option<Value> {
    let origins = subject.origins.as_ref()?;
    let shapes = origins.outline.iter().map(|set| json!({ "pointer": set.pointer, "shapes": set.shapes }));
    let largest = subject.largest().into_iter().map(|terminal| {
        let TerminalView { terminal: number, states, name, .. } = &terminal;
        let mut row = json!({ "terminal": number.raw(), "states": states, "name": name });
        extend(&mut row, subject.origin(&terminal).map(|origin| origin.fields));
        row
    });
    let (shapes, largest) = (shapes.collect::<Value>(), largest.collect::<Value>());
    Some(json!({ "shapes": shapes, "shapes_complete": origins.whole, "largest": largest }))
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
        let origin = origin.map_or_else(|| describe::one_line(&terminal.name), |origin| origin.words);
        writeln!(out, "  {:>9}  states: {origin}", terminal.states)?;
    }
    print_rest(out, 2, largest.len(), subject.inspection.terminals().len())
}
