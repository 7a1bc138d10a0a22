//! Bodies in the words of other APIs (`responses`, `messages`) -> bodies in those of chats, which everything
//! behind knows alone.
//!
//! Schemas and functions go over as they were sent, with all digits of their numbers. A field that means the
//! same in both goes over as it is, and so do this server's own; what nobody knows is refused where chats are
//! read.

use std::collections::{BTreeMap, HashSet};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json, value::RawValue, value::to_raw_value};

use super::{super::problem::Problem, fields};

/// Fields of chats for which other APIs have other words, or no answer.
const RESERVED: &str = "\
    audio best_of echo enable_thinking functions function_call logprobs max_completion_tokens max_tokens \
    messages n prompt reasoning_effort response_format stop stream_options suffix tool_choice top_logprobs";

/// The part of a request of another API that its answer has to know.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct AnswerShape {
    /// Settings that the answer repeats.
    pub(crate) settings: Map<String, Value>,
    /// Names of tools that take a text in place of arguments.
    pub(crate) custom: HashSet<String>,
}

/// The members of an object, as they were sent; null is as good as nothing.
pub(super) struct SentObject<'a> {
    path: String,
    all: BTreeMap<String, &'a RawValue>,
}

impl<'a> SentObject<'a> {
    /// Reads the object `text`, which stands at `path` of the body.
    pub(super) fn read(text: &'a str, path: String) -> Result<Self, Problem> {
        let all: Result<BTreeMap<String, &'a RawValue>, _> = serde_json::from_str(text);
        let mut all = all.map_err(|error| match path.as_str() {
            "" => Problem::bad_request("invalid_json", format!("the body is not a JSON object: {error}")),
            _ => Problem::invalid(&path, format!("`{path}` must be an object")),
        })?;
        all.retain(|_, value| value.get() != "null");
        Ok(Self { path, all })
    }

    /// The place of a member in the body.
    pub(super) fn at(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    pub(super) fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        self.all.remove(name)
    }

    /// A member as it was sent, which stays.
    pub(super) fn peek(&self, name: &str) -> Option<&'a str> {
        self.all.get(name).map(|sent| sent.get())
    }

    /// Is the member a string?
    pub(super) fn is_text(&self, name: &str) -> bool {
        self.peek(name).is_some_and(|sent| sent.starts_with('"'))
    }

    /// Takes members away that have no effect.
    pub(super) fn ignore(&mut self, names: &[&str]) {
        self.all.retain(|name, _| !names.contains(&name.as_str()));
    }

    /// Takes a member that `must` be something.
    pub(super) fn value<T: DeserializeOwned>(
        &mut self,
        name: &str,
        must: &str,
    ) -> Result<Option<T>, Problem> {
        let Some(sent) = self.take(name) else { return Ok(None) };
        serde_json::from_str(sent.get()).map(Some).map_err(|_| self.wrong(name, must))
    }

    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, Problem> {
        self.value(name, "a string")
    }

    /// Takes a string that must be there.
    pub(super) fn needed(&mut self, name: &str) -> Result<String, Problem> {
        self.text(name)?.ok_or_else(|| self.wrong(name, "a string"))
    }

    pub(super) fn object(&mut self, name: &str) -> Result<Option<Self>, Problem> {
        let at = self.at(name);
        self.take(name).map(|sent| Self::read(sent.get(), at)).transpose()
    }

    /// Takes a list of objects.
    pub(super) fn objects(&mut self, name: &str) -> Result<Option<Vec<Self>>, Problem> {
        let Some(sent) = self.take(name) else { return Ok(None) };
        let at = self.at(name);
        let list: Vec<&'a RawValue> =
            serde_json::from_str(sent.get()).map_err(|_| self.wrong(name, "a list of objects"))?;
        let one = |(index, sent): (usize, &'a RawValue)| Self::read(sent.get(), format!("{at}[{index}]"));
        list.into_iter().enumerate().map(one).collect::<Result<_, _>>().map(Some)
    }

    /// Takes a text, or a list of parts whose type is one of `kinds`, which are joined.
    pub(super) fn parts(&mut self, name: &str, kinds: &[&str]) -> Result<Option<String>, Problem> {
        if self.is_text(name) {
            return self.text(name);
        }
        let Some(parts) = self.objects(name)? else { return Ok(None) };
        let part = |mut part: Self| {
            let kind = part.needed("type")?;
            match kinds.contains(&kind.as_str()) {
                true => part.needed("text"),
                false => Err(part.unsupported("type", &format!("parts of type {kind:?} are not served"))),
            }
        };
        parts.into_iter().map(part).collect::<Result<String, _>>().map(Some)
    }

    pub(super) fn wrong(&self, name: &str, must: &str) -> Problem {
        let at = self.at(name);
        Problem::invalid(&at, format!("`{at}` must be {must}"))
    }

    /// Refuses what is not served.
    pub(super) fn unsupported(&self, name: &str, why: &str) -> Problem {
        let at = self.at(name);
        Problem::unsupported(&at, format!("`{at}`: {why}"))
    }

    /// Refuses members that nobody has taken.
    pub(super) fn end(self) -> Result<(), Problem> {
        self.all.keys().next().map_or(Ok(()), |name| Err(fields::unknown(&self.at(name))))
    }
}

/// A body in the words of chats, in the making.
#[derive(Default)]
pub(super) struct ChatBody(BTreeMap<String, Box<RawValue>>);

impl ChatBody {
    /// Sets a field, if there is a value for it.
    pub(super) fn set<T: Serialize>(&mut self, name: &str, value: Option<T>) {
        // Nothing here has a form that JSON lacks.
        let sent = value.and_then(|value| to_raw_value(&value).ok());
        self.0.extend(sent.map(|sent| (name.to_owned(), sent)));
    }

    /// Asks for an instance of a schema.
    pub(super) fn set_schema(&mut self, schema: &RawValue, strict: Option<bool>) {
        let json_schema = SchemaFormat { name: "answer", schema, strict };
        self.set("response_format", Some(ResponseFormat { r#type: "json_schema", json_schema }));
    }

    /// Takes all fields over that have no other word in chats, and gives the body.
    pub(super) fn with_rest(mut self, rest: SentObject<'_>) -> Result<Vec<u8>, Problem> {
        if let Some(name) = rest.all.keys().find(|name| crate::terminal::lists(RESERVED, name)) {
            return Err(fields::unknown(name));
        }
        self.0.extend(rest.all.into_iter().map(|(name, sent)| (name, sent.to_owned())));
        serde_json::to_vec(&self.0).map_err(|error| Problem::engine(error.to_string()))
    }
}

/// The field `response_format` of a chat.
#[derive(Serialize)]
struct ResponseFormat<'a> {
    r#type: &'static str,
    json_schema: SchemaFormat<'a>,
}

#[derive(Serialize)]
struct SchemaFormat<'a> {
    name: &'static str,
    schema: &'a RawValue,
    strict: Option<bool>,
}

/// The choice of a function by its name.
pub(super) fn named(name: &str) -> Value {
    json!({ "type": "function", "function": { "name": name } })
}

/// A call in a message of the assistant.
pub(super) fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
}
