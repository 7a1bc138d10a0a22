//! Random schemas and instances, judged by the crate `jsonschema`: `cargo test -- --nocapture` in this
//! folder, with `PROPTEST_CASES` for more than a few hundred schemas. 27,000 schemas make 100,000 pairs.

use std::cell::RefCell;

use domino::grammar::json_schema::SchemaErrorKind;
use proptest::{
    prelude::*,
    test_runner::{FileFailurePersistence, TestRunner},
};
use serde_json::{Map, Value, json};

#[path = "../../../../../tests/schema/deciding.rs"]
mod deciding;
#[path = "judge/pairs.rs"]
mod pairs;
#[path = "judge/plain.rs"]
mod plain;

use deciding::{Schema, checking};
use pairs::{Change, Counts, named, pairs};

/// Keys of instances and of schemas.
const KEYS: [&str; 4] = ["a", "b", "ab", "c"];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2..5).prop_map(Value::from),
        prop::sample::select(vec![0.5, 1.0, 1.5, 2.0, -0.5]).prop_map(Value::from),
        prop::sample::select(vec!["", "a", "b", "ab", "ba", "abc", "\u{e9}"]).prop_map(Value::from),
    ]
}

fn instance() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(&KEYS[..]), inner), 0..4).prop_map(object),
        ]
    })
}

fn object(members: Vec<(&str, Value)>) -> Value {
    Value::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
}

fn keyword(schema: BoxedStrategy<Value>) -> impl Strategy<Value = Value> {
    let key = || prop::sample::select(&KEYS[..]);
    let count = 0..3_u32;
    let types =
        prop::sample::select(vec!["null", "boolean", "integer", "number", "string", "array", "object"]);
    let several = prop::collection::vec(schema.clone(), 1..4);
    let named = prop::collection::vec((key(), schema.clone()), 0..3).prop_map(object);
    let names = prop::collection::btree_set(key(), 0..3).prop_map(|names| json!(names));
    let pattern = prop::sample::select(vec!["^a", "b$", "b", "^.{2}$", "^(?!a)", "^[^b]*$"]);
    let scalars = prop_oneof![
        types.clone().prop_map(|name| json!({ "type": name })),
        prop::collection::btree_set(types, 1..4).prop_map(|names| json!({ "type": names })),
        instance().prop_map(|value| json!({ "const": value })),
        prop::collection::vec(instance(), 1..4).prop_map(|values| json!({ "enum": values })),
        (prop::sample::select(vec!["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]), -1..4)
            .prop_map(|(keyword, bound)| json!({ keyword: bound })),
        prop::sample::select(vec![json!(2), json!(0.5), json!(1.5)])
            .prop_map(|step| json!({ "multipleOf": step })),
        (prop::sample::select(vec!["minLength", "maxLength"]), count.clone())
            .prop_map(|(keyword, count)| json!({ keyword: count })),
        pattern.clone().prop_map(|pattern| json!({ "pattern": pattern })),
        format(),
    ];
    let objects = prop_oneof![
        named.clone().prop_map(|named| json!({ "properties": named })),
        names.clone().prop_map(|names| json!({ "required": names })),
        schema.clone().prop_map(|schema| json!({ "additionalProperties": schema })),
        (pattern, schema.clone())
            .prop_map(|(pattern, schema)| json!({ "patternProperties": { pattern: schema } })),
        schema.clone().prop_map(|schema| json!({ "propertyNames": schema })),
        (prop::sample::select(vec!["minProperties", "maxProperties"]), count.clone())
            .prop_map(|(keyword, count)| json!({ keyword: count })),
        (key(), names).prop_map(|(key, names)| json!({ "dependentRequired": { key: names } })),
        named.prop_map(|named| json!({ "dependentSchemas": named })),
        schema.clone().prop_map(|schema| json!({ "unevaluatedProperties": schema })),
    ];
    let arrays = prop_oneof![
        several.clone().prop_map(|schemas| json!({ "prefixItems": schemas })),
        schema.clone().prop_map(|schema| json!({ "items": schema })),
        (prop::sample::select(vec!["minItems", "maxItems"]), count.clone())
            .prop_map(|(keyword, count)| json!({ keyword: count })),
        (schema.clone(), count.clone(), count).prop_map(|(schema, min, more)| {
            json!({ "contains": schema, "minContains": min, "maxContains": min + more })
        }),
        schema.clone().prop_map(|schema| json!({ "contains": schema })),
        schema.clone().prop_map(|schema| json!({ "unevaluatedItems": schema })),
        prop::collection::vec(scalar(), 1..4)
            .prop_map(|values| json!({ "items": { "enum": values }, "uniqueItems": true })),
        Just(json!({ "uniqueItems": true })),
    ];
    let combined = prop_oneof![
        (prop::sample::select(vec!["allOf", "anyOf", "oneOf"]), several)
            .prop_map(|(keyword, schemas)| json!({ keyword: schemas })),
        schema.clone().prop_map(|schema| json!({ "not": schema })),
        (schema.clone(), schema.clone(), schema)
            .prop_map(|(condition, then, other)| json!({ "if": condition, "then": then, "else": other })),
        prop::sample::select(vec![
            json!({ "$ref": "#/$defs/there" }),
            json!({ "$ref": "#anchor" }),
            json!({ "$dynamicRef": "#dynamic" }),
        ]),
    ];
    prop_oneof![3 => scalars, 3 => objects, 2 => arrays, 2 => combined]
}

/// Schema objects of up to three groups of keywords.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![4 => Just(json!({})), 1 => Just(json!(true)), 1 => Just(json!(false))].boxed();
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop::collection::vec(keyword(inner.boxed()), 1..4).prop_map(|groups| {
            let mut whole = Map::new();
            for group in groups {
                if let Value::Object(members) = group {
                    whole.extend(members);
                }
            }
            Value::Object(whole)
        })
    })
}

/// Formats that are exact here, with strings of them as remarks that instances are made of.
fn format() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!({ "format": "date", "examples": [{ "const": "2024-02-29" }] }),
        json!({ "format": "ipv4", "examples": [{ "const": "127.0.0.1" }] }),
        json!({ "format": "uuid", "examples": [{ "const": "2eb8aa08-aa98-11ea-b4aa-73b441d16380" }] }),
    ])
}

/// A schema with another one to refer to; references inside that one would be loops.
fn whole() -> impl Strategy<Value = Value> {
    (schema(), scalar()).prop_map(|(mut whole, there)| {
        if let Value::Object(members) = &mut whole {
            let values = json!([there, { "a": 1 }, [1]]);
            let there = json!({ "$anchor": "anchor", "$dynamicAnchor": "dynamic", "enum": values });
            members.insert("$defs".to_owned(), json!({ "there": there }));
        }
        whole
    })
}

fn change() -> impl Strategy<Value = Change> {
    let key = prop::sample::select(&KEYS[..]).prop_map(str::to_owned);
    (any::<u16>(), any::<u8>(), key, instance()).prop_map(|(place, what, key, value)| Change {
        place: place.into(),
        what,
        key,
        value,
    })
}

/// Holds us against the judge on pairs of one schema, and counts them. A refused schema has none.
fn compare(
    schema: &Value,
    mut instances: Vec<Value>,
    changes: &[Change],
    counts: &RefCell<Counts>,
) -> Result<(), TestCaseError> {
    let judge = jsonschema::draft202012::options().should_validate_formats(true).build(schema);
    let judge = judge.expect("a schema");
    let ours = match Schema::new(&checking(), &schema.to_string()) {
        Ok(ours) => Some(ours),
        Err(error) if *error.kind() == SchemaErrorKind::NoInstance => None,
        // Counted by the suites; here only answers are held against the judge's.
        Err(error) => {
            prop_assert!(
                matches!(error.kind(), SchemaErrorKind::Unsupported | SchemaErrorKind::Limit),
                "{error}"
            );
            return Ok(());
        }
    };
    // A schema that compiles in one spelling of numbers compiles in the other.
    let plain = ours.as_ref().map(|_| Schema::new(&plain::plainly(), &schema.to_string()).expect("a schema"));
    let mut likely = Vec::new();
    named(schema, &mut likely);
    likely.truncate(12);
    // Both kinds in turn, since the first valid ones are taken.
    instances.extend(likely);
    let middle = instances.len() / 2;
    instances.rotate_left(middle);
    let pairs = pairs(&judge, &instances, changes);
    counts.borrow_mut().add(schema, &pairs);
    let others = instances.into_iter().map(|instance| {
        let valid = judge.is_valid(&instance);
        (instance, valid)
    });
    for (instance, valid) in pairs.into_iter().chain(others) {
        let accepted = ours.as_ref().is_some_and(|ours| ours.accepts(&instance.to_string()));
        prop_assert_eq!(accepted, valid, "{} under {}", instance, schema);
        let Some(plain) = &plain else { continue };
        let text = plain::plain(&instance);
        prop_assert_eq!(plain.accepts(&text), valid, "{} plainly under {}", text, schema);
        for odd in plain::odd(&instance) {
            prop_assert!(!plain.accepts(&odd), "{} plainly under {}", odd, schema);
        }
    }
    Ok(())
}

/// The engine accepts what the judge calls valid, and nothing else. A long run also has enough pairs of every
/// keyword, valid and invalid ones.
#[test]
fn engine_accepts_what_the_crate_jsonschema_calls_valid() {
    let mut config = ProptestConfig::with_source_file(file!());
    config.failure_persistence = Some(Box::new(FileFailurePersistence::WithSource("regressions")));
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 400;
    }
    let counts = RefCell::new(Counts::default());
    let drawn = (whole(), prop::collection::vec(instance(), 16), prop::collection::vec(change(), 24));
    TestRunner::new(config)
        .run(&drawn, |(schema, instances, changes)| compare(&schema, instances, &changes, &counts))
        .unwrap_or_else(|error| panic!("{error}"));
    let Counts { all: [valid, invalid], keywords } = counts.into_inner();
    let pairs = valid + invalid;
    println!("{pairs} pairs, {}% valid", valid * 100 / pairs);
    for (keyword, [valid, invalid]) in &keywords {
        println!("{keyword}: {}, {}% valid", valid + invalid, valid * 100 / (valid + invalid).max(1));
    }
    if pairs < 50_000 {
        return;
    }
    let few = |[valid, invalid]: [usize; 2]| {
        let sum = valid + invalid;
        sum * 100 < pairs || !(30..=70).contains(&(valid * 100 / sum.max(1)))
    };
    let few: Vec<_> = keywords.iter().filter(|(_, counts)| few(**counts)).collect();
    assert!(few.is_empty(), "{few:?}");
    assert!(pairs * 30 <= valid * 100 && valid * 100 <= pairs * 70, "{valid} of {pairs} are valid");
}
