//! Finds the lexemes that may stand where a lazy one may stand too.
//!
//! A lexer that finds a lazy lexeme takes it at once, and drops everything else that could have gone on from
//! the same place. So "any text, then calls" works: the text ends where a call's head is complete. The engine
//! follows every way to read a text, so the other lexemes are cut down instead: a lexeme that may begin where
//! a lazy one may loses the texts that begin with a text of the lazy one.
//!
//! Two lexemes may begin at the same place if both can be the first, or both can follow the same use of a
//! third: the first, last and follow sets of Glushkov's construction, over uses of lexemes. A rule may be
//! used in several places, and only what comes right before is known here. So a lexeme may be cut down where
//! a lexer would not do so, if the same use of a lexeme comes before both in different places.

use crate::{
    grammar::ir::{Expr, GrammarBuilder},
    ids::{ExprId, RuleId},
};

/// Limit on the uses of lexemes among which contests are looked for. Each takes a bit for each expression.
pub(super) const MOST_USES: usize = 2_000;

/// Limit on the words of the sets of all expressions: 16 bytes each, since each expression has two sets.
pub(super) const MOST_WORDS: usize = 8 << 20;

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
pub(super) fn contests(
    builder: &GrammarBuilder,
    start: RuleId,
    uses: &[RuleId],
    lazy: &[bool],
) -> Vec<Vec<usize>> {
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
