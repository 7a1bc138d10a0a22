//! A slow, obvious recogniser for tests: it computes the set of ends that an expression can have.

use std::collections::BTreeSet;

use regex_syntax::hir::HirKind;

use crate::{
    grammar::{
        Expr, Grammar, GrammarBuilder, LengthBounded, PatternKind, Span, automaton::Automaton,
        spelled::Unfolded,
    },
    ids::{ExprId, as_index},
    limits::Limits,
};

/// A grammar of one expression.
pub(super) fn grammar(make: impl FnOnce(&mut GrammarBuilder) -> ExprId) -> Grammar {
    let mut builder = GrammarBuilder::new(&Limits::default());
    let body = make(&mut builder);
    builder.define("root", body, Span::default()).unwrap();
    builder.finish("root").unwrap()
}

/// True if `text` is a sentence of `grammar`, which has one rule and no terminals but literals and automata.
pub(super) fn accepts(grammar: &Grammar, text: &[u8]) -> bool {
    let starts = BTreeSet::from([0]);
    ends(grammar, grammar.rule_body(grammar.root()), text, &starts).contains(&text.len())
}

fn ends(grammar: &Grammar, expr: ExprId, text: &[u8], starts: &BTreeSet<usize>) -> BTreeSet<usize> {
    if starts.is_empty() {
        return BTreeSet::new();
    }
    match grammar.expr(expr) {
        Expr::Pattern(pattern) => match pattern.kind() {
            PatternKind::Automaton(automaton) => {
                starts.iter().flat_map(|&start| runs(automaton, text, start)).collect()
            }
            PatternKind::LengthBounded(bounded) => {
                starts.iter().flat_map(|&start| bounded_runs(bounded, text, start)).collect()
            }
            PatternKind::Spelled(spelled) => {
                let automaton = spelled.product(1 << 20).unwrap();
                starts.iter().flat_map(|&start| runs(&automaton, text, start)).collect()
            }
            other @ PatternKind::Substrings(_) => panic!("{other:?}"),
            PatternKind::Expression(hir) => match hir.kind() {
                HirKind::Literal(literal) => starts
                    .iter()
                    .filter(|&&start| text[start..].starts_with(&literal.0))
                    .map(|start| start + literal.0.len())
                    .collect(),
                other => panic!("{other:?}"),
            },
        },
        Expr::Sequence(parts) => {
            parts.iter().fold(starts.clone(), |starts, part| ends(grammar, *part, text, &starts))
        }
        Expr::Alternatives(parts) => {
            parts.iter().flat_map(|part| ends(grammar, *part, text, starts)).collect()
        }
        Expr::Repeat { part, min, max } => {
            let (mut now, mut found) = (starts.clone(), BTreeSet::new());
            let enough = u32::try_from(text.len() + 1).unwrap().max(*min);
            let most = max.map_or(enough, |max| max.min(enough));
            for count in 0..=most {
                if count >= *min {
                    found.extend(&now);
                }
                now = ends(grammar, *part, text, &now);
                if now.is_empty() {
                    break;
                }
            }
            found
        }
        other @ (Expr::Rule(_) | Expr::AnyOrder(_)) => panic!("{other:?}"),
    }
}

/// The places where a text of the automaton that begins at `start` can end.
fn runs(automaton: &Automaton, text: &[u8], start: usize) -> Vec<usize> {
    let (mut state, mut found) = (&automaton.states()[0], Vec::new());
    for at in start.. {
        if state.accepts {
            found.push(at);
        }
        let edge = text
            .get(at)
            .and_then(|byte| state.edges.iter().find(|edge| (edge.first..=edge.last).contains(byte)));
        let Some(edge) = edge else { break };
        state = &automaton.states()[as_index(edge.to)];
    }
    found
}

/// The places where a length-bounded string that begins at `start` can end.
fn bounded_runs(bounded: &LengthBounded, text: &[u8], start: usize) -> Vec<usize> {
    let (mut state, mut found) = (0, Vec::new());
    for at in start.. {
        if bounded.accepts(state) {
            found.push(at);
        }
        let Some(to) = text.get(at).and_then(|&byte| bounded.step(state, byte)) else { break };
        state = to;
    }
    found
}
