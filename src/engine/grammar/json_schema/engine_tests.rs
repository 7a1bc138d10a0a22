//! Grammars of sets, run in the engine: texts of members are accepted, others are not.

use serde_json::json;

use super::{
    SchemaOptions,
    leaf::{Numbers, ValueSpelling},
    numbers::{Decimal, Integers, NumberSet},
    probe::grammar,
    strings::StringSet,
};
use crate::{CompiledGrammar, Compiler, Grammar, Limits, TokenId, Vocabulary, grammar::Span};

fn compiled(grammar: &Grammar) -> CompiledGrammar {
    let mut vocabulary = Vocabulary::builder();
    for byte in 0..=u8::MAX {
        vocabulary = vocabulary.token(TokenId::new(u32::from(byte)), [byte]);
    }
    let words = ["\"a", "aa", "aaaaaaaa", "a\"", "\\u0061", "0.", "00", "e+", "12", "@a"];
    for (token, word) in (256..).zip(words) {
        vocabulary = vocabulary.token(TokenId::new(token), word);
    }
    Compiler::new(vocabulary.end_of_text(TokenId::new(300)).build().unwrap()).compile(grammar).unwrap()
}

fn accepts(grammar: &CompiledGrammar, text: &str) -> bool {
    let mut constraint = grammar.constraint();
    constraint.advance_bytes(text.as_bytes()).unwrap() == text.len() && constraint.is_complete()
}

fn strings(set: &StringSet) -> CompiledGrammar {
    compiled(&grammar(|builder| set.emit(builder, ValueSpelling::default(), Span::default()).unwrap()))
}

fn numbers(set: &NumberSet, numbers: Numbers) -> CompiledGrammar {
    let spelling = ValueSpelling { numbers, ..ValueSpelling::default() };
    compiled(&grammar(|builder| set.emit(builder, spelling, Span::default()).unwrap()))
}

#[test]
fn strings_of_every_shape_go_through_the_engine() {
    let pattern = |text: &str| StringSet::from_pattern(text).unwrap();
    let email = StringSet::from_format("email").unwrap().unwrap();
    let list: Vec<String> = (0..500).map(|at| "a".repeat(at % 7) + &at.to_string()).collect();
    for (name, set) in [
        ("all", StringSet::all()),
        ("at least one", StringSet::all().with_length(1, None).unwrap()),
        ("counted", StringSet::all().with_length(2, Some(100)).unwrap()),
        ("pattern", pattern("^[a-z]+[0-9]?$")),
        ("class", pattern("^[^b]{1,255}$")),
        ("last loop", pattern("^a[a-z]*$").with_length(0, Some(2_000)).unwrap()),
        ("loop and end", pattern("^a+@?b?$").with_length(2, Some(2_000)).unwrap()),
        ("states and counts", pattern(r"\S@").with_length(3, Some(3_000)).unwrap()),
        ("address", email.with_length(3, Some(255)).unwrap()),
        ("list", StringSet::of(&list).unwrap()),
        ("all but", StringSet::of(&list).unwrap().complement().unwrap()),
    ] {
        let engine = strings(&set);
        for text in
            ["", "a", "aa", "b", "abc", "a1", "aaa17", "a@b.cd", &"a".repeat(99), &"a".repeat(101), "é/\n"]
        {
            let quoted = serde_json::to_string(text).unwrap();
            assert_eq!(accepts(&engine, &quoted), set.contains(text), "{name}: {quoted}");
            assert!(!accepts(&engine, &quoted[1..]), "{name}: {quoted}");
        }
        for length in [254, 255, 256, 2_000, 2_001, 2_999, 3_000] {
            for text in [format!("{}@", "a".repeat(length - 1)), "a".repeat(length)] {
                assert_eq!(accepts(&engine, &format!("\"{text}\"")), set.contains(&text), "{name}: {length}");
            }
        }
    }
}

#[test]
fn numbers_of_every_shape_go_through_the_engine() {
    let decimal = |text: &str| Decimal::parse(text).unwrap();
    let integers = NumberSet::integers(Integers::ByValue);
    let range = NumberSet::at_least(&decimal("-2.5"), true);
    let range = range.intersect(&NumberSet::at_most(&decimal("1e3"), false)).unwrap();
    for (name, set) in [
        ("all", NumberSet::all()),
        ("integers", integers.clone()),
        ("range", range.clone()),
        ("integers of a range", integers.intersect(&range).unwrap()),
        ("cents", NumberSet::multiples_of(&decimal("0.01")).unwrap()),
        ("list", NumberSet::of(["1", "2.5", "-3e-2"].map(decimal))),
        ("all but", NumberSet::of(["1", "2.5", "-3e-2"].map(decimal)).complement().unwrap()),
    ] {
        let (engine, plain) = (numbers(&set, Numbers::Any), numbers(&set, Numbers::Plain));
        for text in ["0", "1", "2.5", "-0.03", "1000", "1001", "0.125", "-2.5"] {
            assert_eq!(accepts(&plain, text), set.contains(&decimal(text)), "{name}: {text}");
        }
        for text in
            ["0", "-0", "1", "1.0", "2.5", "-3e-02", "-0.03", "1000", "1e3", "1001", "1E+22", "0.125", "-2.5"]
        {
            assert_eq!(accepts(&engine, text), set.contains(&decimal(text)), "{name}: {text}");
        }
        for text in ["", "-", "01", "1.", "1e", "+1", "1 "] {
            assert!(!accepts(&engine, text) && !accepts(&plain, text), "{name}: {text}");
        }
    }
}

/// Schemas that are read together share the keys that were written before, and have the grammars that they
/// have when read alone.
#[test]
fn schemas_read_together_are_the_same_grammars() {
    let schemas: Vec<String> = (0..40)
        .map(|number| {
            let (key, other) = (["a", "b\"", "é"][number % 3], number % 5);
            let properties = json!({ key: { "enum": [number] }, format!("k{other}"): { "type": "string" } });
            json!({ "type": "object", "properties": properties, "required": [key] }).to_string()
        })
        .collect();
    let texts: Vec<&str> = schemas.iter().map(String::as_str).collect();
    let (options, limits) = (SchemaOptions::default(), Limits::default());
    let together = super::parse_all(&options, &texts, &limits, &crate::AutomataCache::new());
    for (text, read) in texts.iter().zip(together) {
        let alone = options.parse(text, &limits).unwrap().grammar;
        assert_eq!(format!("{:?}", read.unwrap().grammar), format!("{alone:?}"), "{text}");
    }
}
