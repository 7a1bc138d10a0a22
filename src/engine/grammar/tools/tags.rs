//! Writes functions as structural tags, in each spelling.

use serde_json::{Value, json};

use super::{Calling, Choice, Spelling, Tool, ToolInput, spelling::CallLayout};
use crate::grammar::structural;

/// The marks of thinking, which free text may not hold.
const THINKING: [&str; 2] = ["<think>", "</think>"];

/// The functions that may be called. Where the structural tag has one of them, all follow in this order.
pub(super) fn called<'a, 't>(tools: &'a [Tool<'t>], calling: &Calling) -> Vec<&'a Tool<'t>> {
    match &calling.choice {
        Choice::None => Vec::new(),
        Choice::Auto | Choice::Required => tools.iter().collect(),
        Choice::Named(name) => tools.iter().filter(|tool| tool.name == *name).collect(),
    }
}

/// The JSON of the structural tag for calls of these functions.
pub(super) fn structural_tag(tools: &[Tool<'_>], calling: &Calling) -> Value {
    let must = matches!(calling.choice, Choice::Required | Choice::Named(_));
    let writer = TagWriter { calling, called: called(tools, calling), must };
    json!({ "type": "structural_tag", "format": writer.whole() })
}

struct TagWriter<'t> {
    calling: &'t Calling,
    called: Vec<&'t Tool<'t>>,
    /// True if a function must be called.
    must: bool,
}

impl TagWriter<'_> {
    fn whole(&self) -> Value {
        let layout = CallLayout::of(self.calling.spelling);
        let plain = free(&[&THINKING[..], layout.marks].concat());
        match self.calling.spelling {
            // Harmony thinks on a channel of its own.
            Spelling::Harmony => self.harmony(),
            _ if self.called.is_empty() => plain,
            _ if self.must => self.calls(layout),
            // A text that is JSON of calls as a whole, or free text that does not begin like that.
            Spelling::Llama => or([plain, self.calls(layout)]),
            Spelling::Hermes | Spelling::QwenCoder | Spelling::Glm => self.within_text(layout),
            // Calls at the end of free text.
            _ => sequence([plain, optional(self.calls(layout))]),
        }
    }

    /// Free text with calls in it.
    fn within_text(&self, layout: &CallLayout) -> Value {
        let [begin, then, end] = layout.call;
        let excludes = [&THINKING[..], &layout.marks[1..]].concat();
        let tags = self.called.iter().map(|tool| {
            let begin = format!("{begin}{}{then}", tool.name);
            json!({ "type": "tag", "begin": begin, "content": arguments(layout, tool), "end": end })
        });
        json!({
            "type": "triggered_tags", "triggers": [layout.marks[0]], "tags": tags.collect::<Vec<_>>(),
            "excludes": excludes, "stop_after_first": !self.calling.parallel,
        })
    }

    /// One or more calls with a separator between them. If a call must come, nothing but the layout's lead
    /// stands before it.
    fn calls(&self, layout: &CallLayout) -> Value {
        let [begin, then, end] = layout.call;
        let leads = self.must && layout.separator.is_empty() && !layout.lead.is_empty();
        let lead = || leads.then(|| optional(text(layout.lead)));
        let is_list = !layout.open.is_empty();
        let calls = self.called.iter().map(|tool| {
            let lead = lead().filter(|_| !is_list);
            let before = lead.into_iter().chain(written(&format!("{begin}{}{then}", tool.name)));
            sequence(before.chain([arguments(layout, tool)]).chain(written(end)))
        });
        let calls = json!({
            "type": "tags_with_separator", "separator": layout.separator, "at_least_one": true,
            "tags": [{ "begin": "", "content": or(calls), "end": "" }],
            "stop_after_first": !self.calling.parallel,
        });
        let open = is_list.then(|| or(layout.open.iter().map(|open| sequence(written(open)))));
        let lead = lead().filter(|_| is_list);
        sequence(lead.into_iter().chain(open).chain([calls]).chain(written(layout.close)))
    }

    /// Messages on channels: thoughts and remarks, then an answer or a call, which ends the text. The models
    /// write thoughts on their channel whether they are asked to or not.
    fn harmony(&self) -> Value {
        let message =
            |channel: &str| sequence([token("<|channel|>"), text(channel), token("<|message|>"), free(&[])]);
        let next = || sequence([token("<|end|>"), token("<|start|>"), text("assistant")]);
        let channels = or(["analysis", "commentary"].map(message));
        let before = json!({ "type": "star", "content": sequence([channels, next()]) });
        let calls = self.called.iter().map(|tool| {
            let recipient = format!(" to=functions.{}", tool.name);
            let constrained = || sequence([optional(text(" ")), token("<|constrain|>"), text("json")]);
            let header = or([
                sequence([token("<|channel|>"), text(&format!("commentary{recipient}")), constrained()]),
                sequence([text(&recipient), token("<|channel|>"), text("commentary"), constrained()]),
                sequence([text(&recipient), token("<|channel|>"), text("commentary json")]),
            ]);
            sequence([header, token("<|message|>"), arguments(CallLayout::of(Spelling::Harmony), tool)])
        });
        let mut last: Vec<Value> = calls.collect();
        if !self.must {
            last.push(message("final"));
        }
        sequence([before, or(last)])
    }
}

/// The arguments of a function.
fn arguments(layout: &CallLayout, tool: &Tool<'_>) -> Value {
    if let Some(ToolInput::Lark(lark)) = &tool.input {
        let lark = json!({ "type": "grammar", "grammar": lark, "syntax": "lark", "style": "json_string" });
        return sequence([text("{\"input\":"), optional(text(" ")), text("\""), lark, text("\"}")]);
    }
    let schema = tool.parameters();
    match layout.style {
        "" => json!({ "type": "json_schema", "json_schema": schema }),
        // Gemma's templates sort arguments, whatever the order of the schema, and Python names them.
        style => json!({
            "type": "json_schema", "style": style, "json_schema": schema,
            "any_order": structural::value_style(style).is_some(),
        }),
    }
}

/// The parts of a layout's text: special tokens, numbers, and texts between them.
fn written(mut rest: &str) -> Vec<Value> {
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let found = CallLayout::tokens().chain(["#"]).filter_map(|name| Some((rest.find(name)?, name))).min();
        let (at, name) = found.unwrap_or((rest.len(), ""));
        parts.extend((at > 0).then(|| text(&rest[..at])));
        parts.extend(match name {
            "" => None,
            "#" => Some(json!({ "type": "regex", "pattern": "[0-9]{1,9}" })),
            name => Some(token(name)),
        });
        rest = &rest[at + name.len()..];
    }
    parts
}

fn token(name: &str) -> Value {
    json!({ "type": "token", "token": name })
}

fn text(value: &str) -> Value {
    json!({ "type": "const_string", "value": value })
}

fn free(excludes: &[&str]) -> Value {
    json!({ "type": "any_text", "excludes": excludes })
}

fn optional(content: Value) -> Value {
    json!({ "type": "optional", "content": content })
}

fn sequence(elements: impl IntoIterator<Item = Value>) -> Value {
    json!({ "type": "sequence", "elements": elements.into_iter().collect::<Vec<_>>() })
}

fn or(elements: impl IntoIterator<Item = Value>) -> Value {
    json!({ "type": "or", "elements": elements.into_iter().collect::<Vec<_>>() })
}
