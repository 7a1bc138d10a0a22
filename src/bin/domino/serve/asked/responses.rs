//! OpenAI's Responses API -> chats.
//!
//! Texts, schemas, functions and custom tools are served. Nothing is kept between requests, so what refers to
//! an earlier one is refused by name, and so are the tools of OpenAI's own service.

use serde_json::{Value, json, value::RawValue};

use super::super::problem::Problem;
use super::members::{AnswerShape, ChatBody, SentObject, call, named};

/// Fields without effect, and those that only the answer has.
const IGNORED: [&str; 8] = [
    "max_tool_calls",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "store",
    "truncation",
    "user",
];

/// Fields that ask for what an earlier request left.
const KEPT: [&str; 4] = ["background", "conversation", "previous_response_id", "prompt"];

/// Settings that the answer repeats as they were sent, and what it says without them.
const REPEATED: [(&str, &str); 9] = [
    ("instructions", "null"),
    ("max_output_tokens", "null"),
    ("metadata", "{}"),
    ("parallel_tool_calls", "true"),
    ("reasoning", r#"{"effort":null,"summary":null}"#),
    ("temperature", "null"),
    ("text", r#"{"format":{"type":"text"}}"#),
    ("tool_choice", r#""auto""#),
    ("top_p", "null"),
];

/// The kinds of parts that texts have.
const TEXTS: [&str; 3] = ["input_text", "output_text", "text"];

/// Translates a body.
pub(super) fn translate(text: &str) -> Result<(Vec<u8>, AnswerShape), Problem> {
    let mut asked = SentObject::read(text, String::new())?;
    let mut chat = ChatBody::default();
    let mut shape = AnswerShape::default();
    for (name, usual) in REPEATED {
        let sent = asked.peek(name).unwrap_or(usual);
        shape.settings.insert(name.to_owned(), serde_json::from_str(sent).unwrap_or_default());
    }
    let tools_sent = asked.peek("tools").and_then(|sent| serde_json::from_str(sent).ok());
    shape.settings.insert("tools".to_owned(), tools_sent.unwrap_or_else(|| json!([])));
    for name in KEPT {
        if asked.take(name).is_some_and(|sent| sent.get() != "false") {
            return Err(asked.unsupported(name, "nothing is kept between requests"));
        }
    }
    check_include(&mut asked)?;
    asked.ignore(&IGNORED);
    asked.ignore(&["metadata", "stream_options"]);
    let mut turns = ChatTurns::default();
    if let Some(instructions) = asked.text("instructions")? {
        turns.push("system", &instructions);
    }
    input(&mut asked, &mut turns)?;
    chat.set("messages", Some(turns.messages));
    chat.set("max_completion_tokens", asked.value::<u64>("max_output_tokens", "a whole number, 1 or more")?);
    if let Some(mut reasoning) = asked.object("reasoning")? {
        chat.set("reasoning_effort", reasoning.text("effort")?);
        reasoning.ignore(&["generate_summary", "summary"]);
        reasoning.end()?;
    }
    if let Some(mut text) = asked.object("text")? {
        format(text.object("format")?, &mut chat)?;
        text.ignore(&["verbosity"]);
        text.end()?;
    }
    let list = asked.peek("tools");
    asked.objects("tools")?.into_iter().flatten().try_for_each(|tool| check_tool(tool, &mut shape))?;
    chat.set("tools", list.map(serde_json::from_str::<Box<RawValue>>).and_then(Result::ok));
    if asked.is_text("tool_choice") {
        chat.set("tool_choice", asked.text("tool_choice")?);
    } else if let Some(choice) = asked.object("tool_choice")? {
        choose(choice, &mut chat)?;
    }
    Ok((chat.with_rest(asked)?, shape))
}

/// Refuses parts of answers that are not served. Thoughts come as they are, whether encrypted ones are wanted
/// or not.
fn check_include(asked: &mut SentObject<'_>) -> Result<(), Problem> {
    let include = asked.value::<Vec<String>>("include", "a list of strings")?.unwrap_or_default();
    match include.iter().find(|name| *name != "reasoning.encrypted_content") {
        Some(other) => Err(asked.unsupported("include", &format!("{other:?} is not served"))),
        None => Ok(()),
    }
}

/// The messages of a chat, in the making.
#[derive(Default)]
struct ChatTurns {
    messages: Vec<Value>,
    /// A thought that the next message of the assistant begins with.
    thought: String,
}

impl ChatTurns {
    /// Adds a message; one of the assistant begins with the thought before it.
    fn push(&mut self, role: &str, content: &str) {
        let mut message = json!({ "role": role, "content": content });
        if role == "assistant" && !self.thought.is_empty() {
            message["reasoning_content"] = std::mem::take(&mut self.thought).into();
        }
        self.messages.push(message);
    }

    /// Adds a call to the last message, or to a new one behind those of others.
    fn call(&mut self, call: Value) {
        if self.messages.last().is_none_or(|last| last["role"] != "assistant") {
            self.push("assistant", "");
        }
        if let Some(last) = self.messages.last_mut() {
            match last["tool_calls"].as_array_mut() {
                Some(calls) => calls.push(call),
                None => last["tool_calls"] = json!([call]),
            }
        }
    }

    fn item(&mut self, mut item: SentObject<'_>) -> Result<(), Problem> {
        item.ignore(&["id", "status"]);
        let kind = item.text("type")?.unwrap_or_else(|| "message".to_owned());
        match kind.as_str() {
            "message" => {
                item.ignore(&["phase"]);
                let content = item.parts("content", &TEXTS)?;
                let content = content.ok_or_else(|| item.wrong("content", "a text or parts"))?;
                self.push(&item.needed("role")?, &content);
            }
            "function_call" => {
                let (id, name) = (item.needed("call_id")?, item.needed("name")?);
                self.call(call(&id, &name, &item.needed("arguments")?));
            }
            "custom_tool_call" => {
                let (id, name) = (item.needed("call_id")?, item.needed("name")?);
                let arguments = json!({ "input": item.needed("input")? }).to_string();
                self.call(call(&id, &name, &arguments));
            }
            "function_call_output" | "custom_tool_call_output" => {
                let id = item.needed("call_id")?;
                let output = item.parts("output", &TEXTS)?.unwrap_or_default();
                self.messages.push(json!({ "role": "tool", "tool_call_id": id, "content": output }));
            }
            "reasoning" => {
                self.thought = item.parts("content", &["reasoning_text"])?.unwrap_or_default();
                item.ignore(&["encrypted_content", "summary"]);
            }
            _ => return Err(item.unsupported("type", &format!("{kind:?} is not served"))),
        }
        item.end()
    }
}

/// Reads the conversation: a text of the user, or items.
fn input(asked: &mut SentObject<'_>, turns: &mut ChatTurns) -> Result<(), Problem> {
    if asked.is_text("input") {
        turns.push("user", &asked.needed("input")?);
        return Ok(());
    }
    let items = asked.objects("input")?.ok_or_else(|| asked.wrong("input", "a text or a list of items"))?;
    items.into_iter().try_for_each(|item| turns.item(item))
}

/// Refuses the tools of OpenAI's service, and notes those that take a text. The list goes over as it is: its
/// form is known behind.
fn check_tool(mut tool: SentObject<'_>, shape: &mut AnswerShape) -> Result<(), Problem> {
    match tool.needed("type")?.as_str() {
        "function" => tool.ignore(&["parameters", "strict"]),
        "custom" => {
            tool.ignore(&["format"]);
            shape.custom.extend(tool.peek("name").and_then(|name| serde_json::from_str(name).ok()));
        }
        kind => return Err(tool.unsupported("type", &format!("tools of type {kind:?} are not served"))),
    }
    tool.ignore(&["description", "name"]);
    tool.end()
}

/// Says which tools are called.
fn choose(mut choice: SentObject<'_>, chat: &mut ChatBody) -> Result<(), Problem> {
    match choice.needed("type")?.as_str() {
        "function" | "custom" => chat.set("tool_choice", Some(named(&choice.needed("name")?))),
        "allowed_tools" => {
            let allowed =
                json!({ "mode": choice.needed("mode")?, "tools": choice.value::<Value>("tools", "a list")? });
            chat.set("tool_choice", Some(json!({ "type": "allowed_tools", "allowed_tools": allowed })));
        }
        kind => {
            let why = format!("a choice of type {kind:?} is not served");
            return Err(choice.unsupported("type", &why));
        }
    }
    choice.end()
}

fn format(format: Option<SentObject<'_>>, chat: &mut ChatBody) -> Result<(), Problem> {
    let Some(mut format) = format else { return Ok(()) };
    match format.needed("type")?.as_str() {
        "text" => {}
        "json_object" => chat.set("response_format", Some(json!({ "type": "json_object" }))),
        "json_schema" => {
            let schema = format.take("schema").ok_or_else(|| format.wrong("schema", "a JSON Schema"))?;
            chat.set_schema(schema, format.value("strict", "true or false")?);
            format.ignore(&["description", "name"]);
        }
        kind => {
            let why = format!("a format of type {kind:?} is not served");
            return Err(format.unsupported("type", &why));
        }
    }
    format.end()
}
