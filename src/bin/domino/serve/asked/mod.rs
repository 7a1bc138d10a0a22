//! Reads what a request asks for. Its body must be of the right type and within the bounds, and is taken
//! apart: the `grammar` of the text, or functions to be called (`tools`), with `schemas` and their options;
//! its `prompts`; how tokens are drawn (`drawing`); which parts of its grammar it lists, and how far masks
//! look ahead. `fields` knows the names that there are.
//!
//! Invariant: an [`Asked`] names the grammar in one way only, and its numbers are in their ranges.

mod drawing;
pub(crate) mod fields;
pub(crate) mod grammar;
pub(crate) mod members;
mod messages;
mod prompts;
mod responses;
pub(crate) mod schemas;
pub(crate) mod tools;

use std::sync::Arc;

use axum::{extract::Request, http::header};
use domino::{Lookahead, Terminals, decode::Masking, grammar::tools::Spelling};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::watch;

use self::grammar::{GrammarAsked, Reading};
use self::{
    drawing::DrawingAsked, fields::Endpoint, fields::flag, members::AnswerShape, schemas::OptionsAsked,
    tools::ToolsAsked,
};
use super::args::{SchemaRules, ServerLimits};
use super::bounds::{self, BodyBounds, BodyMemory, SLOW_START};
use super::{
    access::Caller, access::is_json, connections::PeerVisit, problem::Problem, prompts::PromptAsked,
};
use crate::flags::NamedValue;
use crate::grammar::compiler::{Reach, lookahead};
use crate::grammar::thinking::{Thinking, WantedReasoning};
use crate::terminal::failure::BadInput;

/// Texts that one request may ask for.
pub(crate) const MOST_CHOICES: usize = 16;

/// A request.
#[derive(Debug)]
pub(crate) struct Asked {
    /// The grammar of the text; `None`: any text.
    pub(crate) grammar: Option<GrammarAsked>,
    /// Functions that the text may call, in the model's own spelling.
    pub(crate) tools: Option<ToolsAsked>,
    /// The settings of thoughts before the text.
    pub(crate) thinking: Thinking,
    /// Parts of the grammar whose texts are listed.
    pub(crate) captures: CapturesAsked,
    pub(crate) reach: ReachAsked,
    /// Texts of each prompt, at least 1.
    pub(crate) choices: usize,
    pub(crate) stream: bool,
    /// Does a stream end with an event that has the usage, and do its events say how many passes there were?
    pub(crate) include: (bool, bool),
    /// Does the answer list the keywords of its schema?
    pub(crate) schema_report: bool,
    /// Is a text closed that would be cut by its length? `None`: as the server does.
    pub(crate) finish: Option<bool>,
    /// The seed; `None`: the server draws one.
    pub(crate) seed: Option<u64>,
    /// Model that was named.
    pub(crate) model: Option<String>,
    /// The prompts, at least one.
    pub(crate) prompts: Vec<PromptAsked>,
    /// Does the text begin with its prompt?
    pub(crate) echo: bool,
    pub(crate) drawing: DrawingAsked,
    /// The part of a request of another API that its answer has to know.
    pub(crate) shape: AnswerShape,
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
        let text = || {
            let wrong = |_| Problem::bad_request("invalid_json", "the body is not UTF-8");
            std::str::from_utf8(bytes).map_err(wrong)
        };
        let as_chat = |bytes: &[u8]| {
            let read = Self::read_own(bytes, Endpoint::Chat, most_grammar, schemas, spelling);
            read.map_err(|problem| problem.renamed(endpoint.words()))
        };
        match endpoint {
            Endpoint::Responses => {
                let (body, shape) = responses::translate(text()?)?;
                Ok(Self { shape, ..as_chat(&body)? })
            }
            Endpoint::Messages => as_chat(&messages::translate(text()?)?),
            Endpoint::Chat | Endpoint::Completions => {
                Self::read_own(bytes, endpoint, most_grammar, schemas, spelling)
            }
        }
    }

    /// Reads a body in the words that the server has itself.
    fn read_own(
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
        let options = OptionsAsked::read(&mut body, schemas)?;
        let captures = CapturesAsked::read(&mut body)?;
        let tools = tools::read(&mut body, bytes, endpoint, spelling, most_grammar, &options)?;
        fields::of_body(&mut body, endpoint)?;
        let grammar = Reading { bytes, most: most_grammar, schemas, options: &options }.grammar(&mut body)?;
        grammar::check_options(&options, grammar.as_ref(), tools.is_some())?;
        captures.check(grammar.is_some(), tools.is_some())?;
        let reach = ReachAsked::take(&mut body, grammar.is_some() || tools.is_some())?;
        let (grammar, tools) = tools::together(grammar, tools)?;
        let choices = choices(&mut body)?;
        let finish = body.contains_key("finish").then(|| flag(&body, "finish")).transpose()?;
        let include = include(&mut body)?;
        let seed = body.shift_remove("seed").map(|seed| read_seed(&seed)).transpose()?;
        refuse_both(body.get("tools"), grammar.is_some())?;
        let model = match body.shift_remove("model") {
            None => None,
            Some(Value::String(name)) => Some(name),
            Some(_) => return Err(Problem::invalid("model", "`model` must be a string")),
        };
        let echo = flag(&body, "echo")?;
        let drawing = DrawingAsked::read(&mut body, endpoint, echo)?;
        let prompts = match endpoint {
            Endpoint::Completions => prompts::prompts(&mut body)?,
            _ => vec![PromptAsked::Chat(prompts::chat(&mut body)?)],
        };
        check_echo(echo, grammar.is_some())?;
        Ok(Self {
            grammar,
            tools,
            thinking: thinking(&mut body)?,
            captures,
            reach,
            choices,
            stream: flag(&body, "stream")?,
            include,
            schema_report: flag(&body, "schema_report")?,
            finish,
            seed,
            model,
            prompts,
            echo,
            drawing,
            shape: AnswerShape::default(),
        })
    }
}

/// Reads a request's settings of thoughts.
fn thinking(body: &mut Map<String, Value>) -> Result<Thinking, Problem> {
    let wrong = |param: &str, error: &BadInput| Problem::invalid(param, error.to_string());
    let place = match body.shift_remove("reasoning") {
        None => None,
        Some(Value::String(name)) => {
            Some(WantedReasoning::named(&name).map_err(|error| wrong("reasoning", &error))?)
        }
        Some(_) => {
            let message = "`reasoning` must be off, optional, open, required or auto";
            return Err(Problem::invalid("reasoning", message));
        }
    };
    let marks = match body.shift_remove("thought_marks") {
        None => None,
        Some(marks) => {
            let texts: Option<Vec<String>> = marks
                .as_array()
                .and_then(|all| all.iter().map(|one| one.as_str().map(str::to_owned)).collect());
            let marks = Thinking::marks_of(&texts.unwrap_or_default());
            Some(marks.map_err(|error| wrong("thought_marks", &error))?)
        }
    };
    Ok(Thinking { place, marks })
}

/// Are a last event with the usage, and the passes in each event, wanted?
fn include(body: &mut Map<String, Value>) -> Result<(bool, bool), Problem> {
    match body.shift_remove("stream_options") {
        None => Ok((false, false)),
        Some(Value::Object(options)) => {
            let known = ["include_usage", "include_passes", "include_obfuscation"];
            fields::of_object(&options, "stream_options", &known)?;
            Ok((flag(&options, known[0])?, flag(&options, known[1])?))
        }
        Some(_) => Err(Problem::invalid("stream_options", "`stream_options` must be an object")),
    }
}

/// Refuses an echo that cannot be had.
fn check_echo(echo: bool, constrained: bool) -> Result<(), Problem> {
    match echo && constrained {
        true => Err(Problem::unsupported("echo", "`echo` and a grammar cannot be asked for together")),
        false => Ok(()),
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

/// Refuses functions beside a grammar.
fn refuse_both(tools: Option<&Value>, constrained: bool) -> Result<(), Problem> {
    let some = tools.and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    if some && constrained {
        let message = "tools and a grammar cannot be asked for together: a call of a tool need not be in the \
                       grammar's language";
        return Err(Problem::unsupported("tools", message));
    }
    Ok(())
}

/// Reads the body of a request, by `read`, which holds its memory for as long.
pub(crate) async fn read<T>(
    request: Request,
    limits: &ServerLimits,
    memory: &Arc<BodyMemory>,
    read: impl FnOnce(&[u8]) -> Result<T, Problem>,
) -> Result<T, Problem> {
    if !is_json(request.headers()) {
        return Err(Problem::media_type());
    }
    let most = limits.max_body;
    let length =
        request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: u64| usize::try_from(length).map_or(true, |length| length > most)) {
        return Err(Problem::too_large(most));
    }
    let closing = request.extensions().get::<PeerVisit>().map(|visit| visit.closing.clone());
    let closing = closing.unwrap_or_else(|| watch::channel(false).1);
    // Held until the body has been read into what it asks for.
    let mut held = memory.hold(Caller::of(request.extensions()));
    let bounds = BodyBounds { most, time: limits.read_timeout, slow_start: SLOW_START };
    let body = bounds::read_body(request.into_body(), bounds, &mut held, closing).await?;
    read(&body)
}

const CAPTURES: &str = "captures";

/// Most names in a request.
const MOST_NAMES: usize = 64;

/// The parts whose texts are listed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum CapturesAsked {
    /// Lists what the grammar marks itself.
    #[default]
    Marked,
    /// Lists these rules and groups too.
    Rules(Vec<String>),
    /// Lists nothing.
    Off,
}

impl CapturesAsked {
    /// Takes the field out of a body.
    ///
    /// # Errors
    /// If it is neither true, nor false, nor a list of names.
    pub(crate) fn read(body: &mut Map<String, Value>) -> Result<Self, Problem> {
        let wrong = || {
            let message = format!("`{CAPTURES}` must be true, false, or a list of up to {MOST_NAMES} names");
            Problem::invalid(CAPTURES, message)
        };
        match body.shift_remove(CAPTURES) {
            None | Some(Value::Bool(true)) => Ok(Self::Marked),
            Some(Value::Bool(false)) => Ok(Self::Off),
            Some(Value::Array(names)) if names.len() <= MOST_NAMES => {
                let names = names.into_iter().map(|name| match name {
                    Value::String(name) => Ok(name),
                    _ => Err(wrong()),
                });
                let names: Vec<String> = names.collect::<Result<_, _>>()?;
                Ok(if names.is_empty() { Self::Marked } else { Self::Rules(names) })
            }
            Some(_) => Err(wrong()),
        }
    }

    /// Checks that a request that names rules has a grammar with rules.
    ///
    /// # Errors
    /// If it has none, or if it is made of functions: nobody sees the text that these captures would be of.
    pub(crate) fn check(&self, constrained: bool, tools: bool) -> Result<(), Problem> {
        match self {
            Self::Rules(_) if tools => {
                let message = format!("`{CAPTURES}` and `tools` cannot be asked for together");
                Err(Problem::unsupported(CAPTURES, message))
            }
            Self::Rules(_) if !constrained => {
                let message = format!("`{CAPTURES}` names rules of a grammar, and there is none");
                Err(Problem::invalid(CAPTURES, message))
            }
            _ => Ok(()),
        }
    }
}

/// Settings of a request for its masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ReachAsked {
    lookahead: Option<Lookahead>,
    terminals: Option<Terminals>,
    /// The time at which masks are made; `None`: that of the server.
    pub(crate) masking: Option<Masking>,
}

impl ReachAsked {
    /// Takes the fields out of the body of a request, which is `constrained` by a grammar or by functions, or
    /// is not.
    ///
    /// # Errors
    /// If one of them has another value than the flag of its name, or if it says how far masks reach, and
    /// there are none.
    pub(crate) fn take(body: &mut Map<String, Value>, constrained: bool) -> Result<Self, Problem> {
        let wrong = |param: &str, value: &Value, why: String| {
            Problem::invalid(param, format!("`{param}` is {value}: {why}"))
        };
        let far = body.shift_remove("lookahead").map(|value| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            lookahead(&text).map_err(|why| wrong("lookahead", &value, why))
        });
        let which = body.shift_remove("terminals").map(|value| {
            let read = NamedValue::<Terminals>::deserialize(&value).map(|named| named.0);
            read.map_err(|error| wrong("terminals", &value, error.to_string()))
        });
        let when = body.shift_remove("mask").map(|value| {
            let read = NamedValue::<Masking>::deserialize(&value).map(|named| named.0);
            read.map_err(|error| wrong("mask", &value, error.to_string()))
        });
        let (lookahead, terminals) = (far.transpose()?, which.transpose()?);
        let given = [("lookahead", lookahead.is_some()), ("terminals", terminals.is_some())];
        if let Some((param, _)) = given.into_iter().find(|(_, given)| *given && !constrained) {
            let message = format!("`{param}` is about the masks of a grammar, and there is none");
            return Err(Problem::invalid(param, message));
        }
        Ok(Self { lookahead, terminals, masking: when.transpose()? })
    }

    /// The reach that the request asks for, where `usual` is the server's. `None`: the server's.
    pub(crate) fn reach(self, usual: Reach) -> Option<Reach> {
        let Self { lookahead, terminals, .. } = self;
        let reach = Reach {
            lookahead: lookahead.unwrap_or(usual.lookahead),
            terminals: terminals.unwrap_or(usual.terminals),
        };
        (reach != usual).then_some(reach)
    }
}

#[cfg(test)]
mod api_tests;
#[cfg(test)]
mod tests;
