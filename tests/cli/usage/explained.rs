//! Explanations by `check`, in the schema's words, beside the character that cannot follow.

use serde_json::{Value, json};

use super::{folder, run};
use crate::support::program::{domino_in, last_line};

const SCHEMA: &str = r##"{
    "type": "object", "required": ["name", "city"], "additionalProperties": false,
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 5},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "city": {"$ref": "#/$defs/city"},
        "kind": {"enum": ["a", "b", 3]},
        "one": {"const": {"x": 1}},
        "list": {"type": "array", "items": {"type": ["integer", "null"]}, "minItems": 2, "maxItems": 3},
        "set": {"uniqueItems": true},
        "word": {"type": "string", "pattern": "^[a-z]+$"},
        "day": {"type": "string", "format": "date"},
        "half": {"multipleOf": 0.5},
        "low": {"exclusiveMinimum": 1},
        "map": {"type": "object", "propertyNames": {"maxLength": 2}, "maxProperties": 2,
                "patternProperties": {"^n": {"type": "number"}}},
        "pair": {"prefixItems": [{"type": "string"}, {"type": "boolean"}], "items": false},
        "any": {"anyOf": [{"type": "object", "required": ["k"], "properties": {"k": {"const": "x"}}},
                          {"type": "object", "required": ["k"], "properties": {"k": {"const": "y"},
                           "v": {"type": "string"}}}]},
        "only": {"oneOf": [{"minimum": 1, "type": "integer"}, {"maximum": 5, "type": "integer"}]},
        "no": {"not": {"const": 4}},
        "if": {"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"required": ["c"]}},
        "all": {"allOf": [{"type": "string"}, {"minLength": 3}]},
        "has": {"contains": {"const": 1}},
        "dep": {"dependentRequired": {"a": ["b"]}},
        "a/b~c": {"type": "null"}
    },
    "$defs": {"city": {"type": "string", "minLength": 1}}
}"##;

/// Members with their conditions, their values, and the keyword that is broken.
const FAULTS: &[(&str, &str, &str, &str)] = &[
    ("age", "`130` is over the maximum 120", "130", "#/properties/age/maximum"),
    ("age", "`-1` is under the minimum 0", "-1", "#/properties/age/minimum"),
    ("age", "`\"3\"` is a string, and must be an integer", "\"3\"", "#/properties/age/type"),
    ("kind", "`\"x\"` is not one of `\"a\"`, `\"b\"` or `3`", "\"x\"", "#/properties/kind/enum"),
    ("one", "`{\"x\":2}` is not `{\"x\":1}`", "{\"x\": 2}", "#/properties/one/const"),
    ("list", "the array has 1 item, and at least 2 must be there", "[1]", "#/properties/list/minItems"),
    ("list", "the array has 4 items, and at most 3 may be there", "[1,2,3,4]", "#/properties/list/maxItems"),
    ("set", "`2` is there twice: item 0 is equal", "[2, 1, 2]", "#/properties/set/uniqueItems"),
    ("word", "`\"A1\"` does not match the pattern \"^[a-z]+$\"", "\"A1\"", "#/properties/word/pattern"),
    ("day", "`\"2020-13-01\"` is not of the format \"date\"", "\"2020-13-01\"", "#/properties/day/format"),
    ("half", "`0.25` is no multiple of 0.5", "0.25", "#/properties/half/multipleOf"),
    ("low", "`1` is the exclusive minimum itself", "1", "#/properties/low/exclusiveMinimum"),
    (
        "map",
        "the object has 3 keys, and at most 2 may be there",
        "{\"a\":1,\"b\":1,\"c\":1}",
        "#/properties/map/maxProperties",
    ),
    ("only", "fits more than one of `oneOf`", "3", "#/properties/only/oneOf"),
    ("no", "`4` is what `not` forbids", "4", "#/properties/no/not"),
    ("if", "missing required key `b`", "{\"a\": 1}", "#/properties/if/then/required"),
    ("if", "missing required key `c`", "{}", "#/properties/if/else/required"),
    (
        "all",
        "the string has 1 character, and at least 3 must be there",
        "\"x\"",
        "#/properties/all/allOf/1/minLength",
    ),
    ("has", "0 items as `contains` wants", "[2]", "#/properties/has/contains"),
    ("dep", "missing required key `b` (beside `a`)", "{\"a\": 1}", "#/properties/dep/dependentRequired"),
    (
        "any",
        "fits none of 2 alternatives; #/properties/any/anyOf/1 is nearest",
        "{\"k\":\"y\",\"v\":1}",
        "#/properties/any/anyOf",
    ),
    ("a/b~c", "`1` is an integer, and must be null", "1", "#/properties/a~1b~0c/type"),
];

#[test]
fn faults_are_reported_with_pointers_to_instance_and_schema() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("s.json"), SCHEMA).unwrap();
    for &(member, message, instance, schema) in FAULTS {
        let text = format!("{{\"name\": \"ab\", \"city\": \"x\", {}: {instance}}}", Value::from(member));
        let run = domino_in(folder, &["check", "-g", "s.json", "--json", "-"], text.as_bytes());
        let object = last_line(&run);
        let errors = object["schema_errors"].as_array().unwrap_or_else(|| panic!("{text}: {object}"));
        let error = &errors[0];
        assert!(error["message"].as_str().unwrap().contains(message), "{text}: {error}");
        assert_eq!(error["schema"], schema, "{text}");
        let pointer = error["instance"].as_str().unwrap();
        assert!(
            pointer.starts_with(&format!("/{}", member.replace('~', "~0").replace('/', "~1"))),
            "{pointer}"
        );
        // The character that cannot follow is still there.
        assert!(object["error"].as_str().unwrap().contains("cannot follow"), "{object}");
    }
}

#[test]
fn faults_are_explained_to_people_and_in_batches() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("s.json"), SCHEMA).unwrap();
    let told = |text: &str, flags: &[&str]| {
        std::fs::write(folder.join("t"), text).unwrap();
        run(folder, &[&["check", "-g", "s.json", "t"], flags].concat()).stdout
    };
    let missing = "  by the schema: missing required key `city`, at the top (#/required)\n";
    for text in ["{\"name\": \"ab\"}", "{\"name\": \"ab\"", "{\"name\": \"ab\", ", "{\"name\": \"ab\", \"ci"]
    {
        assert!(told(text, &[]).contains(missing), "{text}: {}", told(text, &[]));
    }
    let more = told("{\"name\": \"ab\", \"city\": \"x\", \"b\": 1}", &[]);
    assert!(
        more.contains("additional property `b` is not allowed, at /b (#/additionalProperties)"),
        "{more}"
    );
    assert!(more.contains("'b' cannot follow") && more.contains("could follow: "), "{more}");
    let inside = told("{\"name\": \"ab\", \"city\": \"x\", \"list\": [1, \"2\"]}", &[]);
    assert!(inside.contains("at /list/1 (#/properties/list/items/type)"), "{inside}");
    let by_name = told("{\"name\": \"ab\", \"city\": \"\"}", &[]);
    assert!(by_name.contains("at /city (#/$defs/city/minLength)"), "{by_name}");
    let twice = told("{\"name\": \"ab\", \"name\": \"ab\", \"city\": \"x\"}", &[]);
    assert!(twice.contains("the key `name` comes twice"), "{twice}");
    // Texts that the schema allows are not called wrong: here the order differs, and then white space.
    let text = "{\"city\": \"x\", \"name\": \"ab\"}";
    assert!(told(text, &["--order", "schema"]).contains("cannot follow"));
    assert!(!told(text, &["--order", "schema"]).contains("by the schema"));
    assert!(!told(&format!(" {text}"), &["--whitespace", "compact"]).contains("by the schema"));
    // No other text is: one of a grammar, one that is no JSON, and one that is not wrong.
    assert!(!told("{\"name\": \"ab\",, ", &[]).contains("by the schema"));
    assert!(!told(text, &[]).contains("by the schema"));
    assert!(!told("{\"name\": \"ab\"", &["--prefix"]).contains("by the schema"));
    let row = json!({"id": 1, "syntax": "json_schema", "grammar": SCHEMA, "text": "{\"name\": \"ab\"}"});
    let answer = last_line(&domino_in(folder, &["check", "--batch"], row.to_string().as_bytes()));
    assert_eq!(answer["schema_errors"][0]["message"], "missing required key `city`", "{answer}");
    assert_eq!(answer["schema_errors"][0]["schema"], "#/required");
}
