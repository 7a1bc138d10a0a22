//! Random schemas and instances, judged by the crate `jsonschema`: `cargo test` in this folder, with `PROPTEST_CASES` for
//! more than the few hundred schemas of CI.

use domino::grammar::json_schema::SchemaErrorKind;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

#[path = "../../../../tests/schema/deciding.rs"]
mod deciding;

use deciding::{Schema, checking};

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
        Just(json!({ "uniqueItems": true })),
    ];
    let combined = prop_oneof![
        (prop::sample::select(vec!["allOf", "anyOf", "oneOf"]), several)
            .prop_map(|(keyword, schemas)| json!({ keyword: schemas })),
        schema.clone().prop_map(|schema| json!({ "not": schema })),
        (schema.clone(), schema.clone(), schema)
            .prop_map(|(condition, then, other)| json!({ "if": condition, "then": then, "else": other })),
        Just(json!({ "$ref": "#/$defs/there" })),
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

/// A schema with another one to refer to; references inside that one would be loops.
fn whole() -> impl Strategy<Value = Value> {
    (schema(), scalar()).prop_map(|(mut whole, there)| {
        if let Value::Object(members) = &mut whole {
            members.insert("$defs".to_owned(), json!({ "there": { "enum": [there, { "a": 1 }, [1]] } }));
        }
        whole
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// The engine accepts what the judge calls valid, and nothing else.
    #[test]
    fn agrees(schema in whole(), instances in prop::collection::vec(instance(), 12)) {
        let judge = jsonschema::draft202012::new(&schema).expect("a schema");
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
        for instance in instances {
            let accepted = ours.as_ref().is_some_and(|ours| ours.accepts(&instance.to_string()));
            prop_assert_eq!(accepted, judge.is_valid(&instance), "{} under {}", instance, schema);
        }
    }
}
