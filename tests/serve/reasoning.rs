//! Thoughts before answers: kept apart from them, whole and streamed, with a schema, with functions and
//! without.

use std::fs;

use serde_json::{Value, json};

use super::Server;

/// Templates as models have them that think: one leaves it to the model, one opens the thought, one has
/// closed it.
const TEMPLATES: [(&str, &str); 3] = [
    ("leaves", "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{# <think></think> #}A: "),
    ("opens", "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{# </think> #}A: <think>\n"),
    (
        "closes",
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}A: <think>\n\n</think>\n\n",
    ),
];

fn format() -> Value {
    let schema = json!({
        "type": "object", "properties": { "n": { "enum": [1, 2] } }, "required": ["n"],
        "additionalProperties": false,
    });
    json!({ "type": "json_schema", "json_schema": { "name": "n", "schema": schema, "strict": true } })
}

fn body(more: &Value) -> Value {
    let mut body = json!({
        "model": "default", "messages": [{ "role": "user", "content": "How many?" }], "max_tokens": 60,
        "seed": 5, "reasoning_tokens": 9, "finish": true,
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// Thought and content of a message; the stream of the same request has both, too.
fn parts(server: &Server, body: &Value) -> (String, String, Value) {
    let answer = server.post("/v1/chat/completions", body);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let whole = answer.json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let message = &whole["choices"][0]["message"];
    let (thought, content) = (text(&message["reasoning_content"]), text(&message["content"]));
    let mut stream = body.clone();
    stream["stream"] = true.into();
    let (mut streamed_thought, mut streamed) = (String::new(), String::new());
    for event in server.post("/v1/chat/completions", &stream).events() {
        let delta = &event["choices"][0]["delta"];
        streamed_thought += &text(&delta["reasoning_content"]);
        streamed += &text(&delta["content"]);
        assert!(streamed.is_empty() || delta["reasoning_content"].is_null(), "{event}");
    }
    assert_eq!((&streamed_thought, &streamed), (&thought, &content));
    assert!(!thought.contains("</think>") && !content.contains("think>"), "{whole}");
    (thought, content, whole["usage"].clone())
}

#[test]
fn answers_of_a_schema_come_behind_thoughts() {
    let folder = tempfile::tempdir().unwrap();
    for (name, template) in TEMPLATES {
        let file = folder.path().join(format!("{name}.jinja"));
        fs::write(&file, template).unwrap();
        let server = Server::start(&["--chat-template", file.to_str().unwrap()]);
        for more in [json!({}), json!({ "reasoning": "required" }), json!({ "reasoning": "off" })] {
            let mut more = more;
            more["response_format"] = format();
            let (thought, content, usage) = parts(&server, &body(&more));
            let value: Value = serde_json::from_str(&content).unwrap();
            assert!(value == json!({ "n": 1 }) || value == json!({ "n": 2 }), "{value}");
            let must = more["reasoning"] == "required" || name == "opens" && more.get("reasoning").is_none();
            let may = must || name == "leaves" && more.get("reasoning").is_none();
            assert!(!must || !thought.is_empty(), "{name} {more}");
            assert!(may || thought.is_empty(), "{name} {more}: {thought}");
            let tokens = usage["completion_tokens_details"]["reasoning_tokens"].as_u64().unwrap_or_default();
            // The mark is spelled by more tokens than one.
            assert!(tokens <= 9 + 9 && (tokens > 0) != thought.is_empty(), "{name} {more}: {usage}");
        }
        // A prompt that has opened a thought is inside of it whatever the variable says.
        let none =
            json!({ "chat_template_kwargs": { "enable_thinking": false }, "response_format": format() });
        let (thought, content, _) = parts(&server, &body(&none));
        assert_eq!(thought.is_empty(), name != "opens", "{name}: {thought}");
        assert!(serde_json::from_str::<Value>(&content).is_ok());
    }
}

#[test]
fn thoughts_come_before_calls_and_before_any_text() {
    let server = Server::start(&["--tool-spelling", "hermes"]);
    let tools = json!([{ "type": "function", "function": { "name": "stop" } }]);
    let asked = body(&json!({ "tools": tools, "tool_choice": "required", "reasoning": "required" }));
    let answer = server.post("/v1/chat/completions", &asked).json();
    let message = &answer["choices"][0]["message"];
    assert_eq!(message["tool_calls"][0]["function"]["name"], "stop", "{answer}");
    assert!(!message["reasoning_content"].as_str().unwrap_or_default().is_empty(), "{answer}");
    // Other marks, and a grammar that is none of JSON.
    let asked = json!({
        "reasoning": "required", "thought_marks": ["(", ")"],
        "grammar": { "type": "regex", "value": "[ab]{2}" },
    });
    let (thought, content, _) = parts(&server, &body(&asked));
    assert!(content.len() == 2 && content.chars().all(|c| "ab".contains(c)), "{content}");
    assert!(!thought.contains(')'), "{thought}");
    // A prompt of a completion may open one.
    let asked = json!({
        "model": "default", "prompt": "A: <think>\n", "max_tokens": 40, "reasoning": "auto",
        "reasoning_tokens": 4, "finish": true, "grammar": { "type": "regex", "value": "[ab]{2}" },
    });
    let answer = server.post("/v1/completions", &asked);
    assert_eq!(answer.status, 200, "{}", answer.body);
    // A thought that is cut has no answer.
    let asked = json!({ "reasoning": "open", "max_tokens": 3, "finish": false, "response_format": format() });
    let cut = server.post("/v1/chat/completions", &body(&asked)).json();
    assert_eq!(cut["choices"][0]["finish_reason"], "length", "{cut}");
    assert_eq!(cut["choices"][0]["message"]["content"], "", "{cut}");
    // A long mark is refused, however it would be searched for.
    let long = json!({ "thought_marks": ["a", "a".repeat(2_000)], "response_format": format() });
    assert_eq!(server.post("/v1/chat/completions", &body(&long)).error()["param"], "thought_marks");
    for (param, value) in
        [("reasoning", json!("much")), ("reasoning", json!(1)), ("thought_marks", json!(["a"]))]
    {
        let refused = server.post("/v1/chat/completions", &body(&json!({ param: value })));
        assert_eq!((refused.status, refused.error()["param"].as_str()), (400, Some(param)));
    }
}
