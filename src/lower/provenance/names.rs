//! Names of terminals that no rule names.

use regex_syntax::hir::{Hir, HirKind};

use crate::{
    grammar::{Bounds, LengthBounded, PatternKind, Spelled, spelled::Unfolded},
    scanner::TerminalDfa,
};

/// Longest name of a terminal, in characters.
const NAME_CHARS: usize = 60;

/// Names a pattern: an automaton, which has no short notation, by its size and a text of it.
pub(in crate::lower) fn shown_kind(kind: &PatternKind) -> String {
    match kind {
        PatternKind::Expression(hir) => shown(hir),
        PatternKind::Substrings(text) => format!("substrings of {}", shown_literal(text.as_bytes())),
        PatternKind::LengthBounded(bounded) => of_bounded(bounded),
        PatternKind::Spelled(spelled) => of_spelled(spelled),
        PatternKind::Automaton(automaton) => {
            of_states(automaton.states().len(), &automaton.shortest().unwrap_or_default())
        }
    }
}

/// Names a terminal's automaton in the same way.
pub(in crate::lower) fn shown_automaton(dfa: &TerminalDfa) -> String {
    match (dfa.bounded(), dfa.spelled()) {
        (Some((bounded, _)), _) => of_bounded(bounded),
        (_, Some((spelled, _))) => of_spelled(spelled),
        _ => of_states(dfa.len(), &dfa.shortest().unwrap_or_default()),
    }
}

fn of_bounded(bounded: &LengthBounded) -> String {
    let count = bounded.automaton().states().len();
    let (min, max) = bounded.lengths().into_inner();
    format!("{} of {min} to {max} characters", of_states(count, &bounded.shortest()))
}

fn of_spelled(spelled: &Spelled) -> String {
    let of = of_states(spelled.states(), &spelled.shortest());
    match spelled.bounds() {
        Bounds::NONE => of,
        Bounds { min, max: None } => format!("{of} of at least {min} characters"),
        Bounds { min, max: Some(max) } => format!("{of} of {min} to {max} characters"),
    }
}

fn of_states(count: usize, example: &[u8]) -> String {
    format!("automaton of {count} states, as {}", shown_literal(example))
}

/// Names an expression: a literal in quotes, anything else as a regular expression; cut to a readable length.
pub(in crate::lower) fn shown(hir: &Hir) -> String {
    match hir.kind() {
        HirKind::Literal(literal) => shown_literal(&literal.0),
        _ => cut(hir.to_string()),
    }
}

/// Quotes bytes, cut to a readable length.
pub(in crate::lower) fn shown_literal(literal: &[u8]) -> String {
    let start = &literal[..literal.len().min(NAME_CHARS * 4)];
    cut(format!("{:?}", String::from_utf8_lossy(start)))
}

fn cut(text: String) -> String {
    if text.chars().count() <= NAME_CHARS {
        return text;
    }
    text.chars().take(NAME_CHARS).chain("...".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Limits,
        grammar::{Expr, json_schema::SchemaOptions},
        scanner::build_pattern,
    };

    /// Names are equal whether they are made when a terminal is met or when it is displayed.
    #[test]
    fn an_automaton_has_the_same_name_early_and_late() {
        let schema = r#"{"enum": ["b/c", "aé", 17], "pattern": "^a{2}|c"}"#;
        let grammar = SchemaOptions::default().parse(schema, &Limits::default()).unwrap().grammar;
        let mut kinds = 0;
        for (_, expr) in grammar.exprs() {
            let Expr::Pattern(pattern) = expr else { continue };
            let kind = pattern.kind();
            if matches!(kind, PatternKind::Automaton(_)) {
                let dfa = build_pattern(kind, 1_000, &Limits::default()).unwrap().unwrap();
                assert_eq!(shown_automaton(&dfa), shown_kind(kind));
                kinds += 1;
            }
        }
        assert!(kinds > 0);
    }
}
