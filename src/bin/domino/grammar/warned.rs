//! Warnings of parts of a grammar that its author may not mean, on standard error and in JSON objects.

use domino::grammar::GrammarWarning;
use serde_json::{Value, json};

use crate::terminal::{
    describe::one_line,
    failure::{Paint, note},
};

/// Prints the warnings of the grammar called `name` on standard error.
pub(crate) fn tell(name: &str, warnings: &[GrammarWarning]) {
    let paint = Paint::for_stderr();
    for warning in warnings {
        note!("{} {name}: {warning}", paint.cyan("warning:"));
    }
}

/// Number of open objects that are named.
const MOST_NAMED: usize = 3;

/// Says what objects take beside the members that they list, by their JSON pointers, and what forbids it,
/// such as `option`; `None` without any.
pub(crate) fn open_objects(pointers: &[String], option: &str) -> Option<[String; 2]> {
    let named = pointers.iter().take(MOST_NAMED).map(|pointer| one_line(pointer)).collect::<Vec<_>>();
    let places = match (pointers, pointers.len() - named.len()) {
        ([], _) => return None,
        ([_], _) => format!("the object at {} takes", named[0]),
        (_, 0) => format!("the objects at {} take", named.join(", ")),
        (_, more) => format!("the objects at {} and {more} more take", named.join(", ")),
    };
    Some([
        format!("{places} any keys beside those that the schema lists"),
        format!(
            "`additionalProperties` of false, or {option}, forbids others; true says that they are meant"
        ),
    ])
}

/// Prints on standard error what objects of the grammar called `name` take beside the members that they list.
pub(crate) fn tell_open(name: &str, pointers: &[String]) {
    let paint = Paint::for_stderr();
    if let Some([message, hint]) = open_objects(pointers, "--closed") {
        note!("{} {name}: {message}", paint.cyan("note:"));
        note!("{} {hint}", paint.cyan("hint:"));
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
