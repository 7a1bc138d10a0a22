//! Bodies of other APIs against the bodies of chats that mean the same.

use serde_json::{Value, json};

use super::*;

fn translated(endpoint: Endpoint, body: &Value) -> Result<(Value, AnswerShape), Problem> {
    let text = body.to_string();
    let (chat, shape) = match endpoint {
        Endpoint::Responses => responses::translate(&text)?,
        _ => (messages::translate(&text)?, AnswerShape::default()),
    };
    Ok((serde_json::from_slice(&chat).unwrap(), shape))
}

/// Asserts that a body means what a chat means.
fn is_chat(endpoint: Endpoint, body: &Value, chat: &Value) {
    let (is, _) =
        translated(endpoint, body).unwrap_or_else(|problem| panic!("{body}: {}", problem.to_json()));
    assert_eq!(is, *chat, "{body}");
}

/// The code and the field of a refusal.
fn refused(endpoint: Endpoint, body: &Value) -> (String, String) {
    let text = body.to_string();
    let read = Asked::read(text.as_bytes(), endpoint, 1000, &SchemaRules::default(), Some(Spelling::Hermes));
    let problem = read.expect_err(&text);
    let error = problem.to_json()["error"].take();
    let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    (text("code"), text("param"))
}

#[test]
fn responses_are_chats_in_other_words() {
    let is = |body: Value, chat: Value| is_chat(Endpoint::Responses, &body, &chat);
    let user = json!([{ "role": "user", "content": "Hi" }]);
    is(
        json!({ "input": "Hi", "store": true, "model": "m", "seed": 3 }),
        json!({ "messages": user, "model": "m", "seed": 3 }),
    );
    is(
        json!({
            "instructions": "Be brief.", "max_output_tokens": 9, "stream": true, "truncation": "auto",
            "input": [{ "role": "user", "content": [{ "type": "input_text", "text": "Hi" }] }],
            "reasoning": { "effort": "low", "summary": "auto" }, "previous_response_id": null,
        }),
        json!({
            "messages": [{ "role": "system", "content": "Be brief." }, user[0]], "stream": true,
            "max_completion_tokens": 9, "reasoning_effort": "low",
        }),
    );
    let schema = json!({ "type": "object" });
    is(
        json!({ "input": "Hi", "text": { "verbosity": "low", "format": {
            "type": "json_schema", "name": "n", "schema": schema, "strict": true } } }),
        json!({ "messages": user, "response_format": {
            "type": "json_schema", "json_schema": { "name": "answer", "schema": schema, "strict": true } } }),
    );
    let tool = json!({ "type": "function", "name": "f", "parameters": schema });
    is(
        json!({ "input": "Hi", "tools": [tool], "tool_choice": { "type": "function", "name": "f" } }),
        json!({ "messages": user, "tools": [tool],
            "tool_choice": { "type": "function", "function": { "name": "f" } } }),
    );
    let call = |arguments: &str| {
        let function = json!({ "name": "f", "arguments": arguments });
        json!({ "id": "c", "type": "function", "function": function })
    };
    let thought = json!({ "type": "reasoning_text", "text": "hm" });
    let said = json!({ "type": "output_text", "text": "so", "annotations": [] });
    is(
        json!({ "input": [
            { "role": "user", "content": "Hi" },
            { "type": "reasoning", "id": "rs", "summary": [], "content": [thought] },
            { "type": "message", "role": "assistant", "content": [said] },
            { "type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "{}",
              "status": "completed" },
            { "type": "custom_tool_call", "call_id": "c", "name": "f", "input": "a\n" },
            { "type": "function_call_output", "call_id": "c", "output": "3" },
        ] }),
        json!({ "messages": [
            user[0],
            { "role": "assistant", "content": "so", "reasoning_content": "hm",
              "tool_calls": [call("{}"), call("{\"input\":\"a\\n\"}")] },
            { "role": "tool", "tool_call_id": "c", "content": "3" },
        ] }),
    );
}

#[test]
fn the_template_sees_a_custom_tool_as_a_function_of_a_text() {
    let format = json!({ "type": "grammar", "syntax": "regex", "definition": "[a-z]+" });
    let body = json!({ "input": "Hi", "tools": [{ "type": "custom", "name": "sh", "format": format }] });
    let (chat, shape) = translated(Endpoint::Responses, &body).unwrap();
    assert_eq!(chat["tools"], body["tools"]);
    assert!(shape.custom.contains("sh"));
    assert_eq!((&shape.settings["tools"], &shape.settings["tool_choice"]), (&body["tools"], &json!("auto")));
    let prompts = Asked::read(
        body.to_string().as_bytes(),
        Endpoint::Responses,
        1000,
        &SchemaRules::default(),
        Some(Spelling::Hermes),
    );
    let PromptAsked::Chat(prompt) = &prompts.unwrap().prompts[0] else { panic!("no chat") };
    let input = &prompt.tools[0]["function"]["parameters"]["properties"]["input"];
    assert_eq!(input["description"], "A text of this grammar (regex):\n[a-z]+");
}

#[test]
fn messages_are_chats_in_other_words() {
    let is = |body: Value, chat: Value| is_chat(Endpoint::Messages, &body, &chat);
    let user = json!({ "role": "user", "content": "Hi" });
    is(
        json!({
            "model": "m", "max_tokens": 5,
            "system": [{ "type": "text", "text": "Be brief.", "cache_control": {} }],
            "messages": [user], "stop_sequences": ["END"], "top_k": 3, "metadata": { "user_id": "u" },
            "thinking": { "type": "enabled", "budget_tokens": 64 },
        }),
        json!({
            "model": "m", "max_tokens": 5, "messages": [{ "role": "system", "content": "Be brief." }, user],
            "stop": ["END"], "top_k": 3, "enable_thinking": true, "reasoning_tokens": 64,
        }),
    );
    let schema = json!({ "type": "object" });
    is(
        json!({ "max_tokens": 5, "messages": [user], "output_config": {
            "effort": "high", "format": { "type": "json_schema", "schema": schema } } }),
        json!({ "max_tokens": 5, "messages": [user], "reasoning_effort": "high", "response_format": {
            "type": "json_schema", "json_schema": { "name": "answer", "schema": schema, "strict": null } } }),
    );
    let tools = json!([{ "name": "f", "input_schema": schema, "cache_control": { "type": "ephemeral" } }]);
    for (choice, wanted) in [
        (json!({ "type": "any" }), json!("required")),
        (json!({ "type": "tool", "name": "f" }), json!({ "type": "function", "function": { "name": "f" } })),
    ] {
        is(
            json!({ "max_tokens": 5, "messages": [user], "tools": tools, "tool_choice": choice }),
            json!({ "max_tokens": 5, "messages": [user], "tools": tools, "tool_choice": wanted }),
        );
    }
    is(
        json!({ "max_tokens": 5, "messages": [user, { "role": "assistant", "content": [
            { "type": "thinking", "thinking": "hm", "signature": "s" }, { "type": "text", "text": "so" },
            { "type": "tool_use", "id": "c", "name": "f", "input": { "a": 1.50 } },
        ] }, { "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "c", "content": [{ "type": "text", "text": "3" }] },
            { "type": "text", "text": "And?" },
        ] }] }),
        json!({ "max_tokens": 5, "messages": [
            user,
            { "role": "assistant", "content": "so", "reasoning_content": "hm", "tool_calls": [
                { "id": "c", "type": "function", "function": { "name": "f", "arguments": "{\"a\":1.5}" } }] },
            { "role": "tool", "tool_call_id": "c", "content": "3" },
            { "role": "user", "content": "And?" },
        ] }),
    );
}

#[test]
fn what_is_not_served_is_refused_in_the_words_of_its_api() {
    let user = json!([{ "role": "user", "content": "Hi" }]);
    for (more, code, param) in [
        (json!({ "previous_response_id": "resp_1" }), "unsupported", "previous_response_id"),
        (json!({ "background": true }), "unsupported", "background"),
        (json!({ "include": ["message.output_text.logprobs"] }), "unsupported", "include"),
        (json!({ "messages": user }), "unknown_parameter", "messages"),
        (json!({ "n": 2 }), "unknown_parameter", "n"),
        (json!({ "klingon": 2 }), "unknown_parameter", "klingon"),
        (json!({ "max_output_tokens": -1 }), "invalid_value", "max_output_tokens"),
        (json!({ "tools": [{ "type": "web_search" }] }), "unsupported", "tools[0].type"),
        (
            json!({ "text": { "format": { "type": "json_schema", "schema": 3 } } }),
            "invalid_value",
            "text.format",
        ),
        (json!({ "input": [{ "type": "item_reference", "id": "a" }] }), "unsupported", "input[0].type"),
    ] {
        let mut body = json!({ "input": "Hi" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (is, field) = refused(Endpoint::Responses, &body);
        assert!(is == code && field.starts_with(param), "{body}: {is} {field}");
    }
    let image = json!([{ "role": "user", "content": [{ "type": "image", "source": {} }] }]);
    let answer = json!([user[0], { "role": "assistant", "content": "{" }]);
    for (more, code, param) in [
        (json!({ "messages": image }), "unsupported", "messages[0].content[0].type"),
        (json!({ "messages": answer }), "unsupported", "messages"),
        (json!({ "container": "c" }), "unknown_parameter", "container"),
        (json!({ "response_format": { "type": "json_object" } }), "unknown_parameter", "response_format"),
        (json!({ "tools": [{ "type": "bash_20250124", "name": "bash" }] }), "unsupported", "tools[0].type"),
        (json!({ "stop_sequences": [""] }), "invalid_value", "stop_sequences"),
    ] {
        let mut body = json!({ "max_tokens": 4, "messages": user });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(refused(Endpoint::Messages, &body), (code.to_owned(), param.to_owned()), "{body}");
    }
}
