//! The addresses that write text ([`Endpoint`]), and the fields that bodies may have.
//!
//! An allow-list. Fields of OpenAI's API that are about OpenAI's service, or are mere
//! hints, are taken and left without effect, so that its clients need not be changed. A field that asks for
//! what is not served, or that nobody knows, is refused: without it the text would be another one than what
//! was asked for.

use serde_json::{Map, Value};

use super::super::problem::Problem;
use crate::terminal::lists;

/// Fields that are read, at both addresses.
const READ: &str = "\
    best_of dry_allowed_length dry_base dry_multiplier dry_sequence_breakers finish frequency_penalty \
    grammar guided_choice guided_decoding_backend guided_grammar guided_json guided_json_object \
    guided_regex guided_whitespace_pattern ignore_eos json_schema logit_bias logprobs lookahead mask \
    max_completion_tokens max_tokens min_p min_tokens model n presence_penalty reasoning reasoning_tokens \
    repetition_penalty response_format schema_report seed stop stream stream_options structured_outputs \
    temperature terminals thought_marks tool_choice tools top_k top_p";

/// Fields that are read of chats.
const READ_CHAT: &str = "chat_template_kwargs enable_thinking messages reasoning_effort top_logprobs";

/// Fields that are read of completions.
const READ_COMPLETIONS: &str = "echo prompt suffix";

/// Fields without effect. `parallel_tool_calls` has one where functions may be called, and is gone then.
const IGNORED: &str = "\
    metadata parallel_tool_calls prediction prompt_cache_key prompt_cache_retention safety_identifier \
    service_tier store user verbosity";

/// Fields of a message that are read.
const READ_MESSAGE: &str = "content name reasoning reasoning_content role tool_call_id tool_calls";

/// Fields of a message without effect, which clients send back as they got them.
const IGNORED_MESSAGE: &str = "annotations refusal";

/// Refuses a body with other fields, and takes those away that have no effect.
pub(crate) fn of_body(body: &mut Map<String, Value>, endpoint: Endpoint) -> Result<(), Problem> {
    let own = if endpoint == Endpoint::Completions { READ_COMPLETIONS } else { READ_CHAT };
    let is_read = |name: &str| lists(READ, name) || lists(own, name);
    for (name, value) in &*body {
        let name = name.as_str();
        if is_read(name) || lists(IGNORED, name) {
            continue;
        }
        // Values that ask for nothing beyond what is served.
        let nothing = match name {
            "audio" | "web_search_options" => false,
            "functions" => value.as_array().is_some_and(Vec::is_empty),
            "function_call" => *value == "none" || *value == "auto",
            "modalities" => value.as_array().is_some_and(|kinds| kinds.iter().all(|kind| kind == "text")),
            _ => return Err(unknown(name)),
        };
        if !nothing {
            return Err(Problem::unsupported(name, format!("`{name}` is not served")));
        }
    }
    body.retain(|name, _| is_read(name));
    Ok(())
}

/// Refuses message number `index` if it has other fields, and takes those away that have no effect.
pub(crate) fn of_message(message: &mut Map<String, Value>, index: usize) -> Result<(), Problem> {
    message.retain(|_, value| !value.is_null());
    let known = |name: &str| lists(READ_MESSAGE, name) || lists(IGNORED_MESSAGE, name);
    if let Some(name) = message.keys().find(|name| !known(name)) {
        return Err(unknown(&format!("messages[{index}].{name}")));
    }
    message.retain(|name, _| lists(READ_MESSAGE, name));
    Ok(())
}

/// Refuses an object of the body, the field `parent`, if it has fields beside `known` that say anything.
pub(crate) fn of_object(object: &Map<String, Value>, parent: &str, known: &[&str]) -> Result<(), Problem> {
    let other = |(name, value): &(&String, &Value)| !known.contains(&name.as_str()) && !value.is_null();
    match object.iter().find(other) {
        Some((name, _)) => Err(unknown(&format!("{parent}.{name}"))),
        None => Ok(()),
    }
}

/// Reads a field that is true or false; one that is missing is false.
pub(crate) fn flag(object: &Map<String, Value>, key: &str) -> Result<bool, Problem> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => Err(Problem::invalid(key, format!("`{key}` is {other}; it must be true or false"))),
    }
}

pub(super) fn unknown(name: &str) -> Problem {
    let message = format!("this server takes no field `{name}`");
    Problem::bad_request("unknown_parameter", message).param(name)
}

/// Address that a request came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Chat,
    Completions,
    Responses,
    Messages,
}

impl Endpoint {
    /// Name in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Completions => "completions",
            Self::Responses => "responses",
            Self::Messages => "messages",
        }
    }

    /// Names of fields of chats, and what its API calls them, the longest first.
    pub(crate) fn words(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Chat | Self::Completions => &[],
            Self::Responses => &[
                ("messages", "input"),
                ("response_format.json_schema", "text.format"),
                ("response_format", "text.format"),
                ("max_completion_tokens", "max_output_tokens"),
                ("reasoning_effort", "reasoning.effort"),
            ],
            Self::Messages => &[
                ("response_format.json_schema", "output_config.format"),
                ("response_format", "output_config.format"),
                ("stop", "stop_sequences"),
                ("enable_thinking", "thinking"),
            ],
        }
    }
}

#[cfg(test)]
mod tests;
