//! Captures of texts, each of which shows one rule.

use super::*;
use crate::grammar::{AnyOrder, GrammarBuilder, Pattern, Span, Syntax};

/// The captures of a text as `name=text`; `-` if it is not in the language.
fn found(grammar: &Grammar, names: &[&str], text: &str) -> String {
    let captures = Captures::new(grammar, names, &Limits::default()).unwrap();
    let spelt = grammar.spell(text.as_bytes());
    let Some(found) = captures.of(&spelt).unwrap() else { return "-".to_owned() };
    shown(&found, text)
}

fn shown(found: &[Capture<'_>], text: &str) -> String {
    let one = |capture: &Capture<'_>| format!("{}={}", capture.name, &text[capture.span.clone()]);
    found.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn of(syntax: Syntax, grammar: &str) -> Grammar {
    Grammar::parse(syntax, grammar, &Limits::default()).unwrap()
}

#[test]
fn named_groups_of_expressions_are_captured() {
    let date = of(Syntax::Regex, r"(?P<year>\d{4})-(?<month>\d\d)(-(?P<day>\d\d))?");
    assert_eq!(found(&date, &[], "2024-03-09"), "year=2024 month=03 day=09");
    assert_eq!(found(&date, &[], "2024-03"), "year=2024 month=03");
    assert_eq!(found(&date, &["day"], "2024-3"), "-");
    let list = of(Syntax::Regex, "(?P<list>(?P<item>[a-z]+)(?:,(?P<item2>[a-z]+))*)");
    assert_eq!(found(&list, &[], "ab,c,de"), "list=ab,c,de item=ab item2=c item2=de");
}

#[test]
fn captures_are_those_of_a_backtracking_matcher() {
    for (regex, text, want) in [
        ("(?P<x>a|ab)(?P<y>c|bcd)(?P<z>d*)", "abcd", "x=a y=bcd z="),
        ("(?P<x>a*)(?P<y>a*)", "aaa", "x=aaa y="),
        ("(?P<x>a*?)(?P<y>a*)", "aaa", "x= y=aaa"),
        ("(?P<x>a{1,2}?)(?P<y>a*)", "aaa", "x=a y=aa"),
        ("(?P<x>a{2,3})(?P<y>a*)", "aaaa", "x=aaa y=a"),
        ("(?P<x>a{2,3})(?P<y>a{2})", "aaaa", "x=aa y=aa"),
        ("(?:(?P<x>a)|(?P<y>a))+", "aa", "x=a x=a"),
        ("(?P<x>)|(?P<y>a?)", "", "x="),
        ("(?:(?P<x>a*)b?)*", "aab", "x=aa"),
        ("(?:(?P<x>a?)){3}", "a", "x=a x= x="),
    ] {
        assert_eq!(found(&of(Syntax::Regex, regex), &[], text), want, "{regex}");
    }
}

#[test]
fn rules_are_captured_by_name() {
    let sum = of(Syntax::Gbnf, "root ::= sum\nsum ::= sum \"+\" n | n\nn ::= [0-9]+ | \"(\" sum \")\"");
    assert_eq!(found(&sum, &["sum", "n"], "1+(2+3)"), "sum=1+(2+3) sum=1 n=1 n=(2+3) sum=2+3 sum=2 n=2 n=3");
    let right = of(Syntax::Gbnf, "root ::= x root | x\nx ::= [a-c] [0-9]*");
    assert_eq!(found(&right, &["root"], "a1b"), "root=a1b root=b");
    assert_eq!(found(&right, &["x"], "a1b22c"), "x=a1 x=b22 x=c");
    assert_eq!(found(&right, &["x"], "1"), "-");
}

#[test]
fn rules_marked_in_the_grammar_are_captured() {
    let call = of(
        Syntax::Lark,
        concat!(
            "start: name \"(\" _list{argument} \")\"\n_list{item}: item (\",\" item)*\n",
            "name[capture]: /[a-z]+/\nargument[capture=\"value\"]: /[0-9]+/\n%ignore / +/\n",
        ),
    );
    assert!(call.warnings().is_empty());
    // Ignored text is not part of what comes before it.
    assert_eq!(found(&call, &[], "f ( 1 ,23 )"), "name=f value=1 value=23");
    let nested = of(Syntax::Lark, "start: \"a\" %lark {\n start: x\n x[capture]: \"b\"\n}");
    assert_eq!(found(&nested, &[], "ab"), "x=b");
    let lazy = of(Syntax::Lark, "start: text \"b\"\ntext[capture, suffix=\"e\"]: /.*/");
    assert_eq!(found(&lazy, &[], "aeb"), "text=ae");
    let ebnf = of(Syntax::Ebnf, "root ::= x \"-\" y\nx[capture] ::= [a-z]\ny[capture=\"last\"] ::= [a-z]");
    assert_eq!(found(&ebnf, &[], "a-b"), "x=a last=b");
}

#[test]
fn captured_special_tokens_have_their_names() {
    let grammar = of(Syntax::Lark, "start: \"a\" part \"b\"\npart[capture]: <|call|> /[0-9]+/");
    assert_eq!(found(&grammar, &[], "a<|call|>12b"), "part=<|call|>12");
    let captures = Captures::new(&grammar, &[], &Limits::default()).unwrap();
    assert_eq!(captures.of(b"a<|call|>12b").unwrap(), None, "a name that is only text");
}

#[test]
fn captures_follow_parts_in_any_order() {
    let at = Span::default();
    let mut builder = GrammarBuilder::new(&Limits::default());
    let mut rule = |name: &str, text: &str| {
        let body = builder.pattern(Pattern::literal(text.as_bytes()), at).unwrap();
        builder.define(name, body, at).unwrap();
        builder.rule_ref(name, at).unwrap()
    };
    let (a, b, same, comma) = (rule("a", "x"), rule("b", "y"), rule("same", "x"), rule("comma", ","));
    let list = AnyOrder::new(vec![(a, false), (b, true)], vec![same], comma);
    let body = builder.any_order(list, at).unwrap();
    builder.define("root", body, at).unwrap();
    let grammar = builder.finish("root").unwrap();
    let names = ["a", "b", "same"];
    // Of two parts that match the same text the first is taken, as long as it may come.
    assert_eq!(found(&grammar, &names, "x,y,x"), "a=x b=y same=x");
    assert_eq!(found(&grammar, &names, "y"), "b=y");
    assert_eq!(found(&grammar, &names, "x"), "-");
    assert_eq!(found(&grammar, &names, "y,y"), "-");
    let captures = Captures::new(&grammar, &names, &Limits::default()).unwrap();
    assert_eq!(shown(&captures.so_far(b"y,").unwrap(), "y,"), "b=y");
}

/// The parts of a text are an automaton, if it is short, or searched for in it; both find the longest one.
#[test]
fn captured_substrings_are_the_longest() {
    let table = of(Syntax::Gbnf, "root ::= a b\na ::= SUBSTRING_OF(\"abcab\")\nb ::= SUBSTRING_OF(\"bcéb\")");
    let mut builder = GrammarBuilder::new(&Limits::default());
    let at = Span::default();
    for (name, text) in [("a", "abcab"), ("b", "bcéb")] {
        let part = builder.pattern(Pattern::substrings(text), at).unwrap();
        builder.define(name, part, at).unwrap();
    }
    let parts = ["a", "b"].map(|name| builder.rule_ref(name, at).unwrap());
    let body = builder.sequence(parts.to_vec(), at).unwrap();
    builder.define("root", body, at).unwrap();
    let places = builder.finish("root").unwrap();
    assert_eq!(found(&places, &["a", "b"], "abcabcé"), "a=abcab b=cé");
    for text in ["", "ab", "abb", "abcabbcé", "cabé", "bcéb", "ébé", "caéb", "x", "abx"] {
        assert_eq!(found(&places, &["a", "b"], text), found(&table, &["a", "b"], text), "{text}");
        let so_far = |grammar| {
            let captures = Captures::new(grammar, &["a", "b"], &Limits::default()).unwrap();
            captures.so_far(text.as_bytes()).map(|found| shown(&found, text)).unwrap()
        };
        assert_eq!(so_far(&places), so_far(&table), "{text}");
    }
}

#[test]
fn captures_of_objects_with_a_key_twice_are_none() {
    let grammar = of(Syntax::Lark, r#"start[capture="all"]: %json {"type": "object"}"#);
    assert_eq!(found(&grammar, &[], r#"{"a":1,"b":1}"#), r#"all={"a":1,"b":1}"#);
    assert_eq!(found(&grammar, &[], r#"{"a":1,"a":1}"#), "-");
}

#[test]
fn unknown_names_are_errors_with_the_nearest_name() {
    let grammar = of(Syntax::Gbnf, "root ::= value\nvalue ::= \"a\"");
    let error = Captures::new(&grammar, &["root", "valeu"], &Limits::default()).unwrap_err();
    assert_eq!(error.to_string(), "the grammar has no rule or group `valeu`");
    assert_eq!(error.hint(), "did you mean `value`?");
    assert_eq!(Captures::new(&grammar, &[], &Limits::default()).unwrap().names().len(), 0);
}

#[test]
fn rules_that_derive_themselves_are_captured() {
    for grammar in [
        "root ::= root | \"a\"",
        "root ::= root{1,2} | \"a\"",
        "root ::= root root | \"a\" | \"\"",
        "root ::= x\nx ::= root | \"a\"",
    ] {
        let grammar = of(Syntax::Gbnf, grammar);
        assert!(found(&grammar, &["root"], "a").starts_with("root=a"));
    }
    let grammar = of(Syntax::Gbnf, "root ::= (x | y)* \nx ::= root | y\ny ::= \"a\" | \"\"");
    assert!(found(&grammar, &["y"], "aa").contains("y=a"));
}

#[test]
fn unfinished_texts_have_the_captures_decided_so_far() {
    let grammar = of(Syntax::Gbnf, "root ::= \"[\" (n (\", \" n)*)? \"]\"\nn ::= [0-9]+ | root");
    let captures = Captures::new(&grammar, &["n"], &Limits::default()).unwrap();
    for (text, want) in [
        ("", ""),
        ("[12", ""),
        ("[12,", "n=12"),
        ("[12, [3, 4], 5", "n=12 n=[3, 4] n=3 n=4"),
        ("[12, [3, 4", "n=12 n=3"),
        ("[12, 3]", "n=12 n=3"),
        ("x", ""),
    ] {
        assert_eq!(shown(&captures.so_far(text.as_bytes()).unwrap(), text), want, "{text}");
    }
}

#[test]
fn budgets_end_in_errors() {
    let grammar = of(Syntax::Gbnf, "root ::= root root | \"a\"");
    let limits = Limits { captures: 10_000, ..Limits::default() };
    let captures = Captures::new(&grammar, &["root"], &limits).unwrap();
    assert!(captures.of(b"aaa").unwrap().is_some());
    let error = captures.of("a".repeat(1000).as_bytes()).unwrap_err();
    assert_eq!(error.budget(), Budget::Captures);
    let limits = Limits { symbols: 3, ..Limits::default() };
    assert!(matches!(Captures::new(&grammar, &[], &limits), Err(CaptureError::Limit(_))));
}
