//! Objects under conditions, held against validation by the letter.

use domino::{
    CompiledGrammar, Compiler, Limits, TokenId, Vocabulary,
    grammar::json_schema::{Escapes, Numbers, Order, SchemaOptions, WhiteSpace},
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Validates an instance by the letter, for the keywords of the schemas here.
fn is_valid(schema: &Value, instance: &Value) -> bool {
    let Some(schema) = schema.as_object() else { return schema == &json!(true) };
    let empty = Map::new();
    let members = instance.as_object();
    let of = |keyword: &str| schema.get(keyword);
    let objects = members.unwrap_or(&empty);
    let listed = of("properties").and_then(Value::as_object).unwrap_or(&empty);
    let patterned = of("patternProperties").and_then(Value::as_object).unwrap_or(&empty);
    let count = |list: &Value| list.as_array().unwrap().iter().filter(|one| is_valid(one, instance)).count();
    let names = |list: &Value| {
        list.as_array().unwrap().iter().all(|name| objects.contains_key(name.as_str().unwrap()))
    };
    let matches = |pattern: &str, name: &str| name.starts_with(pattern.trim_start_matches('^'));
    schema.iter().all(|(keyword, value)| match keyword.as_str() {
        "type" => match value.as_str().unwrap() {
            "object" => members.is_some(),
            "string" => instance.is_string(),
            other => panic!("{other}"),
        },
        "const" => instance == value,
        "enum" => value.as_array().unwrap().contains(instance),
        "not" => !is_valid(value, instance),
        "allOf" => count(value) == value.as_array().unwrap().len(),
        "anyOf" => count(value) > 0,
        "oneOf" => count(value) == 1,
        "if" => of(if is_valid(value, instance) { "then" } else { "else" })
            .is_none_or(|one| is_valid(one, instance)),
        "then" | "else" => true,
        _ if members.is_none() => true,
        "required" => names(value),
        "dependentRequired" => {
            value.as_object().unwrap().iter().all(|(name, then)| !objects.contains_key(name) || names(then))
        }
        "minProperties" => objects.len() as u64 >= value.as_u64().unwrap(),
        "maxProperties" => objects.len() as u64 <= value.as_u64().unwrap(),
        "properties" => {
            listed.iter().all(|(name, one)| objects.get(name).is_none_or(|value| is_valid(one, value)))
        }
        "patternProperties" => patterned.iter().all(|(pattern, one)| {
            objects.iter().all(|(name, value)| !matches(pattern, name) || is_valid(one, value))
        }),
        "additionalProperties" => objects.iter().all(|(name, member)| {
            listed.contains_key(name)
                || patterned.keys().any(|one| matches(one, name))
                || is_valid(value, member)
        }),
        other => panic!("{other}"),
    })
}

/// The schema of a member.
fn value() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!({ "const": "x" }),
        json!({ "const": "x" }),
        json!({ "const": "y" }),
        json!({ "enum": ["x", 1] }),
        json!({ "type": "string" }),
        json!({ "not": { "const": "y" } }),
        json!({ "type": "object", "properties": { "k": { "const": 1 } } }),
        json!({
            "type": "object",
            "properties": { "k": { "const": 1 }, "l": {} },
            "additionalProperties": false,
        }),
        json!(true),
        json!(false),
    ])
}

/// A schema of objects: members that may be there or must, closed or open, counted, in either order.
fn object() -> impl Strategy<Value = Value> {
    let names = prop::sample::subsequence(vec!["a", "b", "c"], 0..=3).prop_shuffle();
    let required = prop::sample::subsequence(vec!["a", "b", "c", "zz"], 0..=4);
    let others = prop::option::weighted(0.4, prop_oneof![3 => Just(json!(false)), 1 => value()]);
    let counts = (prop::option::weighted(0.1, 0..4_u64), prop::option::weighted(0.1, 0..4_u64));
    let counts = (counts, prop::option::weighted(0.1, value()), any::<bool>());
    (names, prop::collection::vec(value(), 3), required, 0..4_u8, others, counts).prop_map(
        |(names, values, required, ask, others, ((min, max), pattern, typed))| {
            let mut schema = Map::new();
            let properties: Map<String, Value> =
                names.iter().zip(values).map(|(name, value)| ((*name).to_owned(), value)).collect();
            if typed {
                schema.insert("type".into(), json!("object"));
            }
            if !properties.is_empty() {
                schema.insert("properties".into(), properties.into());
            }
            let some = [("additionalProperties", others), ("minProperties", min.map(Value::from))];
            let some = some.into_iter().chain([("maxProperties", max.map(Value::from))]);
            for (keyword, value) in some {
                value.into_iter().for_each(|value| {
                    schema.insert(keyword.into(), value);
                });
            }
            if ask == 0 {
                schema.insert("required".into(), json!(required));
            }
            if let Some(pattern) = pattern {
                schema.insert("patternProperties".into(), json!({ "^z": pattern }));
            }
            Value::from(schema)
        },
    )
}

fn choice() -> impl Strategy<Value = Value> {
    let some = |low, high| prop::collection::vec(object(), low..=high);
    let names = || prop::sample::select(vec!["a", "b", "c", "zz"]);
    prop_oneof![
        some(2, 3).prop_map(|list| json!({ "anyOf": list })),
        some(2, 4).prop_map(|list| json!({ "oneOf": list })),
        some(3, 3).prop_map(|list| json!({ "if": list[0], "then": list[1], "else": list[2] })),
        some(2, 2).prop_map(|list| json!({ "if": list[0], "then": list[1] })),
        some(1, 1).prop_map(|list| json!({ "not": list[0] })),
        (names(), names()).prop_map(|(one, other)| json!({ "dependentRequired": { one: [other] } })),
        (some(2, 2), some(2, 2))
            .prop_map(|(one, two)| json!({ "oneOf": [{ "anyOf": one }, { "oneOf": two }] })),
        (some(2, 2), object()).prop_map(|(one, two)| json!({ "not": { "oneOf": one, "allOf": [two] } })),
    ]
}

/// Objects of up to four members, and a value of each other kind.
fn instances() -> Vec<Value> {
    let few = [None, Some(json!("x")), Some(json!("y")), Some(json!(1))];
    let more: Vec<_> =
        few.iter().cloned().chain([json!({}), json!({ "k": 1 }), json!({ "k": 2 })].map(Some)).collect();
    let mut objects = vec![json!({})];
    for (name, values) in [("a", &few[..]), ("b", &few[..3]), ("c", &more[..]), ("zz", &few[..])] {
        let with = |object: &Value, value: &Option<Value>| {
            let mut object = object.clone();
            if let Some(value) = value {
                object[name] = value.clone();
            }
            object
        };
        objects =
            objects.iter().flat_map(|object| values.iter().map(move |value| with(object, value))).collect();
    }
    objects.into_iter().chain([json!("x"), json!(1), json!([]), json!(null)]).collect()
}

/// The texts of an object with its members in every order.
fn spellings(instance: &Value) -> Vec<String> {
    let Some(members) = instance.as_object() else { return vec![instance.to_string()] };
    let members: Vec<String> =
        members.iter().map(|(name, value)| format!("{}:{value}", json!(name))).collect();
    let mut orders = vec![Vec::new()];
    for _ in &members {
        orders = orders
            .iter()
            .flat_map(|order: &Vec<usize>| {
                let left = (0..members.len()).filter(|at| !order.contains(at));
                left.map(|at| [&order[..], &[at]].concat()).collect::<Vec<_>>()
            })
            .collect();
    }
    let text = |order: Vec<usize>| {
        format!("{{{}}}", order.into_iter().map(|at| members[at].clone()).collect::<Vec<_>>().join(","))
    };
    orders.into_iter().map(text).collect()
}

/// The engine of a schema whose alternatives are not multiplied out; `None` for a schema without a value.
fn engine(schema: &Value, order: Order) -> Option<CompiledGrammar> {
    let options = SchemaOptions::default().with_white_space(WhiteSpace::Compact).with_order(order);
    let options = options.with_numbers(Numbers::Any).with_escapes(Escapes::All).with_conditions_alone();
    let grammar = match options.parse(&schema.to_string(), &Limits::default()) {
        Ok(read) => read.grammar,
        Err(error)
            if error.to_string().contains("no value") || error.to_string().contains("must be there") =>
        {
            return None;
        }
        Err(error) => panic!("{error} of {schema}"),
    };
    let end = TokenId::new(256);
    let bytes = Vocabulary::builder().all_bytes().special(end, "<end of text>").end_of_text(end).build();
    Some(Compiler::new(bytes.unwrap()).compile(&grammar).unwrap())
}

fn accepts(engine: &CompiledGrammar, text: &str) -> bool {
    let mut state = engine.constraint();
    state.advance_bytes(text.as_bytes()).unwrap() == text.len() && state.is_complete()
}

/// Every prefix of a text that the engine takes can be ended, and then is valid.
fn no_dead_ends(schema: &Value, engine: &CompiledGrammar, text: &str) {
    let (mut state, mut taken) = (engine.constraint(), Vec::new());
    for byte in text.bytes() {
        if state.advance_bytes(&[byte]).unwrap() == 0 {
            break;
        }
        let rest = state.shortest_completion().unwrap();
        taken.push(byte);
        let whole = [&taken[..], &rest.bytes[..]].concat();
        let whole: Value = serde_json::from_slice(&whole).unwrap();
        assert!(is_valid(schema, &whole), "{whole} of {schema}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn conditions_are_exact(
        choices in prop::collection::vec(choice(), 1..=3),
        base in prop::option::of(object()),
    ) {
        let schema = json!({ "allOf": choices.into_iter().chain(base).collect::<Vec<_>>() });
        let (any, ordered) = (engine(&schema, Order::Any), engine(&schema, Order::Schema));
        for instance in instances() {
            let valid = is_valid(&schema, &instance);
            let spellings = spellings(&instance);
            for text in &spellings {
                let accepted = any.as_ref().is_some_and(|any| accepts(any, text));
                prop_assert_eq!(accepted, valid, "{} of {}", text, schema);
            }
            let written = |text: &String| ordered.as_ref().is_some_and(|ordered| accepts(ordered, text));
            let accepted = spellings.iter().filter(|text| written(text)).count();
            prop_assert_eq!(accepted > 0, valid, "{} of {}", instance, schema);
        }
        for text in [r#"{"a":"x","b":"y","c":{"k":1},"zz":1}"#, r#"{"zz":"x","c":1,"b":"x","a":1}"#] {
            any.iter().chain(&ordered).for_each(|engine| no_dead_ends(&schema, engine, text));
        }
    }
}
