//! Schemas made to be costly, by kind: for the tests of time beside this, and for those of memory.

/// A name, and the text of a schema.
pub(crate) type Named = (String, String);

fn named(name: &str, schema: impl Into<String>) -> Named {
    (name.to_owned(), schema.into())
}

/// Nests `open`, `inner` and `close` `levels` times.
fn tower(open: &str, inner: &str, close: &str, levels: usize) -> String {
    open.repeat(levels) + inner + &close.repeat(levels)
}

fn listed(count: usize, one: impl Fn(usize) -> String) -> String {
    (0..count).map(one).collect::<Vec<_>>().join(",")
}

/// Keywords inside of each other.
pub(crate) fn towers() -> Vec<Named> {
    let mut all = Vec::new();
    for keyword in ["allOf", "anyOf", "oneOf"] {
        all.push(named(keyword, tower(&format!(r#"{{"{keyword}":["#), "{}", "]}", 200)));
        let two = format!(r#"{{"{keyword}":[{{"required":["a"]}},"#);
        all.push(named(keyword, tower(&two, r#"{"required":["b"]}"#, "]}", 100)));
    }
    for keyword in ["not", "items", "if", "contains", "additionalProperties", "propertyNames"] {
        all.push(named(keyword, tower(&format!(r#"{{"{keyword}":"#), "{}", "}", 250)));
    }
    all.push(named("brackets", "[".repeat(1_000_000)));
    all.push(named("not JSON", tower(r#"{"not":"#, "{}", "}", 100_000)));
    all
}

/// Alternatives that multiply.
pub(crate) fn products() -> Vec<Named> {
    let pair = |number: usize| format!(r#"{{"required":["p{number}"]}},{{"minProperties":{number}}}"#);
    let all = listed(12, |number| format!(r#"{{"anyOf":[{}]}}"#, pair(number)));
    let one = listed(12, pair);
    let case = |number| format!(r#"{{"properties":{{"p{number}":true}},"required":["p{number}"]}}"#);
    let cases = listed(20, case);
    let patterns = listed(16, |number| format!(r#""x.*{number}":{{"minimum":{number}}}"#));
    vec![
        named("all of any", format!(r#"{{"allOf":[{all}]}}"#)),
        named("one of many", format!(r#"{{"oneOf":[{one}]}}"#)),
        named("not one of many", format!(r#"{{"not":{{"oneOf":[{one}]}}}}"#)),
        named("unevaluated", format!(r#"{{"anyOf":[{cases}],"unevaluatedProperties":false}}"#)),
        named("patterns of keys", format!(r#"{{"patternProperties":{{{patterns}}}}}"#)),
    ]
}

/// References that lead to themselves, or far.
pub(crate) fn references() -> Vec<Named> {
    let chain = listed(5_000, |number| format!(r##""d{number}":{{"$ref":"#/$defs/d{}"}}"##, number + 1));
    let two = r##"{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##;
    vec![
        named("itself", r##"{"$ref":"#"}"##),
        named("two", two),
        named("in a choice", r##"{"anyOf":[{"$ref":"#"},{"type":"null"}]}"##),
        named("in a denial", r##"{"not":{"$ref":"#"}}"##),
        named("in one of", r##"{"oneOf":[{"type":"null"},{"$ref":"#"}]}"##),
        named("unevaluated", r##"{"$ref":"#","unevaluatedProperties":false}"##),
        named("names", r##"{"propertyNames":{"$ref":"#"}}"##),
        named("a long chain", format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{chain},"d5000":{{}}}}}}"##)),
    ]
}

/// Large numbers, and large counts in all keywords that have one.
pub(crate) fn counts() -> Vec<Named> {
    let schemas = [
        r#"{"multipleOf":1e-300}"#,
        r#"{"multipleOf":1000000007}"#,
        r#"{"multipleOf":0.3,"minimum":1e100}"#,
        r#"{"minimum":1e400}"#,
        r#"{"type":"string","minLength":1000000000}"#,
        r#"{"type":"string","minLength":4000000000,"pattern":"^(ab|cde)*$"}"#,
        r#"{"type":"string","minLength":2000000000,"maxLength":4000000000,"pattern":"^x[^\\n]{0,1000}.*$"}"#,
        r#"{"type":"array","minItems":1000000000}"#,
        r#"{"type":"array","minItems":18446744073709551616}"#,
        r#"{"type":"array","contains":{"type":"null"},"minContains":100000}"#,
        r#"{"type":"object","minProperties":1000000000}"#,
        r#"{"type":"object","minProperties":1000000000,"not":{"propertyNames":{"pattern":"^a"}}}"#,
        r#"{"minProperties":4000000000,"not":{"patternProperties":{"^a":{"type":"null"}}},"required":["x"]}"#,
        r#"{"type":"object","maxProperties":100000}"#,
        r#"{"type":"string","pattern":"(((a{0,100}){0,100}){0,100}){0,100}"}"#,
        r#"{"type":"string","pattern":"[a-q][^u-z]{13}x"}"#,
        r#"{"type":"string","pattern":"(a|b)*a(a|b){20}$"}"#,
        r##"{"type":"string","pattern":"^# .{20,600}\\n"}"##,
        r#"{"pattern":"a(-[a-z]+)*:[a-z]{2}(-[a-z]+)+-\\d:[a-z_.-]{1,150}/[a-z0-9]{26}","maxLength":1600}"#,
        r#"{"type":"string","pattern":"^x{19000}[a-z]{3}$"}"#,
        r#"{"type":"string","pattern":"^[^x]{500,1000}x[^y]{500,1000}y$"}"#,
        r#"{"type":"string","pattern":"^(é|ß|[^\\s]){300,900}z?$","maxLength":20000}"#,
    ];
    let mut all: Vec<Named> = schemas.iter().map(|schema| named(schema, *schema)).collect();
    all.push(named("many digits", format!(r#"{{"minimum":{}}}"#, "9".repeat(400))));
    all.push(named("many digits of a step", format!(r#"{{"multipleOf":0.{}1}}"#, "0".repeat(400))));
    all
}

/// Schemas of many parts.
pub(crate) fn large() -> Vec<Named> {
    let values = listed(10_000, |number| format!(r#""value {number}""#));
    let objects = listed(2_000, |number| format!(r#"{{"a":{number}}}"#));
    let members = listed(5_000, |number| format!(r#""p{number}":{{"type":"null"}}"#));
    vec![
        named("values", format!(r#"{{"enum":[{values}]}}"#)),
        named("objects", format!(r#"{{"enum":[{objects}]}}"#)),
        named("members", format!(r#"{{"properties":{{{members}}}}}"#)),
        named("a long title", format!(r#"{{"title":"{}"}}"#, "x".repeat(10_000_000))),
    ]
}
