//! Every grammar in `grammars/` against the texts beside it: accepted, rejected, viable prefixes.

use std::{collections::BTreeSet, fs, path::Path};

use domino::{Grammar, Limits, Syntax};
use serde::Deserialize;

use crate::decider::{Decider, Engine};

/// The file `NAME.examples.json` beside `NAME.gbnf`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Examples {
    /// Texts of the language.
    accepted: Vec<String>,
    /// Texts that are not; some are prefixes of texts that are.
    rejected: Vec<String>,
    /// Prefixes of texts of the language; some are texts of it.
    prefixes: Vec<String>,
}

/// The shipped grammars: name, text, examples.
fn shipped() -> Vec<(String, String, Examples)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("grammars");
    let names: BTreeSet<String> = fs::read_dir(&folder)
        .expect("the folder of grammars")
        .filter_map(|entry| {
            Some(entry.ok()?.file_name().into_string().ok()?.strip_suffix(".gbnf")?.to_owned())
        })
        .collect();
    assert!(names.len() >= 12, "{names:?}");
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
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("grammars").join(format!("{name}.gbnf"));
    parse(name, &fs::read_to_string(path).expect("a grammar"))
}

fn parse(name: &str, text: &str) -> Grammar {
    Grammar::parse(Syntax::Gbnf, text, &Limits::default()).unwrap_or_else(|error| panic!("{name}: {error}"))
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
fn the_engine_decides_every_example_as_said() {
    check_examples::<Engine>();
}

/// Along every example, the bytes that may follow are those of the oracle, and the text may end where it says.
#[cfg(feature = "oracle")]
#[test]
fn the_engine_agrees_with_the_oracle_at_every_byte() {
    use domino::{
        TokenId,
        oracle::{Oracle, SortedTokens},
    };

    let tokens = SortedTokens::new(&crate::decider::byte_vocabulary());
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

#[cfg(feature = "oracle")]
#[test]
fn the_oracle_decides_every_example_as_said() {
    check_examples::<domino::oracle::Oracle>();
}
