//! Uses of lexemes in grammars with lazy rules. Each is a rule that gets its body when all uses are known,
//! since it may have to be cut down ([`contests`]).

use super::{
    syntax::{ExprKind, LarkExpr, LarkItem, is_terminal},
    terminal::LazyLanguage,
    translate::{ExprSite, LarkResult, LarkTranslator},
};
use crate::{
    grammar::{
        GrammarError,
        ir::{Expr, GrammarBuilder},
        regular::Language,
        source::{Source, Span},
    },
    ids::{ExprId, RuleId},
    limits::{Budget, LimitExceeded},
};

/// A use of a lexeme.
#[derive(Debug)]
pub(super) struct LexemeUse<'a, 't> {
    rule: RuleId,
    name: String,
    span: Span,
    what: Used<'a, 't>,
}

#[derive(Debug)]
pub(super) enum Used<'a, 't> {
    /// A part of a rule.
    Part(&'a LarkExpr<'t>, ExprSite<'a, 't>),
    /// A rule that ends as soon as it can.
    Lazy(LazyLanguage),
    /// A schema, by the name of its start rule.
    Schema(String),
}

impl<'a, 't> LarkTranslator<'a, 't, '_> {
    /// Writes a use of a lexeme as a rule whose body is made later.
    pub(super) fn used(&mut self, what: Used<'a, 't>, span: Span) -> LarkResult<ExprId> {
        let Some(uses) = &mut self.uses else { return Err(GrammarError::syntax("no lazy rule")) };
        if uses.len() >= MOST_USES {
            let limit =
                LimitExceeded::new(Budget::Expressions, "uses of terminals beside lazy rules", MOST_USES);
            return Err(GrammarError::limit(limit).at(Source::new(self.text), span, ""));
        }
        let name = format!("%lexeme-{}", uses.len() + 1);
        let rule = self.builder.declare(&name);
        uses.push(LexemeUse { rule, name: name.clone(), span, what });
        self.reference(&name, span)
    }

    /// Gives uses of lexemes their bodies; those that may stand where a lazy one may are cut down.
    pub(super) fn settle(&mut self, root: &str) -> LarkResult<()> {
        let Some(uses) = self.uses.take() else { return Ok(()) };
        let words = self.builder.expr_count().saturating_mul(uses.len().div_ceil(64));
        if words > MOST_WORDS {
            let limit = LimitExceeded::new(Budget::Expressions, "terminals beside lazy rules", MOST_WORDS);
            return Err(self.limit(limit, uses_span(&uses)));
        }
        let start = self.builder.declare(root);
        let rules: Vec<RuleId> = uses.iter().map(|one| one.rule).collect();
        let lazy: Vec<bool> = uses.iter().map(|one| matches!(one.what, Used::Lazy(_))).collect();
        let contests = contests(&self.builder, start, &rules, &lazy);
        let limits = self.limits;
        let texts = Language::texts(limits).map_err(|limit| self.limit(limit, uses_span(&uses)))?;
        let some = Language::empty_text(limits).and_then(|empty| texts.minus(&empty, limits));
        let some = some.map_err(|limit| self.limit(limit, uses_span(&uses)))?;
        for (at, (one, rivals)) in uses.iter().zip(&contests).enumerate() {
            let heads =
                rivals.iter().filter(|rival| **rival != at).filter_map(|&rival| match &uses[rival].what {
                    Used::Lazy(ended) => Some(ended.whole.clone()),
                    _ => None,
                });
            let heads: Vec<Language> = heads.collect();
            // A lazy rival ends as soon as it can, so texts that begin with one of its texts are left out.
            let cut = |language: &Language, more: &Language| {
                let begun = Language::sequence(&[Language::union(&heads, limits)?, more.clone()], limits)?;
                language.minus(&begun, limits)
            };
            let left = match &one.what {
                Used::Schema(name) => {
                    let body = self.reference(name, one.span)?;
                    self.set(&one.name, body, one.span);
                    continue;
                }
                Used::Part(expr, place) if heads.is_empty() => {
                    let body = self.expr(expr, place)?;
                    self.set(&one.name, body, one.span);
                    continue;
                }
                Used::Part(expr, place) => cut(&self.language(expr, place)?, &texts),
                // Two lazy lexemes that end at the same place are both kept.
                Used::Lazy(ended) => cut(&ended.text, &some),
            };
            let left = left.map_err(|limit| self.limit(limit, one.span))?;
            let body = self.language_leaf(&left, one.span)?;
            self.set(&one.name, body, one.span);
        }
        Ok(())
    }

    /// True for one whole lexeme of a rule.
    pub(super) fn is_lexeme(&self, expr: &LarkExpr<'t>, place: &ExprSite<'a, 't>) -> bool {
        match &expr.kind {
            ExprKind::Text { text, .. } => !text.is_empty(),
            ExprKind::Range(..)
            | ExprKind::Regex { .. }
            | ExprKind::Structured(_)
            | ExprKind::Both(_)
            | ExprKind::Not(_) => true,
            ExprKind::Name(name) => {
                is_terminal(name)
                    && place.arguments.as_ref().is_none_or(|arguments| arguments.get(name).is_none())
            }
            _ => false,
        }
    }
}

/// The place of the first use.
fn uses_span(uses: &[LexemeUse<'_, '_>]) -> Span {
    uses.first().map_or_else(Span::default, |one| one.span)
}

/// True if a grammar, nested ones included, has a rule that ends as soon as it can.
pub(super) fn has_lazy(items: &[LarkItem<'_>]) -> bool {
    let mut open: Vec<&LarkExpr<'_>> = Vec::new();
    let mut lists = vec![items];
    loop {
        while let Some(items) = lists.pop() {
            for item in items {
                match item {
                    LarkItem::Define(definition) if definition.ending.is_some() => return true,
                    LarkItem::Define(definition) => open.push(&definition.body),
                    _ => {}
                }
            }
        }
        let Some(expr) = open.pop() else { return false };
        match &expr.kind {
            ExprKind::Nested(items) => lists.push(items),
            _ => open.extend(expr.parts()),
        }
    }
}

// Some lexemes may stand where a lazy one may stand too. A lexer that finds a lazy lexeme takes it at once,
// and drops everything else that could have gone on from the same place. So "any text, then calls" works: the
// text ends where a call's head is complete. The engine follows every way to read a text, so the other
// lexemes are cut down instead: a lexeme that may begin where a lazy one may loses the texts that begin with
// a text of the lazy one.
//
// Two lexemes may begin at the same place if both can be the first, or both can follow the same use of a
// third: the first, last and follow sets of Glushkov's construction, over uses of lexemes. A rule may be
// used in several places, and only what comes right before is known here. So a lexeme may be cut down where
// a lexer would not do so, if the same use of a lexeme comes before both in different places.

/// Limit on the uses of lexemes among which contests are looked for. Each takes a bit for each expression.
const MOST_USES: usize = 2_000;

/// Limit on the words of the sets of all expressions: 16 bytes each, since each expression has two sets.
const MOST_WORDS: usize = 8 << 20;

/// A set of uses, as bits.
type Set = Vec<u64>;

fn add(to: &mut Set, from: &Set) -> bool {
    let mut grew = false;
    for (to, from) in to.iter_mut().zip(from) {
        grew |= *from & !*to != 0;
        *to |= from;
    }
    grew
}

fn members(set: &Set) -> impl Iterator<Item = usize> + '_ {
    set.iter().enumerate().flat_map(|(word, bits)| {
        (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * 64 + bit)
    })
}

/// The Glushkov sets of a part of a grammar: whether it may be empty, and what it may begin and end with.
#[derive(Debug, Clone)]
struct GlushkovSets {
    nullable: bool,
    first: Set,
    last: Set,
}

/// For each use (a rule without a body yet), the lazy uses that may begin where it may. `start` is the start
/// rule.
///
/// A fixpoint over the expressions: `O(n u)` for `n` of them and `u` uses, times the depth of rules.
fn contests(builder: &GrammarBuilder, start: RuleId, uses: &[RuleId], lazy: &[bool]) -> Vec<Vec<usize>> {
    let words = uses.len().div_ceil(64);
    let number: std::collections::HashMap<RuleId, usize> = uses.iter().copied().zip(0..).collect();
    // The FIRST and LAST sets of all expressions are the least fixpoint of `of_expr`.
    let none = GlushkovSets { nullable: true, first: vec![0; words], last: vec![0; words] };
    let mut ends = vec![GlushkovSets { nullable: false, ..none.clone() }; builder.expr_count()];
    let mut grew = true;
    while grew {
        grew = false;
        for expr in (0..).take(ends.len()).map(ExprId::new) {
            let made = of_expr(builder, expr, &ends, &number, &none);
            let known = &mut ends[expr.index()];
            grew |= made.nullable && !known.nullable;
            known.nullable |= made.nullable;
            grew |= add(&mut known.first, &made.first) | add(&mut known.last, &made.last);
        }
    }
    // The follow set of each use; the last set has the uses that may be the first.
    let mut follow = vec![vec![0; words]; uses.len() + 1];
    if let Some(body) = builder.body(start) {
        follow[uses.len()].clone_from(&ends[body.index()].first);
    }
    let mut follows = |last: &Set, first: &Set| members(last).for_each(|at| _ = add(&mut follow[at], first));
    for expr in (0..).take(ends.len()).map(ExprId::new) {
        match builder.expr(expr) {
            Expr::Sequence(parts) => {
                for (index, part) in parts.iter().enumerate() {
                    for next in &parts[index + 1..] {
                        follows(&ends[part.index()].last, &ends[next.index()].first);
                        if !ends[next.index()].nullable {
                            break;
                        }
                    }
                }
            }
            Expr::Repeat { part, max, .. } if max.is_none_or(|max| max > 1) => {
                follows(&ends[part.index()].last, &ends[part.index()].first);
            }
            _ => {}
        }
    }
    let mut found: Vec<Vec<usize>> = vec![Vec::new(); uses.len()];
    for next in &follow {
        let rivals: Vec<usize> = members(next).filter(|&at| lazy[at]).collect();
        for at in members(next) {
            found[at].extend(&rivals);
        }
    }
    for rivals in &mut found {
        rivals.sort_unstable();
        rivals.dedup();
    }
    found
}

/// The FIRST and LAST sets of an expression, from those of its parts.
fn of_expr(
    builder: &GrammarBuilder,
    id: ExprId,
    ends: &[GlushkovSets],
    number: &std::collections::HashMap<RuleId, usize>,
    none: &GlushkovSets,
) -> GlushkovSets {
    match builder.expr(id) {
        Expr::Rule(rule) => match (number.get(rule), builder.body(*rule)) {
            (Some(&at), _) => {
                let mut one = GlushkovSets { nullable: false, ..none.clone() };
                one.first[at / 64] |= 1 << (at % 64);
                one.last.clone_from(&one.first);
                one
            }
            (None, Some(body)) => ends[body.index()].clone(),
            (None, None) => none.clone(),
        },
        Expr::Sequence(parts) => {
            let mut all = none.clone();
            for part in parts.iter().map(|part| &ends[part.index()]) {
                if all.nullable {
                    add(&mut all.first, &part.first);
                }
                if !part.nullable {
                    all.last.fill(0);
                }
                add(&mut all.last, &part.last);
                all.nullable &= part.nullable;
            }
            all
        }
        Expr::Alternatives(parts) => {
            let mut any = GlushkovSets { nullable: false, ..none.clone() };
            for part in parts.iter().map(|part| &ends[part.index()]) {
                any.nullable |= part.nullable;
                add(&mut any.first, &part.first);
                add(&mut any.last, &part.last);
            }
            any
        }
        Expr::Repeat { part, min, .. } => {
            let mut repeated = ends[part.index()].clone();
            repeated.nullable |= *min == 0;
            repeated
        }
        // Ignored texts, and terminals that are parts of lexemes, are no uses.
        Expr::Pattern(_) | Expr::AnyOrder(_) => none.clone(),
    }
}
