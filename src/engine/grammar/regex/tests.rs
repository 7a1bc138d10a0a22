//! Tests of the grammars of regular expressions, and of the messages about mistakes.

use super::*;
use crate::grammar::{Expr, GrammarErrorKind, Syntax};

fn read(text: &str) -> Result<Pattern, GrammarError> {
    let grammar = Grammar::parse(Syntax::Regex, text, &Limits::default())?;
    assert_eq!(grammar.rules().len(), 1);
    assert_eq!(grammar.rule_name(grammar.root()), "root");
    match grammar.expr(grammar.rule_body(grammar.root())) {
        Expr::Pattern(pattern) => Ok(pattern.clone()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn anchors_at_the_ends_are_dropped() {
    for (text, same) in [
        ("^ab$", "ab"),
        (r"\Aab\z", "ab"),
        ("^^ab$$", "ab"),
        ("(?m)^ab$", "ab"),
        ("(?i)^ab$", "(?i)ab"),
        ("^a$|^b$", "a|b"),
        ("^a|b$", "a|b"),
        ("^(?:^a|b$)$", "a|b"),
        ("^", ""),
        ("$", ""),
        ("^$", ""),
        ("(^a)b", "(a)b"),
        ("(?x) ^ a b $ # c", "ab"),
    ] {
        match (read(text), read(same)) {
            (Ok(found), Ok(want)) => {
                assert_eq!(found.hir().unwrap().to_string(), want.hir().unwrap().to_string(), "{text}")
            }
            (Err(error), _) | (_, Err(error)) => panic!("{text}: {error}"),
        }
    }
}

#[test]
fn languages_are_those_of_the_regex_crate() {
    assert_eq!(read("a+?b").expect("lazy").hir(), read("a+?b").expect("lazy").hir());
    assert_eq!(read("").expect("empty").as_literal(), Some(&b""[..]));
    assert_eq!(read(r"(?-u)\xFF").expect("a byte").as_literal(), Some(&b"\xFF"[..]));
    assert_eq!(read(r"\xFF").expect("a character").as_literal(), Some(&b"\xC3\xBF"[..]));
    for text in [
        ".",
        "(?s).",
        r"\d{4}-\d\d",
        r"\p{Greek}+",
        r"(?i)stra\u{df}e",
        "(?P<name>a|b)*",
        "[^a-z]",
        r"\w\s\D",
    ] {
        assert!(read(text).is_ok(), "{text}");
    }
}

/// Mistakes, with the whole of what is printed for them.
#[test]
fn mistakes_are_shown_where_they_are() {
    #[rustfmt::skip]
    let table = [
        (r"a\bc", "the word boundary `\\b` is not supported here\n --> 1:2\n1 | a\\bc\n\
            \x20 |  ^^ asks about the text around it\n\
            hint: the whole text is matched: `^` and `$` may only stand at its ends"),
        ("a^b", "the anchor `^` is not supported here\n --> 1:2\n1 | a^b\n\
            \x20 |  ^ asks about the text around it\n\
            hint: the whole text is matched: `^` and `$` may only stand at its ends"),
        (r"(a)\1", "a back-reference is not supported\n --> 1:4\n1 | (a)\\1\n\
            \x20 |    ^^ not a regular language's\n\
            hint: for a character by its number write `\\x{..}`"),
        (r"(?<x>a)\k<x>", "a back-reference is not supported\n --> 1:8\n1 | (?<x>a)\\k<x>\n\
            \x20 |        ^^ not a regular language's\n\
            hint: write out what may stand there, if it is a choice of few texts"),
        ("a(?=b)", "look-ahead is not supported\n --> 1:2\n1 | a(?=b)\n  |  ^^^ not a regular language's"),
        ("a(?!b)", "look-ahead is not supported\n --> 1:2\n1 | a(?!b)\n  |  ^^^ not a regular language's"),
        ("(?<=a)b", "look-behind is not supported\n --> 1:1\n1 | (?<=a)b\n  | ^^^^ not a regular language's"),
        ("(?<!a)b", "look-behind is not supported\n --> 1:1\n1 | (?<!a)b\n  | ^^^^ not a regular language's"),
        ("(?>a)b", "an atomic group is not supported\n --> 1:3\n1 | (?>a)b\n\
            \x20 |   ^ not a regular language's"),
        ("a\n(b", "unclosed group\n --> 2:1\n2 | (b\n  | ^"),
        ("\u{e9}[z-a]", "invalid character class range, the start must be <= the end\n --> 1:3\n\
            1 | \u{e9}[z-a]\n  |   ^^^"),
        (r"\p{Klingon}", "Unicode property not found\n --> 1:1\n1 | \\p{Klingon}\n  | ^^^^^^^^^^^"),
        ("a{1,100001}", "the budget of 100000 repeats in a count is used up\n --> 1:2\n\
            1 | a{1,100001}\n  |  ^^^^^^^^^^\n\
            hint: `*`, `+` and `{m,}` have no upper end; the budget is `Limits::repeat`"),
    ];
    for (text, want) in table {
        assert_eq!(read(text).expect_err(text).to_string(), want, "{text}");
    }
}

#[test]
fn mistakes_have_their_kinds() {
    let kind = |text: &str| read(text).expect_err(text).kind().clone();
    for text in
        [r"a\b", r"\Ba", r"a\b{start}", "a^", "$a", "a(^b)", "(?:^)*a", "a(b$)c", r"(a)\1", "(?=a)", "(?>a)"]
    {
        assert_eq!(kind(text), GrammarErrorKind::Unsupported, "{text}");
    }
    for text in ["(", ")", "[", "a**{", "*", "a{2,1}", r"\", r"\q", "(?z)a", r"\x{110000}"] {
        assert_eq!(kind(text), GrammarErrorKind::Syntax, "{text}");
    }
    assert!(matches!(kind(&"(".repeat(100_000)), GrammarErrorKind::Limit(_) | GrammarErrorKind::Syntax));
    let deep = format!("{}{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(matches!(kind(&deep), GrammarErrorKind::Limit(_)));
}

#[test]
fn budgets_end_in_errors() {
    let is_limit = |text: &str, limits: &Limits| {
        let error = Grammar::parse(Syntax::Regex, text, limits).expect_err(text);
        matches!(error.kind(), GrammarErrorKind::Limit(_))
    };
    let limits = |change: fn(&mut Limits)| {
        let mut limits = Limits::default();
        change(&mut limits);
        limits
    };
    assert!(is_limit("abc", &limits(|limits| limits.regex_bytes = 2)));
    assert!(is_limit("((a))", &limits(|limits| limits.regex_nesting = 1)));
    assert!(is_limit("a{3}", &limits(|limits| limits.repeat = 2)));
    assert!(is_limit("a", &limits(|limits| limits.expressions = 0)));
    assert!(is_limit(r"\w", &limits(|limits| limits.regex_bytes = 95)));
    assert!(is_limit(r"[\pL]", &limits(|limits| limits.regex_bytes = 95)));
}
