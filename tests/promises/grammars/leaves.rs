//! Grammars with other leaves.

use domino::{
    Grammar, Limits,
    grammar::{Expr, GrammarBuilder, Pattern},
    ids::ExprId,
};

/// Replaces each leaf of a grammar by the result of `leaf`, which is called with the leaf's number.
pub(super) fn with_leaves(grammar: &Grammar, leaf: impl Fn(usize, &Pattern) -> Pattern) -> Grammar {
    let mut builder = GrammarBuilder::new(&Limits::default());
    for rule in grammar.rules() {
        builder.declare(grammar.rule_name(rule));
    }
    let mut made: Vec<ExprId> = Vec::new();
    for (id, expr) in grammar.exprs() {
        let at = grammar.expr_span(id);
        let parts = |parts: &[ExprId]| parts.iter().map(|part| made[part.index()]).collect::<Vec<_>>();
        let new = match expr {
            Expr::Pattern(pattern) => builder.pattern(leaf(id.index(), pattern), at),
            Expr::Rule(rule) => builder.rule_ref(grammar.rule_name(*rule), at),
            Expr::Sequence(all) => builder.sequence(parts(all), at),
            Expr::Alternatives(all) => builder.alternatives(parts(all), at),
            Expr::Repeat { part, min, max } => builder.repeat(made[part.index()], *min, *max, at),
            _ => unreachable!("there are no others"),
        };
        made.push(new.unwrap());
    }
    for rule in grammar.rules() {
        let body = made[grammar.rule_body(rule).index()];
        builder.define(grammar.rule_name(rule), body, grammar.rule_span(rule)).unwrap();
    }
    builder.finish(grammar.rule_name(grammar.root())).unwrap()
}
