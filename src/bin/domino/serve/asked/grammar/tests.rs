//! Grammars of requests: which fields ask for one, and whose options count.

use domino::grammar::json_schema::{DuplicateKeys, Order, WhiteSpace};
use serde_json::json;

use super::*;

fn read_by(body: &str, schemas: &SchemaRules) -> Result<Option<GrammarAsked>, Problem> {
    let mut object = serde_json::from_str::<Value>(body).unwrap().as_object().unwrap().clone();
    let options = OptionsAsked::read(&mut object, schemas)?;
    Reading { bytes: body.as_bytes(), most: 300, schemas, options: &options }.grammar(&mut object)
}

fn read(body: &str) -> Result<Option<GrammarAsked>, Problem> {
    read_by(body, &SchemaRules::default())
}

/// Code and parameter of a refusal, and its message.
fn refused(body: &Value) -> (String, String, String) {
    let error = read(&body.to_string()).expect_err(&body.to_string()).to_json()["error"].clone();
    let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
    (text("code"), text("param"), text("message"))
}

#[test]
fn schemas_keep_the_text_they_were_sent_in() {
    let number = "1.000000000000000000000000000001";
    let schema = format!(r#"{{"const" : {number}}}"#);
    let text = serde_json::to_string(&schema).unwrap();
    for (body, param) in [
        (format!(r#"{{"grammar": {{"type": "json_schema", "value": {schema}}}}}"#), "grammar"),
        (format!(r#"{{"grammar": {{"value": {text}, "type": "json_schema"}}}}"#), "grammar"),
        (
            format!(
                r#"{{"response_format": {{"type": "json_schema",
                    "json_schema": {{"name": "n", "strict": null, "schema": {schema}}}}}}}"#
            ),
            "response_format",
        ),
    ] {
        let asked = read(&body).unwrap().unwrap();
        assert_eq!(asked.param, param);
        assert_eq!(asked.what, GrammarWhat::Text(Notation::JsonSchema, schema.clone()), "{body}");
        assert_eq!(*asked.options.options(), SchemaOptions::default(), "{body}");
    }
}

#[test]
fn option_fields_of_a_grammar_override_the_servers() {
    let server = SchemaOptions::default().with_white_space(WhiteSpace::Pretty(2)).with_lenient(true);
    let rules = SchemaRules { options: server.clone(), ..SchemaRules::default() };
    let options = |more: Value| {
        let mut grammar = json!({ "type": "json_schema", "value": true });
        grammar.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let asked = read_by(&json!({ "grammar": grammar }).to_string(), &rules).unwrap().unwrap();
        asked.options.options().clone()
    };
    assert_eq!(options(json!({})), server);
    assert_eq!(options(json!({ "order": "any" })), server.clone().with_order(Order::Any));
    let repeated = server.clone().with_duplicate_keys(DuplicateKeys::Allow);
    assert_eq!(options(json!({ "duplicate_keys": "allow" })), repeated);
    assert_eq!(options(json!({ "lenient": false, "draft": null })), server.clone().with_lenient(false));
    let many = json!({ "whitespace": "compact", "max_depth": 3, "closed": true });
    let wanted = server.with_white_space(WhiteSpace::Compact).with_max_depth(Some(3)).with_closed(true);
    assert_eq!(options(many), wanted);
}

#[test]
fn errors_about_a_grammar_name_its_field() {
    let grammar = |more: Value| {
        let mut grammar = json!({ "type": "json_schema", "value": {} });
        grammar.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "grammar": grammar })
    };
    let format = |asked: Value| json!({ "response_format": { "type": "json_schema", "json_schema": asked } });
    for (body, code, param) in [
        (grammar(json!({ "value": 3 })), "invalid_value", "grammar"),
        (grammar(json!({ "value": "a".repeat(301) })), "grammar_too_large", "grammar"),
        (grammar(json!({ "whitespace": "loose" })), "invalid_value", "grammar.whitespace"),
        (grammar(json!({ "draft": 7 })), "invalid_value", "grammar.draft"),
        (grammar(json!({ "max_depth": -1 })), "invalid_value", "grammar.max_depth"),
        (grammar(json!({ "documents": "/etc" })), "unknown_parameter", "grammar.documents"),
        (
            json!({ "response_format": { "type": "json_schema" } }),
            "invalid_value",
            "response_format.json_schema",
        ),
        (format(json!({ "name": "a" })), "invalid_value", "response_format.json_schema.schema"),
        (format(json!({ "schema": "{}" })), "invalid_value", "response_format.json_schema.schema"),
        (
            format(json!({ "schema": {}, "strict": "yes" })),
            "invalid_value",
            "response_format.json_schema.strict",
        ),
        (format(json!({ "schema": {}, "name": 1 })), "invalid_value", "response_format.json_schema.name"),
        (
            format(json!({ "schema": {}, "draft": "7" })),
            "unknown_parameter",
            "response_format.json_schema.draft",
        ),
        (format(json!({ "schema": { "title": "a".repeat(300) } })), "grammar_too_large", "response_format"),
        (
            format(json!({ "schema": { "type": "object" }, "strict": true })),
            "invalid_json_schema",
            "response_format",
        ),
    ] {
        let refusal = refused(&body);
        assert_eq!((refusal.0.as_str(), refusal.1.as_str()), (code, param), "{body}");
    }
}
