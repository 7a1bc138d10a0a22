//! `grammar_options`: how the schemas of a request are written, wherever they stand in it.

use serde_json::{Value, json};

use super::{Answer, Server};

/// A schema whose text shows each of the options.
fn schema() -> Value {
    json!({
        "type": "object", "required": ["b", "a"], "additionalProperties": false,
        "properties": { "b": { "enum": [1] }, "a": { "enum": ["x"] } },
    })
}

fn with(mut body: Value, options: &Value) -> Value {
    body["grammar_options"] = options.clone();
    body
}

fn content(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json()["choices"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn schemas_in_all_their_places_are_written_as_the_request_says() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine.schema.json"), schema().to_string()).unwrap();
    let tag = json!({
        "type": "tag", "begin": "<a>", "end": "</a>",
        "content": { "type": "json_schema", "json_schema": schema() },
    });
    let tags = json!({ "type": "structural_tag", "format": tag });
    std::fs::write(folder.path().join("mine-too.tags.json"), tags.to_string()).unwrap();
    let server = Server::start(&["--grammar-dir", folder.path().to_str().unwrap()]);
    for (body, begin) in [
        (json!({ "grammar": { "type": "json_schema", "value": schema() } }), ""),
        (json!({ "grammar": { "type": "json_schema", "value": schema().to_string() } }), ""),
        (
            json!({ "response_format": {
                "type": "json_schema", "json_schema": { "name": "n", "schema": schema() } } }),
            "",
        ),
        (json!({ "grammar": { "type": "named", "value": "mine" } }), ""),
        (json!({ "grammar": { "type": "structural_tag", "value": tags } }), "<a>"),
        (json!({ "response_format": tags }), "<a>"),
        (json!({ "grammar": { "type": "named", "value": "mine-too" } }), "<a>"),
    ] {
        let compact = content(&server.complete(&with(body.clone(), &json!({ "whitespace": "compact" }))));
        assert!(compact.starts_with(&format!("{begin}{{\"b\":1,\"a\":\"x\"}}")), "{body}: {compact}");
        let pretty = content(&server.complete(&with(body.clone(), &json!({ "whitespace": "pretty:1" }))));
        assert!(pretty.starts_with(&format!("{begin}{{\n \"b\": 1,\n")), "{body}: {pretty}");
    }
    // Fields beside the value say more than those.
    let own = json!({ "grammar": { "type": "json_schema", "value": schema(), "whitespace": "pretty:2" } });
    let text = content(&server.complete(&with(own, &json!({ "whitespace": "compact" }))));
    assert!(text.starts_with("{\n  \"b\": 1,\n"), "{text}");
}

fn chat(more: &Value) -> Value {
    let function = json!({ "name": "f", "parameters": schema() });
    let mut body = json!({
        "messages": [{ "role": "user", "content": "Call f." }], "max_tokens": 64, "temperature": 0,
        "tools": [{ "type": "function", "function": function }], "tool_choice": "required",
        "parallel_tool_calls": false,
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[test]
fn arguments_of_functions_are_written_as_the_request_says() {
    let server = Server::start(&["--tool-spelling", "hermes"]);
    let arguments = |options: &Value| {
        let answer = server.post("/v1/chat/completions", &with(chat(&json!({})), options));
        assert_eq!(answer.status, 200, "{}", answer.body);
        let call = answer.json()["choices"][0]["message"]["tool_calls"][0].clone();
        call["function"]["arguments"].as_str().unwrap_or_else(|| panic!("{}", answer.body)).to_owned()
    };
    assert_eq!(arguments(&json!({ "whitespace": "compact" })), r#"{"b":1,"a":"x"}"#);
    assert!(arguments(&json!({ "whitespace": "pretty:1" })).starts_with("{\n \"b\": 1,\n"));
    // An answer without calls has the same options.
    let format = json!({ "type": "json_schema", "json_schema": { "name": "n", "schema": schema() } });
    let both = json!({ "response_format": format, "tool_choice": "auto", "grammar_options": {
        "whitespace": "compact", "order": "schema", "escapes": "minimal", "numbers": "plain" } });
    let answer = server.post("/v1/chat/completions", &chat(&both));
    assert_eq!(answer.status, 200, "{}", answer.body);
    let message = answer.json()["choices"][0]["message"].clone();
    let text = message["content"].as_str().or(message["tool_calls"][0]["function"]["arguments"].as_str());
    assert_eq!(text, Some(r#"{"b":1,"a":"x"}"#), "{message}");
}

#[test]
fn options_that_are_wrong_or_idle_are_refused_by_name() {
    let server = Server::start(&["--tool-spelling", "hermes"]);
    let schema = json!({ "grammar": { "type": "json_schema", "value": true } });
    let gbnf = json!({ "grammar": { "type": "gbnf", "value": "root ::= \"a\"" } });
    let lark = json!({ "grammar": { "type": "lark", "value": "start: \"a\"" } });
    let object = json!({ "response_format": { "type": "json_object" } });
    let named = json!({ "grammar": { "type": "named", "value": "json" } });
    for (body, options, code, param) in [
        (&schema, json!({ "whitespace": "loose" }), "invalid_value", "grammar_options.whitespace"),
        (&schema, json!({ "colour": 1 }), "unknown_parameter", "grammar_options.colour"),
        (&schema, json!([]), "invalid_value", "grammar_options"),
        (&gbnf, json!({ "escapes": "all" }), "unsupported", "grammar_options"),
        (&object, json!({ "order": "any" }), "unsupported", "grammar_options"),
        (&named, json!({ "order": "any" }), "unsupported", "grammar_options"),
        (&json!({}), json!({ "order": "any" }), "unsupported", "grammar_options"),
        (&lark, json!({ "order": "any" }), "unsupported", "grammar_options.order"),
    ] {
        let answer = server.complete(&with(body.clone(), &options));
        let error = answer.error();
        assert_eq!(
            (answer.status, &error["code"], &error["param"]),
            (400, &json!(code), &json!(param)),
            "{body} {options}: {error}"
        );
    }
    for option in [json!({ "draft": "7" }), json!({ "lenient": true }), json!({ "max_depth": 3 })] {
        let answer = server.post("/v1/chat/completions", &with(chat(&json!({})), &option));
        assert_eq!(answer.error()["code"], "unsupported", "{option}: {}", answer.body);
    }
    // Nothing is asked for.
    for idle in [Value::Null, json!({}), json!({ "order": null })] {
        assert_eq!(server.complete(&with(gbnf.clone(), &idle)).status, 200, "{idle}");
    }
}
