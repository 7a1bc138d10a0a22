//! `tools` of a chat: calls in the model's spelling come back as `tool_calls`, whole or streamed.

use serde_json::{Value, json};

use super::{JSON, Server};

/// Functions with few arguments, so that a small model comes to the end of a call.
fn tools() -> Value {
    let parameters = json!({
        "type": "object", "required": ["color"],
        "properties": { "color": { "enum": ["red", "green"] }, "level": { "enum": [1, 2, 3] } },
    });
    json!([
        { "type": "function", "function": { "name": "paint", "parameters": parameters } },
        { "type": "function", "function": { "name": "stop" } },
    ])
}

fn chat(more: &Value) -> Value {
    let mut body = json!({
        "model": "default", "messages": [{ "role": "user", "content": "Paint it." }], "max_tokens": 80,
        "temperature": 1, "seed": 3, "tools": tools(), "parallel_tool_calls": false,
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// Checks a call: a function of [`tools`] with arguments that it takes.
fn is_valid(name: &str, arguments: &str) {
    let arguments: Value =
        serde_json::from_str(arguments).unwrap_or_else(|error| panic!("{error}: {arguments}"));
    let members = arguments.as_object().unwrap();
    match name {
        "stop" => assert!(members.is_empty(), "{arguments}"),
        "paint" => {
            assert!(members["color"] == "red" || members["color"] == "green", "{arguments}");
            assert!(members.keys().all(|key| key == "color" || key == "level"), "{arguments}");
        }
        name => panic!("no function {name}"),
    }
}

#[test]
fn calls_come_back_whole_and_streamed() {
    for spelling in ["hermes", "qwen3-coder", "llama3"] {
        // Llama's mark is no token of this model, and Mistral's spellings need theirs.
        let server = Server::start(&["--tool-spelling", spelling]);
        if spelling == "llama3" {
            let refused = server.post("/v1/chat/completions", &chat(&json!({ "tool_choice": "required" })));
            assert_eq!((refused.status, refused.error()["param"].as_str()), (400, Some("tools")));
            assert!(
                refused.error()["message"].as_str().unwrap().contains("<|python_tag|>"),
                "{}",
                refused.body
            );
            continue;
        }
        for (choice, name) in [
            (json!("required"), None),
            (json!({ "type": "function", "function": { "name": "paint" } }), Some("paint")),
        ] {
            // A small model may fill a text with white space: one of some seeds comes to the end of its call.
            let ended = (0..12_u64).find_map(|seed| {
                let body = chat(&json!({ "tool_choice": choice, "seed": seed, "max_tokens": 160 }));
                let answer = server.post("/v1/chat/completions", &body);
                assert_eq!(answer.status, 200, "{}", answer.body);
                let whole = answer.json()["choices"][0].clone();
                (whole["finish_reason"] == "tool_calls").then_some((body, whole))
            });
            let (body, whole) = ended.expect("a call that ends");
            assert_eq!(whole["message"]["content"], Value::Null, "{whole}");
            let calls = whole["message"]["tool_calls"].as_array().unwrap();
            let [call] = &calls[..] else { panic!("{whole}") };
            assert!(
                call["type"] == "function" && call["id"].as_str().unwrap().starts_with("call_"),
                "{call}"
            );
            let function = &call["function"];
            let (called, arguments) =
                (function["name"].as_str().unwrap(), function["arguments"].as_str().unwrap());
            is_valid(called, arguments);
            assert!(name.is_none_or(|name| name == called), "{call}");
            // The same in a stream, piece by piece.
            let mut stream = body.clone();
            stream["stream"] = true.into();
            let events = server.post("/v1/chat/completions", &stream).events();
            let (mut streamed, mut names, mut finish) = (String::new(), Vec::new(), Value::Null);
            for event in &events {
                let choice = &event["choices"][0];
                assert_eq!(choice["delta"].get("content").and_then(Value::as_str).unwrap_or_default(), "");
                for piece in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
                    assert_eq!(piece["index"], 0);
                    names.extend(piece["function"]["name"].as_str().map(str::to_owned));
                    streamed += piece["function"]["arguments"].as_str().unwrap_or_default();
                }
                if !choice["finish_reason"].is_null() {
                    finish = choice["finish_reason"].clone();
                }
            }
            assert_eq!(
                (streamed.as_str(), names, finish),
                (arguments, vec![called.to_owned()], json!("tool_calls"))
            );
            assert_eq!(events[0]["choices"][0]["delta"]["role"], "assistant");
        }
        // Nothing is called.
        let none =
            server.post("/v1/chat/completions", &chat(&json!({ "tool_choice": "none", "max_tokens": 12 })));
        let message = none.json()["choices"][0]["message"].clone();
        assert!(message.get("tool_calls").is_none() && message["content"].is_string(), "{message}");
    }
}

/// The shipped model's template shows no functions: they stand in what the system says, and the grammar holds
/// calls to their form.
#[test]
fn models_without_a_spelling_of_their_own_call_functions_too() {
    let server = Server::start(&[]);
    let ask = |more: &Value| {
        let answer = server.post("/v1/chat/completions", &chat(more));
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()
    };
    let compact = json!({ "whitespace": "compact" });
    let named = json!({ "type": "function", "function": { "name": "stop" } });
    for (choice, name) in [(json!("required"), None), (named, Some("stop"))] {
        let whole = ask(&json!({ "tool_choice": choice, "grammar_options": compact, "max_tokens": 160 }));
        let choice = &whole["choices"][0];
        assert_eq!(choice["finish_reason"], "tool_calls", "{choice}");
        let [call] = &choice["message"]["tool_calls"].as_array().unwrap()[..] else { panic!("{choice}") };
        let called = call["function"]["name"].as_str().unwrap();
        is_valid(called, call["function"]["arguments"].as_str().unwrap());
        assert!(name.is_none_or(|name| name == called), "{call}");
    }
    // What the model is shown counts as its prompt.
    let prompt = |more: &Value| ask(more)["usage"]["prompt_tokens"].as_u64().unwrap();
    let (with, without) =
        (prompt(&json!({ "max_tokens": 1 })), prompt(&json!({ "max_tokens": 1, "tools": [] })));
    assert!(with > without + 50, "{with} {without}");
    // Calls, answers of functions and answers without text are parts of the conversation, in the form in
    // which clients send them.
    let call = json!({ "id": "c", "type": "function", "function": { "name": "stop", "arguments": "{}" } });
    let conversation = json!([
        { "role": "user", "content": "Stop." },
        { "role": "assistant", "content": null, "tool_calls": [call] },
        { "role": "tool", "tool_call_id": "c", "content": "stopped" },
        { "role": "assistant", "content": null },
        { "role": "assistant", "content": null, "tool_calls": [] },
        { "role": "user", "content": "And now?" },
    ]);
    for tools in [tools(), json!([])] {
        ask(&json!({ "messages": conversation, "tools": tools, "max_tokens": 2 }));
    }
    for parallel in [true, false] {
        ask(&json!({ "parallel_tool_calls": parallel, "max_tokens": 2 }));
    }
}

#[test]
fn variables_of_the_template_are_taken_under_their_own_name_and_vllms() {
    let folder = tempfile::tempdir().unwrap();
    let template = folder.path().join("template.jinja");
    let text = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}{% if twice %}\
                {{ messages[0].content }}{% endif %}";
    std::fs::write(&template, text).unwrap();
    let server = Server::start(&["--chat-template", template.to_str().unwrap()]);
    let ask = |variables: Value| {
        let messages = json!([{ "role": "user", "content": "A person and a house: " }]);
        let body = json!({ "messages": messages, "max_tokens": 1, "chat_template_kwargs": variables });
        server.post("/v1/chat/completions", &body)
    };
    let prompt = |variables| ask(variables).json()["usage"]["prompt_tokens"].as_u64().unwrap();
    assert!(prompt(json!({ "twice": true })) > prompt(json!({ "twice": false })));
    for (wrong, param) in
        [(json!([]), "chat_template_kwargs"), (json!({ "messages": [] }), "chat_template_kwargs.messages")]
    {
        let refused = ask(wrong);
        assert_eq!((refused.status, refused.error()["param"].as_str()), (400, Some(param)));
    }
}

#[test]
fn mistakes_in_tools_name_their_field() {
    let server = Server::start(&["--tool-spelling", "hermes"]);
    let refused = |more: Value| {
        let answer = server.send("POST", "/v1/chat/completions", JSON, &chat(&more).to_string());
        let param = answer.error()["param"].as_str().unwrap_or_default().to_owned();
        (answer.status, param)
    };
    let of = |function: Value| json!({ "tools": [{ "type": "function", "function": function }] });
    assert_eq!(refused(of(json!({ "name": "a b" }))), (400, "tools".to_owned()));
    let schema = json!({ "name": "f", "parameters": { "type": "strin" } });
    assert_eq!(refused(of(schema.clone())), (400, "tools".to_owned()));
    // The place is that in the list of the request.
    let list = of(schema);
    let error = server.post("/v1/chat/completions", &chat(&list)).error();
    let column = list["tools"].to_string().find("strin").unwrap();
    assert_eq!(
        (&error["line"], error["column"].as_u64()),
        (&json!(1), u64::try_from(column).ok()),
        "{error}"
    );
    assert_eq!(refused(json!({ "tool_choice": "sometimes" })), (400, "tool_choice".to_owned()));
    let regex = json!({ "type": "regex", "value": "a" });
    assert_eq!(refused(json!({ "grammar": regex })), (400, "tools".to_owned()));
}
