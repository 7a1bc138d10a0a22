//! Incremental reading of an answer with calls: the whole text is read again after each token, and the
//! difference to the last reading is sent, in OpenAI's form.

use std::hash::{BuildHasher, RandomState};

use domino::grammar::tools::calls::{Answer, Call, Reader};
use serde_json::{Value, json};

/// A part of an answer that has not been sent yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum News {
    /// The next part of the message's content.
    Content(String),
    /// The next part of the reasoning.
    Reasoning(String),
    /// A call begins; its index among the message's calls, and its id and name.
    Begin(usize, ToolCall),
    /// The next part of the arguments of the call with this index.
    Arguments(usize, String),
}

/// A call, whole or in the making.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolCall {
    id: String,
    name: String,
    arguments: String,
}

impl ToolCall {
    fn new(name: &str) -> Self {
        let id = format!("call_{:016x}", RandomState::new().hash_one(name));
        Self { id, name: name.to_owned(), arguments: String::new() }
    }

    /// The call as it stands in a message.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "id": self.id, "type": "function",
            "function": { "name": self.name, "arguments": self.arguments },
        })
    }

    pub(crate) fn extend(&mut self, arguments: &str) {
        self.arguments += arguments;
    }
}

impl News {
    /// The piece as the delta of a chunk.
    pub(crate) fn delta(&self) -> Value {
        match self {
            Self::Content(text) => json!({ "content": text }),
            Self::Reasoning(text) => json!({ "reasoning_content": text }),
            Self::Begin(index, call) => {
                let mut call = call.to_json();
                call["index"] = (*index).into();
                json!({ "tool_calls": [call] })
            }
            Self::Arguments(index, text) => {
                json!({ "tool_calls": [{ "index": index, "function": { "arguments": text } }] })
            }
        }
    }
}

/// An answer that the model is still writing.
#[derive(Debug)]
pub(crate) struct Growing {
    reader: Reader,
    text: String,
    /// The part of the answer that was sent.
    told: Answer,
}

impl Growing {
    /// An answer without a character.
    pub(crate) fn new(reader: Reader) -> Self {
        Self { reader, text: String::new(), told: Answer::default() }
    }

    /// The new parts of the answer after more text.
    pub(crate) fn push(&mut self, more: &str) -> Vec<News> {
        self.text += more;
        let now = self.reader.read(&self.text, false);
        self.tell(now)
    }

    /// The parts that were held back, at the end of the text.
    pub(crate) fn finish(&mut self) -> Vec<News> {
        let now = self.reader.read(&self.text, true);
        self.tell(now)
    }

    /// Was a function called?
    pub(crate) fn calls(&self) -> bool {
        !self.told.calls.is_empty()
    }

    fn tell(&mut self, now: Answer) -> Vec<News> {
        let mut news = Vec::new();
        let more = |now: &str, told: &str| now.get(told.len()..).unwrap_or_default().to_owned();
        let (thought, said) =
            (more(&now.reasoning, &self.told.reasoning), more(&now.content, &self.told.content));
        news.extend((!thought.is_empty()).then_some(News::Reasoning(thought)));
        news.extend((!said.is_empty()).then_some(News::Content(said)));
        for (index, Call { name, arguments, .. }) in now.calls.iter().enumerate() {
            let told = self.told.calls.get(index).map(|call| call.arguments.as_str());
            if told.is_none() {
                news.push(News::Begin(index, ToolCall::new(name)));
            }
            let arguments = more(arguments, told.unwrap_or_default());
            news.extend((!arguments.is_empty()).then_some(News::Arguments(index, arguments)));
        }
        self.told = now;
        news
    }
}

#[cfg(test)]
mod tests {
    use domino::grammar::tools::{Spelling, Tools};

    use super::*;

    /// The parts, put together, are the message, whatever pieces the text comes in.
    #[test]
    fn streamed_parts_add_up_to_the_whole_message() {
        let tools = Tools::parse(r#"[{"name": "add"}, {"name": "now"}]"#).unwrap();
        let reader = Reader::new(Spelling::Hermes, &tools);
        let text = "I think <of> it.\n\
                    <tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": [1, \"}\"]}}\n</tool_call>\n\
                    <tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
        let whole = reader.read(text, true);
        for length in 1..7 {
            let mut growing = Growing::new(reader.clone());
            let mut news = Vec::new();
            for piece in text.as_bytes().chunks(length) {
                news.extend(growing.push(std::str::from_utf8(piece).unwrap()));
            }
            news.extend(growing.finish());
            let (mut content, mut calls) = (String::new(), Vec::new());
            for news in news {
                match news {
                    News::Content(text) => content += &text,
                    News::Begin(index, call) => {
                        assert_eq!(index, calls.len());
                        calls.push(call);
                    }
                    News::Arguments(index, text) => calls[index].extend(&text),
                    News::Reasoning(text) => panic!("{text}"),
                }
            }
            assert_eq!(content, whole.content);
            assert!(growing.calls() && calls.len() == 2);
            for (call, wanted) in calls.iter().zip(&whole.calls) {
                assert_eq!((&call.name, &call.arguments), (&wanted.name, &wanted.arguments));
            }
        }
    }
}
