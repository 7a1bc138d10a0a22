//! Tests of schemas in requests and of their options.

use domino::grammar::json_schema::{Escapes, Order, WhiteSpace};
use serde_json::json;

use super::*;

/// Pointer and keyword of what strict mode refuses.
fn refused(schema: Value) -> Option<(String, String)> {
    let asked = json!({ "name": "n", "strict": true, "schema": schema });
    assert!(of_format(&asked, true).is_ok());
    let error = of_format(&asked, false).err()?.to_json()["error"].clone();
    let text = |key: &str| error[key].as_str().unwrap().to_owned();
    assert!(text("message").contains(&format!(" {}: ", text("pointer"))), "{error}");
    Some((text("pointer"), text("keyword")))
}

#[test]
fn strict_mode_asks_for_closed_objects_with_all_their_properties() {
    let closed = json!({
        "type": "object", "properties": { "a": {} }, "required": ["a"], "additionalProperties": false,
    });
    let open = json!({ "type": ["object", "null"] });
    let partial =
        json!({ "properties": { "a": {}, "b": {} }, "required": ["a"], "additionalProperties": false });
    let in_list =
        |schema: &Value| json!({ "type": "array", "items": { "anyOf": [{ "type": "null" }, schema] } });
    let in_definition = |schema: &Value| json!({ "$ref": "#/$defs/a~1b", "$defs": { "a/b": schema } });
    for (schema, wanted) in [
        (json!(true), None),
        (json!({ "type": "string" }), None),
        (closed.clone(), None),
        (in_list(&closed), None),
        (open.clone(), Some(("#", "additionalProperties"))),
        (partial.clone(), Some(("#", "required"))),
        (in_list(&open), Some(("#/items/anyOf/1", "additionalProperties"))),
        (in_definition(&partial), Some(("#/$defs/a~1b", "required"))),
        (json!({ "not": open }), None),
    ] {
        let found = refused(schema.clone());
        let wanted = wanted.map(|(pointer, keyword)| (pointer.to_owned(), keyword.to_owned()));
        assert_eq!(found, wanted, "{schema}");
    }
}

#[test]
fn schemas_that_are_not_strict_may_be_open() {
    let open = json!({ "type": "object" });
    for strict in [json!(false), json!(null)] {
        assert!(of_format(&json!({ "schema": open, "strict": strict }), false).is_ok());
    }
}

fn read(options: Value) -> Result<OptionsAsked, Problem> {
    let usual = SchemaOptions::default().with_order(Order::Any);
    let rules = SchemaRules { options: usual, ..SchemaRules::default() };
    let mut body = json!({ FIELD: options }).as_object().unwrap().clone();
    let read = OptionsAsked::read(&mut body, &rules);
    assert!(body.is_empty());
    read
}

fn refused_options(problem: &Problem) -> (String, String) {
    let error = problem.to_json()["error"].clone();
    let text = |key: &str| error[key].as_str().unwrap().to_owned();
    (text("code"), text("param"))
}

#[test]
fn options_of_a_request_override_those_of_the_server() {
    let asked = read(json!({ "whitespace": "compact", "escapes": "all", "draft": null })).unwrap();
    let wanted = SchemaOptions::default().with_order(Order::Any).with_escapes(Escapes::All);
    assert_eq!(*asked.options(), wanted.with_white_space(WhiteSpace::Compact));
    assert!(!asked.given.is_empty() && read(json!({})).unwrap().given.is_empty());
    assert!(read(json!({ "order": null })).unwrap().given.is_empty());
}

#[test]
fn unknown_or_wrong_options_are_refused_by_name() {
    for (options, code, param) in [
        (json!("compact"), "invalid_value", "grammar_options"),
        (json!([]), "invalid_value", "grammar_options"),
        (json!({ "whitespace": "loose" }), "invalid_value", "grammar_options.whitespace"),
        (json!({ "order": 1 }), "invalid_value", "grammar_options.order"),
        (json!({ "escapes": "none" }), "invalid_value", "grammar_options.escapes"),
        (json!({ "numbers": true }), "invalid_value", "grammar_options.numbers"),
        (json!({ "max_depth": -1 }), "invalid_value", "grammar_options.max_depth"),
        (json!({ "white_space": "compact" }), "unknown_parameter", "grammar_options.white_space"),
        (json!({ "documents": "/etc" }), "unknown_parameter", "grammar_options.documents"),
    ] {
        let problem = read(options.clone()).unwrap_err();
        assert_eq!(refused_options(&problem), (code.to_owned(), param.to_owned()), "{options}");
    }
}

#[test]
fn options_that_no_schema_of_the_request_takes_are_refused() {
    let all = [Notation::JsonSchema, Notation::StructuralTag, Notation::Lark, Notation::Gbnf];
    for (option, takes) in [
        (json!({ "whitespace": "compact" }), [true, true, false, false]),
        (json!({ "order": "schema" }), [true, true, false, false]),
        (json!({ "escapes": "all" }), [true, true, true, false]),
        (json!({ "numbers": "any" }), [true, true, true, false]),
        (json!({ "format": "assert" }), [true, true, true, false]),
        (json!({ "closed": true }), [true, true, false, false]),
        (json!({ "lenient": false }), [true, false, false, false]),
        (json!({ "max_depth": 2 }), [true, false, false, false]),
    ] {
        let asked = read(option.clone()).unwrap();
        for (notation, takes) in all.into_iter().zip(takes) {
            assert_eq!(asked.check(Some(notation)).is_ok(), takes, "{option} {notation:?}");
        }
        let none = refused_options(&asked.check(None).unwrap_err());
        assert_eq!(none, ("unsupported".to_owned(), "grammar_options".to_owned()));
    }
    assert!(read(json!({})).unwrap().check(None).is_ok());
}
