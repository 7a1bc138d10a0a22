//! Grammar texts made to break things: they are read, or refused with a short message, in bounded time.

use domino::{
    Grammar, GrammarError, Limits, Syntax,
    grammar::{Expr, GrammarErrorKind as Kind},
};

use crate::support::decider::{Decider, Engine};

const HUGE: usize = 50 << 20;

fn read(text: &str) -> Result<Grammar, GrammarError> {
    Grammar::parse(Syntax::Gbnf, text, &Limits::default())
}

/// Parses a text, and returns its error; the message must be short.
fn mistake(text: &str) -> GrammarError {
    let error = read(text).expect_err("a mistake");
    assert!(error.to_string().len() < 10_000, "{} bytes of message", error.to_string().len());
    error
}

fn is_limit(error: &GrammarError) -> bool {
    matches!(error.kind(), Kind::Limit(_))
}

#[test]
fn texts_without_a_root_rule_are_refused() {
    for text in ["", " \n\t", "# root ::= \"a\"", "a ::= \"a\"", "Root ::= \"a\""] {
        assert_eq!(*mistake(text).kind(), Kind::NoRoot, "{text}");
    }
}

#[test]
fn rules_that_lead_nowhere_are_read() {
    for text in ["root ::= root", "root ::= a\na ::= b\nb ::= a", "root ::= root root | root*"] {
        assert!(read(text).is_ok(), "{text}");
    }
    assert_eq!(mistake("root ::= [^\\x00-\\U0010FFFF]").message(), "this class is empty");
}

#[test]
fn deep_groups_are_read_or_refused() {
    let nested = |depth: usize, inside: &str| {
        read(&format!("root ::= {}{inside}{}", "(".repeat(depth), ")".repeat(depth)))
    };
    let grammar = nested(100_000, "\"a\"").expect("reads");
    assert!(matches!(grammar.expr(grammar.rule_body(grammar.root())), Expr::Pattern(_)));
    assert!(nested(100_000, "").is_ok());
    let repeated = format!("root ::= {}\"a\"{}", "(".repeat(100_000), ")?".repeat(100_000));
    assert_eq!(read(&repeated).expect("reads").exprs().len(), 100_001);
    assert!(is_limit(&nested(5_000_000, "\"a\"").expect_err("too deep")));
    assert_eq!(*mistake(&format!("root ::= {}", "(".repeat(100_000))).kind(), Kind::Syntax);
    assert_eq!(*mistake(&format!("root ::= {}", ")".repeat(100_000))).kind(), Kind::Syntax);
}

#[test]
fn large_counts_are_read_up_to_their_limit() {
    assert!(read("root ::= \"a\"{1,100000}").is_ok());
    assert!(is_limit(&mistake("root ::= \"a\"{1,100001}")));
    assert!(is_limit(&mistake("root ::= \"a\"{4294967296}")));
    assert!(is_limit(&mistake(&format!("root ::= \"a\"{{{}}}", "9".repeat(1_000_000)))));
    assert!(read(&format!("root ::= \"a\"{}", "*".repeat(100_000))).is_ok());
    assert!(read(&format!("root ::= \"a\"{}", "{9}".repeat(100_000))).is_ok());
}

#[test]
fn bytes_that_are_no_text_are_refused_with_their_place() {
    let read = |bytes: &[u8]| Grammar::parse_bytes(Syntax::Gbnf, bytes, &Limits::default());
    let place = |error: GrammarError| (error.kind().clone(), error.span().expect("a place").start);
    assert_eq!(place(read(b"root ::= \"\xFF\"").expect_err("not UTF-8")), (Kind::NotUtf8, 10));
    assert_eq!(place(read(b"\xFE\xFFr\0o\0").expect_err("UTF-16")), (Kind::NotUtf8, 0));
    assert_eq!(place(read(b"root ::= \"\0\"").expect_err("NUL")), (Kind::Syntax, 10));
    assert_eq!(place(read(b"root ::= \"a\" # \0").expect_err("NUL in a comment")), (Kind::Syntax, 15));
    assert_eq!(place(read(b"root ::= \x1B \"a\"").expect_err("control character")), (Kind::Syntax, 9));
    assert!(read(b"root ::= \"\x1B\"").is_ok());
    assert!(read(&vec![b'\xC3'; HUGE]).expect_err("not UTF-8").to_string().len() < 1000);
}

#[test]
fn text_over_the_limit_is_not_looked_at() {
    let error = mistake(&"\0".repeat((64 << 20) + 1));
    assert!(is_limit(&error));
    assert!(error.hint().is_some_and(|hint| hint.contains("grammar_bytes")), "{error}");
}

#[test]
fn huge_comments_and_space_are_read() {
    let comments = format!("root ::= \"a\"\n{}", "# comment\n".repeat(HUGE / 10));
    assert!(read(&comments).is_ok());
    assert!(read(&format!("root ::= \"a\" #{}", "x".repeat(HUGE))).is_ok());
    assert!(read(&format!("root{}::= \"a\"", "\n".repeat(HUGE))).is_ok());
    assert_eq!(*mistake(&"\n".repeat(HUGE)).kind(), Kind::NoRoot);
}

#[test]
fn huge_literals_classes_and_names_are_read_or_refused() {
    assert!(read(&format!("root ::= \"{}\"", "a".repeat(HUGE))).is_ok());
    assert!(read(&format!("root ::= [{}]", "\u{e9}a".repeat(HUGE / 3))).is_ok());
    assert_eq!(*mistake(&format!("root ::= \"{}", "a".repeat(HUGE))).kind(), Kind::Syntax);
    assert_eq!(*mistake(&format!("root ::= [{}", "a".repeat(HUGE))).kind(), Kind::Syntax);
    assert!(matches!(mistake(&format!("root ::= {}", "a".repeat(HUGE))).kind(), Kind::Undefined(_)));
    assert_eq!(*mistake(&format!("{} ::= \"a\"", "a".repeat(HUGE))).kind(), Kind::NoRoot);
    assert_eq!(
        *mistake(&format!("{0} ::= \"a\"\n{0} ::= \"b\"", "a".repeat(HUGE / 4))).kind(),
        Kind::Duplicate("a".repeat(HUGE / 4))
    );
}

#[test]
fn too_many_parts_end_in_a_limit() {
    assert!(is_limit(&mistake(&format!("root ::= {}", "|".repeat(HUGE)))));
    assert!(is_limit(&mistake(&format!("root ::= {}", "()".repeat(HUGE / 2)))));
    assert!(is_limit(&mistake(&format!("root ::= {}", "\"\"".repeat(HUGE / 2)))));
    assert!(is_limit(&mistake(&format!("root ::= {}", "(".repeat(HUGE)))));
    assert!(is_limit(&mistake(&format!("root ::= {}", "root ".repeat(HUGE / 5)))));
    assert!(is_limit(&mistake(&format!("root ::= \"a\"{}", "*".repeat(HUGE)))));
}

#[test]
fn very_many_rules_are_read_or_refused() {
    let mut text = String::from("root ::= r0\n");
    let mut number = 0;
    while text.len() < HUGE {
        text.push_str(&format!("r{number} ::= \"a\"\n"));
        number += 1;
    }
    assert!(read(&text).is_ok_and(|grammar| grammar.rules().len() == number + 1));
    let undefined: String = (0..300_000).map(|number| format!("u{number} ")).collect();
    let error = mistake(&format!("root ::= {undefined}"));
    assert!(matches!(error.kind(), Kind::Undefined(names) if names.len() == 300_000));
}

#[test]
fn counts_are_not_written_out() {
    for text in [
        "root ::= (((((([^x]*){0,99}){0,99}){0,99}){0,99}){0,99}){0,99}",
        "root ::= \"a\"{1,100000}",
        "root ::= ([a-z] \"b\" | \"c\"){0,100000}",
        "root ::= (([a-w]{100000}){100000}){100000}",
        "root ::= (\"a\" root \"b\" | \"c\"){0,100000}",
        "root ::= (root{0,1000}){0,1000} \"a\"",
    ] {
        let mut engine = Engine::of(&read(text).expect("reads"));
        assert!(engine.viable(b"a"), "{text}");
        assert!(!engine.viable(b"ax"), "{text}");
    }
}

#[test]
fn hostile_expressions_are_read_or_refused() {
    let read = |text: &str| Grammar::parse(Syntax::Regex, text, &Limits::default());
    let nested = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
    assert!(read(&nested(200)).is_ok());
    assert!(is_limit(&read(&nested(100_000)).expect_err("too deep")));
    assert!(is_limit(&read(&format!("a{}", "*".repeat(100_000))).expect_err("too deep")));
    assert!(is_limit(&read("a{4000000000}").expect_err("too many")));
    assert!(read("((a{100000}){100000}){100000}").is_ok());
    assert!(read(&"a".repeat(1 << 20)).is_ok());
    assert!(read(&format!("[{}]", "a-z".repeat(1 << 18))).is_ok());
    assert!(read(&"a|".repeat(1 << 19)).is_ok());
    assert!(is_limit(&read(&r"\w".repeat(1 << 19)).expect_err("too much")));
    assert!(is_limit(&read(&format!("[{}]", r"\pL".repeat(1 << 18))).expect_err("too much")));
    assert!(read(&format!("(?i){}", "[^a]".repeat(1 << 12))).is_ok());
    assert!(is_limit(&read(&"a".repeat(HUGE)).expect_err("too long")));
    assert!(read(&"(".repeat(1 << 20)).is_err());
    assert!(read("\0").is_ok());
}
