//! The APIs beside chats and completions: OpenAI's Responses, Anthropic's Messages, and counts of tokens.

use serde_json::{Value, json};

use super::{JSON, PERSON, Server};

/// A schema whose texts are short, so that a small model comes to their end.
fn schema() -> Value {
    json!({
        "type": "object", "required": ["color"], "additionalProperties": false,
        "properties": { "color": { "enum": ["red", "green"] } },
    })
}

/// The objects of the events of a stream, whose names are their types.
fn events(text: &str) -> Vec<Value> {
    let mut events = Vec::new();
    let mut name = "";
    for line in text.lines() {
        if let Some(told) = line.strip_prefix("event: ") {
            name = told;
        }
        if let Some(data) = line.strip_prefix("data: ") {
            let event: Value = serde_json::from_str(data).unwrap();
            assert_eq!(event["type"], name);
            events.push(event);
        }
    }
    events
}

/// All parts of a text that a stream tells by events of this type.
fn joined(events: &[Value], kind: &str, path: &str) -> String {
    let of_kind = events.iter().filter(|event| event["type"] == kind);
    of_kind.filter_map(|event| event.pointer(path)?.as_str()).collect()
}

#[test]
fn responses_write_texts_of_schemas_whole_and_streamed() {
    let server = Server::start(&["--tool-spelling", "hermes"]);
    let mut body = json!({
        "model": "default", "input": PERSON, "seed": 1, "max_output_tokens": 60,
        "text": { "format": { "type": "json_schema", "name": "paint", "schema": schema(), "strict": true } },
    });
    let answer = server.post("/v1/responses", &body);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let whole = answer.json();
    assert_eq!((&whole["object"], &whole["status"]), (&json!("response"), &json!("completed")), "{whole}");
    let text = whole["output"][0]["content"][0]["text"].as_str().unwrap().to_owned();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert!(value["color"] == "red" || value["color"] == "green", "{text}");
    assert_eq!(whole["text"], body["text"]);
    let usage = &whole["usage"];
    assert_eq!(
        usage["total_tokens"].as_u64(),
        Some(usage["input_tokens"].as_u64().unwrap() + usage["output_tokens"].as_u64().unwrap())
    );
    body["stream"] = true.into();
    let events = events(&server.post("/v1/responses", &body).body);
    assert_eq!(joined(&events, "response.output_text.delta", "/delta"), text);
    let last = events.last().unwrap();
    assert_eq!(
        (&last["type"], &last["response"]["output"][0]["content"]),
        (&json!("response.completed"), &whole["output"][0]["content"])
    );
    let refused = server.post("/v1/responses", &json!({ "input": "a", "previous_response_id": "resp_1" }));
    assert_eq!((refused.status, &refused.error()["param"]), (400, &json!("previous_response_id")));
}

#[test]
fn responses_call_functions_and_tools_that_take_a_text() {
    let server = Server::start(&["--tool-spelling", "hermes"]);
    let lark = "start: LETTERS \"\\n\" /[0-9]/\nLETTERS: /[ab]{2,4}/";
    let format = json!({ "type": "grammar", "syntax": "lark", "definition": lark });
    let body = json!({
        "input": "Paint it.", "seed": 1, "max_output_tokens": 120, "stream": true,
        "tools": [{ "type": "custom", "name": "draw", "format": format },
            { "type": "function", "name": "paint", "parameters": schema() }],
        "tool_choice": { "type": "custom", "name": "draw" }, "parallel_tool_calls": false,
    });
    let told = events(&server.post("/v1/responses", &body).body);
    let input = joined(&told, "response.custom_tool_call_input.done", "/input");
    let (letters, digit) = input.split_once('\n').unwrap_or_else(|| panic!("{told:?}"));
    assert!((2..=4).contains(&letters.len()) && letters.chars().all(|c| "ab".contains(c)), "{input}");
    assert!(digit.len() == 1 && digit.parse::<u8>().is_ok(), "{input}");
    let mut allowed = body.clone();
    allowed["tool_choice"] = json!({
        "type": "allowed_tools", "mode": "required", "tools": [{ "type": "function", "name": "paint" }],
    });
    let told = events(&server.post("/v1/responses", &allowed).body);
    let call = &told.last().unwrap()["response"]["output"][0];
    assert_eq!((&call["type"], &call["name"]), (&json!("function_call"), &json!("paint")), "{call}");
    assert!(serde_json::from_str::<Value>(call["arguments"].as_str().unwrap()).unwrap()["color"].is_string());
}

#[test]
fn messages_write_texts_and_calls_whole_and_streamed() {
    let server = Server::start(&["--tool-spelling", "hermes"]);
    let mut body = json!({
        "model": "default", "max_tokens": 60, "seed": 1,
        "messages": [{ "role": "user", "content": [{ "type": "text", "text": PERSON }] }],
        "output_config": { "format": { "type": "json_schema", "schema": schema() } },
    });
    let whole = server.post("/v1/messages", &body).json();
    let text = whole["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{whole}")).to_owned();
    assert!(serde_json::from_str::<Value>(&text).unwrap()["color"].is_string(), "{text}");
    assert_eq!(whole["stop_reason"], "end_turn");
    body["stream"] = true.into();
    let told = events(&server.post("/v1/messages", &body).body);
    assert_eq!(joined(&told, "content_block_delta", "/delta/text"), text);
    assert_eq!(
        (&told[0]["type"], &told.last().unwrap()["type"]),
        (&json!("message_start"), &json!("message_stop"))
    );
    let counted = server.post("/v1/messages/count_tokens", &body).json();
    assert_eq!(counted["input_tokens"], whole["usage"]["input_tokens"]);

    let calls = json!({
        "max_tokens": 120, "messages": [{ "role": "user", "content": "Paint it." }], "seed": 1,
        "tools": [{ "name": "paint", "input_schema": schema() }], "tool_choice": { "type": "any" },
    });
    let whole = server.post("/v1/messages", &calls).json();
    assert_eq!(whole["stop_reason"], "tool_use", "{whole}");
    assert!(whole["content"][0]["input"]["color"].is_string(), "{whole}");

    let stopped = json!({
        "max_tokens": 60, "messages": [{ "role": "user", "content": "a" }], "stop_sequences": ["b", "5"],
        "grammar": { "type": "regex", "value": "aaab" },
    });
    let whole = server.post("/v1/messages", &stopped).json();
    assert_eq!((&whole["stop_reason"], &whole["stop_sequence"]), (&json!("stop_sequence"), &json!("b")));
    assert_eq!(whole["content"][0]["text"], "aaa");

    let refused = server.post("/v1/messages", &json!({ "max_tokens": 5, "messages": [] }));
    let error = refused.json();
    assert_eq!((refused.status, &error["type"]), (400, &json!("error")));
    assert_eq!(
        (&error["error"]["type"], &error["error"]["param"]),
        (&json!("invalid_request_error"), &json!("messages"))
    );
}

#[test]
fn a_key_may_come_as_clients_of_messages_send_it() {
    let server = Server::start(&["--api-key", "secret"]);
    let body = json!({ "messages": [{ "role": "user", "content": "a" }] });
    for (header, status) in [("x-api-key: secret\r\n", 200), ("x-api-key: wrong\r\n", 401), ("", 401)] {
        let head = format!("{JSON}{header}");
        assert_eq!(server.send("POST", "/v1/messages/count_tokens", &head, &body.to_string()).status, status);
    }
}

#[test]
fn tokens_go_there_and_back() {
    let server = Server::start(&[]);
    let made = server.post("/tokenize", &json!({ "prompt": "Hello there" })).json();
    let tokens = made["tokens"].as_array().unwrap();
    assert_eq!(made["count"].as_u64(), Some(tokens.len() as u64));
    assert!(made["max_model_len"].as_u64() > Some(100));
    assert_eq!(server.post("/tokenize", &json!({ "content": "Hello there" })).json(), made);
    let back = server.post("/detokenize", &json!({ "tokens": tokens })).json();
    assert_eq!(back["prompt"].as_str().unwrap().trim(), "Hello there");
    assert_eq!(server.post("/detokenize", &json!({ "tokens": "a" })).status, 400);
    let chat =
        server.post("/tokenize", &json!({ "messages": [{ "role": "user", "content": "Hello there" }] }));
    assert!(chat.json()["count"].as_u64() >= made["count"].as_u64(), "{}", chat.body);
}

#[test]
fn words_of_other_servers_are_known() {
    let server = Server::start(&[]);
    let of = |more: &Value| server.complete(more).json();
    assert_eq!(of(&json!({ "grammar": "root ::= \"ab\"" }))["choices"][0]["text"], "ab");
    let text = of(&json!({ "json_schema": schema(), "max_tokens": 60 }))["choices"][0]["text"].clone();
    assert!(serde_json::from_str::<Value>(text.as_str().unwrap()).unwrap()["color"].is_string(), "{text}");
    let tokens = |answer: &Value| answer["usage"]["completion_tokens"].as_u64();
    let digits = json!({ "type": "regex", "value": "[0-9]{0,90}" });
    let asked = |more: Value| {
        let mut asked = json!({ "grammar": digits, "max_tokens": 30, "logit_bias": { "2": 100 } });
        asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        tokens(&of(&asked))
    };
    // The token that ends texts is the likeliest by far.
    assert_eq!(asked(json!({})), Some(0));
    assert_eq!(asked(json!({ "min_tokens": 7 })), Some(7));
    assert_eq!(asked(json!({ "ignore_eos": true })), Some(30));
}
