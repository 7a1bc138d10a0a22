//! Warnings of parts of a grammar that its author may not mean, on standard error and in JSON objects.

use domino::grammar::GrammarWarning;
use serde_json::{Value, json};

use crate::terminal::failure::{Paint, note};

/// Prints the warnings of the grammar called `name` on standard error.
pub(crate) fn tell(name: &str, warnings: &[GrammarWarning]) {
    let paint = Paint::for_stderr();
    for warning in warnings {
        note!("{} {name}: {warning}", paint.cyan("warning:"));
    }
}

/// Adds the warnings to the object, if there are any.
pub(crate) fn with(mut object: Value, warnings: &[GrammarWarning]) -> Value {
    if !warnings.is_empty() {
        object["grammar_warnings"] = list(warnings);
    }
    object
}

/// Lists the warnings as JSON.
pub(crate) fn list(warnings: &[GrammarWarning]) -> Value {
    let warning = |warning: &GrammarWarning| {
        let position = warning.place().position();
        json!({
            "kind": warning.kind().name(), "line": position.line, "column": position.column,
            "message": warning.message(), "hint": warning.hint(),
        })
    };
    Value::Array(warnings.iter().map(warning).collect())
}
