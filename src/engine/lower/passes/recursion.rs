//! Turns recursion at the ends of a rule into repetition (Arden's rule).
//!
//! For `X ::= A X | X C | X D X | X X | B` the least solution is `P (D P)*` with `P = A* B C*`, whatever else
//! the parts `A B C D` mention (for `X X`, `D` is empty): the same language, so masks do not change. It makes
//! linear rules regular (`ws ::= ([ \t\n] ws)?`), keeps the parser's stack flat on right-recursive lists, and
//! removes the ambiguity of `e ::= e "+" e | n`.

use super::rewrite::WorkGrammar;
use crate::{
    grammar::Expr,
    ids::{ExprId, RuleId},
    limits::{LimitExceeded, Limits},
    lower::provenance::EndRecursion,
};

/// Number of alternatives beyond which a rule is left alone: expanding optional tails must not run away.
const MAX_ALTERNATIVES: usize = 1_000;

/// The alternatives of a rule, by how they mention the rule at their ends.
#[derive(Default)]
struct EndAlternatives {
    /// The parts `A` of `A X`.
    before: Vec<ExprId>,
    /// The parts `C` of `X C`.
    after: Vec<ExprId>,
    /// The parts `D` of `X D X`.
    between: Vec<ExprId>,
    /// The alternatives `B`.
    rest: Vec<ExprId>,
}

/// Rewrites every rule that mentions itself at an end of an alternative; returns these rules and ends.
pub(in crate::lower) fn to_repetition(
    work: &mut WorkGrammar,
    components: &[Vec<RuleId>],
    limits: &Limits,
) -> Result<Vec<(RuleId, EndRecursion)>, LimitExceeded> {
    let mut rewritten = Vec::new();
    for &rule in components.iter().flatten() {
        let Some(alternatives) = alternatives(work, rule, limits)? else { continue };
        let ends = sort(work, rule, &alternatives, limits)?;
        if ends.before.is_empty() && ends.after.is_empty() && ends.between.is_empty() {
            continue;
        }
        let both = !ends.between.is_empty();
        let left = both || !ends.after.is_empty();
        let right = both || !ends.before.is_empty();
        let body = solve(work, ends, limits)?;
        work.set_body(rule, body);
        rewritten.push((rule, EndRecursion { left, right }));
    }
    Ok(rewritten)
}

/// Returns the rule's body as a list of sequences, with optional and alternative groups at their ends
/// expanded where they mention the rule. `None` if there are none that do, or too many.
fn alternatives(
    work: &mut WorkGrammar,
    rule: RuleId,
    limits: &Limits,
) -> Result<Option<Vec<Vec<ExprId>>>, LimitExceeded> {
    let mut open = vec![vec![work.body(rule)]];
    let mut done = Vec::new();
    let mut recursive = false;
    while let Some(parts) = open.pop() {
        if open.len() + done.len() > MAX_ALTERNATIVES {
            return Ok(None);
        }
        match expand_end(work, rule, &parts, limits)? {
            Some(more) => open.extend(more.into_iter().rev()),
            None => {
                recursive |=
                    [parts.first(), parts.last()].into_iter().flatten().any(|&end| is_rule(work, end, rule));
                done.push(parts);
            }
        }
    }
    Ok(recursive.then_some(done))
}

/// Expands the first or last part if it is a group that begins or ends with the rule.
fn expand_end(
    work: &mut WorkGrammar,
    rule: RuleId,
    parts: &[ExprId],
    limits: &Limits,
) -> Result<Option<Vec<Vec<ExprId>>>, LimitExceeded> {
    let Some(last) = parts.len().checked_sub(1) else { return Ok(None) };
    let splice = |at: usize, inner: &[ExprId]| [&parts[..at], inner, &parts[at + 1..]].concat();
    for at in if last == 0 { vec![0] } else { vec![last, 0] } {
        let here = parts[at];
        match work.expr(here).clone() {
            // A group by itself is flattened whatever it holds; at an end, only if it leads to the rule.
            _ if parts.len() > 1 && !mentions_at_end(work, here, rule) => {}
            Expr::Sequence(inner) if !inner.is_empty() || parts.len() > 1 => {
                return Ok(Some(vec![splice(at, &inner)]));
            }
            Expr::Alternatives(inner) => {
                return Ok(Some(inner.iter().map(|&part| splice(at, &[part])).collect()));
            }
            Expr::Repeat { part, min: 0, max: Some(1) } if mentions_at_end(work, part, rule) => {
                let epsilon = work.sequence(Vec::new(), limits)?;
                let empty = if parts.len() == 1 { vec![epsilon] } else { splice(at, &[]) };
                return Ok(Some(vec![splice(at, &[part]), empty]));
            }
            _ => {}
        }
    }
    Ok(None)
}

/// Does a group of alternatives, sequences and options begin or end with the rule? Its depth of search is
/// bounded.
fn mentions_at_end(work: &WorkGrammar, expr: ExprId, rule: RuleId) -> bool {
    let mut stack = vec![expr];
    for _ in 0..MAX_ALTERNATIVES {
        let Some(expr) = stack.pop() else { return false };
        match work.expr(expr) {
            Expr::Rule(found) if *found == rule => return true,
            Expr::Rule(_) | Expr::Pattern(_) => {}
            Expr::Sequence(parts) => stack.extend(parts.first().into_iter().chain(parts.last())),
            Expr::Alternatives(parts) => stack.extend(parts),
            Expr::Repeat { part, min: 0, max: Some(1) } => stack.push(*part),
            Expr::Repeat { .. } | Expr::AnyOrder(_) => {}
        }
    }
    false
}

fn is_rule(work: &WorkGrammar, expr: ExprId, rule: RuleId) -> bool {
    matches!(work.expr(expr), Expr::Rule(found) if *found == rule)
}

/// Sorts the alternatives into A, C, D and B. `X ::= X` says nothing and is dropped, and so are `X X X` and
/// longer ones beside `X X`.
fn sort(
    work: &mut WorkGrammar,
    rule: RuleId,
    alternatives: &[Vec<ExprId>],
    limits: &Limits,
) -> Result<EndAlternatives, LimitExceeded> {
    let mut ends = EndAlternatives::default();
    // `D` of `X X X` and longer ones: nothing but the rule itself.
    let (mut powers, mut joins) = (Vec::new(), false);
    for parts in alternatives {
        let first = parts.first().is_some_and(|&part| is_rule(work, part, rule));
        let last = parts.last().is_some_and(|&part| is_rule(work, part, rule));
        let (list, inner) = match (first, last, parts.len()) {
            (true, _, 1) => continue,
            (true, true, n) if n > 2 && parts.iter().all(|&part| is_rule(work, part, rule)) => {
                (&mut powers, &parts[1..n - 1])
            }
            (true, true, n) => {
                joins |= n == 2;
                (&mut ends.between, &parts[1..n - 1])
            }
            (true, false, _) => (&mut ends.after, &parts[1..]),
            (false, true, n) => (&mut ends.before, &parts[..n - 1]),
            (false, false, _) => (&mut ends.rest, &parts[..]),
        };
        list.push(work.sequence(inner.to_vec(), limits)?);
    }
    // Where two may stand side by side so may any number, and three of them say nothing more.
    if !joins {
        ends.between.append(&mut powers);
    }
    Ok(ends)
}

/// Returns `P (D P)*` with `P = A* B C*`.
fn solve(work: &mut WorkGrammar, ends: EndAlternatives, limits: &Limits) -> Result<ExprId, LimitExceeded> {
    let mut parts = Vec::new();
    if !ends.before.is_empty() {
        parts.push(star(work, ends.before, limits)?);
    }
    parts.push(work.alternatives(ends.rest, limits)?);
    if !ends.after.is_empty() {
        parts.push(star(work, ends.after, limits)?);
    }
    let operand = work.sequence(parts, limits)?;
    if ends.between.is_empty() {
        return Ok(operand);
    }
    let operator = work.alternatives(ends.between, limits)?;
    let pair = work.sequence(vec![operator, operand], limits)?;
    let pairs = star(work, vec![pair], limits)?;
    work.sequence(vec![operand, pairs], limits)
}

fn star(work: &mut WorkGrammar, parts: Vec<ExprId>, limits: &Limits) -> Result<ExprId, LimitExceeded> {
    let part = work.alternatives(parts, limits)?;
    work.repeat(part, 0, None, limits)
}
