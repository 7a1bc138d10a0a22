//! Functions and their calls as words of a conversation, for models whose template has no form for them.
//!
//! The words are those of Qwen 2.5's template, and so nearly those of Hermes 2 Pro: many models have seen
//! them.

use serde_json::{Value as Json, json};

/// Writes what the system says of the functions that the model may call.
pub(super) fn functions(tools: impl Iterator<Item = Json>) -> String {
    let list: String = tools.map(|tool| format!("{tool}\n")).collect();
    format!(
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n\
         You are provided with function signatures within <tools></tools> XML tags:\n\
         <tools>\n{list}</tools>\n\n\
         For each function call, return a json object with function name and arguments within \
         <tool_call></tool_call> XML tags:\n\
         <tool_call>\n{{\"name\": <function-name>, \"arguments\": <args-json-object>}}\n</tool_call>"
    )
}

/// Makes texts of the model of calls in messages, and texts of the user of answers of functions. Answers that
/// follow one another become one message.
pub(super) fn messages(messages: Vec<Json>) -> Vec<Json> {
    let mut all: Vec<Json> = Vec::with_capacity(messages.len());
    let mut answered = false;
    for mut message in messages {
        let answers = message["role"] == "tool" || message["role"] == "function";
        let said = message["content"].as_str().unwrap_or_default();
        if answers {
            let text = format!("<tool_response>\n{said}\n</tool_response>");
            match all.last_mut().filter(|_| answered) {
                Some(last) => {
                    last["content"] =
                        format!("{}\n{text}", last["content"].as_str().unwrap_or_default()).into();
                }
                None => all.push(json!({ "role": "user", "content": text })),
            }
        } else {
            if let Some(calls) = message["tool_calls"].as_array().filter(|calls| !calls.is_empty()) {
                let parts = [said.to_owned()].into_iter().filter(|said| !said.is_empty());
                let parts: Vec<String> = parts.chain(calls.iter().map(call)).collect();
                message["content"] = parts.join("\n").into();
            }
            if let Some(members) = message.as_object_mut() {
                members.shift_remove("tool_calls");
            }
            all.push(message);
        }
        answered = answers;
    }
    all
}

/// Writes a call as the model does. Arguments may be an object or its text, as in OpenAI's API.
fn call(call: &Json) -> String {
    let function = call.get("function").unwrap_or(call);
    let arguments = match &function["arguments"] {
        Json::Null => "{}".to_owned(),
        Json::String(text) => text.clone(),
        other => other.to_string(),
    };
    format!("<tool_call>\n{{\"name\": {}, \"arguments\": {arguments}}}\n</tool_call>", function["name"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{ChatTemplate, Conversation};

    /// A template that knows nothing of functions, and one that knows nothing of the system either.
    const PLAIN: &str = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}";
    const NO_SYSTEM: &str = "{% for m in messages %}{% if m.role == 'system' %}\
         {{ raise_exception('no system') }}{% endif %}[{{ m.role }}]{{ m.content }}{% endfor %}";

    fn paint() -> Json {
        json!({ "name": "paint", "description": "Paints.", "parameters": { "type": "object" } })
    }

    fn rendered(template: &str, conversation: &Conversation) -> String {
        ChatTemplate::parse(template).unwrap().render(conversation).unwrap()
    }

    #[test]
    fn functions_stand_in_what_the_system_says() {
        let user = json!({ "role": "user", "content": "hi" });
        let system = json!({ "role": "system", "content": "Be brief." });
        let alone = Conversation::new(vec![user.clone()]).with_tools_in_words(&[paint()]);
        let text = rendered(PLAIN, &alone);
        assert!(text.starts_with("[system]# Tools\n") && text.ends_with("</tool_call>[user]hi"), "{text}");
        for part in ["\"paint\"", "Paints.", "\"parameters\":{\"type\":\"object\"}"] {
            assert!(text.contains(part), "{text}");
        }
        let both = Conversation::new(vec![system, user.clone()]).with_tools_in_words(&[paint()]);
        let text = rendered(PLAIN, &both);
        assert!(text.starts_with("[system]Be brief.\n\n# Tools\n") && text.ends_with("[user]hi"), "{text}");
        let text = rendered(NO_SYSTEM, &both.with_system_in_user());
        assert!(text.starts_with("[user]Be brief.\n\n# Tools\n") && text.ends_with("\n\nhi"), "{text}");
        assert_eq!(Conversation::new(vec![user.clone()]).with_tools_in_words(&[]).messages(), [user]);
    }

    #[test]
    fn calls_and_answers_are_texts() {
        let call =
            |arguments: Json| json!({ "id": "c", "function": { "name": "f", "arguments": arguments } });
        let said =
            json!({ "role": "assistant", "content": "Look.", "tool_calls": [call(json!("{\"a\": 1}"))] });
        let silent =
            json!({ "role": "assistant", "tool_calls": [call(json!({ "a": 1 })), call(json!(null))] });
        let answer = |text: &str| json!({ "role": "tool", "tool_call_id": "c", "content": text });
        let all = messages(vec![said, answer("1"), silent, answer("2"), answer("3")]);
        let wanted = [
            ("assistant", "Look.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>"),
            ("user", "<tool_response>\n1\n</tool_response>"),
            (
                "assistant",
                "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\":1}}\n</tool_call>\n\
                 <tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>",
            ),
            ("user", "<tool_response>\n2\n</tool_response>\n<tool_response>\n3\n</tool_response>"),
        ];
        let wanted = wanted.map(|(role, content)| json!({ "role": role, "content": content }));
        assert_eq!(all, wanted);
    }
}
