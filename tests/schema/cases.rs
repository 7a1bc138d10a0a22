//! User-visible choices of JSON Schema: order, spelling, white space, options, errors.

use domino::grammar::json_schema::{
    Draft, DuplicateKeys, Escapes, Format, Numbers, Order, SchemaErrorKind, SchemaOptions, WhiteSpace,
};

use super::{Schema, checking};

fn generating() -> SchemaOptions {
    SchemaOptions::default()
}

fn check(options: &SchemaOptions, schema: &str, accepted: &[&str], refused: &[&str]) {
    let ours = Schema::new(options, schema).unwrap_or_else(|error| panic!("{schema}: {error}"));
    for text in accepted {
        assert!(ours.accepts(text), "{schema} must accept {text}");
    }
    for text in refused {
        assert!(!ours.accepts(text), "{schema} must refuse {text}");
    }
}

const PERSON: &str = r#"{
    "type": "object",
    "properties": { "name": { "type": "string" }, "age": { "type": "integer", "minimum": 0 } },
    "required": ["name", "id"],
    "additionalProperties": { "type": "boolean" }
}"#;

#[test]
fn members_stand_in_the_order_of_the_schema() {
    check(
        &generating(),
        PERSON,
        &[
            r#"{"name": "x", "age": 3, "id": true}"#,
            r#"{"name":"x","id":false}"#,
            r#"{"name":"x","id":false,"more":true,"most":true}"#,
        ],
        &[
            r#"{"age": 3, "name": "x", "id": true}"#,
            r#"{"name": "x", "age": -1, "id": true}"#,
            r#"{"name": "x"}"#,
            r#"{"name": "x", "id": 1}"#,
            r#"{"name": "x", "id": true, "name": true}"#,
            r#"{"name": "x", "id": true, "\u006eame": true}"#,
            r#"{"name": "x", "id": true,}"#,
        ],
    );
    check(
        &checking(),
        PERSON,
        &[r#"{"id": true, "more": false, "age": 3, "name": "x"}"#],
        &[r#"{"id": true}"#],
    );
}

#[test]
fn white_space_is_that_of_the_option() {
    let schema = r#"{"type": "object", "properties": {"a": {"type": "array", "items": {"type": "null"}}}}"#;
    let with = |space| generating().with_white_space(space);
    let pretty = "{\n  \"a\": [\n    null,\n    null\n  ]\n}";
    let loose = r#"{ "a" : [ null ,null] }"#;
    let outside = [" {}", "{} ", "{\n\n\n}"];
    check(&with(WhiteSpace::Wide), schema, &[loose, pretty, "{  \t}"], &outside);
    let written = [r#"{ "a": [ null,null ] }"#, r#"{"a": [null, null]}"#, pretty, "{ }", "{\r\n}"];
    check(&generating(), schema, &written, &[loose, "{  }", "{\t}", "{\"a\":\t[]}"]);
    check(&generating(), schema, &[], &outside);
    let indented =
        |space: &str| format!("{{\n{space}\"a\":\n\n{space}[null,\n{space}null\n{space}]\n{space}}}");
    let (within, beyond) = ([" ".repeat(32), "\t".repeat(8)], [" ".repeat(33), "\t".repeat(9), "\t ".into()]);
    within.iter().for_each(|space| check(&generating(), schema, &[&indented(space)], &[]));
    beyond.iter().for_each(|space| check(&generating(), schema, &[], &[&indented(space)]));
    check(&with(WhiteSpace::Compact), schema, &[r#"{"a":[null,null]}"#, "{}"], &[r#"{"a": [null]}"#, pretty]);
    check(&with(WhiteSpace::Pretty(2)), schema, &[pretty, "{}"], &[r#"{"a":[null,null]}"#, r#"{ }"#]);
    let two = with(WhiteSpace::UpTo(2));
    check(&two, schema, &["{  \"a\" :\n[ ]}", "{}"], &[" {}", "{} ", r#"{   "a": []}"#, pretty]);
    check(&with(WhiteSpace::Any), schema, &["\n\n\n {\t}\r\n", pretty], &[]);
}

#[test]
fn characters_may_be_escaped() {
    let schema =
        r#"{"properties": {"é/": {"const": "\"/"}}, "additionalProperties": false, "type": "object"}"#;
    let plain = r#"{"é/": "\"/"}"#;
    let escaped = r#"{"\u00E9\/": "\u0022\/"}"#;
    check(&generating().with_escapes(Escapes::All), schema, &[plain, escaped], &[r#"{"e/": "\"/"}"#]);
    // Generated texts have as few escapes as JSON allows.
    for minimal in [generating(), generating().with_escapes(Escapes::Minimal)] {
        check(&minimal, schema, &[plain], &[escaped, r#"{"\u00e9/": "\"/"}"#, r#"{"é/": "\u0022/"}"#]);
    }
}

#[test]
fn options_change_the_meaning_of_a_schema() {
    let tuple = r#"{"type": "array", "items": [{"type": "null"}], "additionalItems": false}"#;
    check(&generating(), tuple, &["[]", "[null]"], &["[1]", "[null,null]"]);
    let integer = r#"{"type": "integer"}"#;
    check(&generating(), integer, &["1", "-3"], &["1.0", "1.5"]);
    check(&generating().with_numbers(Numbers::Any), integer, &["1", "1.0", "-3"], &["1.5"]);
    check(&generating().with_draft(Draft::Draft4), integer, &["1"], &["1.0"]);
    let date = r#"{"type": "string", "format": "date"}"#;
    check(&generating(), date, &[r#""2024-02-29""#], &[r#""2024-02-30""#, r#""x""#]);
    check(&generating().with_format(Format::Annotate), date, &[r#""x""#], &["1"]);
    let open = r#"{"type": "object", "properties": {"a": true}}"#;
    check(&generating(), open, &[r#"{"a":1,"b":2}"#], &[]);
    check(&generating().with_closed(true), open, &[r#"{"a":1}"#, "{}"], &[r#"{"b":2}"#]);
    closed_objects();
    let tree = r##"{"type": "array", "items": {"$ref": "#"}}"##;
    check(&generating(), tree, &["[]", "[[[],[]]]"], &["[1]"]);
    check(&generating().with_max_depth(Some(2)), tree, &["[[]]"], &["[[[]]]"]);
}

/// The option `closed` closes objects unless they say otherwise.
fn closed_objects() {
    let closed = generating().with_closed(true);
    let nested = r#"{"type": "object", "properties": {"a": {"type": "object", "properties": {}}}}"#;
    check(&closed, nested, &["{}", r#"{"a":{}}"#], &[r#"{"a":{"x":1}}"#, r#"{"x":1}"#]);
    let required = r#"{"type": "object", "properties": {}, "required": ["b"]}"#;
    check(&closed, required, &[r#"{"b":1}"#], &["{}", r#"{"b":1,"x":1}"#]);
    let of_pattern = r#"{"type": "object", "properties": {}, "patternProperties": {"^x": {}}}"#;
    check(&closed, of_pattern, &["{}", r#"{"x":1,"xy":2}"#], &[r#"{"y":1}"#]);
    let typed = r#"{"type": "object", "properties": {}, "patternProperties": {"^x": {"type": "null"}}}"#;
    check(&closed, typed, &[r#"{"x":null}"#], &[r#"{"x":1}"#, r#"{"y":null}"#]);
    let unevaluated = r#"{"type": "object", "properties": {"a": {}}, "unevaluatedProperties": true}"#;
    check(&closed, unevaluated, &[r#"{"a":1,"x":1}"#], &[]);
    let in_part = r#"{"allOf": [{"type": "object", "properties": {}}, {"properties": {"x": {}}}]}"#;
    check(&closed, in_part, &["{}", r#"{"x":1}"#], &[r#"{"y":1}"#]);
    let either = r#"{"anyOf": [{"type": "object", "properties": {}}, {"type": "null"}]}"#;
    check(&closed, either, &["{}", "null"], &[r#"{"y":1}"#]);
    // An object without `properties` says nothing of its keys.
    check(&closed, r#"{"type": "object", "required": ["a"]}"#, &[r#"{"a":1,"x":1}"#], &["{}"]);
    let unique = r#"{"type": "array", "uniqueItems": true, "items": {"type": "object", "properties": {}}}"#;
    check(&closed, unique, &["[]", "[{}]"], &["[{},{}]"]);
    // The objects of this option are open.
    check(&generating(), r#"{"type": "object", "properties": {}}"#, &["{}", r#"{"x":1}"#], &[]);
}

#[test]
fn keywords_that_cannot_be_exact_are_refused_or_reported() {
    let schema = r#"{
        "type": "array", "contains": {"const": "a"}, "maxContains": 1, "uniqueItems": true, "title": "Tags"
    }"#;
    let limits = domino::Limits::default();
    let error = generating().parse(schema, &limits).unwrap_err();
    assert_eq!(*error.kind(), SchemaErrorKind::Unsupported);
    assert_eq!((error.pointer(), error.keyword()), ("#", Some("uniqueItems")));
    let relaxed = generating().with_lenient(true).parse(schema, &limits).unwrap();
    assert_eq!(relaxed.ignored, ["title"]);
    let [relaxed] = &relaxed.relaxed[..] else { panic!("{:?}", relaxed.relaxed) };
    assert_eq!((&*relaxed.pointer, &*relaxed.keyword), ("#", "uniqueItems"));
}

#[test]
fn errors_of_schemas_name_pointer_and_keyword() {
    let limits = domino::Limits::default();
    for (schema, kind, pointer, keyword) in [
        ("{", SchemaErrorKind::NotJson, "#", None),
        ("[]", SchemaErrorKind::Invalid, "#", None),
        (
            r#"{"properties": {"a/b": {"type": "text"}}}"#,
            SchemaErrorKind::Invalid,
            "#/properties/a~1b",
            Some("type"),
        ),
        (r##"{"$ref": "#/$defs/x"}"##, SchemaErrorKind::Reference, "#", Some("$ref")),
        (
            r#"{"items": {"$ref": "http://example.com/x"}}"#,
            SchemaErrorKind::Reference,
            "#/items",
            Some("$ref"),
        ),
        (r##"{"$ref": "#"}"##, SchemaErrorKind::Loop, "#", Some("$ref")),
        (r#"{"type": "string", "const": 1}"#, SchemaErrorKind::NoInstance, "#", None),
        (
            r##"{"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}"##,
            SchemaErrorKind::NoInstance,
            "#",
            None,
        ),
        (r#"{"multipleOf": 0}"#, SchemaErrorKind::Invalid, "#", Some("multipleOf")),
        (r#"{"minItems": -1}"#, SchemaErrorKind::Invalid, "#", Some("minItems")),
        (r#"{"pattern": "(a)\\1"}"#, SchemaErrorKind::Unsupported, "#", Some("pattern")),
        (r#"{"enum": []}"#, SchemaErrorKind::NoInstance, "#", Some("enum")),
        (r#"{"pattern": "("}"#, SchemaErrorKind::Invalid, "#", Some("pattern")),
    ] {
        let error = generating().parse(schema, &limits).unwrap_err();
        assert_eq!(
            (error.kind(), error.pointer(), error.keyword()),
            (&kind, pointer, keyword),
            "{schema}: {error}"
        );
    }
}

/// The error for a required member that cannot be present names it, and the keyword that forbids it.
#[test]
fn required_members_that_are_impossible_are_named() {
    let closed = r#"{"type": "object", "properties": {"a": {}}, "additionalProperties": false}"#;
    let wrong = r#"{"type": "object", "properties": {"a": {}}, "required": ["a", "b"],
        "additionalProperties": false}"#;
    for (schema, pointer, why) in [
        (wrong.to_owned(), "#", "`additionalProperties` allows no such member"),
        (
            format!(r#"{{"type": "object", "properties": {{"x": {wrong}}}, "required": ["x"]}}"#),
            "#/properties/x",
            "`additionalProperties` allows no such member",
        ),
        (
            format!(
                r#"{{"type": "array", "minItems": 1, "items": {{"type": "object", "required": ["x"],
                "properties": {{"x": {{"type": "array", "minItems": 2, "items": {wrong}}}}}}}}}"#
            ),
            "#/items/properties/x/items",
            "`additionalProperties` allows no such member",
        ),
        (
            format!(r#"{{"allOf": [{closed}, {{"required": ["b"]}}]}}"#),
            "#/allOf/1",
            "`additionalProperties` allows no such member",
        ),
        (
            format!(r##"{{"$ref": "#/$defs/c", "required": ["b"], "$defs": {{"c": {closed}}}}}"##),
            "#",
            "`additionalProperties` allows no such member",
        ),
        (
            r#"{"type": "object", "allOf": [{"properties": {"a": {}}}], "required": ["b"],
                "unevaluatedProperties": false}"#
                .to_owned(),
            "#",
            "`unevaluatedProperties` allows no such member",
        ),
        (
            r#"{"type": "object", "properties": {"b": false}, "required": ["b"]}"#.to_owned(),
            "#",
            "its schema allows no value",
        ),
    ] {
        let error = generating().parse(&schema, &domino::Limits::default()).unwrap_err();
        assert_eq!(*error.kind(), SchemaErrorKind::NoInstance, "{schema}: {error}");
        assert_eq!((error.pointer(), error.keyword()), (pointer, Some("required")), "{schema}: {error}");
        assert_eq!(error.message(), format!("{pointer}: `required`: `b` must be there, and {why}"));
        assert!(error.hint().is_some_and(|hint| hint.contains("`b`")), "{error}");
    }
    let other = r#"{"type": "string", "const": 1, "required": ["b"], "additionalProperties": false}"#;
    let error = generating().parse(other, &domino::Limits::default()).unwrap_err();
    assert!(error.message().contains("no value is valid"), "{error}");
}

#[test]
fn bounds_that_cross_are_named() {
    for (crossed, why) in [
        (r#"{"type": "string", "minLength": 5, "maxLength": 2}"#, "`minLength` is 5, and `maxLength` 2"),
        (
            r#"{"type": "number", "allOf": [{"exclusiveMinimum": 1.0}, {"maximum": 1}]}"#,
            "`exclusiveMinimum` is 1.0, and `maximum` 1",
        ),
    ] {
        let error = generating().parse(crossed, &domino::Limits::default()).unwrap_err();
        assert!(error.message().contains(why), "{error}");
    }
    // Bounds of another type are not why.
    let other = r#"{"type": "integer", "enum": ["x"], "minLength": 5, "maxLength": 2}"#;
    let error = generating().parse(other, &domino::Limits::default()).unwrap_err();
    assert!(!error.message().contains("minLength"), "{error}");
}

#[test]
fn references_lead_into_given_documents_only() {
    let schema = r#"{"$ref": "other.json#/$defs/yes"}"#;
    let other = r#"{"$defs": {"yes": {"const": "yes"}}}"#;
    let options = generating().with_document("schema:///other.json", other);
    check(&options, schema, &[r#""yes""#], &[r#""no""#]);
}

/// Files refer to files beside them although their `$id` says otherwise; mistakes there are told with the
/// name of the document.
#[test]
fn documents_are_named_and_found_by_their_files() {
    let limits = domino::Limits::default();
    let given = |name: &str, text: &str| generating().with_document(format!("schema:///{name}"), text);
    let schema = r#"{"$id": "https://e.org/s/a.json", "items": {"$ref": "b.json"}}"#;
    check(&given("b.json", r#"{"$id": "https://e.org/b", "type": "null"}"#), schema, &["[null]"], &["[1]"]);
    let deep = given("x/b.json", r#"{"$id": "https://e.org/b", "$ref": "../y/c.json#/$defs/d"}"#)
        .with_document("schema:///y/c.json", r#"{"$id": "https://e.org/c", "$defs": {"d": {"const": 1}}}"#);
    check(&deep, r#"{"$ref": "x/b.json"}"#, &["1"], &["2"]);
    let error = given("b.json", "[1,").parse(schema, &limits).unwrap_err().to_string();
    assert!(error.starts_with("b.json: not JSON") && error.contains("--> b.json:1:"), "{error}");
    let error = given("b.json", r#"{"type": "strin"}"#).parse(schema, &limits).unwrap_err();
    assert_eq!(error.pointer(), "b.json#");
    let error = error.to_string();
    assert!(error.starts_with("b.json#: `type`") && error.contains("--> b.json:1:10"), "{error}");
    let error = given("c.json", "{}").parse(schema, &limits).unwrap_err();
    let hint = error.hint().unwrap();
    assert!(hint.contains("--documents") && hint.contains("c.json"), "{hint}");
}

#[test]
fn references_that_miss_by_a_slash_are_told() {
    let limits = domino::Limits::default();
    for (reference, meant) in [("#/", Some("`#`")), ("#/$defs/a/", Some("`#/$defs/a`")), ("#/$defs/b/", None)]
    {
        let schema = format!(r##"{{"items": {{"$ref": "{reference}"}}, "$defs": {{"a": true}}}}"##);
        let error = generating().parse(&schema, &limits).unwrap_err();
        assert_eq!(*error.kind(), SchemaErrorKind::Reference);
        assert_eq!(error.hint(), meant.map(|meant| format!("did you mean {meant}?")).as_deref(), "{error}");
    }
}

#[test]
fn an_anchor_stands_once_in_a_resource() {
    let limits = domino::Limits::default();
    let twice = |keyword: &str, id: &str| {
        format!(
            r##"{{"$id": "https://e.org/d", "{keyword}": "n", "items": {{"$ref": "#n"}},
                "$defs": {{"x": {{{id}"{keyword}": "n", "type": "array"}}}}}}"##
        )
    };
    for keyword in ["$anchor", "$dynamicAnchor"] {
        let error = generating().parse(&twice(keyword, ""), &limits).unwrap_err();
        assert_eq!(*error.kind(), SchemaErrorKind::Invalid);
        assert!(error.message().contains("stands twice in https://e.org/d"), "{error}");
        check(&generating(), &twice(keyword, r#""$id": "x", "#), &["[[]]"], &[]);
    }
}

#[test]
fn sixty_members_stand_in_any_order() {
    const COUNT: usize = 60;
    let names: Vec<String> =
        (0..COUNT).map(|number| format!(r#""p{number}": {{"type": "integer"}}"#)).collect();
    let schema = format!(
        r#"{{"type": "object", "properties": {{{}}}, "required": ["p7", "p50"],
            "additionalProperties": {{"type": "boolean"}}, "maxProperties": 61}}"#,
        names.join(",")
    );
    let ours = Schema::new(&checking(), &schema).unwrap();
    let text = |members: &[String]| format!("{{{}}}", members.join(", "));
    // Strides that meet every number once.
    for stride in [1, 7, 11, 13, 17, 23, 29, 59] {
        let order: Vec<usize> = (0..COUNT).map(|at| at * stride % COUNT).collect();
        let mut members: Vec<String> = order.iter().map(|name| format!(r#""p{name}": {name}"#)).collect();
        assert!(ours.accepts(&text(&members)), "{}", text(&members));
        members.insert(stride, r#""more": true"#.to_owned());
        assert!(ours.accepts(&text(&members)));
        let without = |name: &str| {
            let others = members.iter().filter(|member| !member.starts_with(name));
            others.cloned().collect::<Vec<_>>()
        };
        assert!(ours.accepts(&text(&without("\"p8\""))));
        assert!(!ours.accepts(&text(&without("\"p7\""))));
        let mut twice = without("\"p8\"");
        twice.push(r#""\u0070\u0039": 9"#.to_owned());
        assert!(!ours.accepts(&text(&twice)));
        members.push(r#""most": false"#.to_owned());
        assert!(!ours.accepts(&text(&members)), "62 members");
    }
}

#[test]
fn keys_of_an_object_come_once() {
    for order in [Order::Schema, Order::Any] {
        let options = checking().with_order(order);
        let schema = r#"{"type": "object", "additionalProperties": {"type": ["integer", "object"]},
            "minProperties": 2}"#;
        let twice =
            [r#"{"a": 1, "a": 2}"#, r#"{"a": 1, "\u0061": 2}"#, r#"{"a": {"é": 1, "\u00e9": 2}, "b": 1}"#];
        check(
            &options,
            schema,
            &[r#"{"a": 1, "b": 2}"#, r#"{"a": {"a": 1}, "b": {"a": 1}}"#, r#"{"": 1, "a": {}}"#],
            &[&twice[..], &[r#"{"a": {"b": 1}}"#]].concat(),
        );
        check(&options.clone().with_duplicate_keys(DuplicateKeys::Allow), schema, &twice, &[r#"{"a": 1}"#]);
        let names = r#"{"type": "object", "propertyNames": {"enum": ["a", "b"]}, "properties": {"a": true}}"#;
        check(
            &options,
            names,
            &["{}", r#"{"a": 1, "b": 2}"#, r#"{"b": 2}"#],
            &[r#"{"b": 1, "b": 2}"#, r#"{"a": 1, "b": 2, "b": 3}"#, r#"{"c": 1}"#],
        );
        let listed = r#"{"type": "object", "patternProperties": {"^[a-c]$": true, "^x": true},
            "additionalProperties": false, "maxProperties": 3}"#;
        check(
            &options,
            listed,
            &[r#"{"c": 1, "x": 2, "a": 3}"#, r#"{"x": 1, "b": 2, "xx": 3}"#],
            &[r#"{"c": 1, "x": 2, "c": 3}"#, r#"{"a": 1, "b": 2, "c": 3, "x": 1}"#, r#"{"x": 1, "x": 2}"#],
        );
    }
}

#[test]
fn negated_members_and_counts_hold_in_any_order() {
    // Some member is a string, and a key that begins with `x` holds `null`.
    check(
        &checking(),
        r#"{
            "type": "object", "properties": {"a": true, "b": true, "xc": true}, "minProperties": 2,
            "not": {"anyOf": [
                {"additionalProperties": {"not": {"type": "string"}}, "properties": {"none": true}},
                {"patternProperties": {"^x": {"not": {"type": "null"}}}}
            ]}
        }"#,
        &[
            r#"{"xc": null, "b": "x"}"#,
            r#"{"b": "x", "xd": null, "a": 1}"#,
            r#"{"more": "x", "xc": null, "a": 1}"#,
        ],
        &[
            r#"{"xc": null, "b": 1}"#,
            r#"{"xc": "x", "b": "x"}"#,
            r#"{"xc": null}"#,
            r#"{"b": "x", "none": null}"#,
        ],
    );
}

#[test]
fn lists_of_items_lead_to_their_new_keyword() {
    let lists = r#"{"items":[{"type":"string"}]}"#;
    let parse = |draft| generating().with_draft(draft).parse(lists, &domino::Limits::default());
    assert!(parse(Draft::Draft201909).is_ok());
    let error = parse(Draft::Draft202012).unwrap_err();
    assert!(error.hint().is_some_and(|hint| hint.contains("`prefixItems`")), "{error}");
}

/// Pointers start at the root of the document although each definition has an `id`, as in Heroku's schemas.
#[test]
fn pointers_may_start_at_the_root_of_the_document() {
    let schema = r##"{
        "$schema": "http://json-schema.org/draft-04/schema", "type": "object", "required": ["app"],
        "definitions": { "app": {
            "id": "schema/app", "definitions": { "name": { "type": "string" }, "own": { "enum": [1] } },
            "properties": {
                "name": { "$ref": "#/definitions/app/definitions/name" },
                "own": { "$ref": "#/definitions/own" }
            }
        } },
        "properties": { "app": { "$ref": "#/definitions/app" } }
    }"##;
    check(
        &checking(),
        schema,
        &[r#"{"app": {"name": "x", "own": 1}}"#],
        &[r#"{"app": {"name": 1}}"#, r#"{"app": {"own": 2}}"#],
    );
}
