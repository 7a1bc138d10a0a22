//! Tests of the parts of regular expressions that are rewritten, refused by name, or warned of.

use proptest::prelude::*;
use regex_syntax::hir::Hir;

use crate::{
    Grammar, GrammarError, Limits, Syntax,
    grammar::{Expr, GrammarErrorKind, GrammarWarningKind as Kind},
};

fn parse(text: &str) -> Result<Grammar, GrammarError> {
    Grammar::parse(Syntax::Regex, text, &Limits::default())
}

fn hir(text: &str) -> Hir {
    let grammar = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    match grammar.expr(grammar.rule_body(grammar.root())) {
        Expr::Pattern(pattern) => pattern.hir().unwrap().clone(),
        other => panic!("{other:?}"),
    }
}

fn theirs(text: &str) -> Result<Hir, Box<regex_syntax::Error>> {
    regex_syntax::ParserBuilder::new().utf8(false).build().parse(text).map_err(Box::new)
}

/// Each expression means what the parser alone makes of the other one.
#[test]
fn expressions_of_other_dialects_keep_their_meaning() {
    for (text, same) in [
        ("[a[b]", r"[a\[b]"),
        ("[[]", r"\["),
        ("[^[]*", r"[^\[]*"),
        ("[[]]", r"\[\]"),
        ("[a[b]]", r"[a\[b]\]"),
        ("[[-a]", r"[\[-a]"),
        ("[!-[]", r"[!-\[]"),
        ("[[:alpha:][]", r"[[:alpha:]\[]"),
        ("[[:al]", r"[\[:al]"),
        ("[[a-z]&&[^aeiou]]", "[b-df-hj-np-tv-z]"),
        ("[a-z--[aeiou]]", "[b-df-hj-np-tv-z]"),
        ("[[]x[a-c&&b]", r"\[xb"),
        (r"\0", r"\x00"),
        (r"\08", r"\x008"),
        (r"\012\0123", r"\x0A\x0A3"),
        (r"[\0-\037]", r"[\x00-\x1F]"),
        (r"\cJ\cj[\cA-\cZ]", r"\x0A\x0A[\x01-\x1A]"),
        (r"\e[\e]", r"\x1B\x1B"),
        (r"[\ba]", r"[\x08a]"),
        (r"a\/b[\/]", "a/b/"),
        (r"ab\Z", "ab"),
        (r"(?:a|b\Z)\Z", "a|b"),
        (r"(?x) [ a [ ] # [", r"[a\[]"),
        (
            r"(?x: [ [ ] #[\)
         ) [ ]",
            r"\[  ",
        ),
        (r"(?x)\#[[](?-x)#[[]", r"#\[#\["),
        (r"(?<n[0]>[[])", r"(?<n[0]>\[)"),
        (r"\p{Greek}[[]\x{41}[[]", r"\p{Greek}\[A\["),
        (r"\[[[]\\[[]", r"\[\[\\\["),
    ] {
        let same = theirs(same).unwrap_or_else(|error| panic!("{same}: {error}"));
        assert_eq!(hir(text), same, "{text}");
    }
}

/// Parts that are refused: the message, the place that it points to, and a hint.
#[test]
fn unsupported_syntax_is_refused_by_name() {
    for (text, message, marked) in [
        ("a(?P=x)", "a back-reference is not supported", "(?P=x)"),
        (r"(?<x>a)\k<x>", "a back-reference is not supported", r"\k"),
        ("(a)?(?(1)b|c)", "a conditional is not supported", "(?(1)"),
        ("(a)(?1)", "a subroutine call is not supported", "(?1)"),
        ("(a)(?-1)(?+1)", "a subroutine call is not supported", "(?-1)"),
        ("(?&name)", "a subroutine call is not supported", "(?&name)"),
        ("(?P>name)", "a subroutine call is not supported", "(?P>name)"),
        (r"\((?R)?\)", "recursion is not supported", "(?R)"),
        ("a(?0)?", "recursion is not supported", "(?0)"),
        ("(?# to do )a", "a comment `(?#...)` is not supported", "(?#"),
        ("(?|a(b)|c)", "a branch reset is not supported", "(?|"),
        ("(?'x'a)", "a group name in quotes is not supported", "(?'"),
        ("a(?C1)", "a callout is not supported", "(?C1)"),
        ("a(?{ f() })", "code in a regular expression is not supported", "(?{"),
        ("(*UTF8)a", "a verb such as `(*UTF)` is not supported", "(*UTF8)"),
        (r"a\Q[(\E", "quoting by `\\Q...\\E` is not supported", r"\Q"),
        (r"[a\Q]", "quoting by `\\Q...\\E` is not supported", r"\Q"),
        (r"\Ra", "a line break `\\R` is not supported", r"\R"),
        (r"a\h", "horizontal white space `\\h` is not supported", r"\h"),
        (r"a\X", "a grapheme cluster `\\X` is not supported", r"\X"),
        (r"a\Ga", "this anchor is not supported", r"\G"),
        (r"a\Zb", "the anchor `\\Z` is not supported here", r"\Z"),
        (r"a\<b", "the word boundary `\\<` is not supported here", r"\<"),
        ("(?iR)a", "the flag `R` is unknown", "R"),
        ("(?i-R:a)", "the flag `R` is unknown", "R"),
        (r"(?a)\w", "the flag `a` is unknown", "a"),
        (r"[\1]", "an octal escape that does not begin with 0 is not supported", r"\1"),
    ] {
        let error = parse(text).expect_err(text);
        assert_eq!(error.message(), message, "{text}");
        assert_eq!(*error.kind(), GrammarErrorKind::Unsupported, "{text}");
        assert_eq!(&text[error.span().expect("a place").range()], marked, "{text}");
        assert!(error.hint().is_some_and(|hint| !hint.is_empty()), "{text}");
    }
    for (text, message, marked) in [
        ("(?k)a", "the flag `k` is unknown", "k"),
        (r"\c1", "`\\c` must be followed by an ASCII letter", r"\c"),
        (r"\q", "unknown escape `\\q`", r"\q"),
        ("a[[:vowel:]]", "there is no POSIX class of this name", "[:vowel:]"),
        ("a[b[c", "unclosed character class", "["),
        ("a[b[c&&d]", "unclosed character class", "["),
        ("a{b}", "repetition quantifier expects a valid decimal", ""),
    ] {
        let error = parse(text).expect_err(text);
        assert_eq!((error.kind(), error.message()), (&GrammarErrorKind::Syntax, message), "{text}");
        assert_eq!(&text[error.span().expect("a place").range()], marked, "{text}");
        assert!(error.hint().is_some_and(|hint| !hint.is_empty()), "{text}");
    }
}

/// Errors that the parser finds after a rewritten piece point to the user's own text.
#[test]
fn carets_point_to_the_users_own_text() {
    for (text, marked, column) in [
        (r"[[]\0(b", "(", 6),
        (r"\e\cJ[[[]\p{Klingon}", r"\p{Klingon}", 10),
        ("\u{e9}[[\u{e9}][z-a]", "z-a", 7),
        (r"[\e-\0]", r"\e-\0", 2),
        (r"[[]a{2,1}", "{2,1}", 5),
        (r"[[]\Zb", r"\Z", 4),
        (r"\0[a&&b]", "[a&&b]", 3),
    ] {
        let error = parse(text).expect_err(text);
        let place = error.places().first().expect("a place");
        assert_eq!(&text[place.span().range()], marked, "{text}: {error}");
        assert_eq!((place.position().line, place.position().column), (1, column), "{text}");
    }
}

#[test]
fn an_empty_class_is_named() {
    for (text, marked) in [
        ("x[a&&b]*", "[a&&b]"),
        ("x|[^\\x00-\\x{10FFFF}]", "[^\\x00-\\x{10FFFF}]"),
        (r"(?-u)[^\x00-\xFF]", r"[^\x00-\xFF]"),
        (r"[^\w\W]{0}", r"[^\w\W]"),
        (r"[[]\P{Any}", r"\P{Any}"),
        ("(?i:a)[a&&A]", "[a&&A]"),
        ("[&&]", "[&&]"),
        ("[a--a]", "[a--a]"),
    ] {
        let error = parse(text).expect_err(text);
        assert_eq!(
            (error.kind(), error.message()),
            (&GrammarErrorKind::Syntax, "this class is empty"),
            "{text}"
        );
        assert_eq!(&text[error.span().expect("a place").range()], marked, "{text}");
    }
    for text in [
        "(?i)[a&&A]",
        "(?i:b[a&&A])",
        "(?i)b(?:c)[a&&A]",
        r"[^\w]",
        r"(?-u:[^\x00-\x7F])",
        r"[\P{Greek}&&\w]",
    ] {
        assert!(parse(text).is_ok(), "{text}");
    }
}

/// Warnings, with the characters that the carets mark.
#[test]
fn syntax_that_dialects_read_differently_is_warned_of() {
    for (text, kind, marked) in [
        ("[ab&&b]", Kind::SetOperation, "&&"),
        (r"x[\w--\d]", Kind::SetOperation, "--"),
        ("[a~~b]", Kind::SetOperation, "~~"),
        ("[+--]", Kind::SetOperation, "--"),
        ("x[a[b]]", Kind::NestedClass, "["),
        ("[[a-z][0-9]]", Kind::NestedClass, "["),
        ("[:alpha:]+", Kind::PosixOutsideClass, "[:alpha:]"),
        ("<[^]*>[a-z]", Kind::LeadingBracket, "[^]*>[a-z]"),
        ("[--0]", Kind::LeadingRange, "--0"),
        ("[^]-a]", Kind::LeadingRange, "]-a"),
        ("(?x)[a b]", Kind::SpaceInClass, " "),
        ("(?x: [a #]\n b])", Kind::SpaceInClass, " #]\n "),
        ("xa{1, 2}", Kind::SpaceInCount, "{1, 2}"),
        ("a{2 }", Kind::SpaceInCount, "{2 }"),
        ("ba*+a", Kind::Possessive, "*+"),
        ("(?:a|b)++", Kind::Possessive, "++"),
        ("a{2}+", Kind::Possessive, "{2}+"),
        (r"[[]\0a?+", Kind::Possessive, "?+"),
        (r"a\v", Kind::VerticalTab, r"\v"),
    ] {
        let grammar = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let warnings: Vec<_> = grammar
            .warnings()
            .iter()
            .map(|warning| (warning.kind(), &text[warning.place().span().range()]))
            .collect();
        assert_eq!(warnings, [(kind, marked)], "{text}");
    }
    let two = parse("a*+[b&&bc]").expect("it is taken");
    let kinds: Vec<_> = two.warnings().iter().map(|warning| warning.kind()).collect();
    assert_eq!(kinds, [Kind::Possessive, Kind::SetOperation]);
    assert_eq!(
        two.warnings()[0].to_string(),
        "this `+` repeats a repeat; Python and PCRE read a possessive repeat, which gives nothing back\n \
         --> 1:2\n1 | a*+[b&&bc]\n  |  ^^\n\
         hint: leave the `+` out, or write the repeat in a group, as in `(?:a*)+`"
    );
    assert!(parse(&"a*+".repeat(1000)).expect("it is taken").warnings().len() < 100);
}

#[test]
fn syntax_that_all_dialects_read_alike_is_not_warned_of() {
    for text in [
        "[a[b]",
        "[[]",
        "[^[]*",
        "[!-~]",
        "[!-~~]",
        "[ -&&]",
        "[a-]",
        "[-a]",
        "[---a]",
        "[&~-]",
        "[[:alpha:]-]",
        "[]a]",
        "[^]]*",
        "(?:a*)+",
        "a*?",
        "a+?b",
        "a{2}?",
        "a**",
        "(?x) a b # [[]]",
        r"(?x)[a\ b]",
        "a{1,2}",
        r"[\&\&\-\-\~~]",
        r"\[[^[\]]*\]",
        r"\x0B",
        "[::]",
        "[:a]",
    ] {
        let grammar = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(grammar.warnings(), [], "{text}");
    }
}

/// The search for balanced brackets is bounded, however many classes begin.
#[test]
fn brackets_do_not_cost_quadratic_time() {
    let limits = Limits::default();
    for (piece, count) in
        [("[[]", 100_000), ("[[]x", 100_000), ("!-[[]]", 100_000), ("{", 500_000), ("(?<", 300_000)]
    {
        // The text is read or refused, but soon.
        let _ = Grammar::parse(Syntax::Regex, &piece.repeat(count), &limits);
    }
    let error = parse(&"!-[[]]".repeat(100_000)).expect_err("far too many");
    assert!(matches!(error.kind(), GrammarErrorKind::Limit(_)), "{error}");
}

/// Expressions of many special characters.
fn expression() -> impl Strategy<Value = String> {
    let pieces = "a b - & ~ 0 # [ [ [^ [] ] ] ] && -- ~~ [:digit:] [: :] \\] \\[ \\\\ \\d \
        \\x41 \\x{42} \\p{Lu} ( (?: \
        (?x) (?x: (?i-x: ) | * + ? {2} (?<n> (?<n[0]> { } (?R) (?i) (?-u) .";
    let pieces = pieces.split_whitespace().chain([" ", "\n", "{1, 2}"]).collect::<Vec<_>>();
    prop::collection::vec(prop::sample::select(pieces), 0..10).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

    /// The result agrees with what the parser alone makes of the same text, if both accept it, but for
    /// brackets in classes, which are warned of.
    #[test]
    fn only_warned_brackets_differ_from_the_crate(text in expression()) {
        match (parse(&text), theirs(&text)) {
            (Ok(grammar), Ok(theirs)) => {
                if !grammar.warnings().iter().any(|warning| warning.kind() == Kind::NestedClass) {
                    prop_assert_eq!(hir(&text), theirs);
                }
            }
            (Ok(_), Err(_)) => prop_assert!(text.matches('[').count() > 1, "only brackets are taken"),
            (Err(error), Ok(_)) => prop_assert!(
                text.contains("(?R)") || text.contains('[') || *error.kind() != GrammarErrorKind::Syntax,
                "{}", error
            ),
            (Err(error), Err(_)) => {
                for place in error.places() {
                    prop_assert!(text.get(place.span().range()).is_some(), "{}", error);
                }
            }
        }
    }
}
