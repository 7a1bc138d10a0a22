//! Reads the prompts in the body of a request: messages of a chat, or the prompts of a completion.

use serde_json::{Map, Value, json};

use super::super::{problem::Problem, prompts::ChatAsked, prompts::PromptAsked};
use super::fields::{self, flag};

/// Most prompts of one request.
const MOST_PROMPTS: usize = 64;

/// Roles that messages may have.
const ROLES: [&str; 6] = ["system", "developer", "user", "assistant", "tool", "function"];

/// Variables of templates that are the conversation itself.
const CONVERSATION: [&str; 4] = ["add_generation_prompt", "documents", "messages", "tools"];

/// Reads messages, functions and variables for the chat template.
pub(crate) fn chat(body: &mut Map<String, Value>) -> Result<ChatAsked, Problem> {
    flatten_messages(body)?;
    let list = |value: Option<Value>| match value {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    let mut tools = match body.shift_remove("tools") {
        None => Vec::new(),
        Some(Value::Array(tools)) => tools,
        Some(_) => return Err(Problem::invalid("tools", "`tools` must be a list of functions")),
    };
    // Where no grammar holds the model to a spelling of calls, it cannot be held to a call.
    match body.shift_remove("tool_choice") {
        None => {}
        Some(Value::String(choice)) if choice == "auto" => {}
        Some(Value::String(choice)) if choice == "none" => tools.clear(),
        Some(_) if tools.is_empty() => {
            return Err(Problem::invalid("tool_choice", "`tool_choice` needs functions in `tools`"));
        }
        Some(_) => {
            let message = "the server runs with --tool-spelling off, so no call can be asked for";
            let hint = "start the server without it, or with a name in place of off (docs/tools.md has them)";
            return Err(Problem::unsupported("tool_choice", message).with("hint", hint));
        }
    }
    if tools.iter().any(|tool| !tool.is_object()) {
        return Err(Problem::invalid("tools", "`tools` must be a list of functions"));
    }
    let tools = tools.into_iter().map(shown).collect();
    let mut variables = variables(body)?;
    if body.contains_key("enable_thinking") {
        variables.insert("enable_thinking".to_owned(), flag(body, "enable_thinking")?.into());
    }
    match body.shift_remove("reasoning_effort") {
        None => {}
        Some(Value::String(effort)) => drop(variables.insert("reasoning_effort".to_owned(), effort.into())),
        Some(_) => {
            return Err(Problem::invalid("reasoning_effort", "`reasoning_effort` must be a string"));
        }
    }
    let messages = list(body.shift_remove("messages"));
    Ok(ChatAsked { messages, tools, variables })
}

/// A function in the form of chats, which templates know alone; in other APIs its name stands outside.
fn shown(mut tool: Value) -> Value {
    if tool.get("function").is_some() || tool.get("name").is_none() {
        return tool;
    }
    let mut function = Map::new();
    if tool["type"] == "custom" {
        let mut input = json!({ "type": "string" });
        if let Some(grammar) = tool["format"]["definition"].as_str() {
            let syntax = tool["format"]["syntax"].as_str().unwrap_or_default();
            input["description"] = format!("A text of this grammar ({syntax}):\n{grammar}").into();
        }
        let properties = json!({ "input": input });
        let parameters = json!({ "type": "object", "properties": properties, "required": ["input"] });
        function.insert("parameters".to_owned(), parameters);
    }
    for (theirs, ours) in [
        ("name", "name"),
        ("description", "description"),
        ("parameters", "parameters"),
        ("inputSchema", "parameters"),
        ("input_schema", "parameters"),
    ] {
        let value = tool.get_mut(theirs).map(Value::take).filter(|value| !value.is_null());
        function.extend(value.map(|value| (ours.to_owned(), value)));
    }
    json!({ "type": "function", "function": function })
}

/// Variables of the template under the name that vLLM has for them. Those that say what is in the
/// conversation are not among them.
fn variables(body: &mut Map<String, Value>) -> Result<Map<String, Value>, Problem> {
    const FIELD: &str = "chat_template_kwargs";
    let variables = match body.shift_remove(FIELD) {
        None => Map::new(),
        Some(Value::Object(variables)) => variables,
        Some(_) => {
            let message = format!("`{FIELD}` must be an object, such as {{\"enable_thinking\": false}}");
            return Err(Problem::invalid(FIELD, message));
        }
    };
    match variables.keys().find(|name| CONVERSATION.contains(&name.as_str())) {
        Some(name) => {
            let message =
                format!("`{FIELD}` cannot set `{name}`, which the request has as a field of its own");
            Err(Problem::unsupported(&format!("{FIELD}.{name}"), message))
        }
        None => Ok(variables),
    }
}

/// Joins contents in parts to one text, since only models of text are served.
fn flatten_messages(body: &mut Map<String, Value>) -> Result<(), Problem> {
    let wrong = |message: &str| Problem::invalid("messages", message);
    let messages = match body.get_mut("messages") {
        Some(Value::Array(messages)) if !messages.is_empty() => messages,
        _ => return Err(wrong("`messages` must be a list of at least one message")),
    };
    for (index, message) in messages.iter_mut().enumerate() {
        let Some(message) = message.as_object_mut() else {
            return Err(wrong("a message must be an object {\"role\": .., \"content\": ..}"));
        };
        fields::of_message(message, index)?;
        match message.get("role").and_then(Value::as_str) {
            None => return Err(wrong("a message has no `role`")),
            Some(role) if ROLES.contains(&role) => {}
            Some(role) => {
                let message = format!("no role {role:?}; there are {}", ROLES.join(", "));
                return Err(Problem::invalid(&format!("messages[{index}].role"), message));
            }
        }
        arguments_as_objects(message);
        let text = match message.get("content") {
            None if message
                .get("tool_calls")
                .and_then(Value::as_array)
                .is_some_and(|calls| !calls.is_empty()) =>
            {
                continue;
            }
            // Clients send an answer without text back as they got it.
            None if message["role"] == "assistant" => String::new(),
            Some(Value::String(_)) => continue,
            Some(Value::Array(parts)) => parts.iter().map(part_text).collect::<Result<String, Problem>>()?,
            _ => return Err(wrong("the `content` of a message must be a string or a list of parts")),
        };
        message.insert("content".to_owned(), Value::String(text));
    }
    Ok(())
}

/// Makes objects of the arguments of calls, as templates want them; in OpenAI's API they are texts.
fn arguments_as_objects(message: &mut Map<String, Value>) {
    let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
    for call in calls.into_iter().flatten() {
        if let Some(arguments) = call.pointer_mut("/function/arguments")
            && let Some(Value::Object(object)) =
                arguments.as_str().and_then(|text| serde_json::from_str(text).ok())
        {
            *arguments = Value::Object(object);
        }
    }
}

fn part_text(part: &Value) -> Result<&str, Problem> {
    match (part.get("type").and_then(Value::as_str), part.get("text").and_then(Value::as_str)) {
        (Some("text"), Some(text)) => Ok(text),
        (Some("text") | None, _) => Err(Problem::invalid("messages", "a part of a message has no `text`")),
        (Some(kind), _) => {
            Err(Problem::unsupported("messages", format!("parts of type {kind:?} are not served")))
        }
    }
}

/// Reads the prompts of a completion: a text, tokens, or a list of either.
pub(crate) fn prompts(body: &mut Map<String, Value>) -> Result<Vec<PromptAsked>, Problem> {
    let wrong = |message: &str| Err(Problem::invalid("prompt", message));
    if body.contains_key("suffix") {
        return Err(Problem::unsupported("suffix", "`suffix` is not served"));
    }
    let tokens = |list: &[Value]| -> Option<Vec<u32>> {
        list.iter().map(|token| u32::try_from(token.as_u64()?).ok()).collect()
    };
    let list = match body.shift_remove("prompt") {
        Some(Value::String(text)) => return Ok(vec![PromptAsked::Text(text)]),
        Some(Value::Array(list)) => list,
        _ => return wrong("`prompt` must be a string, a list of tokens, or a list of these"),
    };
    if list.is_empty() {
        return wrong("`prompt` is an empty list");
    }
    if list[0].is_number() {
        return match tokens(&list) {
            Some(tokens) => Ok(vec![PromptAsked::Tokens(tokens)]),
            None => wrong("a prompt of tokens must be a list of their numbers"),
        };
    }
    if list.len() > MOST_PROMPTS {
        return wrong(&format!("`prompt` has {} prompts; {MOST_PROMPTS} are allowed", list.len()));
    }
    let prompt = |value: Value| match value {
        Value::String(text) => Some(PromptAsked::Text(text)),
        Value::Array(list) => tokens(&list).map(PromptAsked::Tokens),
        _ => None,
    };
    match list.into_iter().map(prompt).collect() {
        Some(prompts) => Ok(prompts),
        None => wrong("each prompt must be a string or a list of the numbers of tokens"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_an_answer_can_be_sent_back_in_a_prompt() {
        let call =
            |arguments: Value| json!({ "id": "c", "function": { "name": "f", "arguments": arguments } });
        let body = |arguments: Value| {
            let said = json!({ "role": "assistant", "content": null, "tool_calls": [call(arguments)] });
            json!({ "messages": [said, { "role": "tool", "tool_call_id": "c", "content": "3" }] })
        };
        for (sent, shown) in [
            (json!("{\"a\": 1}"), json!({ "a": 1 })),
            (json!({ "a": 1 }), json!({ "a": 1 })),
            (json!("[1]"), json!("[1]")),
            (json!("no JSON"), json!("no JSON")),
        ] {
            let read = chat(body(sent).as_object_mut().unwrap()).unwrap();
            assert_eq!(read.messages[0]["tool_calls"][0], call(shown));
        }
    }

    #[test]
    fn variables_and_functions_are_for_the_template() {
        let body = json!({
            "messages": [{ "role": "user", "content": "a" }], "enable_thinking": false,
            "reasoning_effort": "low", "tools": [{ "type": "function", "function": { "name": "f" } }],
        });
        let read = chat(&mut body.as_object().unwrap().clone()).unwrap();
        assert_eq!(read.variables["enable_thinking"], false);
        assert_eq!((&read.variables["reasoning_effort"], read.tools.len()), (&json!("low"), 1));
        let mut none = body.as_object().unwrap().clone();
        none.insert("tool_choice".to_owned(), json!("none"));
        assert!(chat(&mut none).unwrap().tools.is_empty());
        let mut wrong = body.as_object().unwrap().clone();
        wrong.insert("tools".to_owned(), json!([1]));
        assert_eq!(chat(&mut wrong).unwrap_err().to_json()["error"]["param"], "tools");
    }
}
