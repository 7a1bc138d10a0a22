//! Tests of the meaning of GBNF texts, and of the messages about mistakes.

use std::fmt::Write as _;

use proptest::prelude::*;
use regex_syntax::hir::HirKind;

use super::*;
use crate::grammar::{Expr, Syntax, mistakes};

/// The grammar with one unambiguous line for each rule; classes and literals as `regex-syntax` prints them.
fn shown(grammar: &Grammar) -> String {
    let mut texts: Vec<String> = Vec::new();
    for (_, expr) in grammar.exprs() {
        let all = |parts: &[ExprId], between: &str| {
            parts.iter().map(|part| &*texts[part.index()]).collect::<Vec<_>>().join(between)
        };
        let text = match expr {
            Expr::Pattern(pattern) => match pattern.hir().unwrap().kind() {
                HirKind::Empty => String::from("''"),
                HirKind::Literal(literal) => format!("'{}'", literal.0.escape_ascii()),
                _ => pattern.hir().unwrap().to_string(),
            },
            Expr::Rule(rule) => grammar.rule_name(*rule).to_owned(),
            Expr::Sequence(parts) => format!("({})", all(parts, " ")),
            Expr::Alternatives(parts) => format!("<{}>", all(parts, "|")),
            Expr::Repeat { part, min, max } => {
                format!(
                    "{}{{{min},{}}}",
                    texts[part.index()],
                    max.map_or(String::new(), |max| max.to_string())
                )
            }
            Expr::AnyOrder(parts) => panic!("{parts:?}"),
        };
        texts.push(text);
    }
    let mut out = String::new();
    for rule in grammar.rules() {
        let _ = write!(out, "{}={};", grammar.rule_name(rule), texts[grammar.rule_body(rule).index()]);
    }
    out
}

fn read(text: &str) -> Result<Grammar, GrammarError> {
    Grammar::parse(Syntax::Gbnf, text, &Limits::default())
}

#[test]
fn texts_have_the_meaning_llama_cpp_gives_them() {
    #[rustfmt::skip]
    let table = [
        // literals and escapes
        (r#"root ::= "abc""#, "root='abc';"),
        (r#"root ::= """#, "root='';"),
        (r#"root ::= "\n\r\t\\\"\[\]\-""#, r#"root='\n\r\t\\\"[]-';"#),
        (r#"root ::= "\x41\xe9\u00e9\U0001F600""#, r"root='A\xc3\xa9\xc3\xa9\xf0\x9f\x98\x80';"),
        ("root ::= \"\u{e9}# '\n\t\"", r"root='\xc3\xa9# \'\n\t';"),
        (r#"root ::= "\x00""#, r"root='\x00';"),
        // classes
        ("root ::= [a-z]", "root=[a-z];"),
        ("root ::= [a]", "root='a';"),
        ("root ::= [a-]", r"root=[\-a];"),
        ("root ::= [-a]", r"root=[\-a];"),
        ("root ::= [+--/]", r"root=[\+-\-/];"),
        (r"root ::= [a\-z]", r"root=[\-az];"),
        (r"root ::= [\]\[\\]", r"root=[\[-\]];"),
        (r"root ::= [\x41-\u0043]", "root=[A-C];"),
        ("root ::= [a^]", r"root=[\^a];"),
        ("root ::= [\"'#(]", r##"root=["\#'\(];"##),
        ("root ::= [^\\x00-\\U0010FFFE]", r"root='\xf4\x8f\xbf\xbf';"),
        ("root ::= [b-da-c]", "root=[a-d];"),
        // operators
        (r#"root ::= "a"? "b"* "c"+"#, "root=('a'{0,1} 'b'{0,} 'c'{1,});"),
        (r#"root ::= "a"{2}"b"{ 2 , }"c"{,3}"d"{2,3}"#, "root=('a'{2,2} 'b'{2,} 'c'{0,3} 'd'{2,3});"),
        (r#"root ::= "a"{0} "b"*? +"#, "root=('a'{0,0} 'b'{0,}{0,1}{1,});"),
        (r#"root ::= "a" | "b" "c" | "#, "root=<'a'|('b' 'c')|()>;"),
        ("root ::= |", "root=<()|()>;"),
        ("root ::=", "root=();"),
        ("root ::= ()", "root=();"),
        (r#"root ::= ("a" | ("b"))* (("c"))"#, "root=(<'a'|'b'>{0,} 'c');"),
        // rules
        (
            "root ::= a b-1 _c_ 9\nb-1::=a\n_c_ ::= a 9 ::= a\na ::= \"x\"",
            "root=(a b-1 _c_ 9);a='x';b-1=a;_c_=a;9=a;",
        ),
        ("a ::= \"x\"\nroot ::= root a", "a='x';root=(root a);"),
        // comments and line ends
        ("# c\r\nroot ::= # c ::= \"\r\n  \"a\" # | \"b\"\r\n  # c\r\n  | \"c\"\r\n\r\n#", "root=<'a'|'c'>;"),
        ("root\n::=\na\nb\n::=\n\"b\"\na ::= b", "root=a;a=b;b='b';"),
        ("root ::= (\n \"a\"\n | \"b\"\n)\n*", "root=<'a'|'b'>{0,};"),
        ("\u{FEFF}root ::= \"a\"\r", "root='a';"),
    ];
    for (text, want) in table {
        match read(text) {
            Ok(grammar) => assert_eq!(shown(&grammar), want, "of {text}"),
            Err(error) => panic!("{text}\n{error}"),
        }
    }
}

/// XGrammar's EBNF differs from GBNF as documented.
#[test]
fn dialects_differ_as_documented() {
    let read_as = |syntax, text: &str| Grammar::parse(syntax, text, &Limits::default());
    for (text, gbnf, ebnf) in [
        ("root ::= .", true, false),
        ("root ::= [^]", false, true),
        ("root ::= \"\\x1F\"", true, true),
        ("root ::= \"\\x1\"", false, true),
        ("root ::= \"\\x110000\"", true, false),
        ("root ::= \"\\x\"", false, false),
        ("root ::= \"\\e\"", false, true),
        ("root ::= \"\\[\"", true, false),
        ("root ::= [\\.]", false, true),
        ("root ::= [\\d]", true, false),
        ("root ::= \"a\"{,2}", true, false),
        ("root ::= \"a\"{1,-1}", false, true),
        ("root ::= \"a\"+*", true, false),
        ("root ::= 9\n9 ::= \"a\"", true, false),
        ("root ::= a.b\na.b ::= \"a\"", false, true),
        ("root ::= \"a\nb\"", true, false),
        ("root ::= \"a\" (= \"b\")", false, true),
        ("root ::= \"a\" (= b)", false, false),
        ("root[capture] ::= \"a\"", false, true),
        ("root[max_tokens=3] ::= \"a\"", false, false),
        ("root ::= Token(3)", false, false),
        ("root ::= Regex(\"a\", json_string=true)", false, false),
        ("root ::= TagDispatch()", false, false),
        ("root ::= TagDispatch((\"a\", b))", false, false),
        ("root ::= TagDispatch((\"ab\", root), excludes=(\"a\",))", false, false),
        ("root ::= TagDispatch((\"a\", root), x=1)", false, false),
        ("root ::= TagDispatch((\"a\", root)", false, false),
    ] {
        for (syntax, good) in [(Syntax::Gbnf, gbnf), (Syntax::Ebnf, ebnf)] {
            match read_as(syntax, text) {
                Ok(_) => assert!(good, "{syntax:?} takes {text}"),
                Err(error) => {
                    assert!(!good, "{syntax:?}: {text}\n{error}");
                    assert!(!error.places().is_empty(), "no place: {error}");
                }
            }
        }
    }
    let warned = read_as(Syntax::Ebnf, "root[temperature=1] ::= \"a\" (= \"b\")").expect("reads");
    let kinds: Vec<_> = warned.warnings().iter().map(GrammarWarning::kind).collect();
    assert_eq!(kinds, [GrammarWarningKind::WithoutEffect, GrammarWarningKind::Lookahead]);
}

#[test]
fn any_character_is_any_scalar() {
    let grammar = read("root ::= .").expect("reads");
    let Expr::Pattern(pattern) = grammar.expr(grammar.rule_body(grammar.root())) else { panic!("a pattern") };
    let HirKind::Class(regex_syntax::hir::Class::Unicode(class)) = pattern.hir().unwrap().kind() else {
        panic!("a class")
    };
    let ranges: Vec<_> = class.iter().map(|range| (range.start(), range.end())).collect();
    assert_eq!(ranges, [('\0', char::MAX)]);
}

#[test]
fn spans_of_rules_and_expressions_cover_their_text() {
    let text = "root ::= a (\"b\" | [c]){2}\na ::= \"x\"";
    let grammar = read(text).expect("reads");
    let spans: Vec<&str> = grammar.exprs().map(|(id, _)| &text[grammar.expr_span(id).range()]).collect();
    let want = ["a", "\"b\"", "[c]", "\"b\" | [c]", "(\"b\" | [c]){2}", "a (\"b\" | [c]){2}", "\"x\""];
    assert_eq!(spans, want);
    let names: Vec<&str> = grammar.rules().map(|rule| &text[grammar.rule_span(rule).range()]).collect();
    assert_eq!(names, ["root", "a"]);
}

/// Golden file `mistakes.txt`: GBNF grammars with a mistake, and the message of each.
#[test]
fn mistakes_are_shown_where_they_are() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/grammar/gbnf/mistakes.txt");
    mistakes::check(include_str!("mistakes.txt"), path, read);
}

#[test]
fn mistakes_have_their_kinds_and_spans() {
    use GrammarErrorKind as Kind;
    let kind = |text: &str| read(text).expect_err(text).kind().clone();
    assert_eq!(kind("root ::= a b a"), Kind::Undefined(vec!["a".into(), "b".into()]));
    assert_eq!(kind(""), Kind::NoRoot);
    assert_eq!(kind("# nothing"), Kind::NoRoot);
    assert_eq!(kind("a ::= a"), Kind::NoRoot);
    assert_eq!(kind("a ::= \"\"\na ::= \"\""), Kind::Duplicate("a".into()));
    assert!(matches!(kind("root ::= \"a\"{1,100001}"), Kind::Limit(_)));
    assert!(matches!(kind("root ::= \"a\"{99999999999999999999}"), Kind::Limit(_)));
    for text in [
        "root ::= \"a\0\"",
        "root ::= # \0",
        "root",
        "root \"a\"",
        "::= \"a\"",
        "root ::= \"a",
        "root ::= [a",
        "root ::= [a-",
        "root ::= \"\\",
        "root ::= \"\\q\"",
        "root ::= [\\^]",
        "root ::= \"\\x4\"",
        "root ::= [z-a]",
        "root ::= \"\\uD800\"",
        "root ::= \"\\U00110000\"",
        "root ::= (\"a\"",
        "root ::= \"a\")",
        "root ::= * \"a\"",
        "root ::= \"a\" | *",
        "root ::= (*)",
        "root ::= \"a\"{2,1}",
        "root ::= \"a\"{}",
        "root ::= \"a\"{,}",
        "root ::= \"a\"{x}",
        "root ::= \"a\"{1",
        "root ::= \"a\"{-1}",
        "root ::= []",
        "root ::= [^]",
        "root ::= 'a'",
        "root = \"a\"",
        "root : \"a\"",
        "root ::= \u{7}",
        "root ::= \u{e9}",
        "(\"a\")",
        "|",
        "root ::= (a ::= \"x\"",
        "root ::= \"a\";",
        "root ::= }",
        "root ::= &",
    ] {
        assert_eq!(kind(text), Kind::Syntax, "{text}");
    }
    assert_eq!(read("root ::= [z-a]").expect_err("range").span(), Some(Span::new(10, 13)));
}

/// A class without characters is refused where it stands, like one that is written empty.
#[test]
fn an_empty_class_is_named() {
    let error = read("root ::= \"a\" part\npart ::= [^\\x00-\\U0010FFFF]*").expect_err("an empty class");
    let lines = [
        "this class is empty",
        " --> 2:10",
        "2 | part ::= [^\\x00-\\U0010FFFF]*",
        "  |          ^^^^^^^^^^^^^^^^^^ no character is in it",
        "hint: every character is excluded; `.` is any character",
    ];
    assert_eq!(error.to_string(), lines.join("\n"));
    assert_eq!(*error.kind(), GrammarErrorKind::Syntax);
    // The code points in between are surrogates, which are no characters.
    assert!(read("root ::= [^\\x00-\\uD7FF\\uE000-\\U0010FFFF]").is_err());
    assert!(read("root ::= [^\\x01-\\U0010FFFF]").is_ok());
}

#[test]
fn many_undefined_rules_make_a_short_message() {
    let uses: String = (0..1000).map(|n| format!(" rule{n}")).collect();
    let error = read(&format!("root ::={uses}")).expect_err("undefined");
    assert!(matches!(error.kind(), GrammarErrorKind::Undefined(names) if names.len() == 1000));
    assert_eq!(error.places().len(), MOST_SHOWN);
    assert!(error.to_string().len() < 10_000);
    assert!(error.to_string().ends_with("and 980 more"), "{error}");
}

#[test]
fn not_utf8_is_an_error_with_its_place() {
    let error =
        Grammar::parse_bytes(Syntax::Gbnf, b"root ::= \"\xC3\x28\"", &Limits::default()).expect_err("bytes");
    assert_eq!(error.kind(), &GrammarErrorKind::NotUtf8);
    assert_eq!(error.span(), Some(Span::new(10, 11)));
    assert_eq!(error.places()[0].position().to_string(), "1:11");
    let cut =
        Grammar::parse_bytes(Syntax::Gbnf, b"root ::= \"\xE2\x82", &Limits::default()).expect_err("cut");
    assert_eq!(cut.span(), Some(Span::new(10, 12)));
}

#[test]
fn budgets_end_in_errors() {
    let is_limit = |text: &str, limits: &Limits| {
        let error = Grammar::parse(Syntax::Gbnf, text, limits).expect_err(text);
        matches!(error.kind(), GrammarErrorKind::Limit(_))
    };
    let limits = |change: fn(&mut Limits)| {
        let mut limits = Limits::default();
        change(&mut limits);
        limits
    };
    assert!(is_limit("root ::= \"abc\"", &limits(|limits| limits.grammar_bytes = 5)));
    assert!(is_limit("root ::= \"a\" \"b\"", &limits(|limits| limits.expressions = 2)));
    assert!(is_limit("root ::= ((\"b\"))", &limits(|limits| limits.expressions = 1)));
    assert!(is_limit("root ::= \"a\"{3}", &limits(|limits| limits.repeat = 2)));
    assert!(is_limit("root ::= \"a\"", &limits(|limits| limits.expressions = 0)));
}

proptest! {
    #[test]
    fn no_text_of_random_characters_panics(text in ".*") {
        let _ = read(&text).map_err(|error| error.to_string());
    }

    #[test]
    fn no_text_of_marks_panics(marks in prop::collection::vec(prop::sample::select(vec![
        "root", "a", " ::= ", "\"", "[", "]", "^", "-", "(", ")", "|", "*", "{", "}", "1", ",", "\\", "x41",
        "u", "\n", "\r", "#", ".", "<", ">", "!", "\u{e9}", "\0", "\t", " ",
    ]), 0..40)) {
        let text = marks.concat();
        if let Err(error) = read(&text) {
            prop_assert!(!error.to_string().is_empty());
            if let Some(span) = error.span() {
                prop_assert!(text.get(span.range()).is_some(), "{span:?} of {text:?}");
            }
        }
        let _ = Grammar::parse(Syntax::Regex, &text, &Limits::default()).map_err(|error| error.to_string());
    }

    #[test]
    fn no_text_of_ebnf_marks_panics(marks in prop::collection::vec(prop::sample::select(vec![
        "root", "a", " ::= ", "\"a\"", "\"", "[a]", "[", "]", "^", "(", "(=", ")", "|", "*", "{", "}",
        "1", ",", "-1", "\\", "x41", "\n", "#", ".", "TagDispatch(", "Regex(", "Token(1)", "excludes=",
        "true", "[capture] ::= ", "\u{e9}", " ",
    ]), 0..40)) {
        let text = marks.concat();
        if let Err(error) = Grammar::parse(Syntax::Ebnf, &text, &Limits::default()) {
            for place in error.places() {
                prop_assert!(text.get(place.span().range()).is_some(), "{:?} of {text:?}", place.span());
            }
        }
    }
}
