//! Many alternatives of objects at once, as in published schemas: tagged alternatives, chains of `if`,
//! members that depend on a tag, lists that contain several things.

use domino::Limits;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Schema, checking};

/// Validates an instance by the letter, for the keywords of the schemas here.
fn is_valid(schema: &Value, instance: &Value) -> bool {
    let all = |keyword: &str, holds: &dyn Fn(&Value) -> bool| match &schema[keyword] {
        Value::Null => true,
        value => holds(value),
    };
    let count =
        |list: &Value| list.as_array().unwrap().iter().filter(|part| is_valid(part, instance)).count();
    let branch = |keyword: &str| schema[keyword].is_null() || is_valid(&schema[keyword], instance);
    all("enum", &|values| values.as_array().unwrap().contains(instance))
        && all("not", &|inner| !is_valid(inner, instance))
        && all("required", &|names| {
            names.as_array().unwrap().iter().all(|name| instance.get(name.as_str().unwrap()).is_some())
        })
        && all("properties", &|properties| {
            let mut declared = properties.as_object().unwrap().iter();
            declared.all(|(name, schema)| instance.get(name).is_none_or(|value| is_valid(schema, value)))
        })
        && all("allOf", &|list| count(list) == list.as_array().unwrap().len())
        && all("anyOf", &|list| count(list) > 0)
        && all("oneOf", &|list| count(list) == 1)
        && all("if", &|condition| branch(if is_valid(condition, instance) { "then" } else { "else" }))
}

/// A condition on one of three members.
fn simple() -> impl Strategy<Value = Value> {
    let member = prop::sample::select(vec!["a", "b", "c"]);
    let tags = prop::sample::subsequence(vec!["x", "y", "z"], 1..=2);
    (member, tags, 0..6_usize).prop_map(|(member, tags, kind)| match kind {
        0 => json!({ "properties": { member: { "enum": tags } } }),
        1 => json!({ "properties": { member: { "enum": tags } }, "required": [member] }),
        2 => json!({ "properties": { member: { "not": { "enum": tags } } } }),
        3 => json!({ "required": [member] }),
        4 => json!({ "not": { "required": [member] } }),
        _ => json!({ "properties": { member: { "not": { "enum": tags } } }, "required": [member] }),
    })
}

fn choice() -> impl Strategy<Value = Value> {
    let some = |low, high| prop::collection::vec(simple(), low..=high);
    prop_oneof![
        some(2, 3).prop_map(|list| json!({ "anyOf": list })),
        some(2, 4).prop_map(|list| json!({ "oneOf": list })),
        some(2, 2).prop_map(|list| json!({ "allOf": list })),
        some(3, 3).prop_map(|list| json!({ "if": list[0], "then": list[1], "else": list[2] })),
        (some(2, 3), some(2, 3))
            .prop_map(|(one, two)| json!({ "oneOf": [{ "anyOf": one }, { "oneOf": two }] })),
    ]
}

/// All objects of up to three members.
fn objects() -> Vec<Value> {
    let values =
        [None, Some(json!("x")), Some(json!("y")), Some(json!("z")), Some(json!("other")), Some(json!(1))];
    let mut objects = vec![json!({})];
    for member in ["a", "b", "c"] {
        objects = objects
            .iter()
            .flat_map(|object| {
                values.iter().map(move |value| {
                    let mut object = object.clone();
                    if let Some(value) = value {
                        object[member] = value.clone();
                    }
                    object
                })
            })
            .collect();
    }
    objects
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn several_choices_of_objects_hold_together(choices in prop::collection::vec(choice(), 2..=5)) {
        let schema = json!({ "type": "object", "allOf": choices });
        // A schema without any instance is an error.
        let engine = Schema::new(&checking(), &schema.to_string());
        for object in objects() {
            let accepted = engine.as_ref().is_ok_and(|engine| engine.accepts(&object.to_string()));
            prop_assert_eq!(accepted, is_valid(&schema, &object), "{} of {}", object, schema);
        }
    }
}

/// Compares decisions with validation by the letter.
fn check(schema: &Value, instances: &[Value]) {
    let engine = Schema::new(&checking(), &schema.to_string()).unwrap_or_else(|error| panic!("{error}"));
    for instance in instances {
        let valid = is_valid(schema, instance);
        assert_eq!(engine.accepts(&instance.to_string()), valid, "{instance} of {schema}");
    }
}

/// 120 conditions on one tag, each with members of its own.
#[test]
fn a_chain_of_conditions_on_a_tag_is_exact() {
    let chain: Vec<Value> = (0..120)
        .map(|at| {
            json!({
                "if": { "properties": { "type": { "enum": [format!("kind.{at}")] } } },
                "then": { "properties": { format!("p{}", at % 7): { "enum": [at] } } },
            })
        })
        .collect();
    let schema = json!({ "type": "object", "allOf": chain });
    check(
        &schema,
        &[
            json!({ "type": "kind.3", "p3": 3 }),
            json!({ "type": "kind.3", "p3": 10 }),
            json!({ "type": "kind.10", "p3": 10, "p4": 5 }),
            json!({ "type": "none", "p3": "any" }),
            json!({ "p3": 3 }),
            json!({ "x": 3 }),
        ],
    );
}

/// Alternatives told apart by a tag that need not be present.
#[test]
fn alternatives_with_optional_tags_are_exact() {
    let kinds = |at: usize| {
        let tag = format!("t{at}");
        json!({ "properties": { "type": { "enum": [tag] }, "size": { "enum": [1] } } })
    };
    let inner: Vec<Value> = (0..40).map(kinds).collect();
    let other = json!({ "properties": { "type": { "not": { "enum": ["t0", "t1", "t2"] } } } });
    let base = json!({ "required": ["type"], "properties": { "type": { "not": { "enum": ["t9"] } } } });
    let instances = [
        json!({ "type": "t5", "size": 1 }),
        json!({ "type": "t1", "size": 1 }),
        json!({ "type": "t1", "size": 2 }),
        json!({ "type": "t9", "size": 1 }),
        json!({ "type": "u", "size": 2 }),
        json!({ "size": 2 }),
    ];
    check(&json!({ "type": "object", "oneOf": [other, { "oneOf": inner }], "allOf": [base] }), &instances);
    check(&json!({ "type": "object", "oneOf": (0..40).map(kinds).collect::<Vec<_>>() }), &instances);
}

/// Twenty members that only some tags allow.
#[test]
fn members_that_depend_on_a_tag_are_exact() {
    let rules: Vec<Value> = (0..20)
        .map(|at| {
            let tags = [format!("t{}", at % 4), "all".to_owned()];
            json!({
                "if": { "required": [format!("m{at}")] },
                "then": { "properties": { "type": { "enum": tags } } },
            })
        })
        .collect();
    check(
        &json!({ "type": "object", "allOf": rules }),
        &[
            json!({ "type": "t1", "m1": 1, "m5": 1, "m17": 1 }),
            json!({ "type": "t1", "m1": 1, "m2": 1 }),
            json!({ "type": "all", "m1": 1, "m2": 1, "m19": 1 }),
            json!({ "m1": 1, "m2": 1 }),
            json!({ "type": 3, "n": 1 }),
            json!({ "type": 3, "m0": 1 }),
        ],
    );
}

#[test]
fn a_list_may_have_to_contain_several_things() {
    let wanted: Vec<Value> = (0..9).map(|at| json!({ "contains": { "const": at } })).collect();
    let engine = Schema::new(&checking(), &json!({ "type": "array", "allOf": wanted }).to_string()).unwrap();
    assert!(engine.accepts("[8,7,6,5,4,3,2,1,0]") && engine.accepts("[0,1,2,3,3,\"x\",4,5,6,7,8,8]"));
    assert!(!engine.accepts("[8,7,6,5,4,3,2,1]") && !engine.accepts("{}"));
}

/// Members with the same pattern, lengths and format have one automaton.
#[test]
fn equal_members_of_a_schema_share_one_automaton() {
    let expressions = |members: usize| {
        let words = json!({ "type": "string", "pattern": r"^(\S+\s){0,9}\S+$", "maxLength": 200 });
        let (words, date) = (words.to_string(), r#"{ "type": "string", "format": "date-time" }"#);
        let members: Vec<String> =
            (0..members).map(|at| format!(r#""a{at}": {words}, "b{at}": {date}"#)).collect();
        let schema = format!(r#"{{ "properties": {{ {} }} }}"#, members.join(","));
        checking().parse(&schema, &Limits::default()).unwrap().grammar.exprs().len()
    };
    assert!(expressions(20) - expressions(1) < 19 * 2 * 8);
}
