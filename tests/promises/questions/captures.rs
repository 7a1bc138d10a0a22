//! Captures against two slow references: a backtracking matcher, which finds the first parse, and the oracle,
//! which decides of each capture whether it is a part of any parse.

use std::collections::BTreeSet;

use domino::{
    Captures, Grammar, Limits,
    grammar::{Expr, GrammarBuilder, Pattern, PatternKind, Span},
    ids::{ExprId, RuleId},
    oracle::Oracle,
};
use proptest::{collection::vec, prelude::*};
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::promises::generate::{ALPHABET, Rules, config, rules, text};

/// Calls of a matcher after which it gives up.
const MOST_CALLS: usize = 100_000;

/// The grammar's parts, as the matcher sees them.
#[derive(Clone, Copy)]
enum Part<'g> {
    Expr(ExprId),
    Hir(&'g Hir),
}

/// A rule and the range of bytes that it matched; the end is missing while it is open.
type Match = (RuleId, usize, Option<usize>);

/// A backtracking matcher: alternatives in their order, repeats greedily.
struct Matcher<'g> {
    grammar: &'g Grammar,
    text: &'g [u8],
    /// Matches of rules, in the order in which they began.
    matched: Vec<Match>,
    calls: usize,
}

/// The continuation of a match: matches the rest from a place on.
type Rest<'r, 'g> = &'r mut dyn FnMut(&mut Matcher<'g>, usize) -> bool;

impl<'g> Matcher<'g> {
    fn part(&mut self, part: Part<'g>, at: usize, rest: Rest<'_, 'g>) -> bool {
        self.calls += 1;
        if self.calls > MOST_CALLS {
            return false;
        }
        match part {
            Part::Expr(expr) => match self.grammar.expr(expr) {
                Expr::Pattern(pattern) => match pattern.kind() {
                    PatternKind::Expression(hir) => self.part(Part::Hir(hir), at, rest),
                    _ => unreachable!("random grammars have no others"),
                },
                Expr::Rule(rule) => self.rule(*rule, at, rest),
                Expr::Sequence(parts) => {
                    let parts: Vec<_> = parts.iter().map(|&part| Part::Expr(part)).collect();
                    self.sequence(&parts, at, rest)
                }
                Expr::Alternatives(parts) => parts.iter().any(|&way| self.part(Part::Expr(way), at, rest)),
                Expr::Repeat { part, min, max } => {
                    self.repeat(Part::Expr(*part), (*min, *max, true), 0, at, rest)
                }
                _ => unreachable!("random grammars have no other expressions"),
            },
            Part::Hir(hir) => match hir.kind() {
                HirKind::Empty => rest(self, at),
                HirKind::Literal(literal) => {
                    self.text[at..].starts_with(&literal.0) && rest(self, at + literal.0.len())
                }
                HirKind::Class(Class::Unicode(class)) => {
                    let character = (1..=4).find_map(|length| {
                        let bytes = self.text.get(at..at + length)?;
                        std::str::from_utf8(bytes).ok()?.chars().next()
                    });
                    let fits = character.filter(|character| {
                        class.ranges().iter().any(|range| (range.start()..=range.end()).contains(character))
                    });
                    fits.is_some_and(|character| rest(self, at + character.len_utf8()))
                }
                HirKind::Class(Class::Bytes(class)) => {
                    let fits = |byte: &u8| {
                        class.ranges().iter().any(|range| (range.start()..=range.end()).contains(byte))
                    };
                    self.text.get(at).is_some_and(fits) && rest(self, at + 1)
                }
                HirKind::Look(_) => unreachable!("patterns have none"),
                HirKind::Repetition(repeat) => {
                    let counts = (repeat.min, repeat.max, repeat.greedy);
                    self.repeat(Part::Hir(&repeat.sub), counts, 0, at, rest)
                }
                HirKind::Capture(group) => self.part(Part::Hir(&group.sub), at, rest),
                HirKind::Concat(parts) => {
                    let parts: Vec<_> = parts.iter().map(Part::Hir).collect();
                    self.sequence(&parts, at, rest)
                }
                HirKind::Alternation(parts) => parts.iter().any(|way| self.part(Part::Hir(way), at, rest)),
            },
        }
    }

    fn rule(&mut self, rule: RuleId, at: usize, rest: Rest<'_, 'g>) -> bool {
        // Inside of itself, where it began, a rule that cannot be itself matches less than around.
        let open = |&&(other, start, end): &&Match| other == rule && start == at && end.is_none();
        if self.matched.iter().filter(open).count() > self.text.len() - at {
            return false;
        }
        let index = self.matched.len();
        self.matched.push((rule, at, None));
        let body = Part::Expr(self.grammar.rule_body(rule));
        let found = self.part(body, at, &mut |matcher, end| {
            matcher.matched[index].2 = Some(end);
            let inner = matcher.matched.len();
            if rest(matcher, end) {
                return true;
            }
            matcher.matched.truncate(inner);
            matcher.matched[index].2 = None;
            false
        });
        if !found {
            self.matched.truncate(index);
        }
        found
    }

    fn sequence(&mut self, parts: &[Part<'g>], at: usize, rest: Rest<'_, 'g>) -> bool {
        match parts {
            [] => rest(self, at),
            [first, others @ ..] => {
                self.part(*first, at, &mut |matcher, end| matcher.sequence(others, end, rest))
            }
        }
    }

    /// Matches a repeat. An empty part counts only where one is missing, or where there may be one at most.
    fn repeat(
        &mut self,
        part: Part<'g>,
        (min, max, greedy): (u32, Option<u32>, bool),
        count: u32,
        at: usize,
        rest: Rest<'_, 'g>,
    ) -> bool {
        if self.calls > MOST_CALLS {
            return false;
        }
        for goes_on in [greedy, !greedy] {
            let found = match goes_on {
                false => count >= min && rest(self, at),
                true => {
                    max.is_none_or(|max| count < max)
                        && self.part(part, at, &mut |matcher, end| {
                            let counts = end > at || count < min || (min, max) == (0, Some(1));
                            counts && matcher.repeat(part, (min, max, greedy), count + 1, end, rest)
                        })
                }
            };
            if found {
                return true;
            }
        }
        false
    }
}

/// The matches of rules in the first parse of the whole text; `Err` if the matcher gives up.
fn first_way(grammar: &Grammar, text: &[u8]) -> Result<Option<Vec<Match>>, ()> {
    let mut matcher = Matcher { grammar, text, matched: Vec::new(), calls: 0 };
    let found = matcher.rule(grammar.root(), 0, &mut |_, end| end == text.len());
    if matcher.calls > MOST_CALLS { Err(()) } else { Ok(found.then_some(matcher.matched)) }
}

/// True if a rule can derive itself alone.
fn has_cycle(grammar: &Grammar) -> bool {
    let count = grammar.exprs().len();
    let (mut empty, mut alone) = (vec![false; count], vec![BTreeSet::<RuleId>::new(); count]);
    // Round and round until nothing changes: what may be empty, and which rules may stand for an expression.
    loop {
        let before = (empty.clone(), alone.clone());
        for (id, expr) in grammar.exprs() {
            let is_empty = |part: &ExprId| before.0[part.index()];
            let (now, rules) = match expr {
                Expr::Pattern(pattern) => {
                    let least = pattern.hir().and_then(|hir| hir.properties().minimum_len());
                    (least == Some(0), BTreeSet::new())
                }
                Expr::Rule(rule) => {
                    let body = grammar.rule_body(*rule);
                    let rules = before.1[body.index()].iter().copied().chain([*rule]);
                    (is_empty(&body), rules.collect())
                }
                Expr::Sequence(parts) => {
                    let others = |at: usize| (0..parts.len()).filter(move |&other| other != at);
                    let alone =
                        (0..parts.len()).filter(|&at| others(at).all(|other| is_empty(&parts[other])));
                    let rules = alone.flat_map(|at| before.1[parts[at].index()].iter().copied());
                    (parts.iter().all(is_empty), rules.collect())
                }
                Expr::Alternatives(parts) => {
                    let rules = parts.iter().flat_map(|part| before.1[part.index()].iter().copied());
                    (parts.iter().any(is_empty), rules.collect())
                }
                Expr::Repeat { part, min, max } => {
                    let once = *max != Some(0) && (*min <= 1 || is_empty(part));
                    let rules = before.1[part.index()].iter().copied().filter(|_| once);
                    (*min == 0 || is_empty(part), rules.collect())
                }
                _ => unreachable!("random grammars have no other expressions"),
            };
            (empty[id.index()], alone[id.index()]) = (now, rules);
        }
        if (&empty, &alone) == (&before.0, &before.1) {
            return grammar.rules().any(|rule| alone[grammar.rule_body(rule).index()].contains(&rule));
        }
    }
}

/// A byte in place of a rule's text. No random text has it.
const MARK: &[u8] = b"\x01";

/// The grammar with another start rule, and with the mark as one more alternative of `marked`.
fn changed(grammar: &Grammar, root: RuleId, marked: Option<RuleId>) -> Oracle {
    let at = Span::default();
    let mut builder = GrammarBuilder::new(&Limits::default());
    let mut made: Vec<ExprId> = Vec::new();
    for (_, expr) in grammar.exprs() {
        let parts = |parts: &[ExprId]| parts.iter().map(|part| made[part.index()]).collect::<Vec<_>>();
        made.push(
            match expr {
                Expr::Pattern(pattern) => builder.pattern(pattern.clone(), at),
                Expr::Rule(rule) => builder.rule_ref(grammar.rule_name(*rule), at),
                Expr::Sequence(list) => builder.sequence(parts(list), at),
                Expr::Alternatives(list) => builder.alternatives(parts(list), at),
                Expr::Repeat { part, min, max } => builder.repeat(made[part.index()], *min, *max, at),
                _ => unreachable!("random grammars have no other expressions"),
            }
            .unwrap(),
        );
    }
    for rule in grammar.rules() {
        let mut body = made[grammar.rule_body(rule).index()];
        if marked == Some(rule) {
            let mark = builder.pattern(Pattern::literal(MARK), at).unwrap();
            body = builder.alternatives(vec![body, mark], at).unwrap();
        }
        builder.define(grammar.rule_name(rule), body, at).unwrap();
    }
    Oracle::new(&builder.finish(grammar.rule_name(root)).unwrap()).unwrap()
}

/// True if the rule matches these bytes in some parse.
fn is_part(grammar: &Grammar, text: &[u8], rule: RuleId, span: std::ops::Range<usize>) -> bool {
    let around = [&text[..span.start], MARK, &text[span.end..]].concat();
    changed(grammar, rule, None).accepts(&text[span])
        && changed(grammar, grammar.root(), Some(rule)).accepts(&around)
}

/// Walks to a text of the language; `None` if the choices do not lead to one.
fn walked(oracle: &Oracle, choices: &[u16]) -> Option<Vec<u8>> {
    let bytes: BTreeSet<u8> = String::from_iter(ALPHABET).into_bytes().into_iter().collect();
    let mut session = oracle.session();
    let mut text = Vec::new();
    for choice in choices {
        if session.is_complete() && choice % 5 == 0 {
            break;
        }
        let viable: Vec<u8> = bytes
            .iter()
            .copied()
            .filter(|&byte| {
                let fits = session.push(byte);
                if fits {
                    session.pop();
                }
                fits
            })
            .collect();
        if viable.is_empty() {
            break;
        }
        let byte = viable[usize::from(choice / 5) % viable.len()];
        session.push(byte);
        text.push(byte);
    }
    session.is_complete().then_some(text)
}

/// Holds the captures of all rules of a text against both references; returns true if the first parse was
/// compared.
fn check(rules: &Rules, text: &[u8]) -> Result<bool, TestCaseError> {
    let grammar = rules.build();
    let oracle = Oracle::new(&grammar).unwrap();
    let names: Vec<&str> = grammar.rules().map(|rule| grammar.rule_name(rule)).collect();
    let captures = Captures::new(&grammar, &names, &Limits::default()).unwrap();
    let found = captures.of(text).unwrap();
    let accepts = oracle.has_sentence() && oracle.accepts(text);
    prop_assert_eq!(found.is_some(), accepts);
    let Some(found) = found else { return Ok(false) };
    let number = |name: &str| grammar.rules().find(|&rule| grammar.rule_name(rule) == name).unwrap();
    let found: Vec<Match> = found
        .iter()
        .map(|capture| (number(capture.name), capture.span.start, Some(capture.span.end)))
        .collect();
    prop_assert_eq!(found.first(), Some(&(grammar.root(), 0, Some(text.len()))));
    let distinct: BTreeSet<_> = found.iter().copied().collect();
    for &(rule, start, end) in distinct.iter().take(12) {
        prop_assert!(is_part(&grammar, text, rule, start..end.unwrap()), "{rule} {start}..{end:?}");
    }
    // Captures reported early do not change later.
    for end in 0..=text.len() {
        let early = captures.so_far(&text[..end]).unwrap();
        let mut later = found.iter();
        for capture in early {
            let early = (number(capture.name), capture.span.start, Some(capture.span.end));
            prop_assert!(later.any(|later| *later == early), "{early:?} of {end} bytes is not in {found:?}");
        }
    }
    if has_cycle(&grammar) {
        return Ok(false);
    }
    match first_way(&grammar, text) {
        Ok(first) => {
            prop_assert_eq!(Some(found), first);
            Ok(true)
        }
        Err(()) => Ok(false),
    }
}

proptest! {
    #![proptest_config(config(2_000))]

    #[test]
    fn captures_are_of_the_first_parse(
        rules in rules(),
        choices in vec(any::<u16>(), 0..12),
        other in text(0..=4),
    ) {
        let oracle = Oracle::new(&rules.build()).unwrap();
        let text = if oracle.has_sentence() { walked(&oracle, &choices) } else { None };
        if let Some(text) = text {
            check(&rules, &text)?;
        }
        check(&rules, other.as_bytes())?;
    }
}

/// Statistics of the random cases: enough of them must be telling.
#[test]
fn random_cases_of_captures_are_telling() {
    use proptest::{strategy::ValueTree, test_runner::TestRunner};

    const CASES: usize = 150;
    let mut runner = TestRunner::deterministic();
    let (mut texts, mut ordered) = (0, 0);
    for _ in 0..CASES {
        let case = (rules(), vec(any::<u16>(), 0..12)).new_tree(&mut runner).unwrap().current();
        let oracle = Oracle::new(&case.0.build()).unwrap();
        let text = if oracle.has_sentence() { walked(&oracle, &case.1) } else { None };
        let Some(text) = text.filter(|text| !text.is_empty()) else { continue };
        texts += 1;
        ordered += usize::from(check(&case.0, &text).unwrap());
    }
    eprintln!("of {CASES} cases {texts} have a text, and of {ordered} the order was looked at");
    assert!(texts > CASES / 5 && ordered > texts / 4, "{texts} texts, {ordered} looked at");
}
