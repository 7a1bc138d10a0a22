//! Random grammars printed as GBNF, XGrammar's EBNF and Lark and read again have the same language.

use domino::{
    Grammar, Limits, Lookahead, Syntax,
    grammar::Expr,
    ids::{ExprId, RuleId},
    oracle::Oracle,
};
use proptest::prelude::*;
use regex_syntax::hir::{Class, ClassUnicodeRange, Hir, HirKind};

use crate::promises::generate::{World, case, config};

/// A rule that derives nothing.
const NEVER: &str = "never";

/// Prints a grammar as GBNF; `None` if it has bytes that are no characters, which GBNF cannot say.
pub(super) fn print(grammar: &Grammar) -> Option<String> {
    Printer { grammar, lark: false }.print()
}

/// A printer with the parts where notations differ. GBNF and XGrammar's EBNF agree in all of them.
struct Printer<'g> {
    grammar: &'g Grammar,
    lark: bool,
}

impl Printer<'_> {
    fn print(&self) -> Option<String> {
        let define = if self.lark { ":" } else { " ::=" };
        let mut text = format!("{NEVER}{define} {NEVER} \"x\"\n");
        for rule in self.grammar.rules() {
            let body = self.expr(self.grammar.rule_body(rule))?;
            text += &format!("{}{define} {body}\n", self.name(rule));
        }
        Some(text)
    }

    fn name(&self, rule: RuleId) -> String {
        match rule == self.grammar.root() {
            true if self.lark => "start".to_owned(),
            true => "root".to_owned(),
            false => format!("rule-{}", self.grammar.rule_name(rule)),
        }
    }

    fn expr(&self, id: ExprId) -> Option<String> {
        let parts = |parts: &[ExprId]| parts.iter().map(|&part| self.expr(part)).collect::<Option<Vec<_>>>();
        Some(match self.grammar.expr(id) {
            Expr::Pattern(pattern) => self.hir(pattern.hir()?)?,
            Expr::Rule(rule) => self.name(*rule),
            Expr::Sequence(list) => sequence(&parts(list)?),
            Expr::Alternatives(list) => alternatives(&parts(list)?),
            Expr::Repeat { part, min, max } => repeat(&self.expr(*part)?, *min, *max),
            _ => return None,
        })
    }

    fn hir(&self, pattern: &Hir) -> Option<String> {
        let parts = |parts: &[Hir]| parts.iter().map(|part| self.hir(part)).collect::<Option<Vec<_>>>();
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
                let range = |range: &ClassUnicodeRange| (character(range.start()), character(range.end()));
                let ranges = class.iter().map(range);
                if self.lark {
                    let ranges = ranges.map(|(first, last)| format!("\"{first}\"..\"{last}\""));
                    return Some(alternatives(&ranges.collect::<Vec<_>>()));
                }
                let ranges = ranges.map(|(first, last)| format!("{first}-{last}"));
                format!("[{}]", ranges.collect::<String>())
            }
            HirKind::Repetition(repetition) => {
                repeat(&self.hir(&repetition.sub)?, repetition.min, repetition.max)
            }
            HirKind::Capture(capture) => self.hir(&capture.sub)?,
            HirKind::Concat(list) => sequence(&parts(list)?),
            HirKind::Alternation(list) => alternatives(&parts(list)?),
            HirKind::Look(_) => return None,
        })
    }
}

/// Prints a character for a literal or a class; most as an escape.
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

fn parse(syntax: Syntax, text: &str) -> Grammar {
    Grammar::parse(syntax, text, &Limits::default()).unwrap_or_else(|error| panic!("{text}{error}"))
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn printed_grammars_are_read_with_the_same_language(case in case(10)) {
        let world = case.build();
        let Some(text) = print(&world.grammar) else { return Ok(()) };
        let grammar = parse(Syntax::Gbnf, &text);
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

    /// Notations agree on every text along a walk, and on texts beside it.
    #[test]
    fn a_grammar_means_the_same_in_gbnf_ebnf_and_lark(case in case(10)) {
        let world = case.build();
        let Some(gbnf) = print(&world.grammar) else { return Ok(()) };
        let lark = Printer { grammar: &world.grammar, lark: true }.print().unwrap_or_default();
        let read = [(Syntax::Gbnf, &gbnf), (Syntax::Ebnf, &gbnf), (Syntax::Lark, &lark)];
        let oracles = read.map(|(syntax, text)| Oracle::new(&parse(syntax, text)).unwrap());
        prop_assert!(oracles.iter().all(|oracle| oracle.has_sentence() == world.oracle.has_sentence()));
        let as_lark = World { grammar: parse(Syntax::Lark, &lark), ..case.build() };
        let Some(compiled) = as_lark.compile(Lookahead::Unbounded) else { return Ok(()) };
        let mut constraint = compiled.constraint();
        let mut so_far = Vec::new();
        for &choice in &case.choices {
            let mask = world.oracle.mask(&so_far, &world.vocabulary);
            for oracle in &oracles {
                prop_assert_eq!(&oracle.mask(&so_far, &world.vocabulary), &mask, "{}", lark);
            }
            prop_assert_eq!(constraint.mask().unwrap(), &mask, "{}", lark);
            let Some(token) = world.choose(&mask, choice) else { return Ok(()) };
            constraint.advance(token).unwrap();
            let Some(bytes) = world.vocabulary.bytes(token) else { return Ok(()) };
            so_far.extend_from_slice(bytes);
        }
    }
}

/// Most random grammars can be printed, so the property above is not vacuous.
#[test]
fn most_grammars_can_be_printed() {
    use proptest::{strategy::ValueTree, test_runner::TestRunner};

    let mut runner = TestRunner::deterministic();
    let grammars =
        (0..200).map(|_| crate::promises::generate::rules().new_tree(&mut runner).unwrap().current().build());
    let printed = grammars.filter(|grammar| print(grammar).is_some()).count();
    assert!(printed > 100, "{printed} of 200");
}
