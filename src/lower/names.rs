//! What terminals are called that no rule names.

use regex_syntax::hir::{Hir, HirKind};

use crate::grammar::PatternKind;

/// Longest name of a terminal, in characters.
const NAME_CHARS: usize = 60;

/// An automaton by its size and a text of it, as it has no short notation.
pub(super) fn shown_kind(kind: &PatternKind) -> String {
    match kind {
        PatternKind::Expression(hir) => shown(hir),
        PatternKind::Substrings(text) => format!("substrings of {}", shown_literal(text.as_bytes())),
        PatternKind::Automaton(automaton) => {
            let example = automaton.shortest().unwrap_or_default();
            format!("automaton of {} states, as {}", automaton.states().len(), shown_literal(&example))
        }
    }
}

/// A literal in quotes, anything else as a regular expression; cut to a readable length.
pub(super) fn shown(hir: &Hir) -> String {
    match hir.kind() {
        HirKind::Literal(literal) => shown_literal(&literal.0),
        _ => cut(hir.to_string()),
    }
}

/// Bytes in quotes, cut to a readable length.
pub(super) fn shown_literal(literal: &[u8]) -> String {
    let start = &literal[..literal.len().min(NAME_CHARS * 4)];
    cut(format!("{:?}", String::from_utf8_lossy(start)))
}

fn cut(text: String) -> String {
    if text.chars().count() <= NAME_CHARS {
        return text;
    }
    text.chars().take(NAME_CHARS).chain("...".chars()).collect()
}
