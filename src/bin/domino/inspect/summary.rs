//! Sizes and times of all stages.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::{Form, Subject, head, milliseconds, print_json};

/// Shows the sizes.
pub(super) fn show(subject: &Subject<'_>, out: &mut impl Write) -> io::Result<()> {
    let sizes = subject.inspection.sizes();
    let passes: Vec<(&str, f64)> =
        subject.inspection.pass_times().map(|pass| (pass.pass, milliseconds(pass.time))).collect();
    if subject.command.form == Form::Json {
        let mut object = head(subject, "all");
        object.insert(
            "sizes".to_owned(),
            json!({
                "rules": sizes.rules, "folded_rules": sizes.folded_rules, "rewritten_rules": sizes.rewritten_rules,
                "nonterminals": sizes.nonterminals, "productions": sizes.productions, "symbols": sizes.symbols,
                "terminals": sizes.terminals, "scanner_states": sizes.scanner_states,
                "byte_classes": sizes.byte_classes, "vocabulary": sizes.vocabulary,
            }),
        );
        let passes: Vec<Value> = passes.iter().map(|(pass, ms)| json!({ "pass": pass, "ms": ms })).collect();
        object.insert(
            "times".to_owned(),
            json!({
                "reading_ms": milliseconds(subject.reading), "compiling_ms": milliseconds(subject.compiling),
                "passes": passes,
            }),
        );
        return print_json(out, &Value::Object(object));
    }
    writeln!(out, "{}", subject.command.grammar.name())?;
    let rows = [
        (sizes.rules, "rules"),
        (sizes.folded_rules, "of them are terminals, or parts of terminals"),
        (sizes.rewritten_rules, "of them had recursion that became repetition"),
        (sizes.nonterminals, "nonterminals"),
        (sizes.productions, "productions"),
        (sizes.symbols, "symbols in them"),
        (sizes.terminals, "terminals"),
        (sizes.scanner_states, "states of their automata"),
        (sizes.byte_classes, "classes of bytes"),
        (sizes.vocabulary, "ids in the vocabulary"),
    ];
    for (count, what) in rows {
        writeln!(out, "  {count:>9}  {what}")?;
    }
    writeln!(out, "times")?;
    writeln!(out, "  {:>9.3}  ms reading the grammar", milliseconds(subject.reading))?;
    writeln!(out, "  {:>9.3}  ms compiling it", milliseconds(subject.compiling))?;
    for (pass, ms) in passes {
        writeln!(out, "  {ms:>9.3}    {pass}")?;
    }
    Ok(())
}
