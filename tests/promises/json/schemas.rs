//! Masks of random JSON Schemas against the oracle, in both orders and both ways of escaping.

use domino::{
    Limits,
    grammar::json_schema::{Escapes, Numbers, Order, SchemaErrorKind, SchemaOptions, WhiteSpace},
};
use proptest::{collection::vec, prelude::*, sample::select, strategy::ValueTree, test_runner::TestRunner};
use serde_json::{Map, Value, json};

use super::keys::{self, Likes};

/// Number of schemas whose masks are compared, and steps of a walk through each.
const SCHEMAS: usize = 300;
const STEPS: usize = 10;

/// Tokens beside single bytes.
const WORDS: [&str; 24] = [
    "{\"", "\":", "\"a\":", ",\"b\":", "\"a", "b\"", "\"ab\"", "\\u00", "61", "null", "true,", "false]",
    "[[", "]}", "},{", "[1", ",1", "1,2", "-", "0.5", "1.", "e1", "\",\"", "\n  ",
];

fn key() -> impl Strategy<Value = &'static str> + Clone {
    select(vec!["a", "b", "ab"])
}

fn instance() -> impl Strategy<Value = Value> {
    select(vec![
        json!(null),
        json!(true),
        json!(1),
        json!(2.5),
        json!(""),
        json!("ab"),
        json!([1]),
        json!({ "a": 1 }),
    ])
}

/// A schema with these keywords.
fn object<K: Into<String>>(members: Vec<(K, Value)>) -> Value {
    Value::Object(members.into_iter().map(|(key, value)| (key.into(), value)).collect::<Map<_, _>>())
}

fn scalar() -> impl Strategy<Value = Value> {
    let types = select(vec!["null", "boolean", "integer", "number", "string", "array", "object"]);
    let bound = select(vec!["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]);
    let pattern = select(vec!["^a", "b$", "^[^b]*$", "^.{2}$", "^(a|b)+$"]);
    let formats = select(vec!["date", "ipv4", "uuid"]);
    prop_oneof![
        3 => types.prop_map(|name| json!({ "type": name })),
        1 => Just(json!({})),
        1 => vec(instance(), 1..4).prop_map(|values| json!({ "enum": values })),
        1 => (bound, -12..25).prop_map(|(name, bound)| json!({ "type": "number", name: bound })),
        1 => select(vec![2.0, 0.5, 7.0]).prop_map(|step| json!({ "type": "number", "multipleOf": step })),
        1 => (0..3_u8, 0..3_u8)
            .prop_map(|(min, more)| json!({ "type": "string", "minLength": min, "maxLength": min + more })),
        1 => pattern.prop_map(|pattern| json!({ "type": "string", "pattern": pattern })),
        1 => formats.prop_map(|name| json!({ "type": "string", "format": name })),
    ]
}

/// Keywords of objects, arrays and combinations over schemas such as `inner`.
fn keyword(inner: BoxedStrategy<Value>) -> impl Strategy<Value = Value> {
    let several = vec(inner.clone(), 1..3);
    let named = vec((key(), inner.clone()), 0..3).prop_map(object);
    let keys = vec(key(), 0..3);
    let counted = |names: [&'static str; 2]| (select(names.to_vec()), 0..3_u8);
    let objects = prop_oneof![
        3 => named.prop_map(|named| json!({ "properties": named })),
        2 => keys.clone().prop_map(|keys| json!({ "required": keys })),
        2 => inner.clone().prop_map(|rest| json!({ "additionalProperties": rest })),
        1 => Just(json!({ "additionalProperties": false })),
        1 => inner.clone().prop_map(|some| json!({ "patternProperties": { "^a": some } })),
        1 => counted(["minProperties", "maxProperties"]).prop_map(|(name, count)| json!({ name: count })),
        1 => (key(), keys).prop_map(|(key, keys)| json!({ "dependentRequired": { key: keys } })),
        1 => inner.clone().prop_map(|rest| json!({ "unevaluatedProperties": rest })),
        1 => key().prop_map(|key| json!({ "properties": { key: { "$ref": "#" } } })),
    ];
    let arrays = prop_oneof![
        2 => inner.clone().prop_map(|item| json!({ "items": item })),
        1 => several.clone().prop_map(|items| json!({ "prefixItems": items })),
        1 => counted(["minItems", "maxItems"]).prop_map(|(name, count)| json!({ name: count })),
        1 => inner.clone().prop_map(|some| json!({ "contains": some, "maxContains": 2 })),
        1 => inner.clone().prop_map(|rest| json!({ "unevaluatedItems": rest })),
        1 => Just(json!({ "items": { "enum": [1, "a", null] }, "uniqueItems": true })),
        1 => Just(json!({ "items": { "$ref": "#" } })),
    ];
    let joined = select(vec!["allOf", "anyOf", "oneOf"]);
    let combined = prop_oneof![
        3 => (joined, several).prop_map(|(name, schemas)| json!({ name: schemas })),
        1 => inner.clone().prop_map(|schema| json!({ "not": schema })),
        1 => (inner.clone(), inner.clone(), inner)
            .prop_map(|(condition, then, other)| json!({ "if": condition, "then": then, "else": other })),
    ];
    prop_oneof![4 => objects, 3 => arrays, 2 => combined]
}

/// A strategy for schemas of up to four groups of keywords, mostly of one type, so that they interact.
fn schema() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 16, 3, |inner| {
        let kind = select(vec![json!(["object"]), json!(["array"]), json!(["object", "array"])]);
        (vec(keyword(inner.boxed()), 1..5), prop::option::weighted(0.8, kind)).prop_map(|(groups, kind)| {
            let members = groups.into_iter().filter_map(|group| group.as_object().cloned()).flatten();
            object(members.chain(kind.map(|kind| ("type".to_owned(), kind))).collect())
        })
    })
}

/// Walks through a text of the schema by random tokens and back, and compares each mask.
fn walk(options: &SchemaOptions, schema: &str, choices: &[u16]) -> Result<usize, SchemaErrorKind> {
    let limits = Limits::default();
    let grammar = options.parse(schema, &limits).map_err(|error| error.kind().clone())?.grammar;
    // The oracle knows nothing of these; `items` has a judge of its own.
    if grammar.distinct_items().is_some() {
        return Err(SchemaErrorKind::Unsupported);
    }
    Ok(keys::walk(&grammar, &WORDS, Likes { bytes: b"ab\",:{}[]01", one_in: 8 }, choices))
}

/// Names the schema and the options of a walk that fails.
struct Shown<'a>(&'a SchemaOptions, &'a str);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{} under {:?}", self.1, self.0);
        }
    }
}

#[test]
fn masks_of_random_schemas_are_the_oracles() {
    let mut runner = TestRunner::deterministic();
    let drawn = (schema(), any::<bool>(), vec(any::<u16>(), STEPS));
    let (mut walked, mut masks, mut left) = (0, 0, Vec::new());
    while walked < SCHEMAS {
        let (schema, flexible, choices) = drawn.new_tree(&mut runner).unwrap().current();
        let options = SchemaOptions::default()
            .with_white_space(if flexible { WhiteSpace::Flexible } else { WhiteSpace::Compact })
            .with_order([Order::Schema, Order::Any][walked % 2])
            .with_escapes([Escapes::All, Escapes::Minimal][walked / 2 % 2])
            .with_numbers([Numbers::Plain, Numbers::Any][walked / 4 % 2]);
        let text = schema.to_string();
        let _shown = Shown(&options, &text);
        match walk(&options, &text, &choices) {
            Ok(compared) => {
                walked += 1;
                masks += compared;
            }
            Err(kind) => {
                let expected = [SchemaErrorKind::NoInstance, SchemaErrorKind::Unsupported];
                assert!(expected.contains(&kind), "{kind:?}");
                left.push(kind);
            }
        }
        // Schemas without texts must not be most of the cases.
        assert!(left.len() < SCHEMAS, "{left:?}");
    }
    println!("{masks} masks of {walked} schemas; {} left out", left.len());
    assert!(masks > SCHEMAS * STEPS / 2);
}
