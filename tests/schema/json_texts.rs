//! Texts of JSONTestSuite under the schema that allows every value. Nesting has no bound here, as in the
//! engine: `max_depth` is not set.

use std::{collections::BTreeMap, fs, path::Path};

use domino::grammar::json_schema::DuplicateKeys;
use serde::Deserialize;

use super::{Schema, checking};

/// The suite's texts by their names, each byte as the character of that number. Names begin with the verdict
/// of parsers: `y` accept, `n` refuse, `i` either.
#[derive(Debug, Deserialize)]
struct Suite {
    texts: BTreeMap<String, String>,
}

/// The suite, with its two largest texts, which are one piece over and over.
fn texts() -> Vec<(String, Vec<u8>)> {
    let path = Path::new(env!("DOMINO_ROOT")).join("tests/fixtures/schema/json_test_suite.json");
    let suite: Suite = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let bytes = |text: String| text.chars().map(|byte| u8::try_from(byte).unwrap()).collect();
    let mut texts: Vec<_> = suite.texts.into_iter().map(|(name, text)| (name, bytes(text))).collect();
    texts.push(("n_structure_100000_opening_arrays".to_owned(), b"[".repeat(100_000)));
    let objects = [br#"[{"":"#.repeat(50_000), vec![b'\n']].concat();
    texts.push(("n_structure_open_array_object".to_owned(), objects));
    texts
}

#[test]
fn the_json_test_suite_is_decided_right() {
    let any = Schema::new(&checking().with_duplicate_keys(DuplicateKeys::Allow), "{}").unwrap();
    let mut counts = BTreeMap::new();
    let mut wrong = Vec::new();
    for (name, text) in texts() {
        let accepted = any.accepts_bytes(&text);
        let expected = name.split_once('_').unwrap().0;
        *counts.entry((expected.to_owned(), accepted)).or_insert(0) += 1;
        match expected {
            "y" | "n" => wrong.extend((accepted != (expected == "y")).then_some(name)),
            _ => println!("{name}: {}", if accepted { "accepted" } else { "refused" }),
        }
    }
    println!("{counts:?}");
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(counts[&("y".to_owned(), true)] >= 95 && counts[&("n".to_owned(), false)] >= 188, "{counts:?}");
}

/// Duplicate keys are refused unless allowed; many parsers keep the last of them.
#[test]
fn keys_that_come_twice_are_refused_unless_allowed() {
    let strict = Schema::new(&checking(), "{}").unwrap();
    let twice: Vec<String> = texts()
        .into_iter()
        .filter(|(name, text)| name.starts_with("y_") && !strict.accepts_bytes(text))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(twice, ["y_object_duplicated_key", "y_object_duplicated_key_and_value"]);
}
