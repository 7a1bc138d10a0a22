//! Tokens by number, as llguidance's Lark writes them: `<[12]>`, `<[12-14,20]>`, `<[^12]>` for all others and
//! `<[*]>` for all. llama.cpp's GBNF has the first.

use super::{
    error::{GrammarError, quoted},
    source::{Source, Span},
};
use crate::special::Picked;

const FORMS: &str = "tokens are picked by `<[12]>`, `<[12-14,20]>`, `<[^12]>` (all others) and `<[*]>` (all)";

/// Is it written as tokens by number are?
pub(super) fn begins(written: &str) -> bool {
    written.starts_with("<[")
}

/// Reads what [`begins`] so, and stands at `at` of a text.
///
/// # Errors
/// If it is not written like this, or a range goes from a greater number to a smaller one.
pub(super) fn read(written: &str, source: Source<'_>, at: Span) -> Result<Picked, GrammarError> {
    let wrong = |message: String, span: Span| {
        Err(GrammarError::syntax(message).at(source, span, "").with_hint(FORMS))
    };
    let inside = written.strip_prefix("<[").and_then(|rest| rest.strip_suffix("]>"));
    let Some(inside) = inside else {
        return wrong(format!("{} begins as tokens by number do, and is not closed", quoted(written)), at);
    };
    if inside == "*" {
        return Ok(Picked::numbers(Vec::new(), true));
    }
    let (list, except) = match inside.strip_prefix('^') {
        Some(list) => (list, true),
        None => (inside, false),
    };
    let mut ranges = Vec::new();
    let mut from = at.range().start + written.len() - "]>".len() - list.len();
    for part in list.split(',') {
        let span = Span::from_range(from..from + part.len());
        from += part.len() + 1;
        // A comma may stand behind the last, as in llguidance.
        if part.is_empty() {
            continue;
        }
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (Some(first), Some(last)) = (number(first), number(last)) else {
            return wrong(format!("{} is no number of a token", quoted(part)), span);
        };
        if first > last {
            return wrong("a range from a greater number to a smaller one".to_owned(), span);
        }
        ranges.push((first, last));
    }
    if ranges.is_empty() {
        return wrong(format!("{} has no number", quoted(written)), at);
    }
    Ok(Picked::numbers(ranges, except))
}

/// A number of digits alone.
fn number(written: &str) -> Option<u32> {
    written.bytes().all(|byte| byte.is_ascii_digit()).then(|| written.parse().ok()).flatten()
}
