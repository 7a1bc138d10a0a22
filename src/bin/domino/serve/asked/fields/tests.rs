//! Fields of requests: those taken, and those refused by name.

use serde_json::json;

use super::*;

fn read(mut body: Value, endpoint: Endpoint) -> Result<Value, Value> {
    let outcome = of_body(body.as_object_mut().unwrap(), endpoint);
    outcome.map(|()| body).map_err(|problem| problem.to_json()["error"].clone())
}

/// The parameters of both addresses in OpenAI's reference, with values that ask for nothing special.
#[test]
fn fields_that_clients_of_openai_send_are_taken() {
    let both = json!({
        "model": "m", "frequency_penalty": 0, "logit_bias": {}, "max_tokens": 1, "n": 1,
        "presence_penalty": 0, "seed": 1, "stop": "a", "stream": true, "stream_options": {},
        "temperature": 1, "top_p": 1,
    });
    let ignored = json!({ "user": "u" });
    let chat = json!({
        "messages": [], "logprobs": false, "top_logprobs": 0, "max_completion_tokens": 1,
        "reasoning_effort": "low", "response_format": {}, "tools": [], "tool_choice": "none",
    });
    let ignored_chat = json!({
        "metadata": { "a": "b" }, "store": true, "service_tier": "flex", "safety_identifier": "s",
        "prompt_cache_key": "k", "prompt_cache_retention": "24h", "verbosity": "low",
        "prediction": { "type": "content", "content": "a" }, "parallel_tool_calls": false,
        "modalities": ["text"], "functions": [], "function_call": "none",
    });
    let completions = json!({ "prompt": "a", "best_of": 1, "echo": false, "logprobs": 1, "suffix": "z" });
    for (endpoint, kept, dropped) in [
        (Endpoint::Chat, [&both, &chat], [&ignored, &ignored_chat]),
        (Endpoint::Completions, [&both, &completions], [&ignored, &ignored]),
    ] {
        let merged = |parts: &[&Value]| {
            let fields = parts.iter().flat_map(|part| part.as_object().unwrap().clone());
            Value::Object(fields.collect())
        };
        let body = merged(&[&kept[..], &dropped[..]].concat());
        assert_eq!(read(body, endpoint).unwrap(), merged(&kept));
    }
}

#[test]
fn fields_that_are_not_served_or_unknown_are_refused_by_name() {
    for (field, value, code) in [
        ("web_search_options", json!({}), "unsupported"),
        ("audio", json!({ "voice": "a" }), "unsupported"),
        ("modalities", json!(["text", "audio"]), "unsupported"),
        ("functions", json!([{ "name": "f" }]), "unsupported"),
        ("function_call", json!({ "name": "f" }), "unsupported"),
        ("image_url", json!("http://127.0.0.1/"), "unknown_parameter"),
        ("truncate_sequence", json!(true), "unknown_parameter"),
        ("temprature", json!(0), "unknown_parameter"),
        ("", json!(0), "unknown_parameter"),
    ] {
        for endpoint in [Endpoint::Chat, Endpoint::Completions] {
            let error = read(json!({ field: value }), endpoint).unwrap_err();
            assert_eq!((&error["code"], &error["param"]), (&json!(code), &json!(field)), "{error}");
        }
    }
    assert_eq!(read(json!({ "prompt": "a" }), Endpoint::Chat).unwrap_err()["param"], "prompt");
    assert_eq!(read(json!({ "messages": [] }), Endpoint::Completions).unwrap_err()["param"], "messages");
}

#[test]
fn messages_of_an_answer_can_be_sent_back() {
    let mut message = json!({
        "role": "assistant", "content": "a", "refusal": null, "annotations": [], "audio": null,
        "tool_calls": null, "reasoning_content": "b",
    });
    of_message(message.as_object_mut().unwrap(), 0).unwrap();
    // The template decides what becomes of a thought.
    assert_eq!(message, json!({ "role": "assistant", "content": "a", "reasoning_content": "b" }));
    let mut message = json!({ "role": "user", "content": "a", "images": ["/etc/hosts"] });
    let problem = of_message(message.as_object_mut().unwrap(), 3).unwrap_err();
    assert_eq!(problem.to_json()["error"]["param"], "messages[3].images");
}
