//! Hostile schemas: an answer in bounded time, never a panic.

use std::time::{Duration, Instant};

use domino::{Limits, grammar::json_schema::SchemaOptions};

/// Longest time of an answer, also in a build that is not optimised.
const PATIENCE: Duration = Duration::from_secs(20);

/// Reads a schema; its answer, whatever it is, must come within [`PATIENCE`].
fn answer(name: &str, schema: &str) {
    for lenient in [false, true] {
        let start = Instant::now();
        let result = SchemaOptions::default().with_lenient(lenient).parse(schema, &Limits::default());
        let said = result.map_or_else(|error| error.to_string(), |_| "read".to_owned());
        assert!(start.elapsed() < PATIENCE, "{name}: {:?}: {said}", start.elapsed());
    }
}

/// Nests `open`, `inner` and `close` `levels` times.
fn tower(open: &str, inner: &str, close: &str, levels: usize) -> String {
    open.repeat(levels) + inner + &close.repeat(levels)
}

#[test]
fn towers_of_keywords_end_in_time() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        answer(keyword, &tower(&format!(r#"{{"{keyword}":["#), "{}", "]}", 200));
        let two = format!(r#"{{"{keyword}":[{{"required":["a"]}},"#);
        answer(keyword, &tower(&two, r#"{"required":["b"]}"#, "]}", 100));
    }
    for keyword in ["not", "items", "if", "contains", "additionalProperties", "propertyNames"] {
        answer(keyword, &tower(&format!(r#"{{"{keyword}":"#), "{}", "}", 250));
    }
    answer("brackets", &"[".repeat(1_000_000));
    answer("not JSON", &tower(r#"{"not":"#, "{}", "}", 100_000));
}

#[test]
fn products_of_alternatives_end_in_time() {
    let alternatives: Vec<String> = (0..12)
        .map(|number| format!(r#"{{"required":["p{number}"]}},{{"minProperties":{number}}}"#))
        .collect();
    let all: Vec<String> = alternatives.iter().map(|pair| format!(r#"{{"anyOf":[{pair}]}}"#)).collect();
    answer("all of any", &format!(r#"{{"allOf":[{}]}}"#, all.join(",")));
    answer("one of many", &format!(r#"{{"oneOf":[{}]}}"#, alternatives.join(",")));
    answer("not one of many", &format!(r#"{{"not":{{"oneOf":[{}]}}}}"#, alternatives.join(",")));
    let cases: Vec<String> = (0..20)
        .map(|number| format!(r#"{{"properties":{{"p{number}":true}},"required":["p{number}"]}}"#))
        .collect();
    let schema = format!(r#"{{"anyOf":[{}],"unevaluatedProperties":false}}"#, cases.join(","));
    answer("unevaluated", &schema);
    let patterns: Vec<String> =
        (0..16).map(|number| format!(r#""x.*{number}":{{"minimum":{number}}}"#)).collect();
    answer("patterns of keys", &format!(r#"{{"patternProperties":{{{}}}}}"#, patterns.join(",")));
}

#[test]
fn loops_of_references_end_in_time() {
    answer("itself", r##"{"$ref":"#"}"##);
    answer("two", r##"{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##);
    answer("in a choice", r##"{"anyOf":[{"$ref":"#"},{"type":"null"}]}"##);
    answer("in a denial", r##"{"not":{"$ref":"#"}}"##);
    answer("in one of", r##"{"oneOf":[{"type":"null"},{"$ref":"#"}]}"##);
    answer("unevaluated", r##"{"$ref":"#","unevaluatedProperties":false}"##);
    answer("names", r##"{"propertyNames":{"$ref":"#"}}"##);
    let chain: Vec<String> =
        (0..5_000).map(|number| format!(r##""d{number}":{{"$ref":"#/$defs/d{}"}}"##, number + 1)).collect();
    let schema = format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d5000":{{}}}}}}"##, chain.join(","));
    answer("a long chain", &schema);
}

#[test]
fn hostile_numbers_and_counts_end_in_time() {
    for schema in [
        r#"{"multipleOf":1e-300}"#,
        r#"{"multipleOf":1000000007}"#,
        r#"{"multipleOf":0.3,"minimum":1e100}"#,
        r#"{"minimum":1e400}"#,
        r#"{"type":"string","minLength":1000000000}"#,
        r#"{"type":"array","minItems":1000000000}"#,
        r#"{"type":"array","minItems":18446744073709551616}"#,
        r#"{"type":"array","contains":{"type":"null"},"minContains":100000}"#,
        r#"{"type":"object","minProperties":1000000000}"#,
        r#"{"type":"object","maxProperties":100000}"#,
        r#"{"type":"string","pattern":"(((a{0,100}){0,100}){0,100}){0,100}"}"#,
        r#"{"type":"string","pattern":"[a-q][^u-z]{13}x"}"#,
        r#"{"type":"string","pattern":"(a|b)*a(a|b){20}$"}"#,
    ] {
        answer(schema, schema);
    }
    answer("many digits", &format!(r#"{{"minimum":{}}}"#, "9".repeat(400)));
    answer("many digits of a step", &format!(r#"{{"multipleOf":0.{}1}}"#, "0".repeat(400)));
}

#[test]
fn large_schemas_end_in_time() {
    let values: Vec<String> = (0..10_000).map(|number| format!(r#""value {number}""#)).collect();
    answer("values", &format!(r#"{{"enum":[{}]}}"#, values.join(",")));
    let objects: Vec<String> = (0..2_000).map(|number| format!(r#"{{"a":{number}}}"#)).collect();
    answer("objects", &format!(r#"{{"enum":[{}]}}"#, objects.join(",")));
    let members: Vec<String> = (0..5_000).map(|number| format!(r#""p{number}":{{"type":"null"}}"#)).collect();
    answer("members", &format!(r#"{{"properties":{{{}}}}}"#, members.join(",")));
    let title = "x".repeat(10_000_000);
    answer("a long title", &format!(r#"{{"title":"{title}"}}"#));
}
