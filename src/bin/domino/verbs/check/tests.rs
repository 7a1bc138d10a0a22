//! Comparisons of explanations with suites of valid and invalid instances, and with the engine.

use std::path::Path;

use domino::grammar::json_schema::{Draft, DuplicateKeys, Format, SchemaOptions};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use super::{
    faults::explain,
    texts::{Verdict, explained, judge},
};
use crate::{
    flags::schema,
    grammar::compiler::{self, byte_vocabulary},
};

/// A schema of a suite with its instances.
#[derive(Deserialize)]
struct Case {
    #[serde(default)]
    draft: String,
    schema: Value,
    tests: Vec<Test>,
}

#[derive(Deserialize)]
struct Test {
    data: Value,
    valid: bool,
}

fn cases(file: &str) -> Vec<Case> {
    let root = std::env::var_os("DOMINO_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"), Into::into);
    let Ok(text) = std::fs::read_to_string(root.join("data/jsonschema").join(file)) else {
        println!("skipped: {file} is not there");
        return Vec::new();
    };
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn judged(schema: &str, options: &SchemaOptions, text: &str) -> Option<Verdict> {
    let parsed = options.parse_with(schema, &compiler::limits(), compiler::automata()).ok()?;
    let compiled = compiler::compiler(byte_vocabulary().unwrap()).compile(&parsed.grammar).ok()?;
    judge(&compiled, text.as_bytes()).ok()
}

fn options(draft: &str) -> SchemaOptions {
    let options = schema::for_checking().with_format(Format::Annotate);
    match draft {
        "draft4" => options.with_draft(Draft::Draft4),
        "draft6" => options.with_draft(Draft::Draft6),
        "draft7" => options.with_draft(Draft::Draft7),
        "draft2019-09" => options.with_draft(Draft::Draft201909),
        _ => options,
    }
}

/// Counts invalid instances, and those that are explained; valid ones, and beginnings of them, never are.
fn held(file: &str, step: usize) -> (usize, usize) {
    let (mut told, mut invalid) = (0, 0);
    for case in cases(file).into_iter().step_by(step) {
        let (options, schema) = (options(&case.draft), case.schema.to_string());
        for Test { data, valid } in case.tests {
            let text = data.to_string();
            let faults = explain(&schema, &options, &text, false);
            if !valid {
                invalid += 1;
                told += usize::from(!faults.is_empty());
                continue;
            }
            assert!(faults.is_empty(), "{schema}\n{text}\n{faults:?}");
            // A number by itself is whole wherever it is cut.
            if !data.is_array() && !data.is_object() {
                continue;
            }
            for cut in (0..text.len()).step_by(1 + text.len() / 7).filter(|&cut| text.is_char_boundary(cut)) {
                let begun = &text[..cut];
                let faults = explain(&schema, &options, begun, false);
                assert!(faults.is_empty(), "{schema}\n{begun}\n{faults:?}");
            }
        }
    }
    println!("{file}: {told} of {invalid} explained");
    (told, invalid)
}

#[test]
fn valid_instances_of_the_official_suite_are_never_wrong() {
    let (told, invalid) = held("official_suite.jsonl", 3);
    // Unexplained instances have formats that are only annotations here, references to other documents or
    // names, or keywords that are not looked at.
    assert!(told * 5 >= invalid * 2, "{told} of {invalid}");
}

#[test]
fn valid_instances_of_real_schemas_are_never_wrong() {
    let (told, invalid) = held("maskbench_sample.jsonl", 40);
    assert!(told * 4 >= invalid * 3, "{told} of {invalid}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// For schemas of known keywords, instances that the engine accepts have no faults, and those that it
    /// refuses have some.
    #[test]
    fn the_engine_is_never_contradicted(
        age in proptest::sample::select(vec!["1", "-1", "120", "121", "1.5", "\"x\"", "null"]),
        name in prop_oneof![Just("\"\""), Just("\"ab\""), Just("\"abcd\""), Just("7")],
        list in proptest::sample::select(vec!["[]", "[1]", "[1,2]", "[1,1]", "[true]", "[1,2,3,4]"]),
        left_out in 0_usize..5,
        more in any::<bool>(),
    ) {
        let schema = r##"{"type": "object", "required": ["age", "name"], "additionalProperties": false,
            "properties": {"age": {"type": ["integer", "null"], "minimum": 0, "exclusiveMaximum": 121},
            "name": {"anyOf": [{"type": "string", "minLength": 1, "maxLength": 3}, {"const": 7}]},
            "list": {"type": "array", "items": {"$ref": "#/properties/age"}, "minItems": 1, "maxItems": 3,
            "uniqueItems": true}}}"##;
        let members = [("age", age), ("name", name), ("list", list)];
        let members = members.iter().enumerate().filter(|(index, _)| *index != left_out);
        let member = |(_, (key, value)): (usize, &(&str, &str))| format!("\"{key}\":{value}");
        let mut members: Vec<String> = members.map(member).collect();
        if more {
            members.push("\"more\":1".to_owned());
        }
        let text = format!("{{{}}}", members.join(","));
        let options = schema::for_checking();
        let verdict = judged(schema, &options, &text).unwrap();
        let faults = explain(schema, &options, &text, false);
        prop_assert_eq!(verdict.accepted(false), faults.is_empty(), "{} {:?}", text, faults);
        prop_assert_eq!(explained(Some((schema, &options)), &verdict, text.as_bytes()), faults);
    }
}

#[test]
fn doubled_keys_are_no_fault_where_they_are_allowed() {
    let (schema, text) = ("{}", r#"{"a": 1, "a": 2}"#);
    let mut options = schema::for_checking();
    assert_eq!(explain(schema, &options, text, false).len(), 1);
    options.duplicate_keys = DuplicateKeys::Allow;
    assert!(explain(schema, &options, text, false).is_empty());
}
