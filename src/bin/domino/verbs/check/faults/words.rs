//! Words for values of JSON.

use serde_json::Value;

pub(super) use crate::terminal::count;

/// Limit on the characters of a value that are shown.
const LONGEST: usize = 40;
/// Limit on the values of a list that are named.
const MOST: usize = 8;

/// Shows a value as it is written, cut if it is long.
pub(super) fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= LONGEST {
        return format!("`{text}`");
    }
    let start: String = text.chars().take(LONGEST).collect();
    format!("`{start}…`")
}

/// Names the kind of a value, with its article.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Joins names with commas, and with "or" before the last.
pub(super) fn alternatives(names: &[String]) -> String {
    let more = names.len().saturating_sub(MOST);
    match names.split_last() {
        Some((only, [])) => only.clone(),
        Some(_) if more > 0 => format!("{} or {more} more", names[..MOST].join(", ")),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => "nothing".to_owned(),
    }
}
