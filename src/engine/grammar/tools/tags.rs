//! Writes functions as structural tags, in each spelling.

use serde_json::{Value, json};

use super::{Calling, Choice, Spelling, Tool};

/// The marks of thinking, which free text may not hold.
const THINKING: [&str; 2] = ["<think>", "</think>"];

/// Further texts that free text may not hold, so that it cannot be taken for a call: names of special tokens.
fn marks(spelling: Spelling) -> &'static [&'static str] {
    match spelling {
        Spelling::Hermes | Spelling::QwenCoder => &["<tool_call>", "</tool_call>"],
        Spelling::Llama => &["{\"name\":", "<|python_tag|>"],
        Spelling::Mistral | Spelling::MistralArgs => &["[TOOL_CALLS]"],
        Spelling::DeepSeek | Spelling::DeepSeekV31 => &["<｜tool▁calls▁begin｜>"],
        Spelling::Harmony => &["<|channel|>", "<|message|>", "<|end|>", "<|start|>"],
    }
}

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
        match self.calling.spelling {
            // Harmony thinks on a channel of its own.
            Spelling::Harmony => self.harmony(),
            Spelling::Hermes => self.tagged("<tool_call>", |tool| {
                let begin = format!("<tool_call>\n{{\"name\": {}, \"arguments\": ", quoted(&tool.name));
                tag(&begin, schema(tool), "}\n</tool_call>")
            }),
            Spelling::QwenCoder => self.tagged("<tool_call>", |tool| {
                let arguments = json!({
                    "type": "json_schema", "style": "qwen_xml", "json_schema": tool.parameters(),
                });
                let begin = format!("<tool_call>\n<function={}>\n", tool.name);
                tag(&begin, arguments, "</function>\n</tool_call>")
            }),
            Spelling::Llama => self.llama(),
            Spelling::Mistral => {
                let call = |tool: &Tool<'_>| {
                    let begin = format!("{{\"name\": {}, \"arguments\": ", quoted(&tool.name));
                    tag(&begin, schema(tool), "}")
                };
                let list = sequence([
                    token("[TOOL_CALLS]"),
                    optional(text(" ")),
                    text("["),
                    self.separated(call, ", "),
                    text("]"),
                ]);
                self.after_text(list)
            }
            Spelling::MistralArgs => {
                let call = |tool: &Tool<'_>| {
                    sequence([token("[TOOL_CALLS]"), text(&tool.name), token("[ARGS]"), schema(tool)])
                };
                self.after_text(self.repeated(call))
            }
            Spelling::DeepSeek => {
                let call = |tool: &Tool<'_>| {
                    sequence([
                        token("<｜tool▁call▁begin｜>"),
                        text("function"),
                        token("<｜tool▁sep｜>"),
                        text(&format!("{}\n```json\n", tool.name)),
                        schema(tool),
                        text("\n```"),
                        token("<｜tool▁call▁end｜>"),
                    ])
                };
                self.deep_seek(call, "\n")
            }
            Spelling::DeepSeekV31 => {
                let call = |tool: &Tool<'_>| {
                    sequence([
                        token("<｜tool▁call▁begin｜>"),
                        text(&tool.name),
                        token("<｜tool▁sep｜>"),
                        schema(tool),
                        token("<｜tool▁call▁end｜>"),
                    ])
                };
                self.deep_seek(call, "")
            }
        }
    }

    /// Free text in which a text begins each call. If a call must come, nothing stands before it.
    fn tagged(&self, trigger: &str, call: impl Fn(&Tool<'_>) -> Value) -> Value {
        let tags: Vec<Value> = self.called.iter().map(|tool| call(tool)).collect();
        if tags.is_empty() {
            return self.free();
        }
        if self.must {
            return json!({
                "type": "tags_with_separator", "tags": tags, "separator": "\n", "at_least_one": true,
                "stop_after_first": !self.calling.parallel,
            });
        }
        let excludes = [THINKING[0], THINKING[1], "</tool_call>"];
        json!({
            "type": "triggered_tags", "triggers": [trigger], "tags": tags, "excludes": excludes,
            "stop_after_first": !self.calling.parallel,
        })
    }

    /// A text that is JSON of a call as a whole, or free text that does not begin like that.
    fn llama(&self) -> Value {
        let call = |tool: &Tool<'_>| {
            let begin = format!("{{\"name\": {}, \"parameters\": ", quoted(&tool.name));
            tag(&begin, schema(tool), "}")
        };
        let text = self.free();
        if self.called.is_empty() {
            return text;
        }
        let calls = sequence([optional(token("<|python_tag|>")), self.separated(call, "; ")]);
        if self.must { calls } else { json!({ "type": "or", "elements": [text, calls] }) }
    }

    /// Calls at the end of free text, begun by a special token.
    fn after_text(&self, calls: Value) -> Value {
        if self.called.is_empty() {
            return self.free();
        }
        if self.must { calls } else { sequence([self.free(), optional(calls)]) }
    }

    fn deep_seek(&self, call: impl Fn(&Tool<'_>) -> Value, separator: &str) -> Value {
        let (begin, end) = (token("<｜tool▁calls▁begin｜>"), token("<｜tool▁calls▁end｜>"));
        let one = or(self.called.iter().map(|tool| call(tool)));
        let mut parts = vec![begin, one.clone()];
        if self.calling.parallel {
            parts.push(json!({ "type": "star", "content": sequence([text(separator), one]) }));
        }
        parts.push(end);
        self.after_text(json!({ "type": "sequence", "elements": parts }))
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
            sequence([header, token("<|message|>"), schema(tool)])
        });
        let mut last: Vec<Value> = calls.collect();
        if !self.must {
            last.push(message("final"));
        }
        sequence([before, or(last)])
    }

    /// Free text without thinking and without calls.
    fn free(&self) -> Value {
        free(&[&THINKING[..], marks(self.calling.spelling)].concat())
    }

    /// One or more calls with a text between them.
    fn separated(&self, call: impl Fn(&Tool<'_>) -> Value, separator: &str) -> Value {
        let tags: Vec<Value> = self.called.iter().map(|tool| call(tool)).collect();
        json!({
            "type": "tags_with_separator", "tags": tags, "separator": separator, "at_least_one": true,
            "stop_after_first": !self.calling.parallel,
        })
    }

    /// One or more calls, one after the other.
    fn repeated(&self, call: impl Fn(&Tool<'_>) -> Value) -> Value {
        let one = or(self.called.iter().map(|tool| call(tool)));
        if self.calling.parallel { json!({ "type": "plus", "content": one }) } else { one }
    }
}

fn schema(tool: &Tool<'_>) -> Value {
    json!({ "type": "json_schema", "json_schema": tool.parameters() })
}

fn tag(begin: &str, content: Value, end: &str) -> Value {
    json!({ "type": "tag", "begin": begin, "content": content, "end": end })
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

fn sequence<const N: usize>(elements: [Value; N]) -> Value {
    json!({ "type": "sequence", "elements": elements.to_vec() })
}

fn or(elements: impl IntoIterator<Item = Value>) -> Value {
    json!({ "type": "or", "elements": elements.into_iter().collect::<Vec<_>>() })
}

/// A name as a string of JSON.
fn quoted(name: &str) -> String {
    Value::from(name).to_string()
}
