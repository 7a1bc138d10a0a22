//! Chat templates: read or refused; what is read renders or fails, within bounds and the same each time.

use domino::chat::{ChatError, ChatTemplate, Conversation};
use serde_json::{Value, json};

/// Most bytes that a template may write, beside a multiple of its messages' length.
const MOST: usize = 1 << 20;
const MOST_EACH: usize = 16;

/// Fails if a template is mishandled. Messages in JSON may follow after a byte 0.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (source, messages) = text.split_once('\0').unwrap_or((text, ""));
    let template = match ChatTemplate::parse(source) {
        Ok(template) => template.with_token("bos_token", "<s>").with_token("eos_token", "</s>"),
        Err(error) => return check_error(&error, source),
    };
    let own = serde_json::from_str::<Value>(messages).ok().and_then(|value| value.as_array().cloned());
    let usual = || {
        let function = json!({"name": "f", "arguments": {"a": [1, null]}});
        let call = json!([{"id": "1", "type": "function", "function": function}]);
        vec![
            json!({"role": "system", "content": "S"}),
            json!({"role": "user", "content": " U\n"}),
            json!({"role": "assistant", "content": null, "tool_calls": call}),
            json!({"role": "tool", "content": "[1, \"\u{e9}\"]", "tool_call_id": "1"}),
            json!({"role": "user", "content": "</think> x"}),
        ]
    };
    let conversation = Conversation::new(own.unwrap_or_else(usual))
        .with_tools(&[json!({"name": "f", "inputSchema": {"properties": {"a": {"items": {}}}}})])
        .with_date(1_741_529_107);
    let first = template.render(&conversation);
    match &first {
        Ok(text) => assert!(text.len() <= MOST + MOST_EACH * (data.len() + 1_000), "{} bytes", text.len()),
        Err(error) => check_error(error, source),
    }
    assert_eq!(first, template.render(&conversation));
}

fn check_error(error: &ChatError, source: &str) {
    assert!(!error.to_string().is_empty());
    let lines = source.bytes().filter(|&byte| matches!(byte, b'\n' | b'\r')).count() + 1;
    assert!(error.line().is_none_or(|line| (1..=lines).contains(&line)), "{error} of {lines} lines");
}
