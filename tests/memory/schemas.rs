//! Schemas of MaskBench, and grammars whose automata are large.

use std::{env, fs, path::Path};

use domino::Syntax;
use serde_json::{Map, Value, json};

/// A grammar, and texts of it or nearly.
pub(crate) struct Case {
    pub(crate) syntax: Syntax,
    pub(crate) text: String,
    pub(crate) instances: Vec<String>,
}

/// Up to `most` schemas of MaskBench, spread over all, with an instance each; `None` if the data is missing.
pub(crate) fn mask_bench(most: usize) -> Option<Vec<Case>> {
    let named = env::var_os("DOMINO_SHARED");
    let root =
        named.as_ref().map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"), Into::into);
    let file = root.join("data/jsonschema/maskbench_sample.jsonl");
    if !file.exists() {
        assert!(named.is_none(), "{} is not there, and DOMINO_SHARED says that it is", file.display());
        println!("SKIPPED: {} is not there", file.display());
        return None;
    }
    let text = fs::read_to_string(file).expect("the file can be read");
    let step = (2_000 / most).max(1);
    let case = |line: &str| {
        let row: Value = serde_json::from_str(line).expect("a row");
        let valid = |test: &&Value| test["valid"] == Value::Bool(true);
        let tests = row["tests"].as_array().into_iter().flatten().filter(valid);
        let instances = tests.take(1).map(|test| test["data"].to_string()).collect();
        Case { syntax: Syntax::JsonSchema, text: row["schema"].to_string(), instances }
    };
    Some(text.lines().step_by(step).take(most).map(case).collect())
}

/// Patterns of a few thousand states each, different for each `number`; 450 of them are 26 KB of text.
pub(crate) fn counted_patterns(number: usize, count: usize) -> String {
    let pattern = |at: usize| json!({ "type": "string", "pattern": format!("[ab]x.{{8}}{number}q{at}$") });
    let properties: Map<String, Value> = (0..count).map(|at| (format!("p{at}"), pattern(at))).collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": false }).to_string()
}

/// Grammars that are large for the length of their text, each in another way.
pub(crate) fn hostile() -> Vec<Case> {
    let schema = |schema: Value, instance: &str| Case {
        syntax: Syntax::JsonSchema,
        text: schema.to_string(),
        instances: vec![instance.to_owned()],
    };
    let words: Vec<String> = (0..4_000).map(|number| format!("word {}", number * 7_919 % 100_003)).collect();
    let keys = (0..600).map(|key| (format!("key{key}"), json!({ "type": "integer", "minimum": key })));
    let lengths = (0..60).map(|key| (format!("k{key}"), json!({ "type": "string", "maxLength": 900 + key })));
    let formats = ["uri", "date-time", "email", "hostname", "ipv6", "iri", "uri-template", "duration"];
    let formats = formats.map(|name| json!({ "type": "string", "format": name }));
    let ambiguous = "root ::= (a | b | c)*\na ::= [a-z]+ \" \"?\nb ::= [a-m0-9]+\nc ::= \"(\" root \")\"";
    vec![
        schema(serde_json::from_str(&counted_patterns(1_000, 40)).expect("a schema"), r#"{"p0":"ax12345678"#),
        schema(json!({ "enum": words }), r#""word 79"#),
        schema(json!({ "properties": keys.collect::<Map<_, _>>() }), r#"{"key7":12,"key9":99,"o":[{}]}"#),
        schema(
            json!({ "properties": lengths.collect::<Map<_, _>>() }),
            r#"{"k3":"what one might write","k4":""}"#,
        ),
        schema(json!({ "items": { "anyOf": formats } }), r#"["http://a.b/c?d=e","2024-01-01T00:00:00Z"]"#),
        schema(
            json!({ "uniqueItems": true, "items": { "type": "array" } }),
            r#"[[1,[2,{"a":[]}]],[3],["x"]]"#,
        ),
        Case {
            syntax: Syntax::Gbnf,
            text: ambiguous.to_owned(),
            instances: vec!["abc 12 (ab(c))a1".to_owned()],
        },
        Case { syntax: Syntax::Regex, text: "(a|b)*a(a|b){9}".to_owned(), instances: vec!["abab".repeat(9)] },
    ]
}
