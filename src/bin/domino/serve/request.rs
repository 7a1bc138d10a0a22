//! The body of a request: what is ours, and what is left for mistral.rs.
//!
//! Invariant: an [`Asked`] has no two ways to say what the text must be, and its numbers are in their ranges.

use domino::grammar::tools::Spelling;
use serde_json::{Map, Value};

use super::{
    args::SchemaRules,
    asked_grammar::{GrammarAsked, Reading},
    asked_tools::{self, ToolsAsked},
    fields,
    problem::Problem,
};

/// Texts that one request may ask for.
pub(crate) const MOST_CHOICES: usize = 16;

/// Which of the two addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Chat,
    Completions,
}

impl Endpoint {
    /// In metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Completions => "completions",
        }
    }
}

/// A request.
#[derive(Debug)]
pub(crate) struct Asked {
    /// `None`: any text.
    pub(crate) grammar: Option<GrammarAsked>,
    /// Functions that the text may call, in the model's own spelling.
    pub(crate) tools: Option<ToolsAsked>,
    /// Texts, at least 1.
    pub(crate) choices: usize,
    pub(crate) stream: bool,
    /// A last event with the usage.
    pub(crate) include_usage: bool,
    /// Does the answer list the keywords of its schema?
    pub(crate) schema_report: bool,
    /// `None`: any.
    pub(crate) seed: Option<u64>,
    /// What mistral.rs reads.
    pub(crate) rest: Value,
}

impl Asked {
    /// Reads a body. `most_grammar` bounds the text of a grammar, in bytes; `spelling` is how the model
    /// writes calls, if that is known.
    pub(crate) fn read(
        bytes: &[u8],
        endpoint: Endpoint,
        most_grammar: usize,
        schemas: &SchemaRules,
        spelling: Option<Spelling>,
    ) -> Result<Self, Problem> {
        let body: Value = serde_json::from_slice(bytes).map_err(|error| {
            Problem::bad_request("invalid_json", format!("the body is not JSON: {error}"))
        })?;
        let Value::Object(mut body) = body else {
            return Err(Problem::bad_request("invalid_json", "the body is not a JSON object"));
        };
        // Null means that nothing was said.
        body.retain(|_, value| !value.is_null());
        let tools = asked_tools::read(&mut body, bytes, endpoint, spelling, most_grammar)?;
        fields::of_body(&mut body, endpoint)?;
        let grammar = Reading { bytes, most: most_grammar, schemas }.grammar(&mut body)?;
        let choices = choices(&mut body)?;
        let stream = flag(&body, "stream")?;
        let schema_report = flag(&body, "schema_report")?;
        body.shift_remove("schema_report");
        let include_usage = match body.shift_remove("stream_options") {
            None => false,
            Some(Value::Object(options)) => {
                fields::of_object(&options, "stream_options", &["include_usage", "include_obfuscation"])?;
                flag(&options, "include_usage")?
            }
            Some(_) => return Err(Problem::invalid("stream_options", "`stream_options` must be an object")),
        };
        let seed = body.shift_remove("seed").map(|seed| read_seed(&seed)).transpose()?;
        if is_list_of_some(body.get("tools")) && grammar.is_some() {
            let message = "tools and a grammar cannot be asked for together: a call of a tool need not be in the \
                           grammar's language";
            return Err(Problem::unsupported("tools", message));
        }
        if let Some(newer) = body.shift_remove("max_completion_tokens") {
            body.insert("max_tokens".to_owned(), newer);
        }
        if let Some(most) = body.get("max_tokens")
            && most.as_u64().is_none_or(|most| most == 0)
        {
            return Err(Problem::invalid(
                "max_tokens",
                format!("`max_tokens` is {most}; it must be 1 or more"),
            ));
        }
        match endpoint {
            Endpoint::Chat => flatten_messages(&mut body)?,
            Endpoint::Completions => one_prompt(&mut body, grammar.is_some())?,
        }
        let rest = Value::Object(body);
        Ok(Self { grammar, tools, choices, stream, include_usage, schema_report, seed, rest })
    }
}

fn choices(body: &mut Map<String, Value>) -> Result<usize, Problem> {
    let asked = match body.shift_remove("n") {
        None => 1,
        Some(n) => n
            .as_u64()
            .and_then(|n| usize::try_from(n).ok())
            .filter(|n| (1..=MOST_CHOICES).contains(n))
            .ok_or_else(|| {
                Problem::invalid("n", format!("`n` is {n}; it must be from 1 to {MOST_CHOICES}"))
            })?,
    };
    let best = body.shift_remove("best_of").map_or(Some(asked), |best| best.as_u64()?.try_into().ok());
    match best == Some(asked) {
        true => Ok(asked),
        false => {
            Err(Problem::unsupported("best_of", "`best_of` is not supported; ask for `n` texts and choose"))
        }
    }
}

/// Any integer is a seed, as for OpenAI.
fn read_seed(seed: &Value) -> Result<u64, Problem> {
    let negative = || seed.as_i64().map(i64::cast_unsigned);
    let wrong = || Problem::invalid("seed", format!("`seed` is {seed}; it must be an integer of 64 bits"));
    seed.as_u64().or_else(negative).ok_or_else(wrong)
}

fn flag(object: &Map<String, Value>, key: &str) -> Result<bool, Problem> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => Err(Problem::invalid(key, format!("`{key}` is {other}; it must be true or false"))),
    }
}

/// Contents in parts become one text: what is served are models of text, and mistral.rs would fetch what else
/// a part names, from this machine's files or from any address.
fn flatten_messages(body: &mut Map<String, Value>) -> Result<(), Problem> {
    let wrong = |message: &str| Problem::invalid("messages", message);
    let messages = match body.get_mut("messages") {
        Some(Value::Array(messages)) if !messages.is_empty() => messages,
        _ => return Err(wrong("`messages` must be a list of at least one message")),
    };
    for (index, message) in messages.iter_mut().enumerate() {
        let Some(message) = message.as_object_mut() else {
            return Err(wrong("a message must be an object {\"role\": .., \"content\": ..}"));
        };
        fields::of_message(message, index)?;
        if !message.get("role").is_some_and(Value::is_string) {
            return Err(wrong("a message has no `role`"));
        }
        let text = match message.get("content") {
            None if message.contains_key("tool_calls") => continue,
            Some(Value::String(_)) => continue,
            Some(Value::Array(parts)) => parts.iter().map(part_text).collect::<Result<String, Problem>>()?,
            _ => return Err(wrong("the `content` of a message must be a string or a list of parts")),
        };
        message.insert("content".to_owned(), Value::String(text));
    }
    Ok(())
}

fn part_text(part: &Value) -> Result<&str, Problem> {
    match (part.get("type").and_then(Value::as_str), part.get("text").and_then(Value::as_str)) {
        (Some("text"), Some(text)) => Ok(text),
        (Some("text") | None, _) => Err(Problem::invalid("messages", "a part of a message has no `text`")),
        (Some(kind), _) => {
            Err(Problem::unsupported("messages", format!("parts of type {kind:?} are not served")))
        }
    }
}

fn one_prompt(body: &mut Map<String, Value>, constrained: bool) -> Result<(), Problem> {
    let wrong = |message: &str| Err(Problem::invalid("prompt", message));
    let text = match body.get("prompt") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(list)) => match list.as_slice() {
            [Value::String(text)] => text.clone(),
            _ => return wrong("a list of prompts must hold one text; send one request for each"),
        },
        _ => return wrong("`prompt` must be a string"),
    };
    body.insert("prompt".to_owned(), Value::String(text));
    for key in ["echo", "suffix"] {
        let asked = body.get(key).is_some_and(|value| *value != Value::Bool(false));
        if constrained && asked {
            return Err(Problem::unsupported(
                key,
                format!("`{key}` and a grammar cannot be asked for together"),
            ));
        }
    }
    Ok(())
}

fn is_list_of_some(value: Option<&Value>) -> bool {
    value.and_then(Value::as_array).is_some_and(|list| !list.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::notation::Notation;

    fn chat(more: &Value) -> Result<Asked, Problem> {
        let mut body = json!({ "model": "default", "messages": [{ "role": "user", "content": "Hi" }] });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Asked::read(body.to_string().as_bytes(), Endpoint::Chat, 100, &SchemaRules::default(), None)
    }

    fn problem(more: &Value) -> (String, Value) {
        let object = chat(more).expect_err(&more.to_string()).to_json();
        (object["error"]["code"].as_str().unwrap().to_owned(), object["error"]["param"].clone())
    }

    #[test]
    fn grammars_in_all_their_forms() {
        let read = |more| chat(&more).unwrap().grammar;
        assert_eq!(read(json!({})), None);
        assert_eq!(read(json!({ "grammar": null, "response_format": { "type": "text" } })), None);
        assert_eq!(
            read(json!({ "grammar": { "type": "regex", "value": "a+" } })),
            Some(GrammarAsked::Text(Notation::Regex, "a+".to_owned()))
        );
        assert_eq!(
            read(
                json!({ "grammar": { "type": "named", "value": "c" }, "response_format": { "type": "text" } })
            ),
            Some(GrammarAsked::Named("c".to_owned()))
        );
        assert_eq!(
            read(json!({ "response_format": { "type": "json_object" } })),
            Some(GrammarAsked::JsonObject)
        );
    }

    #[test]
    fn what_is_refused_says_where() {
        let unsupported = |param: &str| ("unsupported".to_owned(), json!(param));
        let invalid = |param: &str| ("invalid_value".to_owned(), json!(param));
        let regex = json!({ "type": "regex", "value": "a" });
        for kind in ["llguidance", "klingon"] {
            let refused = problem(&json!({ "grammar": { "type": kind, "value": {} } }));
            assert_eq!(refused, unsupported("grammar"), "{kind}");
        }
        assert_eq!(problem(&json!({ "grammar": "a" })), invalid("grammar"));
        assert_eq!(problem(&json!({ "grammar": { "type": "gbnf", "value": 1 } })), invalid("grammar"));
        assert_eq!(problem(&json!({ "response_format": { "type": "xml" } })), unsupported("response_format"));
        let both = json!({ "grammar": regex, "response_format": { "type": "json_object" } });
        assert_eq!(problem(&both), invalid("response_format"));
        let tools = json!({ "grammar": regex, "tools": [{ "type": "function" }] });
        assert_eq!(problem(&tools), unsupported("tools"));
        let unknown = |param: &str| ("unknown_parameter".to_owned(), json!(param));
        assert_eq!(problem(&json!({ "web_search_options": {} })), unsupported("web_search_options"));
        assert_eq!(problem(&json!({ "colour": "red" })), unknown("colour"));
        assert_eq!(problem(&json!({ "stream_options": { "colour": 1 } })), unknown("stream_options.colour"));
        let flags = json!({ "type": "regex", "value": "a", "flags": "i" });
        assert_eq!(problem(&json!({ "grammar": flags })), unknown("grammar.flags"));
        let message = json!({ "role": "user", "content": "a", "image_url": "/etc/hosts" });
        assert_eq!(problem(&json!({ "messages": [message] })), unknown("messages[0].image_url"));
        let long = json!({ "grammar": { "type": "gbnf", "value": "a".repeat(101) } });
        assert_eq!(problem(&long).0, "grammar_too_large");
        for n in [json!(0), json!(17), json!(-1), json!("2")] {
            assert_eq!(problem(&json!({ "n": n })), invalid("n"));
        }
        assert_eq!(problem(&json!({ "best_of": 4 })), unsupported("best_of"));
        assert_eq!(problem(&json!({ "seed": 1.5 })), invalid("seed"));
        assert_eq!(problem(&json!({ "stream": "yes" })), invalid("stream"));
        assert_eq!(problem(&json!({ "max_tokens": 0 })), invalid("max_tokens"));
        assert_eq!(problem(&json!({ "messages": [] })), invalid("messages"));
        let image = json!([{ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "/etc/hosts" } }] }]);
        assert_eq!(problem(&json!({ "messages": image })), unsupported("messages"));
        let not_json =
            Asked::read(b"{", Endpoint::Chat, 100, &SchemaRules::default(), None).unwrap_err().to_json();
        assert_eq!(not_json["error"]["code"], "invalid_json");
    }

    #[test]
    fn what_is_ours_is_taken_out_and_the_rest_kept() {
        let more = json!({
            "n": 2, "seed": -1, "stream": true, "stream_options": { "include_usage": true }, "logprobs": null,
            "max_tokens": 5, "max_completion_tokens": 7, "temperature": 0.5,
            "messages": [{ "role": "user", "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }] }],
        });
        let asked = chat(&more).unwrap();
        assert_eq!(
            (asked.choices, asked.seed, asked.stream, asked.include_usage),
            (2, Some(u64::MAX), true, true)
        );
        let rest = json!({
            "model": "default", "messages": [{ "role": "user", "content": "ab" }], "stream": true, "max_tokens": 7,
            "temperature": 0.5,
        });
        // Neither the fields without effect nor null ones go on to mistral.rs.
        let silent = json!({ "user": "u", "store": true, "web_search_options": null, "temperature": 0.5 });
        assert!(chat(&silent).unwrap().rest.as_object().unwrap().keys().eq([
            "model",
            "messages",
            "temperature"
        ]));
        assert_eq!(asked.rest, rest);
    }

    #[test]
    fn completions_take_one_prompt() {
        let read = |body: Value| {
            Asked::read(
                body.to_string().as_bytes(),
                Endpoint::Completions,
                100,
                &SchemaRules::default(),
                None,
            )
        };
        assert_eq!(read(json!({ "prompt": ["a"] })).unwrap().rest["prompt"], "a");
        for wrong in [json!({}), json!({ "prompt": ["a", "b"] }), json!({ "prompt": [1, 2] })] {
            assert_eq!(read(wrong).unwrap_err().to_json()["error"]["param"], "prompt");
        }
        let grammar = json!({ "type": "regex", "value": "a" });
        let echo = json!({ "prompt": "a", "echo": true, "grammar": grammar });
        assert_eq!(read(echo).unwrap_err().to_json()["error"]["param"], "echo");
        assert!(read(json!({ "prompt": "a", "echo": false, "grammar": grammar })).is_ok());
    }
}
