//! Terminals of example grammars.

use super::{Terminals, lower};
use crate::{Grammar, Limits, Syntax};

/// Lists the names of the terminals, sorted: rules' names, or their text.
fn terminals(syntax: Syntax, text: &str) -> Vec<String> {
    let limits = Limits::default();
    let grammar = Grammar::parse(syntax, text, &limits).unwrap();
    let mut names = lower(&grammar, Terminals::Written, &limits).unwrap().terminal_names();
    names.sort();
    names
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let mut expected: Vec<&str> = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(terminals(Syntax::Gbnf, text), expected, "{text}");
}

/// The example of the documentation, and listing 7 of the paper.
#[test]
fn literals_and_token_like_rules_are_terminals() {
    check(
        r#"root ::= job+   job ::= "\"job\"" ws ":" ws string   string ::= "\"" [^"]* "\""   ws ::= " "*"#,
        &[r#""\"job\"""#, r#"":""#, "string", "ws"],
    );
    let rpg = include_str!("../../../grammars/paper/rpg.gbnf");
    let names = terminals(Syntax::Gbnf, rpg);
    for name in ["\"\\\"name\\\"\"", "\":\"", "\",\"", "\"\\\"axe\\\"\"", "string", "number", "ws"] {
        assert!(names.contains(&name.to_owned()), "{name} is not in {names:?}");
    }
}

#[test]
fn shipped_grammars_have_the_tokens_of_a_lexer() {
    check(
        include_str!("../../../grammars/rfc8259.gbnf"),
        &[
            "\",\"",
            "\":\"",
            "\"[\"",
            "\"]\"",
            "\"{\"",
            "\"}\"",
            "\"true\"",
            "\"false\"",
            "\"null\"",
            "number",
            "string",
            "ws",
        ],
    );
    check(
        include_str!("../../../grammars/email.gbnf"),
        &["\".\"", "\"@\"", "atom", "label", "quoted-string", "top-label"],
    );
    check(
        include_str!("../../../grammars/paper/xml_person.gbnf"),
        &[
            "text",
            "ws",
            "\"<person>\"",
            "\"</person>\"",
            "\"<name>\"",
            "\"</name>\"",
            "\"<age>\"",
            "\"</age>\"",
            "\"<job>\"",
            "\"</job>\"",
            "\"<title>\"",
            "\"</title>\"",
            "\"<salary>\"",
            "\"</salary>\"",
            "\"<friends>\"",
            "\"</friends>\"",
        ],
    );
}

/// A rule that ends in `ws`, as in listing 3 of the paper, is split from it.
#[test]
fn token_like_parts_are_split_from_trailing_space() {
    check(
        r#"root ::= string number   string ::= "'" ([a-z] | "\\" [a-z])* "'" ws
            number ::= "-"? [0-9]+ ws   ws ::= ([ ] ws)?"#,
        &[r"(?:'(?:[a-z]|(?:\\[a-z]))*')", r"(?:\-?[0-9]+)", "ws"],
    );
    // Other literals than quotes are terminals by themselves.
    check(
        r#"root ::= a | root root   a ::= "(" [a-z]+ ")" ws   ws ::= " "*"#,
        &["\"(\"", "\")\"", "[a-z]+", "ws"],
    );
}

#[test]
fn lists_words_and_neighbouring_literals_are_no_tokens() {
    check(r#"root ::= [0-9]+ ("," [0-9]+)*"#, &["\",\"", "[0-9]+"]);
    check(r#"root ::= root "+" root | [0-9]"#, &["\"+\"", "[0-9]"]);
    check(r#"root ::= "<b>" [a-z]+ "</b>""#, &["\"<b>\"", "\"</b>\"", "[a-z]+"]);
    check(r#"root ::= "a" "b" [0-9]"#, &["\"a\"", "\"b\"", "[0-9]"]);
    check(r#"root ::= word " " word   word ::= [a-z]+"#, &["\" \"", "word"]);
}

#[test]
fn fragments_are_parts_of_tokens() {
    check(r##"root ::= "#" hex hex hex   hex ::= digit | [a-f]   digit ::= "0" | "1""##, &["root"]);
    check(
        r#"root ::= "\"" char* "\""   char ::= [^"\\] | "\\" escape   escape ::= [nt] | "u" [0-9a-f]{4}"#,
        &["root"],
    );
    check(
        r#"root ::= int frac? exp?   int ::= [0-9]+   frac ::= "." [0-9]+   exp ::= "e" [0-9]+"#,
        &["root"],
    );
    check(r#"root ::= digit+ ("." digit+)?   digit ::= "0" | "1""#, &["root"]);
    // Rules that others mention too are tokens.
    check(
        r#"root ::= int frac? | "=" int   int ::= [0-9]+   frac ::= "." [0-9]+"#,
        &["\"=\"", "frac", "int"],
    );
}

#[test]
fn a_regular_expression_is_one_terminal() {
    assert_eq!(terminals(Syntax::Regex, r#""[^"]*"(, "[^"]*")*|none|(ab)+"#).len(), 1);
}
