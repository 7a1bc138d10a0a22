//! JSON Schemas in requests to the server.

use serde_json::{Value, json};

use super::{Server, check, streamed};

/// A schema of a person, closed and with all its properties required.
fn person() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "maxLength": 12 },
            "age": { "type": "integer", "minimum": 0, "maximum": 150 },
        },
        "required": ["name", "age"],
        "additionalProperties": false,
    })
}

/// A body that asks for an instance of `schema` by `response_format`.
fn format(schema: &Value, strict: Value) -> Value {
    let asked = json!({ "name": "person", "schema": schema, "strict": strict });
    json!({ "response_format": { "type": "json_schema", "json_schema": asked }, "max_tokens": 120 })
}

/// A body that asks for an instance of `schema` by `grammar`, with `more` fields.
fn grammar(schema: &Value, more: &Value) -> Value {
    let mut grammar = json!({ "type": "json_schema", "value": schema });
    grammar.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "grammar": grammar, "max_tokens": 120 })
}

#[test]
fn texts_are_instances_of_their_schema() {
    let server = Server::start(&[]);
    let file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    std::fs::write(file.path(), person().to_string()).unwrap();
    let flags = ["-g", file.path().to_str().unwrap()];
    let text = json!(person().to_string());
    for mut body in [
        format(&person(), json!(true)),
        format(&person(), json!(false)),
        format(&person(), Value::Null),
        grammar(&person(), &json!({})),
        grammar(&text, &json!({ "escapes": "minimal" })),
    ] {
        for (temperature, seed) in [(0.0, 1), (1.0, 2)] {
            body["temperature"] = temperature.into();
            body["seed"] = seed.into();
            let text = server.texts(&body).remove(0);
            assert_eq!(check(&flags, &text, true).code, Some(0), "{body}: {text}");
            // Members come in the order of the schema.
            let instance: Value = serde_json::from_str(&text).unwrap();
            assert!(instance.as_object().unwrap().keys().eq(["name", "age"]), "{text}");
            body["stream"] = true.into();
            assert_eq!(streamed(&server.complete(&body).events(), 1), [text]);
            body["stream"] = false.into();
        }
    }
    let compact = server.texts(&grammar(&person(), &json!({ "whitespace": "compact" }))).remove(0);
    assert!(compact.starts_with("{\"name\":\""), "{compact}");
    let pretty = server.texts(&grammar(&person(), &json!({ "whitespace": "pretty:3" }))).remove(0);
    assert!(pretty.starts_with("{\n   \"name\": \""), "{pretty}");
}

#[test]
fn relaxed_keywords_of_a_schema_are_reported() {
    let schema = json!({
        "type": "array", "maxItems": 2, "uniqueItems": true, "contains": { "const": "a" }, "maxContains": 1,
        "items": { "type": "string", "maxLength": 3 },
    });
    let wanted = |relaxed: &Value| {
        assert_eq!((&relaxed[0]["pointer"], &relaxed[0]["keyword"]), (&json!("#"), &json!("uniqueItems")));
        assert!(relaxed[0]["why"].is_string() && relaxed[1].is_null(), "{relaxed}");
    };
    let asks = Server::start(&[]);
    let body = grammar(&schema, &json!({ "lenient": true }));
    wanted(&asks.complete(&body).json()["relaxed"]);
    let mut stream = body.clone();
    stream["stream"] = true.into();
    let events = asks.complete(&stream).events();
    wanted(&events[0]["relaxed"]);
    assert!(events[1..].iter().all(|event| event.get("relaxed").is_none()), "{events:?}");
    let exact = asks.complete(&format(&person(), json!(true))).json();
    assert!(exact.get("relaxed").is_none(), "{exact}");

    let gives = Server::start(&["--lenient", "--lenient-strict", "--whitespace", "compact"]);
    wanted(&gives.complete(&format(&schema, Value::Null)).json()["relaxed"]);
    let open = json!({ "type": "object", "properties": { "a": { "type": "null" } }, "maxProperties": 1 });
    let answer = gives.complete(&format(&open, json!(true)));
    assert_eq!(answer.status, 200, "{}", answer.body);
    let text = gives.texts(&format(&person(), json!(true))).remove(0);
    assert!(text.starts_with("{\"name\":\""), "{text}");
    let refused = gives.complete(&grammar(&schema, &json!({ "lenient": false })));
    assert_eq!((refused.status, &refused.error()["keyword"]), (400, &json!("uniqueItems")));
}

#[test]
fn schemas_that_cannot_be_served_are_refused_by_field_and_pointer() {
    let server = Server::start(&["--max-grammar", "4"]);
    let wrong = json!({ "type": "object", "properties": { "a": { "type": "text" } } });
    let long = json!({ "title": "a".repeat(5000) });
    let partial =
        json!({ "items": { "type": "object", "additionalProperties": false, "properties": { "b": {} } } });
    let twice = json!(r#"{"type": "object", "type": "array"}"#);
    for (body, code, param, pointer) in [
        (format(&wrong, Value::Null), "invalid_json_schema", "response_format", Some("#/properties/a")),
        (grammar(&wrong, &json!({})), "invalid_json_schema", "grammar", Some("#/properties/a")),
        (grammar(&json!({ "enum": [] }), &json!({})), "invalid_json_schema", "grammar", Some("#")),
        (
            grammar(&json!({ "$ref": "https://example.com/a.json" }), &json!({})),
            "invalid_json_schema",
            "grammar",
            Some("#"),
        ),
        (grammar(&twice, &json!({})), "invalid_json_schema", "grammar", Some("#")),
        (grammar(&json!("{"), &json!({})), "invalid_json_schema", "grammar", Some("#")),
        (format(&partial, json!(true)), "invalid_json_schema", "response_format", Some("#/items")),
        (grammar(&long, &json!({})), "grammar_too_large", "grammar", None),
        (format(&long, Value::Null), "grammar_too_large", "response_format", None),
        (grammar(&person(), &json!({ "order": "best" })), "invalid_value", "grammar.order", None),
        (grammar(&person(), &json!({ "colour": 1 })), "unknown_parameter", "grammar.colour", None),
    ] {
        let answer = server.complete(&body);
        let error = answer.error();
        assert_eq!(
            (answer.status, &error["code"], &error["param"], error["pointer"].as_str()),
            (400, &json!(code), &json!(param), pointer),
            "{error}"
        );
        let message = error["message"].as_str().unwrap();
        assert!(pointer.is_none_or(|pointer| message.contains(pointer) || error["line"].is_u64()), "{error}");
    }
    assert_eq!(server.get("/health").body, "OK");
}

#[test]
fn schemas_of_a_folder_have_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("choice.schema.json");
    std::fs::write(&path, r##"{"$ref": "#/$defs/one", "$defs": {"one": {"const": "one"}}}"##).unwrap();
    let server = Server::start(&["--grammar-dir", folder.path().to_str().unwrap(), "--escapes", "minimal"]);
    let choice = json!({ "grammar": { "type": "named", "value": "choice" } });
    assert_eq!(server.texts(&choice), ["\"one\""]);
    std::fs::write(&path, r#"{"const": "two"}"#).unwrap();
    assert_eq!(server.texts(&choice), ["\"two\""]);
    let listed = server.get("/v1/grammars").json();
    assert!(listed["data"].as_array().unwrap().iter().any(|row| row["id"] == "choice"), "{listed}");
}
