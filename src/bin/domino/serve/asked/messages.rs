//! Anthropic's Messages API -> chats.
//!
//! Tools, `output_config.format` and thoughts are served. What Anthropic's own service does besides (its
//! tools, pictures, documents, containers) is refused by name; a mere hint is taken and has no effect.

use serde_json::{Value, json, value::RawValue};

use super::super::problem::Problem;
use super::members::{ChatBody, SentObject, call, named};

/// Fields without effect.
const IGNORED: [&str; 4] = ["cache_control", "inference_geo", "metadata", "service_tier"];

/// Fields of tools and parts without effect.
const HINTS: [&str; 5] = ["cache_control", "citations", "eager_input_streaming", "input_examples", "strict"];

/// Translates a body. One without `max_tokens`, as where tokens are counted, has all that there is room for.
pub(super) fn translate(text: &str) -> Result<Vec<u8>, Problem> {
    let mut asked = SentObject::read(text, String::new())?;
    let mut chat = ChatBody::default();
    asked.ignore(&IGNORED);
    let mut messages = Vec::new();
    if let Some(system) = asked.parts("system", &["text"])? {
        messages.push(json!({ "role": "system", "content": system }));
    }
    let sent = asked.objects("messages")?.ok_or_else(|| asked.wrong("messages", "a list of messages"))?;
    for message in sent {
        read_message(message, &mut messages)?;
    }
    if messages.last().is_some_and(|last| last["role"] == "assistant") {
        return Err(asked.unsupported("messages", "a last message of the assistant is not gone on with"));
    }
    chat.set("messages", Some(messages));
    chat.set("max_tokens", asked.value::<u64>("max_tokens", "a whole number, 1 or more")?);
    chat.set("stop", asked.value::<Vec<String>>("stop_sequences", "a list of strings")?);
    let list = asked.peek("tools");
    asked.objects("tools")?.into_iter().flatten().try_for_each(check_tool)?;
    chat.set("tools", list.map(serde_json::from_str::<Box<RawValue>>).and_then(Result::ok));
    if let Some(choice) = asked.object("tool_choice")? {
        choose(choice, &mut chat)?;
    }
    if let Some(thinking) = asked.object("thinking")? {
        think(thinking, &mut chat)?;
    }
    if let Some(mut config) = asked.object("output_config")? {
        format(config.object("format")?, &mut chat)?;
        chat.set("reasoning_effort", config.text("effort")?);
        config.end()?;
    }
    // The name that the field had before.
    format(asked.object("output_format")?, &mut chat)?;
    chat.with_rest(asked)
}

/// Makes a message those of a chat: results of calls are messages of their own there.
fn read_message(mut message: SentObject<'_>, messages: &mut Vec<Value>) -> Result<(), Problem> {
    let role = message.needed("role")?;
    if role != "user" && role != "assistant" {
        return Err(message.wrong("role", "user or assistant"));
    }
    if message.is_text("content") {
        messages.push(json!({ "role": role, "content": message.text("content")? }));
        return message.end();
    }
    let parts = message.objects("content")?.ok_or_else(|| message.wrong("content", "a text or parts"))?;
    message.end()?;
    let (mut content, mut thought, mut calls) = (String::new(), String::new(), Vec::new());
    for mut part in parts {
        part.ignore(&HINTS);
        let kind = part.needed("type")?;
        match (kind.as_str(), role.as_str()) {
            ("text", _) => content += &part.needed("text")?,
            ("thinking", "assistant") => {
                thought += &part.needed("thinking")?;
                part.ignore(&["signature"]);
            }
            ("redacted_thinking", "assistant") => part.ignore(&["data"]),
            ("tool_use", "assistant") => {
                let input = part.take("input").map_or("{}", |input| input.get());
                calls.push(call(&part.needed("id")?, &part.needed("name")?, input));
                part.ignore(&["caller"]);
            }
            ("tool_result", "user") => {
                let (id, text) = (part.needed("tool_use_id")?, part.parts("content", &["text"])?);
                messages
                    .push(json!({ "role": "tool", "tool_call_id": id, "content": text.unwrap_or_default() }));
                part.ignore(&["is_error"]);
            }
            _ => return Err(part.unsupported("type", &format!("{kind:?} of the {role} is not served"))),
        }
        part.end()?;
    }
    if role == "user" {
        messages.extend((!content.is_empty()).then(|| json!({ "role": role, "content": content })));
        return Ok(());
    }
    let mut said = json!({ "role": role, "content": content });
    if !calls.is_empty() {
        said["tool_calls"] = calls.into();
    }
    if !thought.is_empty() {
        said["reasoning_content"] = thought.into();
    }
    messages.push(said);
    Ok(())
}

/// Refuses the tools of Anthropic's service. The list goes over as it is: its form is known behind.
fn check_tool(mut tool: SentObject<'_>) -> Result<(), Problem> {
    match tool.text("type")?.as_deref() {
        None | Some("custom") => {}
        Some(kind) => return Err(tool.unsupported("type", &format!("tools of type {kind:?} are not served"))),
    }
    tool.ignore(&HINTS);
    tool.ignore(&["description", "input_schema", "name"]);
    tool.end()
}

/// Says which functions are called.
fn choose(mut choice: SentObject<'_>, chat: &mut ChatBody) -> Result<(), Problem> {
    let kind = choice.needed("type")?;
    let chosen = match kind.as_str() {
        "auto" | "none" => Value::from(kind),
        "any" => "required".into(),
        "tool" => named(&choice.needed("name")?),
        _ => return Err(choice.wrong("type", "auto, any, tool or none")),
    };
    chat.set("tool_choice", Some(chosen));
    let one = choice.value::<bool>("disable_parallel_tool_use", "true or false")?;
    chat.set("parallel_tool_calls", one.map(|one| !one));
    choice.end()
}

/// Says whether the model thinks first, and for how many tokens.
fn think(mut thinking: SentObject<'_>, chat: &mut ChatBody) -> Result<(), Problem> {
    let thinks = match thinking.needed("type")?.as_str() {
        "enabled" | "adaptive" => true,
        "disabled" => false,
        _ => return Err(thinking.wrong("type", "enabled, adaptive or disabled")),
    };
    chat.set("enable_thinking", Some(thinks));
    chat.set("reasoning_tokens", thinking.value::<u64>("budget_tokens", "a whole number")?);
    thinking.ignore(&["display"]);
    thinking.end()
}

fn format(format: Option<SentObject<'_>>, chat: &mut ChatBody) -> Result<(), Problem> {
    let Some(mut format) = format else { return Ok(()) };
    if format.needed("type")? != "json_schema" {
        return Err(format.wrong("type", "json_schema"));
    }
    let schema = format.take("schema").ok_or_else(|| format.wrong("schema", "a JSON Schema"))?;
    format.ignore(&["name"]);
    chat.set_schema(schema, None);
    format.end()
}
