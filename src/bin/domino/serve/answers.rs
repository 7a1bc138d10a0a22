//! Answers in the form of OpenAI's chats: whole, or as the chunks of a stream, with their parts; those of
//! other APIs are [`blocks`].
//!
//! Log-probabilities of tokens ([`Chance`]) are natural logarithms at temperature 1: of the model's own
//! distribution, or under a grammar of that over the tokens that may follow. An answer with calls of
//! functions ([`Growing`]) is read again as a whole after each token, and the difference to the last reading
//! is sent. Bytes of tokens become text that may be shown ([`Shown`]): whole characters, and nothing of a
//! stop string.

pub(crate) mod blocks;

use std::sync::atomic::{AtomicU64, Ordering};
use std::{hash::BuildHasher, hash::RandomState, time::SystemTime, time::UNIX_EPOCH};

use domino::decode::{Logprobs, StopSearch, StopStrings, TokenLogprobs};
use domino::grammar::tools::calls::{Answer, Call, Reader};
use domino::grammar::{Thought, ThoughtPlace};
use domino::{CompiledGrammar, ThoughtWatch, TokenId, Vocabulary, vocab::Utf8Stream};
use serde_json::{Map, Value, json};

use super::{asked::fields::Endpoint, writing::GrammarOrder};

/// Work of a text, or of all texts of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) prompt: usize,
    /// Tokens of the prompt that were read before.
    pub(crate) cached: usize,
    pub(crate) completion: usize,
    /// Tokens of the thought among them; `None` where there can be none.
    pub(crate) thought: Option<usize>,
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
            thought: self.thought.map(|one| one + other.thought.unwrap_or_default()).or(other.thought),
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
        if let Some(thought) = self.thought {
            usage["completion_tokens_details"]["reasoning_tokens"] = thought.into();
        }
        if let Some(spent) = self.grammar {
            let details = json!({
                "accepted_prediction_tokens": spent.accepted,
                "rejected_prediction_tokens": spent.drafted.saturating_sub(spent.accepted),
            });
            details.as_object().into_iter().flatten().for_each(|(name, value)| {
                usage["completion_tokens_details"][name] = value.clone();
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
            Endpoint::Chat => "chatcmpl-",
            Endpoint::Completions => "cmpl-",
            Endpoint::Responses => "resp_",
            Endpoint::Messages => "msg_",
        };
        Self {
            endpoint,
            id: format!("{prefix}{:x}-{number}", now.as_micros()),
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
            Endpoint::Completions => json!({ "text": text, "logprobs": logprobs, "finish_reason": finish }),
            _ => json!({
                "message": { "role": "assistant", "content": text }, "logprobs": logprobs,
                "finish_reason": finish,
            }),
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
            Endpoint::Completions => json!({ "text": text }),
            _ if finish.is_some() && text.is_empty() && !first => json!({ "delta": {} }),
            _ if first => json!({ "delta": { "role": "assistant", "content": text } }),
            _ => json!({ "delta": { "content": text } }),
        };
        choice["logprobs"] = self.logprobs(chances);
        choice["finish_reason"] = finish.into();
        choice
    }

    fn logprobs(&self, chances: Option<&[Chance]>) -> Value {
        chances.map_or(Value::Null, |chances| chances_to_json(chances, self.endpoint))
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
            Endpoint::Completions => "text_completion",
            _ => "chat.completion",
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
            Endpoint::Completions => "text_completion",
            _ => "chat.completion.chunk",
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

/// The value in place of minus infinity, which JSON does not have; OpenAI uses it too.
const NEVER: f64 = -9999.0;

/// A token, and how likely it and others were.
#[derive(Debug, Clone)]
pub(crate) struct Chance {
    taken: OneChance,
    others: Vec<OneChance>,
    /// Characters of the text before it.
    offset: usize,
}

#[derive(Debug, Clone)]
struct OneChance {
    bytes: Vec<u8>,
    /// `None` for the first token of a prompt, before which there is nothing.
    logprob: Option<f64>,
}

/// Spelling of tokens.
pub(super) enum Spelt<'a> {
    By(&'a Vocabulary),
    Of(&'a CompiledGrammar),
}

impl Spelt<'_> {
    fn bytes(&self, token: TokenId) -> Vec<u8> {
        let (text, vocabulary) = match self {
            Self::By(vocabulary) => (vocabulary.bytes(token).unwrap_or_default(), *vocabulary),
            Self::Of(grammar) => (grammar.text_of(token), grammar.vocabulary()),
        };
        // A special token adds no bytes to the text, but has a name.
        let name = || vocabulary.name(token).unwrap_or_default().as_bytes();
        if text.is_empty() { name().to_vec() } else { text.to_vec() }
    }
}

impl Chance {
    /// Converts the decoder's log-probabilities of a token; the text before it has `offset` characters.
    pub(super) fn new(logprobs: &Logprobs, spelt: &Spelt<'_>, offset: usize) -> Self {
        let others = match spelt {
            Spelt::By(_) => &logprobs.top,
            Spelt::Of(_) => &logprobs.top_allowed,
        };
        let one = |token: &TokenLogprobs| {
            let logprob = token.constrained.unwrap_or(token.model);
            OneChance { bytes: spelt.bytes(token.token), logprob: Some(logprob.max(NEVER)) }
        };
        Self { taken: one(&logprobs.taken), others: others.iter().map(one).collect(), offset }
    }

    /// The tokens of a prompt that is shown as `text`, by the log-probabilities of all but the first.
    pub(super) fn of_prompt(
        tokens: &[TokenId],
        logprobs: &[Logprobs],
        vocabulary: &Vocabulary,
        text: &str,
    ) -> Vec<Self> {
        let spelt = Spelt::By(vocabulary);
        let length = |token: &TokenId| characters(vocabulary.bytes(*token).unwrap_or_default());
        // A tokenizer may put a space before a text.
        let added = tokens.iter().map(length).sum::<usize>().saturating_sub(text.chars().count());
        let mut end = 0_usize;
        let mut chances = Vec::with_capacity(tokens.len());
        for (index, token) in tokens.iter().enumerate() {
            let offset = end.saturating_sub(added);
            end += length(token);
            chances.push(match index.checked_sub(1).and_then(|index| logprobs.get(index)) {
                Some(logprobs) => Self::new(logprobs, &spelt, offset),
                None => {
                    let taken = OneChance { bytes: spelt.bytes(*token), logprob: None };
                    Self { taken, others: Vec::new(), offset }
                }
            });
        }
        chances
    }
}

/// Characters whose first byte is among these.
pub(super) fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count()
}

impl OneChance {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    fn of_chat(&self) -> Value {
        json!({ "token": self.text(), "logprob": self.logprob, "bytes": self.bytes })
    }
}

/// The field `logprobs` of a choice.
fn chances_to_json(chances: &[Chance], endpoint: Endpoint) -> Value {
    if endpoint == Endpoint::Chat {
        let entry = |chance: &Chance| {
            let mut entry = chance.taken.of_chat();
            entry["top_logprobs"] = chance.others.iter().map(OneChance::of_chat).collect();
            entry
        };
        return json!({ "content": chances.iter().map(entry).collect::<Vec<_>>(), "refusal": null });
    }
    let top = |chance: &Chance| -> Value {
        if chance.taken.logprob.is_none() {
            return Value::Null;
        }
        let pairs = chance.others.iter().map(|other| (other.text(), other.logprob.into()));
        Value::Object(pairs.collect::<Map<_, _>>())
    };
    json!({
        "tokens": chances.iter().map(|chance| chance.taken.text()).collect::<Vec<_>>(),
        "token_logprobs": chances.iter().map(|chance| chance.taken.logprob).collect::<Vec<_>>(),
        "top_logprobs": chances.iter().map(top).collect::<Vec<_>>(),
        "text_offset": chances.iter().map(|chance| chance.offset).collect::<Vec<_>>(),
    })
}

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
    /// Reader of calls of functions, if there may be some.
    reader: Option<Reader>,
    /// Follows the thought, if one may come first, and counts its tokens.
    thought: Option<(ThoughtWatch, usize)>,
    text: String,
    /// The part of the answer that was sent.
    told: Answer,
}

impl Growing {
    /// An answer without a character, if there is more to it than text.
    pub(crate) fn of(
        grammar: Option<&GrammarOrder>,
        thought: Option<&Thought>,
        vocabulary: &Vocabulary,
    ) -> Option<Self> {
        let reader = grammar.and_then(|grammar| grammar.calls.clone());
        let thought = thought.map(|thought| (ThoughtWatch::new(thought.clone(), vocabulary.clone()), 0));
        (reader.is_some() || thought.is_some()).then(|| Self::new(reader, thought))
    }

    fn new(reader: Option<Reader>, thought: Option<(ThoughtWatch, usize)>) -> Self {
        Self { reader, thought, text: String::new(), told: Answer::default() }
    }

    /// Notes a token, whose text may be told later.
    pub(crate) fn note(&mut self, token: TokenId, shown: &[u8]) {
        if let Some((watch, count)) = &mut self.thought {
            let inside = watch.place() == ThoughtPlace::Inside;
            watch.push(token, shown);
            *count += usize::from(inside || watch.place() != ThoughtPlace::Behind);
        }
    }

    /// Notes the bytes of a completion.
    pub(crate) fn note_bytes(&mut self, bytes: &[u8]) {
        if let Some((watch, _)) = &mut self.thought {
            watch.push_bytes(bytes);
        }
    }

    /// Tokens of the thought so far; `None` where there can be none.
    pub(crate) fn thought_tokens(&self) -> Option<usize> {
        self.thought.as_ref().map(|(_, count)| *count)
    }

    /// The part of a whole text that is behind its thought.
    pub(crate) fn answer<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        self.thought.as_ref().map_or(text, |(watch, _)| watch.split(text, true).1)
    }

    /// The new parts of the answer after more text.
    pub(crate) fn push(&mut self, more: &str) -> Vec<News> {
        self.text += more;
        let now = self.read(false);
        self.tell(now)
    }

    /// The parts that were held back, at the end of the text.
    pub(crate) fn finish(&mut self) -> Vec<News> {
        let now = self.read(true);
        self.tell(now)
    }

    fn read(&self, whole: bool) -> Answer {
        let (thought, answer) = match &self.thought {
            Some((watch, _)) => watch.split(self.text.as_bytes(), whole),
            None => (&[][..], self.text.as_bytes()),
        };
        // Marks end where characters do.
        let (thought, answer) = (String::from_utf8_lossy(thought), String::from_utf8_lossy(answer));
        let mut read = match &self.reader {
            Some(reader) => reader.read(&answer, whole),
            None => {
                let mut plain = Answer::default();
                plain.content = answer.into_owned();
                plain
            }
        };
        if self.thought.is_some() {
            read.reasoning = thought.into_owned();
        }
        read
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

/// The text of one answer as it grows.
#[derive(Debug)]
pub(crate) struct Shown {
    stops: StopSearch,
    /// Bytes that are not shown yet: they may become a stop string.
    held: Vec<u8>,
    characters: Utf8Stream,
}

impl Shown {
    /// A text that is cut before the first of `stops`.
    pub(crate) fn new(stops: &StopStrings) -> Self {
        Self { stops: stops.search(), held: Vec::new(), characters: Utf8Stream::default() }
    }

    /// The text that `bytes` let be shown, and the stop string that was found, after which nothing comes.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> (String, Option<String>) {
        for &byte in bytes {
            self.held.push(byte);
            if let Some(length) = self.stops.push(byte) {
                let stop = self.held.split_off(self.held.len().saturating_sub(length));
                return (self.finish(), Some(String::from_utf8_lossy(&stop).into_owned()));
            }
        }
        let keep = self.stops.held();
        let shown: Vec<u8> = self.held.drain(..self.held.len() - keep).collect();
        (self.characters.push(&shown), None)
    }

    /// Returns the text that was held back.
    pub(crate) fn finish(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        self.characters.push(&held) + &self.characters.finish()
    }
}

#[cfg(test)]
mod tests;
