//! Grammars of Rust types: `serde_json` reads every text that they allow, and they allow every text it
//! writes.

use std::collections::BTreeMap;

use domino::{
    CompiledGrammar, Compiler, Grammar, Limits, TokenId,
    decode::{DecodeErrorKind, Decoder, Finish},
    grammar::json_schema::{SchemaOptions, WhiteSpace},
    model::ScriptedModel,
};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::support::decider::byte_vocabulary;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Numbers {
    small: (i8, u8, i16, u16),
    middle: [u32; 2],
    signed: i32,
    large: (i64, u64),
    sizes: (usize, isize),
    single: f32,
    double: f64,
    maybe: Option<u8>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum Shape {
    Circle { radius: f64 },
    Polygon { points: Vec<(f32, f32)> },
    Empty,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
enum Plain {
    One,
    #[serde(rename = "second")]
    Two,
    Three(u8),
    Four {
        text: String,
        letter: char,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Tree {
    name: String,
    children: Vec<Tree>,
    parent: Option<Box<Tree>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Mixed {
    shapes: Vec<Shape>,
    named: BTreeMap<String, u32>,
    plain: Plain,
    #[serde(default)]
    flag: bool,
    unit: (),
}

fn compile<T: JsonSchema>(options: SchemaOptions) -> CompiledGrammar {
    let grammar =
        Grammar::of_type::<T>(options, &Limits::default()).unwrap_or_else(|error| panic!("{error}"));
    Compiler::new(byte_vocabulary()).compile(&grammar).unwrap()
}

/// Draws a text of the grammar: a random walk, ended by the shortest completion.
fn random_text(compiled: &CompiledGrammar, random: &mut SmallRng) -> Vec<u8> {
    let mut constraint = compiled.constraint();
    let mut text = Vec::new();
    for _ in 0..random.random_range(0..200) {
        let allowed: Vec<TokenId> = constraint.mask().unwrap().iter().collect();
        let token = allowed[random.random_range(0..allowed.len())];
        let Ok(byte) = u8::try_from(token.raw()) else { return text };
        constraint.advance(token).unwrap();
        text.push(byte);
    }
    text.extend(constraint.shortest_completion().unwrap().bytes);
    text
}

fn all_are_read<T: JsonSchema + DeserializeOwned + Serialize>(values: &[T]) {
    let compiled = compile::<T>(SchemaOptions::default().with_white_space(WhiteSpace::Compact));
    let mut random = SmallRng::seed_from_u64(7);
    for _ in 0..150 {
        let text = random_text(&compiled, &mut random);
        if let Err(error) = serde_json::from_slice::<T>(&text) {
            panic!("{error}: {}", String::from_utf8_lossy(&text));
        }
    }
    let wide = compile::<T>(SchemaOptions::default().with_white_space(WhiteSpace::Wide));
    for value in values {
        for text in [serde_json::to_string(value).unwrap(), serde_json::to_string_pretty(value).unwrap()] {
            let mut constraint = wide.constraint();
            assert_eq!(constraint.advance_bytes(text.as_bytes()).unwrap(), text.len(), "{text}");
            assert!(constraint.is_complete(), "{text}");
        }
    }
}

#[test]
fn numbers_are_within_their_types() {
    let least = Numbers {
        small: (i8::MIN, 0, i16::MIN, 0),
        middle: [0; 2],
        signed: i32::MIN,
        large: (i64::MIN, 0),
        sizes: (0, isize::MIN),
        single: f32::MIN,
        double: f64::MIN,
        maybe: None,
    };
    let most = Numbers {
        small: (i8::MAX, u8::MAX, i16::MAX, u16::MAX),
        middle: [u32::MAX; 2],
        signed: i32::MAX,
        large: (i64::MAX, u64::MAX),
        sizes: (usize::MAX, isize::MAX),
        single: 1.5e-30,
        double: f64::MAX,
        maybe: Some(7),
    };
    all_are_read(&[least, most]);
}

#[test]
fn enums_maps_and_options_are_read() {
    let value = Mixed {
        shapes: vec![
            Shape::Circle { radius: 0.5 },
            Shape::Empty,
            Shape::Polygon { points: vec![(0.25, -1.5)] },
        ],
        named: BTreeMap::from([("a".to_owned(), 1), ("\u{1F600}\n\"".to_owned(), 2)]),
        plain: Plain::Four { text: "x".to_owned(), letter: '\u{e9}' },
        flag: true,
        unit: (),
    };
    all_are_read(&[value]);
    all_are_read(&[Plain::One, Plain::Two, Plain::Three(255)]);
}

#[test]
fn trees_are_no_deeper_than_the_parser_goes() {
    let leaf = Tree { name: String::new(), children: Vec::new(), parent: None };
    let nest = |levels: usize| {
        (0..levels).fold(leaf.clone(), |inner, _| Tree { parent: Some(Box::new(inner)), ..leaf.clone() })
    };
    // White space runs to 80 blanks.
    all_are_read(&[leaf.clone(), nest(35)]);
    let compiled = compile::<Tree>(SchemaOptions::default());
    // 125 trees in one another have an empty list at the 127th level.
    for (levels, read) in [(125, true), (126, false), (300, false)] {
        let text = serde_json::to_string(&nest(levels)).unwrap();
        assert_eq!(serde_json::from_str::<Tree>(&text).is_ok(), read, "{levels}");
        let mut constraint = compiled.constraint();
        assert_eq!(constraint.advance_bytes(text.as_bytes()).unwrap() == text.len(), read, "{levels}");
    }
}

#[test]
fn decoders_write_values_of_types() {
    let vocabulary = byte_vocabulary();
    let model = ScriptedModel::new(vocabulary.size(), 4096, 3);
    let mut decoder = Decoder::builder(model).vocabulary(vocabulary).build().unwrap();
    decoder.options_mut().max_new_tokens = 300;
    let prompt = [TokenId::new(u32::from(b'x'))];
    let mixed: Mixed = decoder.generate_as(&prompt).unwrap();
    let again: Mixed = decoder.generate_as(&prompt).unwrap();
    assert_eq!(mixed, again);
    let _: Tree = decoder.generate_as(&prompt).unwrap();
    // The decoder is as it was: free, and cut where it was cut.
    decoder.options_mut().max_new_tokens = 5;
    let free = decoder.generate(&prompt).unwrap();
    assert!(matches!(free.finish, Finish::Length | Finish::Stop) && free.completion.is_none());
    assert!(
        decoder.generate_as::<Mixed>(&[]).is_err_and(|error| *error.kind() == DecodeErrorKind::EmptyPrompt)
    );
}

/// A type that reads fewer texts than its schema allows.
#[derive(Debug, JsonSchema)]
struct Picky;

impl<'de> Deserialize<'de> for Picky {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(serde::de::Error::custom("never"))
    }
}

#[test]
fn texts_that_a_type_cannot_read_are_errors() {
    let vocabulary = byte_vocabulary();
    let model = ScriptedModel::new(vocabulary.size(), 400, 3);
    let mut decoder = Decoder::builder(model).vocabulary(vocabulary).build().unwrap();
    let error = decoder.generate_as::<Picky>(&[TokenId::new(1)]).unwrap_err();
    assert_eq!(*error.kind(), DecodeErrorKind::Type);
    assert!(std::error::Error::source(&error).is_some_and(|source| source.to_string().contains("never")));
}
