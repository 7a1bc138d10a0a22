//! Provenance: the source of terminals and nonterminals, the fate of each rule, and names for terminals that
//! no rule names.
//!
//! Constraining a text needs none of this: it lets messages, `inspect` and warnings speak of the rules that
//! the author wrote.

use regex_syntax::hir::{Hir, HirKind};

use super::cfg::Symbol;
use crate::grammar::{Bounds, LengthBounded, PatternKind, Span, Spelled, spelled::Unfolded};
use crate::ids::{RuleId, TerminalId};
use crate::scanner::TerminalDfa;

/// The ends at which a rule mentioned itself, before that became repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EndRecursion {
    pub(crate) left: bool,
    pub(crate) right: bool,
}

/// The source of a symbol.
#[derive(Debug, Clone)]
pub(crate) struct SymbolOrigin {
    /// The symbol's name; empty if it is a part of a rule and has none.
    pub(crate) name: String,
    /// The rule that it is, or is a part of.
    pub(crate) rule: RuleId,
    /// The part of the grammar text.
    pub(crate) span: Span,
}

/// The symbol that a rule became.
#[derive(Debug, Clone, Copy)]
pub(super) struct RuleSymbol {
    pub(super) symbol: Symbol,
    /// Is it one terminal (and maybe the empty string)?
    pub(super) folded: bool,
    /// Is its language known to be regular?
    pub(super) regular: bool,
}

/// The fate of a rule in lowering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleFate {
    /// The start rule does not lead to it.
    Unreachable,
    /// No sentence uses it.
    Useless,
    /// The rule is only a part of larger terminals.
    Absorbed,
    /// The rule is one terminal, or one terminal and the empty string.
    Terminal(Symbol),
    /// The rule has productions.
    Productions {
        /// The nonterminal of the productions.
        nonterminal: u32,
        /// Is it regular nevertheless, but its automaton too large?
        regular: bool,
    },
}

/// The place of a symbol in the grammar text, with its number if it is a terminal: many symbols that
/// repetition makes have one place.
pub(crate) type SourceSpan = (RuleId, Span, Option<TerminalId>);

/// A rule of the source.
#[derive(Debug)]
pub(crate) struct RuleSource {
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) recursion: Option<EndRecursion>,
    pub(crate) fate: RuleFate,
    /// Terminals of other rules that it became part of (up to a bound on all such notes), ascending.
    pub(crate) inside: Vec<TerminalId>,
}

/// The sources of everything in a lowered grammar.
#[derive(Debug)]
pub(crate) struct Provenance {
    pub(crate) root: RuleId,
    pub(crate) rules: Vec<RuleSource>,
    pub(crate) terminals: Vec<SymbolOrigin>,
    /// Origins of nonterminals, from number 1 on: number 0 is the start.
    pub(crate) nonterminals: Vec<SymbolOrigin>,
}

/// Longest name of a terminal, in characters.
const NAME_CHARS: usize = 60;

/// Names a pattern: an automaton, which has no short notation, by its only text, or by its size and a text.
pub(super) fn shown_kind(kind: &PatternKind) -> String {
    match kind {
        PatternKind::Expression(hir) => shown(hir),
        PatternKind::Substrings(text) => format!("substrings of {}", shown_literal(text.as_bytes())),
        PatternKind::LengthBounded(bounded) => of_bounded(bounded),
        PatternKind::Spelled(spelled) => of_spelled(spelled),
        PatternKind::Automaton(automaton) => {
            let text = automaton.shortest().unwrap_or_default();
            let edges = automaton.states().iter().flat_map(|state| &state.edges);
            let bytes = edges.map(|edge| usize::from(edge.last - edge.first) + 1).sum();
            of_text_or_states(automaton.states().len(), bytes, &text)
        }
    }
}

/// Names a terminal's automaton in the same way.
pub(super) fn shown_automaton(dfa: &TerminalDfa) -> String {
    match (dfa.bounded(), dfa.spelled()) {
        (Some((bounded, _)), _) => of_bounded(bounded),
        (_, Some((spelled, _))) => of_spelled(spelled),
        _ => {
            let text = dfa.shortest().unwrap_or_default();
            // An automaton with more states than the text needs has other texts, and is not looked at.
            let states = u32::try_from(dfa.len()).ok().filter(|_| dfa.len() == text.len() + 1);
            let of = |state: u32| (0..=u8::MAX).filter(|byte| dfa.step(state, *byte).is_some()).count();
            let bytes = states.map_or(usize::MAX, |count| (0..count).map(of).sum());
            of_text_or_states(dfa.len(), bytes, &text)
        }
    }
}

/// Names an automaton of live states by its shortest text, if it has no other: one with as many moves,
/// counted by bytes, as the text has bytes.
fn of_text_or_states(states: usize, bytes: usize, shortest: &[u8]) -> String {
    match bytes == shortest.len() {
        true => shown_literal(shortest),
        false => of_states(states, shortest),
    }
}

fn of_bounded(bounded: &LengthBounded) -> String {
    let count = bounded.automaton().states().len();
    let (min, max) = bounded.lengths().into_inner();
    let max = (bounded.is_finite()).then_some(max);
    within(of_states(count, &bounded.shortest()), Bounds { min, max })
}

fn of_spelled(spelled: &Spelled) -> String {
    within(of_states(spelled.states(), &spelled.shortest()), spelled.bounds())
}

fn within(of: String, bounds: Bounds) -> String {
    match bounds {
        Bounds::NONE => of,
        Bounds { min, max: None } => format!("{of} of at least {min} characters"),
        Bounds { min, max: Some(max) } => format!("{of} of {min} to {max} characters"),
    }
}

fn of_states(count: usize, example: &[u8]) -> String {
    format!("automaton of {count} states, as {}", shown_literal(example))
}

/// Names an expression: a literal in quotes, anything else as a regular expression; cut to a readable length.
pub(super) fn shown(hir: &Hir) -> String {
    match hir.kind() {
        HirKind::Literal(literal) => shown_literal(&literal.0),
        _ => cut(hir.to_string()),
    }
}

/// Quotes bytes, cut to a readable length.
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

    /// An automaton of one text is called by it; one that could do more is not.
    #[test]
    fn an_automaton_of_one_text_is_named_by_it() {
        for (pattern, name) in [("ab", "\"ab\""), ("a[bc]", "automaton"), ("a+", "automaton"), ("", "\"\"")] {
            let hir = regex_syntax::parse(pattern).unwrap();
            if let Some(dfa) = crate::scanner::build(&hir, 1_000, &Limits::default()).unwrap() {
                let found = shown_automaton(&dfa);
                assert!(found.starts_with(name), "{pattern}: {found}");
            }
        }
    }
}
