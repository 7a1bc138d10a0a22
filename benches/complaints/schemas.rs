//! Named complaints about JSON Schema: lengths, many members, values and alternatives, recursion, ranges.

use std::{env, path::Path, time::Instant};

use domino::{
    CompiledGrammar, Compiler, Limits, TokenId, Vocabulary,
    grammar::json_schema::{Escapes, Format, Numbers, Order, SchemaOptions},
};
use serde_json::{Map, Value, json};

/// A schema of a complaint, and an instance of it.
struct Complaint {
    name: &'static str,
    order: Order,
    schema: Value,
    instance: Value,
}

/// New compilers that each schema is measured with; medians are printed.
const ROUNDS: usize = 5;

/// Prints times of each schema on the largest vocabulary at hand, beside a plain schema along the same text.
pub(super) fn measure(shipped: &Vocabulary) {
    let real =
        env::var_os("DOMINO_SHARED").map(|shared| Path::new(&shared).join("data/tokenizers/tekken-131k"));
    let real = real.filter(|folder| folder.is_dir());
    let vocabulary = match &real {
        Some(folder) => &Vocabulary::from_tokenizer_file(folder).expect("a vocabulary"),
        None => shipped,
    };
    let size = vocabulary.text_tokens().count();
    println!("5. JSON Schemas, {size} tokens, medians of {ROUNDS}");
    println!(
        "   ms to the first mask, of a new compiler and of one prepared for schemas, where compiling takes;"
    );
    println!("   us a mask along a first text of the second (mean, slowest) and a second one (mean);");
    println!(
        "   `x`: beside the plain schema's, the first line; `same`: beside those of a plain schema along the"
    );
    println!("   same text, which has its members and the types of their values");
    let mut first = None;
    for complaint in complaints() {
        let instance = &complaint.instance;
        let tokens = super::tokens(vocabulary, &instance.to_string());
        let text = complaint.schema.to_string();
        let any = SchemaOptions::default().with_numbers(Numbers::Any).with_escapes(Escapes::All);
        let any = any.with_format(Format::Assert);
        let options = any.clone().with_order(complaint.order);
        let [taken, beside] =
            [(&options, &text), (&any, &plain(instance).to_string())].map(|(options, schema)| {
                let rounds: Vec<Taken> =
                    (0..ROUNDS).map(|_| time(vocabulary, options, schema, &tokens)).collect();
                move |what: fn(&Taken) -> f64| {
                    let mut figures: Vec<f64> = rounds.iter().map(what).collect();
                    figures.sort_by(f64::total_cmp);
                    figures[ROUNDS / 2]
                }
            });
        let masks = taken(|taken| taken.masks);
        println!(
            "   {:32} cold {:7.2}  prepared {:7.2}  compile {:7.2}  \
             masks {:7.2} {:8.1}  x {:5.2}  same {:6.2}  again {:5.2}",
            complaint.name,
            taken(|taken| taken.cold),
            taken(|taken| taken.prepared),
            taken(|taken| taken.compile),
            masks,
            taken(|taken| taken.slowest),
            masks / *first.get_or_insert(masks),
            masks / beside(|taken| taken.masks),
            taken(|taken| taken.again),
        );
    }
}

/// Times of one schema: milliseconds to the first mask, and microseconds for each later one.
struct Taken {
    cold: f64,
    prepared: f64,
    compile: f64,
    masks: f64,
    slowest: f64,
    again: f64,
}

fn time(vocabulary: &Vocabulary, options: &SchemaOptions, schema: &str, tokens: &[TokenId]) -> Taken {
    let (_, cold, _) = first_mask(&Compiler::new(vocabulary.clone()), options, schema);
    let compiler = Compiler::new(vocabulary.clone());
    let kinds =
        options.kinds_of_values_with(&Limits::default(), compiler.automata()).expect("a schema").grammar;
    compiler.prepare(&kinds).expect("a grammar");
    let (compile, prepared, compiled) = first_mask(&compiler, options, schema);
    let (masks, slowest) = self::masks(&compiled, tokens);
    let (again, _) = self::masks(&compiled, tokens);
    Taken { cold, prepared, compile, masks, slowest, again }
}

/// A schema with the members of an instance, all required, and the types of their values.
fn plain(instance: &Value) -> Value {
    match instance {
        Value::Object(members) => {
            object(members.iter().map(|(key, value)| (key.clone(), plain(value))), true)
        }
        Value::Array(items) => match items.first() {
            Some(item) => json!({ "type": "array", "items": plain(item) }),
            None => json!({ "type": "array" }),
        },
        Value::String(_) => json!({ "type": "string" }),
        Value::Number(_) => json!({ "type": "integer" }),
        Value::Bool(_) => json!({ "type": "boolean" }),
        Value::Null => json!({ "type": "null" }),
    }
}

/// Milliseconds from a schema's text to the compiled grammar and to a first mask.
fn first_mask(compiler: &Compiler, options: &SchemaOptions, text: &str) -> (f64, f64, CompiledGrammar) {
    let start = Instant::now();
    let limits = Limits::default();
    let grammar = options.parse_with(text, &limits, compiler.automata()).expect("a schema").grammar;
    let compiled = compiler.compile(&grammar).expect("a grammar");
    let compile = start.elapsed().as_secs_f64() * 1e3;
    compiled.constraint().mask().expect("a mask");
    (compile, start.elapsed().as_secs_f64() * 1e3, compiled)
}

/// Mean and slowest mask along a text, in microseconds.
fn masks(compiled: &CompiledGrammar, tokens: &[TokenId]) -> (f64, f64) {
    let mut constraint = compiled.constraint();
    let (mut sum, mut slowest) = (0.0, 0.0_f64);
    for &token in tokens {
        let start = Instant::now();
        std::hint::black_box(constraint.mask().expect("a mask"));
        let mask = start.elapsed().as_secs_f64() * 1e6;
        sum += mask;
        slowest = slowest.max(mask);
        constraint.advance(token).expect("a token of the instance");
    }
    constraint.mask().expect("a mask at the end");
    assert!(constraint.is_complete(), "the instance is not one of its schema");
    (sum / tokens.len() as f64, slowest)
}

/// An object schema with these members, all of them required or none.
fn object(members: impl Iterator<Item = (String, Value)>, required: bool) -> Value {
    let members: Map<String, Value> = members.collect();
    let names: Vec<String> = members.keys().filter(|_| required).cloned().collect();
    json!({ "type": "object", "properties": members, "required": names, "additionalProperties": false })
}

/// Sixty members with a string, an integer or a Boolean each.
fn sixty() -> Value {
    object((0..60).map(|at| (format!("field_{at}"), kind(at))), false)
}

fn kind(at: usize) -> Value {
    let kind = ["string", "integer", "boolean"][at % 3];
    json!({ "type": kind })
}

/// Values of every fourth of sixty members, the last first if they are `turned`.
fn some_of_sixty(turned: bool) -> Value {
    let value = |at: usize| [json!("Ada Lovelace"), json!(1815), json!(true)][at % 3].clone();
    let places: Vec<usize> = (0..60).step_by(4).collect();
    let in_order = places.iter().map(|&at| (format!("field_{at}"), value(at)));
    if turned { Value::Object(in_order.rev().collect()) } else { Value::Object(in_order.collect()) }
}

fn complaints() -> Vec<Complaint> {
    let of = |name, schema, instance| Complaint { name, order: Order::Schema, schema, instance };
    let words = "The quick brown fox jumps over the lazy dog. ".repeat(20);
    let member = |name: &str, schema: Value| json!({ "type": "object", "properties": { name: schema } });
    let plain = object(
        ["name", "born", "alive"].into_iter().enumerate().map(|(at, key)| (key.into(), kind(at))),
        true,
    );
    let shapes = (0..40).map(|at| {
        object(
            [("kind".into(), json!({ "const": format!("shape {at}") })), (format!("size_{at}"), kind(1))]
                .into_iter(),
            true,
        )
    });
    let shapes = json!({ "anyOf": shapes.collect::<Vec<_>>() });
    let values: Vec<String> =
        (0..1000).map(|at| format!("{:03}-{}", at * 7919 % 1000, "abcdefgh".repeat(at % 3))).collect();
    let tree = json!({
        "$ref": "#/$defs/node",
        "$defs": { "node": {
            "type": "object", "required": ["value"],
            "properties": {
                "value": { "type": "integer" },
                "children": { "type": "array", "items": { "$ref": "#/$defs/node" } },
            },
        } },
    });
    let leaf = json!({ "value": 3, "children": [] });
    let grown = json!({ "value": 1, "children": [leaf, { "value": 2, "children": [leaf, leaf] }, leaf] });
    let value = values[500].clone();
    let parts =
        |most: u64| json!({ "type": "string", "pattern": "^[a-z]+(-[a-z0-9]+)*$", "maxLength": most });
    let range =
        json!({ "type": "integer", "minimum": 123_456_789_012_345_u64, "maximum": 987_654_321_098_765_u64 });
    let functions = (0..128).map(|tool| {
        let members = (0..20).map(|at| (format!("p{tool}_{at}"), kind(at)));
        let name = json!({ "const": format!("tool_{tool}") });
        object([("name".into(), name), ("arguments".into(), object(members, false))].into_iter(), true)
    });
    let call = json!({ "name": "tool_77", "arguments": { "p77_0": "Ada", "p77_1": 36, "p77_2": true } });
    vec![
        of("plain", plain.clone(), json!({ "name": "Ada Lovelace", "born": 1815, "alive": false })),
        of("plain, a long text", plain, json!({ "name": words, "born": 1815, "alive": false })),
        of(
            "maxLength 100,000",
            member("text", json!({ "type": "string", "maxLength": 100_000 })),
            json!({ "text": words }),
        ),
        of(
            "pattern with maxLength 500",
            member("slug", parts(500)),
            json!({ "slug": "the-quick-brown-fox-2".repeat(20) }),
        ),
        of("60 optional properties", sixty(), some_of_sixty(false)),
        Complaint {
            name: "60 properties in any order",
            order: Order::Any,
            schema: sixty(),
            instance: some_of_sixty(true),
        },
        of("enum of 1,000 values", member("code", json!({ "enum": values })), json!({ "code": value })),
        of("anyOf of 40 objects", shapes, json!({ "kind": "shape 27", "size_27": 5 })),
        of("recursive tree", tree, grown),
        of("range of 15 digits", member("id", range), json!({ "id": 555_555_555_555_555_u64 })),
        of("128 functions of 20 properties", json!({ "anyOf": functions.collect::<Vec<_>>() }), call),
    ]
}
