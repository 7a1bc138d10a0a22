//! Every grammar in `grammars/` against the texts beside it: accepted, rejected, viable prefixes.

use std::{collections::BTreeSet, fs, path::Path};

use domino::{Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary, grammar::DistinctKeys};
use serde::Deserialize;

use crate::support::decider::{Decider, Engine};

/// The contents of `NAME.examples.json`, beside `NAME.gbnf`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Examples {
    /// Texts of the language.
    pub(crate) accepted: Vec<String>,
    /// Texts outside of the language; some are prefixes of texts in it.
    rejected: Vec<String>,
    /// Prefixes of texts of the language; some are themselves texts of it.
    prefixes: Vec<String>,
}

/// The shipped grammars: name, text, examples.
pub(crate) fn shipped() -> Vec<(String, String, Examples)> {
    let folder = Path::new(env!("DOMINO_ROOT")).join("grammars");
    let mut names: BTreeSet<String> = BTreeSet::new();
    for inside in ["", "paper/"] {
        let files = fs::read_dir(folder.join(inside)).expect("a folder of grammars");
        names.extend(files.filter_map(|entry| {
            let file = entry.ok()?.file_name().into_string().ok()?;
            Some(format!("{inside}{}", file.strip_suffix(".gbnf")?))
        }));
    }
    assert!(names.len() >= 17, "{names:?}");
    let read = |name: String| {
        let text = fs::read_to_string(folder.join(format!("{name}.gbnf"))).expect("a grammar");
        let examples = fs::read(folder.join(format!("{name}.examples.json"))).expect("examples");
        let examples = serde_json::from_slice(&examples).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, text, examples)
    };
    names.into_iter().map(read).collect()
}

/// The grammar called `name` in `grammars/`.
pub(crate) fn grammar(name: &str) -> Grammar {
    let path = Path::new(env!("DOMINO_ROOT")).join("grammars").join(format!("{name}.gbnf"));
    parse(name, &fs::read_to_string(path).expect("a grammar"))
}

fn parse(name: &str, text: &str) -> Grammar {
    let grammar = Grammar::parse(Syntax::Gbnf, text, &Limits::default());
    let grammar = grammar.unwrap_or_else(|error| panic!("{name}: {error}"));
    match name {
        // The program adds what GBNF cannot say.
        "json" => grammar.with_distinct_keys(DistinctKeys { may_run_out: false, are_terminals: false }),
        _ => grammar,
    }
}

#[test]
fn every_grammar_reads_and_has_enough_examples() {
    for (name, text, examples) in shipped() {
        parse(&name, &text);
        assert!(text.starts_with("# "), "{name} begins with what it is");
        assert!(text.contains("\n# Source: "), "{name} says where it is from");
        assert!(examples.accepted.len() >= 20, "{name}");
        assert!(examples.rejected.len() >= 20, "{name}");
        assert!(examples.prefixes.len() >= 12, "{name}");
    }
}

fn check_examples<D: Decider>() {
    let mut wrong = Vec::new();
    for (name, text, examples) in shipped() {
        let mut decider = D::of(&parse(&name, &text));
        for text in &examples.accepted {
            if !decider.accepts(text.as_bytes()) {
                wrong.push(format!("{name}: not accepted: {text:?}"));
            }
        }
        for text in &examples.rejected {
            if decider.accepts(text.as_bytes()) {
                wrong.push(format!("{name}: accepted: {text:?}"));
            }
        }
        for text in &examples.prefixes {
            if !decider.viable(text.as_bytes()) {
                wrong.push(format!("{name}: not viable: {text:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_engine_decides_every_example_as_labelled() {
    check_examples::<Engine>();
}

/// Bytes that may follow, and whether the text may end, by the engine and by the oracle at every byte of
/// every example.
#[test]
fn the_engine_agrees_with_the_oracle_at_every_byte() {
    use domino::{
        TokenId,
        oracle::{Oracle, SortedTokens},
    };

    let tokens = SortedTokens::new(&crate::support::decider::byte_vocabulary());
    for (name, text, examples) in shipped() {
        let grammar = parse(&name, &text);
        let (engine, oracle) = (Engine::of(&grammar), Oracle::of(&grammar));
        for text in examples.accepted.iter().chain(&examples.rejected) {
            let (mut constraint, mut session) = (engine.0.constraint(), oracle.session());
            for (at, &byte) in text.as_bytes().iter().enumerate() {
                let mask = constraint.mask().unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(
                    *mask,
                    session.mask(&tokens),
                    "{name}: after {:?}",
                    text.as_bytes()[..at].escape_ascii()
                );
                let viable = session.push(byte);
                assert_eq!(
                    constraint.advance(TokenId::new(byte.into())).is_ok(),
                    viable,
                    "{name}: {text:?} at {at}"
                );
                if !viable {
                    break;
                }
            }
        }
    }
}

#[test]
fn the_oracle_decides_every_example_as_labelled() {
    check_examples::<domino::oracle::Oracle>();
}

type Texts = &'static [&'static [u8]];

/// Regular expressions, texts that they match as a whole, and texts that they do not.
#[rustfmt::skip]
const EXPRESSIONS: &[(&str, Texts, Texts)] = &[
    ("", &[b""], &[b"a", b"\n"]),
    ("a|ab", &[b"a", b"ab"], &[b"", b"b", b"abb"]),
    ("(a|ab)(c|bcd)", &[b"ac", b"abc", b"abcd", b"abbcd"], &[b"abcc", b"a", b"abbc"]),
    ("a*?b", &[b"b", b"aab"], &[b"a", b"bb"]),
    ("^[0-9]{4}-(0[1-9]|1[0-2])$", &[b"2024-01", b"0000-12"],
        &[b"2024-13", b"2024-1", b"2024-01\n", b" 2024-01"]),
    (".", &["\u{e9}".as_bytes(), b"a", b"\r", "\u{1F600}".as_bytes()],
        &[b"", b"\n", b"ab", b"\xFF", b"\xC3"]),
    ("(?s).", &[b"\n", b"\0"], &[b"", b"\n\n"]),
    ("(?-u)[\\x80-\\xFF]+", &[b"\x80", b"\xFF\xFE"], &[b"a", b""]),
    ("(?i)stra\u{df}e", &["STRA\u{1E9E}E".as_bytes(), "stra\u{df}e".as_bytes()], &[b"strasse"]),
    (r"\p{Greek}+", &["\u{3b1}\u{3a9}".as_bytes()], &[b"a", b""]),
    (r"\w+\s\d", &["\u{e9}_1\u{a0}\u{665}".as_bytes(), b"a 1"], &[b" 1", b"a1"]),
    ("(a{2,3}){2}", &[b"aaaa", b"aaaaaa"], &[b"aaa", b"aaaaaaa"]),
    ("[a-z&&[^aeiou]]", &[b"b"], &[b"a", b"B"]),
    ("(|a)+b?", &[b"", b"aaa", b"aab"], &[b"abb"]),
    ("(?x) a b # c\n c", &[b"abc"], &[b"a b c"]),
    ("\"(?:[^\"\\\\]|\\\\.)*\"", &[b"\"\"", b"\"a\\\"b\""], &[b"\"", b"\"a\"b\"", b"\"\\\""]),
];

fn check_expressions<D: Decider>() {
    for (expression, accepted, rejected) in EXPRESSIONS {
        let grammar = Grammar::parse(Syntax::Regex, expression, &Limits::default())
            .unwrap_or_else(|error| panic!("{expression}: {error}"));
        let mut decider = D::of(&grammar);
        for text in *accepted {
            assert!(decider.accepts(text), "{expression} matches {}", text.escape_ascii());
        }
        for text in *rejected {
            assert!(!decider.accepts(text), "{expression} does not match {}", text.escape_ascii());
        }
    }
}

#[test]
fn the_engine_matches_whole_texts() {
    check_expressions::<Engine>();
}

#[test]
fn the_oracle_matches_whole_texts() {
    check_expressions::<domino::oracle::Oracle>();
}

/// Texts that a limit cuts are closed by their shortest completion, which must find another key where the
/// nearest have come.
#[test]
fn every_beginning_of_json_can_be_closed_without_a_key_twice() {
    let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build().unwrap();
    let compiled = Compiler::new(vocabulary).compile(&grammar("json")).unwrap();
    let mut decider = Engine::of(&grammar("json"));
    let text =
        r#"{"a":{"":[1,{"a":2,"b":"x"}],"a":3, "aa":{}},"b":4,"":5, "c":{"":{"":null, "\u0061":6}, "b":7}}"#;
    let mut constraint = compiled.constraint();
    for at in 0..=text.len() {
        let completion = constraint.shortest_completion().unwrap();
        assert!(completion.tokens.is_some(), "{at}");
        let rest = completion.bytes;
        let closed = [&text.as_bytes()[..at], &rest[..]].concat();
        assert!(decider.accepts(&closed), "{}", closed.escape_ascii());
        if let Some(&byte) = text.as_bytes().get(at) {
            constraint.advance(TokenId::new(byte.into())).unwrap();
        }
    }
}
