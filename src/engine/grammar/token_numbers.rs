//! Tokens by number, as llguidance's Lark writes them: `<[12]>`, `<[12-14,20]>`, `<[^12]>` for all others and
//! `<[*]>` for all. llama.cpp's GBNF has the first form.

use super::{
    errors::{GrammarError, quoted},
    source::{Source, Span},
};
use crate::special::Picked;

const FORMS: &str = "tokens are picked by `<[12]>`, `<[12-14,20]>`, `<[^12]>` (all others) and `<[*]>` (all)";

/// True if a text begins as tokens by number do.
pub(super) fn begins(written: &str) -> bool {
    written.starts_with("<[")
}

/// Reads a text that [`begins`] so, and stands at `at` of the source.
///
/// # Errors
/// If it has another form, or if a range goes from a greater number to a smaller one.
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
        // A comma may stand behind the last range, as in llguidance.
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

/// Reads a number that is written in digits alone.
fn number(written: &str) -> Option<u32> {
    written.bytes().all(|byte| byte.is_ascii_digit()).then(|| written.parse().ok()).flatten()
}
