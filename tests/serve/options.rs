//! `grammar_options`: how the schemas of a request are written, wherever they stand in it; grammars in vLLM's
//! words; and how far masks reach.

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

#[test]
fn grammars_in_the_words_of_vllm_are_taken() {
    let server = Server::start(&[]);
    let outputs = |more: Value| json!({ "structured_outputs": more });
    let tag = json!({ "type": "structural_tag", "format": { "type": "const_string", "value": "yes" } });
    let gbnf = "root ::= \"ja\" | \"yes\"";
    for (body, texts) in [
        (json!({ "guided_regex": "(yes|ja)" }), &["yes", "ja"][..]),
        (json!({ "guided_choice": ["\"yes\"\n", "ja\\"] }), &["\"yes\"\n", "ja\\"]),
        (json!({ "guided_grammar": gbnf }), &["yes", "ja"]),
        (json!({ "guided_grammar": "start: \"yes\" | \"ja\"" }), &["yes", "ja"]),
        (
            json!({ "guided_json": schema(), "grammar_options": { "whitespace": "compact" } }),
            &["{\"b\":1,\"a\":\"x\"}"],
        ),
        (
            json!({ "guided_json": schema().to_string(), "guided_decoding_backend": "xgrammar",
            "grammar_options": { "whitespace": "compact" } }),
            &["{\"b\":1,\"a\":\"x\"}"],
        ),
        (outputs(json!({ "json": schema(), "disable_any_whitespace": true })), &["{\"b\":1,\"a\":\"x\"}"]),
        (outputs(json!({ "regex": "ja", "disable_fallback": true })), &["ja"]),
        (outputs(json!({ "choice": ["ja"] })), &["ja"]),
        (outputs(json!({ "grammar": gbnf, "json": null })), &["yes", "ja"]),
        (outputs(json!({ "structural_tag": tag.to_string() })), &["yes"]),
    ] {
        let text = content(&server.complete(&body));
        assert!(texts.contains(&text.as_str()), "{body}: {text}");
    }
    let object = content(&server.complete(&outputs(json!({ "json_object": true }))));
    assert!(object.trim_start().starts_with('{'), "{object}");
    for (body, code, param) in [
        (json!({ "guided_regex": "(" }), "invalid_grammar", "guided_regex"),
        (json!({ "guided_json": { "type": "strin" } }), "invalid_json_schema", "guided_json"),
        (json!({ "guided_json": 5 }), "invalid_value", "guided_json"),
        (json!({ "guided_choice": [] }), "invalid_value", "guided_choice"),
        (json!({ "guided_choice": ["a", 1] }), "invalid_value", "guided_choice"),
        (json!({ "guided_whitespace_pattern": " *" }), "unsupported", "guided_whitespace_pattern"),
        (json!({ "guided_regex": "a", "guided_choice": ["a"] }), "invalid_value", "guided_choice"),
        (
            json!({ "guided_regex": "a", "grammar": { "type": "regex", "value": "a" } }),
            "invalid_value",
            "grammar",
        ),
        (outputs(json!([])), "invalid_value", "structured_outputs"),
        (outputs(json!({ "regex": 1 })), "invalid_value", "structured_outputs.regex"),
        (outputs(json!({ "colour": 1 })), "unknown_parameter", "structured_outputs.colour"),
        (
            outputs(json!({ "regex": "a", "whitespace_pattern": " " })),
            "unsupported",
            "structured_outputs.whitespace_pattern",
        ),
    ] {
        let error = server.complete(&body).error();
        assert_eq!((&error["code"], &error["param"]), (&json!(code), &json!(param)), "{body}: {error}");
    }
}

/// With lookahead 0 no token may begin a terminal inside of it, so other tokens spell the text; the flag of
/// the server and the field of a request are the same. When masks are made changes nothing.
#[test]
fn masks_reach_and_come_as_the_request_says() {
    let grammar = json!({ "type": "gbnf", "value": concat!(
        "root ::= \"[\" item (\",\" \" \" item)* \"]\"\n",
        "item ::= \"\\\"\" [a-z]+ \"\\\"\" \":\" \" \" [0-9]+",
    ) });
    let ask = |server: &Server, more: Value| {
        let mut body = json!({ "grammar": grammar, "seed": 3, "temperature": 1, "max_tokens": 12 });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = server.complete(&body);
        assert_eq!(answer.status, 200, "{}", answer.body);
        let answer = answer.json();
        (
            answer["choices"][0]["text"].as_str().unwrap().to_owned(),
            answer["usage"]["completion_tokens"].clone(),
        )
    };
    let (plain, short) = (
        Server::start(&[]),
        Server::start(&["-k", "0", "--terminals", "written", "--mask", "opportunistic"]),
    );
    let usual = ask(&plain, json!({}));
    for mask in ["ahead", "always", "opportunistic"] {
        assert_eq!(ask(&plain, json!({ "mask": mask })), usual);
    }
    let near = ask(&plain, json!({ "lookahead": 0, "terminals": "written" }));
    assert_ne!(near, usual);
    assert_eq!(ask(&short, json!({})), near);
    assert_eq!(ask(&short, json!({ "lookahead": "infinite" })), usual);
    for (body, param) in [
        (json!({ "lookahead": "far", "grammar": grammar }), "lookahead"),
        (json!({ "terminals": "all", "grammar": grammar }), "terminals"),
        (json!({ "mask": "late", "grammar": grammar }), "mask"),
        (json!({ "lookahead": 1 }), "lookahead"),
    ] {
        let refused = plain.complete(&body);
        assert_eq!((refused.status, refused.error()["param"].as_str()), (400, Some(param)), "{body}");
    }
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
