//! Answers of OpenAI's Responses and Anthropic's Messages, which are lists of blocks: a thought, a text, a
//! call. A stream has named events for a block's beginning, for each piece of it, and for its end. The whole
//! answer is made of the blocks that have ended.

use serde_json::{Map, Value, json};

use super::{Form, News, Spent, ToolCall};
use crate::serve::asked::{fields::Endpoint, members::AnswerShape};
use crate::serve::{problem::Problem, writing::Piece};

/// An event: its name and its object.
pub(crate) type NamedEvent = (&'static str, Value);

/// An answer in the making.
pub(crate) struct Blocks {
    form: Form,
    shape: AnswerShape,
    /// Tokens of the prompt.
    prompt: usize,
    open: Option<AnswerBlock>,
    /// Blocks that have ended.
    done: Vec<Value>,
    /// Events that were told so far.
    count: usize,
    /// The answer, when it has ended.
    whole: Value,
}

/// A block that grows.
struct AnswerBlock {
    id: String,
    kind: BlockKind,
    text: String,
}

enum BlockKind {
    Thought,
    Text,
    Call(ToolCall),
    /// A call of a tool that takes a text.
    Custom(ToolCall),
}

impl AnswerBlock {
    fn is_thought(&self) -> bool {
        matches!(self.kind, BlockKind::Thought)
    }

    fn is_text(&self) -> bool {
        matches!(self.kind, BlockKind::Text)
    }

    /// The text that a custom tool is called with, as far as it can be read.
    fn input(&self) -> String {
        let arguments: Value = serde_json::from_str(&self.text).unwrap_or_default();
        arguments["input"].as_str().unwrap_or(&self.text).to_owned()
    }

    /// The item of Responses.
    fn item(&self, status: &str) -> Value {
        let Self { id, kind, text } = self;
        match kind {
            BlockKind::Thought => json!({
                "id": id, "type": "reasoning", "status": status, "summary": [],
                "content": [{ "type": "reasoning_text", "text": text }],
            }),
            BlockKind::Text => json!({
                "id": id, "type": "message", "role": "assistant", "status": status,
                "content": [{ "type": "output_text", "text": text, "annotations": [], "logprobs": [] }],
            }),
            BlockKind::Call(call) => json!({
                "id": id, "type": "function_call", "status": status, "call_id": call.id, "name": call.name,
                "arguments": text,
            }),
            BlockKind::Custom(call) => json!({
                "id": id, "type": "custom_tool_call", "status": status, "call_id": call.id, "name": call.name,
                "input": self.input(),
            }),
        }
    }

    /// The content block of Messages.
    fn content(&self) -> Value {
        let Self { kind, text, .. } = self;
        match kind {
            BlockKind::Thought => json!({ "type": "thinking", "thinking": text, "signature": "" }),
            BlockKind::Text => json!({ "type": "text", "text": text, "citations": null }),
            BlockKind::Call(call) | BlockKind::Custom(call) => {
                // The beginning of an object, where the text was cut, is none.
                let input: Value = serde_json::from_str(text).unwrap_or_else(|_| json!({}));
                json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input })
            }
        }
    }
}

impl Blocks {
    /// An answer to a prompt of this many tokens.
    pub(crate) fn new(form: Form, shape: AnswerShape, prompt: usize) -> Self {
        Self { form, shape, prompt, open: None, done: Vec::new(), count: 0, whole: Value::Null }
    }

    fn is_messages(&self) -> bool {
        self.form.endpoint == Endpoint::Messages
    }

    /// The answer; null before its end.
    pub(crate) fn into_whole(self) -> Value {
        self.whole
    }

    /// The events before the first block.
    pub(crate) fn begin(&mut self) -> Vec<NamedEvent> {
        let mut events = Vec::new();
        if self.is_messages() {
            let spent = Spent { prompt: self.prompt, ..Spent::default() };
            let message = self.message(&Value::Null, &Value::Null, spent);
            self.say(&mut events, "message_start", json!({ "message": message }));
        } else {
            let response = self.response("in_progress", None, &Value::Null);
            self.say(&mut events, "response.created", json!({ "response": response }));
            self.say(&mut events, "response.in_progress", json!({ "response": response }));
        }
        events
    }

    /// The events of a piece of the text.
    pub(crate) fn take(&mut self, piece: Piece) -> Vec<NamedEvent> {
        let mut events = Vec::new();
        match piece {
            Piece::Text(text, ..) | Piece::News(News::Content(text)) => {
                if !text.is_empty() {
                    self.open_unless(&mut events, AnswerBlock::is_text, || BlockKind::Text);
                    self.grow(&mut events, &text);
                }
            }
            Piece::News(News::Reasoning(text)) => {
                self.open_unless(&mut events, AnswerBlock::is_thought, || BlockKind::Thought);
                self.grow(&mut events, &text);
            }
            Piece::News(News::Begin(_, call)) => {
                let custom = self.shape.custom.contains(&call.name);
                let kind = || if custom { BlockKind::Custom(call) } else { BlockKind::Call(call) };
                self.open_unless(&mut events, |_| false, kind);
            }
            Piece::News(News::Arguments(_, text)) => self.grow(&mut events, &text),
            Piece::End(finish, spent, said) => self.end(&mut events, finish, spent, said),
            Piece::Failed(problem) => self.fail(&mut events, &problem),
        }
        events
    }

    /// Opens a block, unless the one that is open is such.
    fn open_unless(
        &mut self,
        events: &mut Vec<NamedEvent>,
        is_such: impl Fn(&AnswerBlock) -> bool,
        kind: impl FnOnce() -> BlockKind,
    ) {
        if self.open.as_ref().is_some_and(is_such) {
            return;
        }
        self.close(events, "completed");
        let kind = kind();
        let prefix = match kind {
            BlockKind::Thought => "rs",
            BlockKind::Text => "msg",
            BlockKind::Call(_) => "fc",
            BlockKind::Custom(_) => "ctc",
        };
        let (_, number) = self.form.id.split_once('_').unwrap_or_default();
        let id = format!("{prefix}_{number}_{}", self.done.len());
        let block = AnswerBlock { id, kind, text: String::new() };
        if self.is_messages() {
            let object = json!({ "index": self.done.len(), "content_block": block.content() });
            self.say(events, "content_block_start", object);
        } else {
            let mut item = block.item("in_progress");
            if item["content"].is_array() {
                item["content"] = json!([]);
            }
            self.say(events, "response.output_item.added", json!({ "item": item }));
            if block.is_text() {
                let part = block.item("")["content"][0].take();
                self.say(events, "response.content_part.added", in_part(&block, json!({ "part": part })));
            }
        }
        self.open = Some(block);
    }

    fn grow(&mut self, events: &mut Vec<NamedEvent>, more: &str) {
        let Some(mut block) = self.open.take() else { return };
        block.text += more;
        if self.is_messages() {
            let delta = match block.kind {
                BlockKind::Thought => json!({ "type": "thinking_delta", "thinking": more }),
                BlockKind::Text => json!({ "type": "text_delta", "text": more }),
                _ => json!({ "type": "input_json_delta", "partial_json": more }),
            };
            let object = json!({ "index": self.done.len(), "delta": delta });
            self.say(events, "content_block_delta", object);
        } else {
            let name = match block.kind {
                BlockKind::Thought => "response.reasoning_text.delta",
                BlockKind::Text => "response.output_text.delta",
                BlockKind::Call(_) => "response.function_call_arguments.delta",
                // Inside of JSON it has other characters; it is told when it is whole.
                BlockKind::Custom(_) => "",
            };
            if !name.is_empty() {
                self.say(events, name, in_part(&block, json!({ "delta": more })));
            }
        }
        self.open = Some(block);
    }

    /// Ends the block that is open.
    fn close(&mut self, events: &mut Vec<NamedEvent>, status: &str) {
        let Some(block) = self.open.take() else { return };
        if self.is_messages() {
            self.say(events, "content_block_stop", json!({ "index": self.done.len() }));
            self.done.push(block.content());
            return;
        }
        let item = block.item(status);
        match &block.kind {
            BlockKind::Thought => {
                let whole = in_part(&block, json!({ "text": block.text }));
                self.say(events, "response.reasoning_text.done", whole);
            }
            BlockKind::Text => {
                self.say(events, "response.output_text.done", in_part(&block, json!({ "text": block.text })));
                let part = in_part(&block, json!({ "part": item["content"][0] }));
                self.say(events, "response.content_part.done", part);
            }
            BlockKind::Call(call) => {
                let whole = in_part(&block, json!({ "name": call.name, "arguments": block.text }));
                self.say(events, "response.function_call_arguments.done", whole);
            }
            BlockKind::Custom(_) => {
                let delta = in_part(&block, json!({ "delta": item["input"] }));
                self.say(events, "response.custom_tool_call_input.delta", delta);
                let whole = in_part(&block, json!({ "input": item["input"] }));
                self.say(events, "response.custom_tool_call_input.done", whole);
            }
        }
        self.say(events, "response.output_item.done", json!({ "item": item }));
        self.done.push(item);
    }

    fn end(
        &mut self,
        events: &mut Vec<NamedEvent>,
        finish: &str,
        spent: Spent,
        mut said: Map<String, Value>,
    ) {
        let is_cut = finish == "length";
        self.close(events, if is_cut { "incomplete" } else { "completed" });
        let stop = said.remove(STOP).unwrap_or_default();
        if self.is_messages() {
            let reason = match finish {
                "length" => "max_tokens",
                "tool_calls" => "tool_use",
                _ if stop.is_string() => "stop_sequence",
                _ => "end_turn",
            };
            self.whole = super::with_said(self.message(&reason.into(), &stop, spent), said);
            let usage = self.whole["usage"].clone();
            let delta = json!({ "stop_reason": reason, "stop_sequence": stop });
            self.say(events, "message_delta", json!({ "delta": delta, "usage": usage }));
            self.say(events, "message_stop", json!({}));
            return;
        }
        let (status, name) = match is_cut {
            true => ("incomplete", "response.incomplete"),
            false => ("completed", "response.completed"),
        };
        self.whole = super::with_said(self.response(status, Some(spent), &Value::Null), said);
        let response = self.whole.clone();
        self.say(events, name, json!({ "response": response }));
    }

    fn fail(&mut self, events: &mut Vec<NamedEvent>, problem: &Problem) {
        if self.is_messages() {
            self.say(events, "error", problem.of_messages());
            return;
        }
        let error = json!({ "code": problem.code(), "message": problem.message() });
        let response = self.response("failed", None, &error);
        self.say(events, "response.failed", json!({ "response": response }));
    }

    /// Adds an event with the fields that every one has.
    fn say(&mut self, events: &mut Vec<NamedEvent>, name: &'static str, mut object: Value) {
        object["type"] = name.into();
        if !self.is_messages() {
            object["sequence_number"] = self.count.into();
            if object["response"].is_null() {
                object["output_index"] = self.done.len().into();
            }
        }
        self.count += 1;
        events.push((name, object));
    }

    /// The object of Messages, as far as it has come.
    fn message(&self, reason: &Value, stop: &Value, spent: Spent) -> Value {
        let mut usage = json!({
            "input_tokens": spent.prompt.saturating_sub(spent.cached), "output_tokens": spent.completion,
            "cache_read_input_tokens": spent.cached, "cache_creation_input_tokens": 0,
        });
        usage["domino"] = spent.usage()["domino"].take();
        let message = json!({
            "id": self.form.id, "type": "message", "role": "assistant", "model": self.form.model,
            "content": self.done, "stop_reason": reason, "stop_sequence": stop, "usage": usage,
        });
        self.with_told(message)
    }

    /// The object of Responses, as far as it has come.
    fn response(&self, status: &str, spent: Option<Spent>, error: &Value) -> Value {
        let mut response = json!({
            "id": self.form.id, "object": "response", "created_at": self.form.created, "status": status,
            "model": self.form.model, "output": self.done, "error": error, "previous_response_id": null,
            "incomplete_details": (status == "incomplete").then(|| json!({ "reason": "max_output_tokens" })),
            "store": false, "truncation": "disabled", "background": false, "usage": null,
        });
        if let Some(spent) = spent {
            let mut usage = spent.usage();
            response["usage"] = json!({
                "input_tokens": spent.prompt, "input_tokens_details": usage["prompt_tokens_details"].take(),
                "output_tokens": spent.completion,
                "output_tokens_details": { "reasoning_tokens": spent.thought.unwrap_or_default() },
                "total_tokens": spent.prompt + spent.completion, "domino": usage["domino"].take(),
            });
        }
        for (name, value) in &self.shape.settings {
            response[name] = value.clone();
        }
        self.with_told(response)
    }

    /// Adds the facts of the grammar.
    fn with_told(&self, mut object: Value) -> Value {
        for (name, value) in &self.form.told {
            object[name] = value.clone();
        }
        object
    }
}

/// The name under which it is said which stop string ended a text.
pub(crate) const STOP: &str = "stop";

/// Says which part of which item an event of Responses is about.
fn in_part(block: &AnswerBlock, mut object: Value) -> Value {
    object["item_id"] = block.id.as_str().into();
    if block.is_text() || block.is_thought() {
        object["content_index"] = 0.into();
    }
    if block.is_text() && object["part"].is_null() {
        object["logprobs"] = json!([]);
    }
    object
}

#[cfg(test)]
mod tests;
