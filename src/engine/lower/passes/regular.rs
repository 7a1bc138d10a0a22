//! Finds the regular expressions of a grammar, estimates their automata, and writes them as one expression.
//!
//! An expression is regular if no recursive rule is below it. One with an automaton below has no regular
//! expression of reasonable size: it is regular, but never folded. Sizes are estimates of NFA states; they
//! saturate, and only bound the work that `emit` is ready to try.

use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

use super::rewrite::WorkGrammar;
use crate::{
    grammar::{Expr, PatternKind},
    ids::{ExprId, RuleId, as_index},
};

/// Depth of nesting beyond which nothing is folded, so that recursion over a [`Hir`] is shallow.
const MAX_DEPTH: u32 = 100;

/// Size and nesting of a regular expression, and whether it is opaque, as automata are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RegexSize {
    size: usize,
    /// The size without bounds on its counts.
    uncounted: usize,
    depth: u32,
    opaque: bool,
}

/// The result of [`analyse`].
#[derive(Debug)]
pub(in crate::lower) struct Regular {
    exprs: Vec<Option<RegexSize>>,
}

impl Regular {
    /// Is the expression regular?
    pub(in crate::lower) fn is_regular(&self, expr: ExprId) -> bool {
        self.exprs[expr.index()].is_some_and(|extent| extent.depth <= MAX_DEPTH)
    }

    /// Has the expression a regular expression with at most about `max_size` NFA states?
    pub(in crate::lower) fn is_within(&self, expr: ExprId, max_size: usize) -> bool {
        self.exprs[expr.index()]
            .is_some_and(|extent| !extent.opaque && extent.depth <= MAX_DEPTH && extent.size <= max_size)
    }

    /// Is only its counts' bounds too much: has the expression at most about `max_size` NFA states, and at
    /// most `uncounted` without them?
    pub(in crate::lower) fn is_within_uncounted(
        &self,
        expr: ExprId,
        max_size: usize,
        uncounted: usize,
    ) -> bool {
        self.is_within(expr, max_size)
            && self.exprs[expr.index()].is_some_and(|extent| extent.uncounted <= uncounted)
    }

    /// Estimates how many NFA states the expression needs; `usize::MAX` if it is not regular.
    pub(in crate::lower) fn size(&self, expr: ExprId) -> usize {
        self.exprs[expr.index()].map_or(usize::MAX, |extent| extent.size)
    }

    /// Keeps as regular only the expressions for which `keep` is set, by number. Their parts stay as they
    /// are.
    pub(in crate::lower) fn retain(&mut self, keep: &[bool]) {
        for (extent, &keep) in self.exprs.iter_mut().zip(keep) {
            *extent = extent.filter(|_| keep);
        }
    }

    /// Writes an expression, for which [`is_within`](Self::is_within) is true, as one regular expression.
    /// Recursion is as deep as the expression, at most `MAX_DEPTH`.
    pub(in crate::lower) fn hir(&self, work: &WorkGrammar, expr: ExprId) -> Hir {
        match work.expr(expr) {
            // Where there is an automaton, the answer was no.
            Expr::Pattern(pattern) => pattern.hir().map_or_else(Hir::fail, Hir::clone),
            Expr::Rule(rule) => self.hir(work, work.body(*rule)),
            Expr::Sequence(parts) => Hir::concat(parts.iter().map(|&part| self.hir(work, part)).collect()),
            Expr::Alternatives(parts) => {
                Hir::alternation(parts.iter().map(|&part| self.hir(work, part)).collect())
            }
            Expr::Repeat { part, min, max } => Hir::repetition(Repetition {
                min: *min,
                max: *max,
                greedy: true,
                sub: Box::new(self.hir(work, *part)),
            }),
            // It is not regular, so the answer was no.
            Expr::AnyOrder(_) => Hir::fail(),
        }
    }
}

/// Analyses every expression below the given rules, callees first. `O(n log n)`.
pub(in crate::lower) fn analyse(work: &WorkGrammar, components: &[Vec<RuleId>]) -> Regular {
    let mut exprs: Vec<Option<RegexSize>> = vec![None; work.exprs().len()];
    let mut seen = vec![false; work.exprs().len()];
    for &rule in components.iter().flatten() {
        // A rule that was not looked at yet is of the same component, that is, recursive: its body is still
        // `None`.
        for expr in work.unseen_below(rule, &mut seen) {
            exprs[expr.index()] = extent(work, &exprs, expr);
        }
    }
    Regular { exprs }
}

/// Returns the extent of an expression from those of its parts; `None` if it is not regular.
fn extent(work: &WorkGrammar, known: &[Option<RegexSize>], expr: ExprId) -> Option<RegexSize> {
    let of = |part: &ExprId| known[part.index()];
    let join = |parts: &[ExprId]| {
        parts.iter().try_fold(RegexSize { size: 1, uncounted: 1, depth: 1, opaque: false }, |sum, part| {
            let part = of(part)?;
            Some(RegexSize {
                size: sum.size.saturating_add(part.size),
                uncounted: sum.uncounted.saturating_add(part.uncounted),
                depth: sum.depth.max(part.depth + 1),
                opaque: sum.opaque || part.opaque,
            })
        })
    };
    match work.expr(expr) {
        Expr::Pattern(pattern) => {
            let opaque = |size| RegexSize { size, uncounted: size, depth: 1, opaque: true };
            Some(match pattern.kind() {
                PatternKind::Expression(hir) => {
                    let (size, uncounted) = hir_size(hir);
                    RegexSize { size, uncounted, depth: 1, opaque: false }
                }
                PatternKind::Automaton(automaton) => opaque(automaton.states().len()),
                PatternKind::Substrings(text) => opaque(text.len()),
                PatternKind::LengthBounded(bounded) => opaque(bounded.bound()),
                PatternKind::Spelled(spelled) => opaque(spelled.bound()),
            })
        }
        Expr::Rule(rule) => of(&work.body(*rule)).map(|body| RegexSize { depth: body.depth + 1, ..body }),
        Expr::Sequence(parts) | Expr::Alternatives(parts) => join(parts),
        Expr::Repeat { part, min, max } => of(part).map(|part| RegexSize {
            size: part.size.saturating_mul(times(*min, *max)),
            uncounted: part.uncounted,
            depth: part.depth + 1,
            opaque: part.opaque,
        }),
        // Some are regular, but with an exponential number of states.
        Expr::AnyOrder(_) => None,
    }
}

/// Number of copies of a repeated part in an NFA.
fn times(min: u32, max: Option<u32>) -> usize {
    max.map_or(as_index(min).saturating_add(1), as_index).max(1)
}

/// Estimates how many NFA states a pattern needs, and how many without bounds on its counts. Patterns come
/// from parsers that bound their nesting.
fn hir_size(hir: &Hir) -> (usize, usize) {
    let same = |size| (size, size);
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(Class::Bytes(_)) => same(1),
        HirKind::Literal(literal) => same(literal.0.len()),
        // A range beyond ASCII takes a few UTF-8 sequences.
        HirKind::Class(Class::Unicode(class)) => same(
            class.iter().map(|range| if range.end().is_ascii() { 1_usize } else { 4 }).sum::<usize>().min(64),
        ),
        HirKind::Repetition(repetition) => {
            let (size, uncounted) = hir_size(&repetition.sub);
            (size.saturating_mul(times(repetition.min, repetition.max)), uncounted)
        }
        HirKind::Capture(capture) => hir_size(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts
            .iter()
            .map(hir_size)
            .fold(same(1), |sum, part| (sum.0.saturating_add(part.0), sum.1.saturating_add(part.1))),
    }
}

/// Writes an expression without bounds on its counts: `{0,n}` as `*`, and other counts as `+`; options stay.
/// Recursion is as deep as the expression.
pub(in crate::lower) fn uncounted(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Repetition(repetition) => {
            let is_option = repetition.max == Some(1);
            Hir::repetition(Repetition {
                min: repetition.min.min(1),
                max: if is_option { Some(1) } else { None },
                greedy: repetition.greedy,
                sub: Box::new(uncounted(&repetition.sub)),
            })
        }
        HirKind::Capture(capture) => uncounted(&capture.sub),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(uncounted).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(uncounted).collect()),
        _ => hir.clone(),
    }
}
