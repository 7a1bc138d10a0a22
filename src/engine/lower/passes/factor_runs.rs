//! Factors regular alternatives out of repetitions, so that adjacent regular parts form one terminal.
//!
//! `(A | R)*` becomes `R* (A R*)*`, and up to `n` of `A | R` become up to `n` of them with no `R` next to an
//! `R`, if `R R` is an `R`. Inner repetitions go first: any number of `x{1,9}` is any number of `x`.
//!
//! The language is the same, whatever the notation: the text between two parts that are not regular is one
//! *run* of the regular ones. So `(element | text | ws)*` has one terminal where texts and spaces may meet in
//! any number and order, and a run can be read in one way only, where each split into terminals was a way of
//! its own before.

use hashbrown::{HashMap, HashSet};
use regex_syntax::hir::{Hir, Repetition};

use super::{regular::Regular, rewrite::WorkGrammar};
use crate::{
    grammar::Expr,
    ids::{ExprId, RuleId},
    limits::{LimitExceeded, Limits},
    scanner,
};

/// Number of alternatives of one repetition beyond which it is left alone, rules looked through included.
const MAX_ALTERNATIVES: usize = 200;

/// Count up to which the parts of a repetition are numbered one by one; three expressions each.
const MOST_COUNTED: u32 = 256;

/// Number of automata tried in all; beyond it, repetitions are left alone. A few ms each at most.
const MAX_TRIES: usize = 400;

/// Rewrites the repetitions below the given rules. Adds the new rules to them, and returns whether anything
/// was rewritten. About linear in the grammar, and an automaton within the folding budget for each repetition
/// that has both kinds of parts.
pub(in crate::lower) fn to_runs(
    work: &mut WorkGrammar,
    regular: &Regular,
    components: &mut Vec<Vec<RuleId>>,
    limits: &Limits,
) -> Result<bool, LimitExceeded> {
    let found = repetitions(work, components);
    let mut pass = FactorRuns { regular, limits, tries: 0, rests: HashMap::new() };
    let mut replaced: HashMap<ExprId, ExprId> = HashMap::new();
    for expr in found {
        if let Some(runs) = pass.runs(work, expr)? {
            replaced.insert(expr, runs);
        }
    }
    if replaced.is_empty() {
        return Ok(false);
    }
    let mut rests: Vec<RuleId> = pass.rests.into_values().collect();
    rests.sort_unstable();
    components.extend(rests.into_iter().map(|rule| vec![rule]));
    for &rule in components.iter().flatten() {
        let body = work.replaced(work.body(rule), &replaced, limits)?;
        work.set_body(rule, body);
    }
    Ok(true)
}

/// Lists the repetitions below the given rules, inner ones first, up to a bound.
fn repetitions(work: &WorkGrammar, components: &[Vec<RuleId>]) -> Vec<ExprId> {
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    for &rule in components.iter().flatten() {
        let mut open = vec![work.body(rule)];
        while let Some(expr) = open.pop() {
            if found.len() > MAX_TRIES {
                break;
            }
            if !seen.insert(expr) {
                continue;
            }
            match work.expr(expr) {
                Expr::Pattern(_) | Expr::Rule(_) => {}
                Expr::Sequence(parts) | Expr::Alternatives(parts) => open.extend(parts),
                Expr::Repeat { part, .. } => {
                    found.push(expr);
                    open.push(*part);
                }
                Expr::AnyOrder(parts) => open.extend(parts.exprs()),
            }
        }
    }
    // Parts have smaller ids.
    found.sort_unstable();
    found
}

struct FactorRuns<'a> {
    regular: &'a Regular,
    limits: &'a Limits,
    tries: usize,
    /// Rules made of the parts of rules that are not regular, by rule and by whether inner repetitions were
    /// opened.
    rests: HashMap<(RuleId, bool), RuleId>,
}

impl FactorRuns<'_> {
    /// Rewrites a repetition, if it has parts of both kinds.
    fn runs(&mut self, work: &mut WorkGrammar, expr: ExprId) -> Result<Option<ExprId>, LimitExceeded> {
        match *work.expr(expr) {
            Expr::Repeat { part, min, max: None } => self.unbounded(work, part, min),
            Expr::Repeat { part, min: min @ (0 | 1), max: Some(max) }
                if (2..=MOST_COUNTED).contains(&max) =>
            {
                self.counted(work, part, min, max)
            }
            _ => Ok(None),
        }
    }

    /// Rewrites up to `max` parts so that regular ones are never adjacent: if any number of those in a row is
    /// one of them, every text can be read so, with no more parts.
    fn counted(
        &mut self,
        work: &mut WorkGrammar,
        part: ExprId,
        min: u32,
        max: u32,
    ) -> Result<Option<ExprId>, LimitExceeded> {
        let Some(Parts { regular: mut runs, mut others, rests, .. }) = self.parts(work, part, false) else {
            return Ok(None);
        };
        // A run after a run must be a run: gives up the largest part until that holds.
        while !self.absorbs_itself(work, &runs) {
            let Some(largest) = (0..runs.len()).max_by_key(|&at| self.regular.size(runs[at])) else {
                return Ok(None);
            };
            others.push(runs.remove(largest));
        }
        if runs.is_empty() {
            return Ok(None);
        }
        let limits = self.limits;
        others.extend(self.rests(work, rests, false)?);
        let run = work.alternatives(runs, limits)?;
        if others.is_empty() {
            return work.repeat(run, min, Some(1), limits).map(Some);
        }
        let other = work.alternatives(others, limits)?;
        // For each number of parts: texts whose last part is no run, and texts whose last part is one.
        let (mut after_other, mut after_run) = (work.sequence(Vec::new(), limits)?, None);
        let mut all = Vec::new();
        for _ in 0..max {
            let before = work.alternatives([after_other].into_iter().chain(after_run).collect(), limits)?;
            let next_other = work.sequence(vec![before, other], limits)?;
            let next_run = work.sequence(vec![after_other, run], limits)?;
            (after_other, after_run) = (next_other, Some(next_run));
            all.extend([next_other, next_run]);
        }
        if min == 0 {
            all.push(work.sequence(Vec::new(), limits)?);
        }
        work.alternatives(all, limits).map(Some)
    }

    /// Is one of these after another one of them, too? Then so is any number of them.
    fn absorbs_itself(&mut self, work: &WorkGrammar, parts: &[ExprId]) -> bool {
        if parts.is_empty() {
            return true;
        }
        self.tries += 1;
        let most = self.limits.fold_states.saturating_mul(2);
        if self.tries > MAX_TRIES {
            return false;
        }
        let one = Hir::alternation(parts.iter().map(|&part| self.regular.hir(work, part)).collect());
        let two = Hir::alternation(vec![one.clone(), Hir::concat(vec![one.clone(), one.clone()])]);
        // Minimal automata of equal languages are equal.
        let dfa = |hir: &Hir| scanner::build(hir, 2 * most, self.limits).ok().flatten();
        dfa(&one).is_some_and(|one| one.len() <= self.limits.fold_states && Some(&one) == dfa(&two).as_ref())
    }

    /// Rewrites `min` or more parts as runs of the regular ones between the others: `(A | R)*` becomes
    /// `R* (A R*)*`.
    fn unbounded(
        &mut self,
        work: &mut WorkGrammar,
        part: ExprId,
        min: u32,
    ) -> Result<Option<ExprId>, LimitExceeded> {
        let Some(Parts { mut regular, mut others, rests, nullable, opened }) = self.parts(work, part, true)
        else {
            return Ok(None);
        };
        if regular.is_empty() || (others.is_empty() && rests.is_empty() && !opened) {
            return Ok(None);
        }
        // If a part may be empty, `min` of them may be too.
        let min = if nullable { 0 } else { min };
        // Keeps as many regular parts as make one small automaton together.
        while !self.is_foldable(work, &regular) {
            let Some(largest) = (0..regular.len()).max_by_key(|&at| self.regular.size(regular[at])) else {
                return Ok(None);
            };
            others.push(regular.remove(largest));
            if regular.is_empty() {
                return Ok(None);
            }
        }
        // What is left is `(A | R)*`, with `A` the others and `R` the regular parts.
        let limits = self.limits;
        others.extend(self.rests(work, rests, true)?);
        let regular = work.alternatives(regular, limits)?;
        if others.is_empty() {
            return work.repeat(regular, min, None, limits).map(Some);
        }
        let others = work.alternatives(others, limits)?;
        let run = work.repeat(regular, 0, None, limits)?;
        let item = work.sequence(vec![others, run], limits)?;
        let items = work.repeat(item, 0, None, limits)?;
        // `R* (A R*)*`; with a least count the empty text, or the first parts, need a case of their own.
        let rewritten = if min == 1 {
            let begun = work.repeat(regular, 1, None, limits)?;
            let from_run = work.sequence(vec![begun, items], limits)?;
            let from_other = work.repeat(item, 1, None, limits)?;
            work.alternatives(vec![from_run, from_other], limits)?
        } else {
            let any = work.sequence(vec![run, items], limits)?;
            if min == 0 {
                any
            } else {
                let least = work.repeat(part, min, Some(min), limits)?;
                work.sequence(vec![least, any], limits)?
            }
        };
        Ok(Some(rewritten))
    }

    /// Is any number of these parts one terminal within the budget?
    fn is_foldable(&mut self, work: &WorkGrammar, parts: &[ExprId]) -> bool {
        self.tries += 1;
        let most = self.limits.fold_states.saturating_mul(2);
        let size = parts.iter().map(|&part| self.regular.size(part)).fold(0, usize::saturating_add);
        if self.tries > MAX_TRIES || size > most {
            return false;
        }
        let sub = Hir::alternation(parts.iter().map(|&part| self.regular.hir(work, part)).collect());
        let run = Hir::repetition(Repetition { min: 1, max: None, greedy: true, sub: Box::new(sub) });
        scanner::build(&run, most, self.limits)
            .is_ok_and(|dfa| dfa.is_some_and(|dfa| dfa.len() <= self.limits.fold_states))
    }
}

/// The alternatives of a repeated part.
#[derive(Default)]
struct Parts {
    regular: Vec<ExprId>,
    others: Vec<ExprId>,
    /// Parts of rules that are not regular, by rule.
    rests: Vec<(RuleId, Vec<ExprId>)>,
    /// Was one of them a repetition that may be empty?
    nullable: bool,
    /// Was any repetition looked into?
    opened: bool,
}

impl FactorRuns<'_> {
    /// Collects the alternatives of a repeated part, through groups and rules, and through inner repetitions
    /// if they are to be `opened`: any number of `x{0,9} | y+` is any number of `x | y`. `None` if there are
    /// too many.
    fn parts(&self, work: &WorkGrammar, part: ExprId, opened: bool) -> Option<Parts> {
        let largest = self.limits.fold_states.saturating_mul(2);
        let mut parts = Parts::default();
        let (mut open, mut rules): (Vec<(ExprId, Option<RuleId>)>, Vec<RuleId>) =
            (vec![(part, None)], Vec::new());
        let mut count = 0;
        while let Some((expr, rule)) = open.pop() {
            count += 1;
            if open.len() + count > MAX_ALTERNATIVES {
                return None;
            }
            match work.expr(expr) {
                Expr::Alternatives(inner) => open.extend(inner.iter().rev().map(|&part| (part, rule))),
                Expr::Repeat { part, min: min @ (0 | 1), max } if opened && *max != Some(0) => {
                    parts.nullable |= *min == 0;
                    parts.opened = true;
                    open.push((*part, rule));
                }
                Expr::Rule(inner) if is_open(work, *inner, opened) => {
                    // A rule that leads to itself by alternatives alone adds nothing the second time.
                    if !rules.contains(inner) {
                        rules.push(*inner);
                        open.push((work.body(*inner), Some(*inner)));
                    }
                }
                _ if self.regular.is_within(expr, largest) => parts.regular.push(expr),
                _ => match rule {
                    // A part of this repetition's own rule, or of none.
                    None => parts.others.push(expr),
                    Some(rule) => match parts.rests.iter_mut().find(|(known, _)| *known == rule) {
                        Some((_, rest)) => rest.push(expr),
                        None => parts.rests.push((rule, vec![expr])),
                    },
                },
            }
        }
        Some(parts)
    }

    /// Mentions rules that are the rest of others without their regular parts. They are rules because the
    /// rest may contain the repetition itself.
    fn rests(
        &mut self,
        work: &mut WorkGrammar,
        rests: Vec<(RuleId, Vec<ExprId>)>,
        opened: bool,
    ) -> Result<Vec<ExprId>, LimitExceeded> {
        let mut mentions = Vec::new();
        for (rule, parts) in rests {
            let rest = match self.rests.get(&(rule, opened)) {
                Some(&known) => known,
                None => {
                    let body = work.alternatives(parts, self.limits)?;
                    let made = work.add_rule(rule, body, self.limits)?;
                    self.rests.insert((rule, opened), made);
                    made
                }
            };
            mentions.push(work.push(Expr::Rule(rest), self.limits)?);
        }
        Ok(mentions)
    }
}

/// Is a rule's body looked through?
fn is_open(work: &WorkGrammar, rule: RuleId, opened: bool) -> bool {
    match work.expr(work.body(rule)) {
        Expr::Alternatives(_) => true,
        Expr::Repeat { min: 0 | 1, .. } => opened,
        _ => false,
    }
}
