//! Productive grammars: the least fixpoint of "an alternative has a text if all of its parts have one".

use crate::{
    grammar::{AnyOrder, Expr, Grammar, any_order::OrderRules},
    ids::ExprId,
};

/// True if a list in any order has a text, given which expressions have one.
fn may_come(of: &AnyOrder, has: impl Fn(&ExprId) -> bool) -> bool {
    OrderRules::new(of, |part| has(&of.parts[part].expr), has(&of.separator)).has_list()
}

/// True if the start rule has a text. A worklist of expressions whose parts have changed; linear in the
/// grammar but for long sequences, which are looked at once for each part.
///
/// First each expression learns its parents, then every expression is looked at once, and again whenever a
/// part of it is found to have a text.
pub(super) fn has_text(grammar: &Grammar) -> bool {
    let mut exprs = vec![false; grammar.exprs().len()];
    let mut rules = vec![false; grammar.rules().len()];
    let mut users: Vec<Vec<ExprId>> = vec![Vec::new(); rules.len()];
    let mut parents: Vec<Vec<ExprId>> = vec![Vec::new(); exprs.len()];
    let mut open = Vec::new();
    for (id, expr) in grammar.exprs() {
        match expr {
            Expr::Rule(rule) => users[rule.index()].push(id),
            Expr::Sequence(parts) | Expr::Alternatives(parts) => {
                parts.iter().for_each(|part| parents[part.index()].push(id));
            }
            Expr::Repeat { part, .. } => parents[part.index()].push(id),
            Expr::AnyOrder(parts) => parts.exprs().for_each(|part| parents[part.index()].push(id)),
            Expr::Pattern(_) => {}
        }
        open.push(id);
    }
    let mut bodies: Vec<Vec<usize>> = vec![Vec::new(); exprs.len()];
    for rule in grammar.rules() {
        bodies[grammar.rule_body(rule).index()].push(rule.index());
    }
    // Lists in any order wait until all else is known, since each test of one is a search.
    let (mut lists, mut waits) = (Vec::new(), vec![false; exprs.len()]);
    let is_list = |id: ExprId| matches!(grammar.expr(id), Expr::AnyOrder(_));
    loop {
        let id = match open.pop() {
            Some(id) if is_list(id) => {
                if !std::mem::replace(&mut waits[id.index()], true) {
                    lists.push(id);
                }
                continue;
            }
            Some(id) => id,
            None => match lists.pop() {
                Some(id) => id,
                None => break,
            },
        };
        waits[id.index()] = false;
        if exprs[id.index()] {
            continue;
        }
        let has = |part: &ExprId| exprs[part.index()];
        let holds = match grammar.expr(id) {
            Expr::Rule(rule) => rules[rule.index()],
            Expr::Sequence(parts) => parts.iter().all(has),
            Expr::Alternatives(parts) => parts.iter().any(has),
            Expr::Repeat { part, min, .. } => *min == 0 || has(part),
            Expr::AnyOrder(parts) => may_come(parts, has),
            Expr::Pattern(_) => true,
        };
        if !holds {
            continue;
        }
        exprs[id.index()] = true;
        open.extend(&parents[id.index()]);
        for &rule in &bodies[id.index()] {
            if !std::mem::replace(&mut rules[rule], true) {
                open.extend(&users[rule]);
            }
        }
    }
    rules[grammar.root().index()]
}
