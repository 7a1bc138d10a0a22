//! Random grammars as text: printed as GBNF and read again they are the same language.

use domino::{
    Grammar, Limits, Lookahead, Syntax,
    grammar::Expr,
    ids::{ExprId, RuleId},
    oracle::Oracle,
};
use proptest::prelude::*;
use regex_syntax::hir::{Class, Hir, HirKind};

use super::generate::{World, case, config};

/// A rule that derives nothing.
const NEVER: &str = "never";

/// The grammar as GBNF; `None` if it has what GBNF has not: bytes that are no characters.
pub(super) fn print(grammar: &Grammar) -> Option<String> {
    let mut text = format!("{NEVER} ::= {NEVER} \"x\"\n");
    for rule in grammar.rules() {
        text += &format!("{} ::= {}\n", name(grammar, rule), expr(grammar, grammar.rule_body(rule))?);
    }
    Some(text)
}

fn name(grammar: &Grammar, rule: RuleId) -> String {
    if rule == grammar.root() { "root".to_owned() } else { format!("rule-{}", grammar.rule_name(rule)) }
}

fn expr(grammar: &Grammar, id: ExprId) -> Option<String> {
    let parts = |parts: &[ExprId]| parts.iter().map(|&part| expr(grammar, part)).collect::<Option<Vec<_>>>();
    Some(match grammar.expr(id) {
        Expr::Pattern(pattern) => hir(pattern.hir()?)?,
        Expr::Rule(rule) => name(grammar, *rule),
        Expr::Sequence(list) => sequence(&parts(list)?),
        Expr::Alternatives(list) => alternatives(&parts(list)?),
        Expr::Repeat { part, min, max } => repeat(&expr(grammar, *part)?, *min, *max),
        _ => return None,
    })
}

fn hir(pattern: &Hir) -> Option<String> {
    let parts = |parts: &[Hir]| parts.iter().map(hir).collect::<Option<Vec<_>>>();
    Some(match pattern.kind() {
        HirKind::Empty => "\"\"".to_owned(),
        HirKind::Literal(literal) => {
            format!("\"{}\"", str::from_utf8(&literal.0).ok()?.chars().map(character).collect::<String>())
        }
        HirKind::Class(class) => {
            let class = match class {
                Class::Unicode(class) => class.clone(),
                Class::Bytes(class) => class.to_unicode_class()?,
            };
            if class.ranges().is_empty() {
                return Some(NEVER.to_owned());
            }
            let ranges =
                class.iter().map(|range| format!("{}-{}", character(range.start()), character(range.end())));
            format!("[{}]", ranges.collect::<String>())
        }
        HirKind::Repetition(repetition) => repeat(&hir(&repetition.sub)?, repetition.min, repetition.max),
        HirKind::Capture(capture) => hir(&capture.sub)?,
        HirKind::Concat(list) => sequence(&parts(list)?),
        HirKind::Alternation(list) => alternatives(&parts(list)?),
        HirKind::Look(_) => return None,
    })
}

/// A character as it may stand in a literal and in a class; most as an escape.
fn character(c: char) -> String {
    if c.is_ascii_alphanumeric() { c.to_string() } else { format!("\\U{:08X}", u32::from(c)) }
}

fn sequence(parts: &[String]) -> String {
    if parts.is_empty() { "\"\"".to_owned() } else { format!("({})", parts.join(" ")) }
}

fn alternatives(parts: &[String]) -> String {
    if parts.is_empty() { NEVER.to_owned() } else { format!("({})", parts.join(" | ")) }
}

fn repeat(part: &str, min: u32, max: Option<u32>) -> String {
    match (min, max) {
        (0, Some(1)) => format!("({part})?"),
        (0, None) => format!("({part})*"),
        (1, None) => format!("({part})+"),
        (min, Some(max)) if min == max => format!("({part}){{{min}}}"),
        (min, Some(max)) => format!("({part}){{{min},{max}}}"),
        (min, None) => format!("({part}){{{min},}}"),
    }
}

fn parse(text: &str) -> Grammar {
    Grammar::parse(Syntax::Gbnf, text, &Limits::default()).unwrap_or_else(|error| panic!("{text}{error}"))
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn what_is_printed_is_read_again(case in case(10)) {
        let world = case.build();
        let Some(text) = print(&world.grammar) else { return Ok(()) };
        let grammar = parse(&text);
        let oracle = Oracle::new(&grammar).unwrap();
        prop_assert_eq!(oracle.has_sentence(), world.oracle.has_sentence(), "{}", text);
        let read = World { grammar, ..case.build() };
        let Some(compiled) = read.compile(Lookahead::Unbounded) else { return Ok(()) };
        let mut constraint = compiled.constraint();
        let mut so_far = Vec::new();
        for &choice in &case.choices {
            let mask = world.oracle.mask(&so_far, &world.vocabulary);
            prop_assert_eq!(&oracle.mask(&so_far, &world.vocabulary), &mask, "{}", text);
            prop_assert_eq!(constraint.mask().unwrap(), &mask, "{}", text);
            let Some(token) = world.choose(&mask, choice) else { return Ok(()) };
            constraint.advance(token).unwrap();
            let Some(bytes) = world.vocabulary.bytes(token) else { return Ok(()) };
            so_far.extend_from_slice(bytes);
        }
    }
}

/// Most grammars can be printed: the property is not one of nothing.
#[test]
fn most_grammars_can_be_printed() {
    use proptest::{strategy::ValueTree, test_runner::TestRunner};

    let mut runner = TestRunner::deterministic();
    let grammars =
        (0..200).map(|_| super::generate::rules().new_tree(&mut runner).unwrap().current().build());
    let printed = grammars.filter(|grammar| print(grammar).is_some()).count();
    assert!(printed > 100, "{printed} of 200");
}
