//! Answers in OpenAI's form: whole, or as the chunks of a stream.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Map, Value, json};

use super::super::{
    endpoint::Endpoint,
    writing::chances::{self, Chance},
};

/// Work of a text, or of all texts of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) prompt: usize,
    /// Tokens of the prompt that were read before.
    pub(crate) cached: usize,
    pub(crate) completion: usize,
    /// Counts of the grammar; `None` without one.
    pub(crate) grammar: Option<GrammarSpent>,
}

/// Counts of what texts under a grammar took beside their tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct GrammarSpent {
    pub(crate) passes: usize,
    pub(crate) drafted: usize,
    pub(crate) accepted: usize,
    pub(crate) mask_micros: u64,
    /// Texts that were closed before their length cut them.
    pub(crate) closed: usize,
}

impl Spent {
    /// Adds the work of another text; its prompt counts only if it is another prompt.
    pub(crate) fn and(self, other: Self) -> Self {
        let grammar = match (self.grammar, other.grammar) {
            (Some(a), Some(b)) => Some(GrammarSpent {
                passes: a.passes + b.passes,
                drafted: a.drafted + b.drafted,
                accepted: a.accepted + b.accepted,
                mask_micros: a.mask_micros + b.mask_micros,
                closed: a.closed + b.closed,
            }),
            (a, b) => a.or(b),
        };
        Self {
            prompt: self.prompt + other.prompt,
            cached: self.cached + other.cached,
            completion: self.completion + other.completion,
            grammar,
        }
    }

    /// The object `usage` of OpenAI's API, with the counts of a grammar under `domino`.
    pub(crate) fn usage(self) -> Value {
        let mut usage = json!({
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
            "prompt_tokens_details": { "cached_tokens": self.cached },
        });
        if let Some(spent) = self.grammar {
            usage["completion_tokens_details"] = json!({
                "accepted_prediction_tokens": spent.accepted,
                "rejected_prediction_tokens": spent.drafted.saturating_sub(spent.accepted),
            });
            usage["domino"] = json!({
                "passes": spent.passes, "drafted": spent.drafted, "accepted": spent.accepted,
                "closed": spent.closed,
                "mask_seconds": std::time::Duration::from_micros(spent.mask_micros).as_secs_f64(),
            });
        }
        usage
    }
}

/// Adds what is said of a text besides to its choice, under `domino`.
pub(crate) fn with_said(mut choice: Value, said: Map<String, Value>) -> Value {
    if !said.is_empty() {
        choice["domino"] = said.into();
    }
    choice
}

/// The fields that all parts of an answer have in common.
#[derive(Debug, Clone)]
pub(crate) struct Form {
    endpoint: Endpoint,
    id: String,
    created: u64,
    model: String,
    /// Facts of the grammar, in fields of their own beside the texts.
    told: Map<String, Value>,
}

impl Form {
    /// The form of a new answer.
    pub(crate) fn new(endpoint: Endpoint, model: &str, told: Map<String, Value>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let prefix = match endpoint {
            Endpoint::Chat => "chatcmpl",
            Endpoint::Completions => "cmpl",
        };
        Self {
            endpoint,
            id: format!("{prefix}-{:x}-{number}", now.as_micros()),
            created: now.as_secs(),
            model: model.to_owned(),
            told,
        }
    }

    /// Splits the form for a stream: the form of every part, and the fields that only the first part has.
    pub(crate) fn in_parts(mut self) -> (Self, Map<String, Value>) {
        let told = std::mem::take(&mut self.told);
        (self, told)
    }

    /// A whole text as a choice, with its tokens if they were asked for.
    pub(crate) fn choice(&self, text: String, chances: Option<&[Chance]>, finish: &str) -> Value {
        let logprobs = self.logprobs(chances);
        match self.endpoint {
            Endpoint::Chat => json!({
                "message": { "role": "assistant", "content": text }, "logprobs": logprobs,
                "finish_reason": finish,
            }),
            Endpoint::Completions => json!({ "text": text, "logprobs": logprobs, "finish_reason": finish }),
        }
    }

    /// A piece of a text as a choice of a chunk; a chat's first one says whose turn it is.
    pub(crate) fn piece(
        &self,
        text: &str,
        chances: Option<&[Chance]>,
        first: bool,
        finish: Option<&str>,
    ) -> Value {
        let mut choice = match self.endpoint {
            Endpoint::Chat if finish.is_some() && text.is_empty() && !first => json!({ "delta": {} }),
            Endpoint::Chat if first => json!({ "delta": { "role": "assistant", "content": text } }),
            Endpoint::Chat => json!({ "delta": { "content": text } }),
            Endpoint::Completions => json!({ "text": text }),
        };
        choice["logprobs"] = self.logprobs(chances);
        choice["finish_reason"] = finish.into();
        choice
    }

    fn logprobs(&self, chances: Option<&[Chance]>) -> Value {
        chances.map_or(Value::Null, |chances| chances::to_json(chances, self.endpoint))
    }

    /// A delta of a chat as a choice of a chunk.
    pub(crate) fn delta(&self, mut delta: Value, first: bool) -> Value {
        if first {
            delta["role"] = "assistant".into();
        }
        json!({ "delta": delta, "logprobs": null, "finish_reason": null })
    }

    /// The whole answer.
    pub(crate) fn whole(&self, choices: Vec<Value>, spent: Spent) -> Value {
        let object = match self.endpoint {
            Endpoint::Chat => "chat.completion",
            Endpoint::Completions => "text_completion",
        };
        let choices =
            choices.into_iter().enumerate().map(|(index, choice)| numbered(index, choice)).collect();
        let mut answer = self.head(object, choices);
        answer.insert("usage".to_owned(), spent.usage());
        answer.into()
    }

    /// A chunk with one choice.
    pub(crate) fn chunk(&self, index: usize, choice: Value) -> Value {
        self.head(self.chunk_object(), vec![numbered(index, choice)]).into()
    }

    /// The chunk that tells the usage of a stream.
    pub(crate) fn usage_chunk(&self, spent: Spent) -> Value {
        let mut chunk = self.head(self.chunk_object(), Vec::new());
        chunk.insert("usage".to_owned(), spent.usage());
        chunk.into()
    }

    fn chunk_object(&self) -> &'static str {
        match self.endpoint {
            Endpoint::Chat => "chat.completion.chunk",
            Endpoint::Completions => "text_completion",
        }
    }

    fn head(&self, object: &str, choices: Vec<Value>) -> Map<String, Value> {
        let mut head = Map::new();
        head.insert("id".to_owned(), self.id.clone().into());
        head.insert("object".to_owned(), object.into());
        head.insert("created".to_owned(), self.created.into());
        head.insert("model".to_owned(), self.model.clone().into());
        head.insert("system_fingerprint".to_owned(), "domino".into());
        head.insert("choices".to_owned(), choices.into());
        head.extend(self.told.clone());
        head
    }
}

/// A choice with its number, whichever it had.
fn numbered(index: usize, mut choice: Value) -> Value {
    choice["index"] = index.into();
    choice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_sums_the_tokens_of_all_texts() {
        let grammar = GrammarSpent { passes: 3, drafted: 5, accepted: 4, mask_micros: 10, closed: 0 };
        let one = Spent { prompt: 7, cached: 5, completion: 6, grammar: Some(grammar) };
        let again = Spent { prompt: 0, cached: 0, ..one };
        let usage = one.and(again).and(Spent::default()).usage();
        assert_eq!(usage["prompt_tokens"], 7);
        assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], 5);
        assert_eq!(usage["completion_tokens"], 12);
        assert_eq!(usage["total_tokens"], 19);
        assert_eq!(usage["completion_tokens_details"]["rejected_prediction_tokens"], 2);
        assert_eq!(usage["domino"]["accepted"], 8);
        assert!(Spent::default().usage().get("domino").is_none());
    }

    #[test]
    fn answers_have_the_forms_of_chat_and_completions() {
        let chat = Form::new(Endpoint::Chat, "m", Map::new());
        let first = chat.chunk(1, chat.piece("a", None, true, None));
        assert_eq!(first["choices"][0]["delta"], json!({ "role": "assistant", "content": "a" }));
        assert_eq!(
            (&first["choices"][0]["index"], &first["object"]),
            (&json!(1), &json!("chat.completion.chunk"))
        );
        assert_eq!(chat.piece("", None, false, Some("stop"))["delta"], json!({}));
        let plain =
            Form::new(Endpoint::Completions, "m", Map::from_iter([("relaxed".to_owned(), json!(["r"]))]));
        let whole = plain.whole(
            vec![plain.choice("a".to_owned(), None, "stop"), plain.choice("b".to_owned(), None, "length")],
            Spent::default(),
        );
        assert_eq!((&whole["choices"][1]["text"], &whole["choices"][1]["index"]), (&json!("b"), &json!(1)));
        assert_eq!(whole["relaxed"], json!(["r"]));
        assert_ne!(chat.id, Form::new(Endpoint::Chat, "m", Map::new()).id);
    }
}
