//! Embeds a grammar in another one.

use super::{
    any_order::AnyOrder,
    builder::GrammarBuilder,
    grammar::{Expr, Grammar},
};
use crate::{
    ids::{ExprId, RuleId},
    limits::LimitExceeded,
};

/// Copies the rules of `grammar` under names that begin with `prefix`, and returns the name of its start
/// rule. `at` is the place where its text begins in that of the other grammar. Linear.
///
/// [`Grammar::distinct_keys`] and [`Grammar::distinct_items`] are not copied, since they are about whole
/// texts.
///
/// # Errors
/// If the budget of expressions is used up.
pub(in crate::grammar) fn embed(
    builder: &mut GrammarBuilder,
    grammar: &Grammar,
    prefix: &str,
    at: u32,
) -> Result<String, LimitExceeded> {
    let name = |rule| format!("{prefix}{}", grammar.rule_name(rule));
    // Rules are numbered in order of first mention, and few mentions are a rule's first.
    let mut rules: Vec<Option<RuleId>> = vec![None; grammar.rules().len()];
    let mut made: Vec<ExprId> = Vec::with_capacity(grammar.exprs().len());
    for (id, expr) in grammar.exprs() {
        let span = grammar.expr_span(id).shifted(at);
        let parts = |parts: &[ExprId]| parts.iter().map(|part| made[part.index()]).collect::<Vec<_>>();
        let copy = match expr {
            Expr::Pattern(pattern) => builder.pattern(pattern.clone(), span),
            Expr::Rule(rule) => {
                let copy = *rules[rule.index()].get_or_insert_with(|| builder.declare(&name(*rule)));
                builder.mention(copy, span)
            }
            Expr::Sequence(list) => builder.sequence(parts(list), span),
            Expr::Alternatives(list) => builder.alternatives(parts(list), span),
            Expr::Repeat { part, min, max } => builder.repeat(made[part.index()], *min, *max, span),
            Expr::AnyOrder(list) => {
                let list: AnyOrder = list.map(|part| made[part.index()]);
                builder.any_order(list, span)
            }
        }?;
        made.push(copy);
    }
    for rule in grammar.rules() {
        let body = made[grammar.rule_body(rule).index()];
        // A prefix is used once, so the name is free.
        let _ = builder.define(&name(rule), body, grammar.rule_span(rule).shifted(at));
    }
    builder.with_asked(grammar);
    grammar.captured().for_each(|(rule, captured)| builder.capture(&name(rule), captured));
    grammar.ignored().iter().for_each(|&rule| builder.ignore(&name(rule)));
    grammar.common().iter().for_each(|automaton| builder.in_common(automaton.clone()));
    Ok(name(grammar.root()))
}
