//! The body of a request: the grammar of the text, its prompts, and how it is drawn.
//!
//! Invariant: an [`Asked`] names the grammar in one way only, and its numbers are in their ranges.

use domino::grammar::tools::Spelling;
use serde_json::{Map, Value};

use super::{
    super::{args::SchemaRules, endpoint::Endpoint, problem::Problem, prompts::PromptAsked},
    captures::CapturesAsked,
    drawing::DrawingAsked,
    fields::{self, flag},
    grammar::{self, GrammarAsked, Reading},
    options::OptionsAsked,
    prompts,
    reach::ReachAsked,
    tools::{self, ToolsAsked},
};

/// Texts that one request may ask for.
pub(crate) const MOST_CHOICES: usize = 16;

/// A request.
#[derive(Debug)]
pub(crate) struct Asked {
    /// The grammar of the text; `None`: any text.
    pub(crate) grammar: Option<GrammarAsked>,
    /// Functions that the text may call, in the model's own spelling.
    pub(crate) tools: Option<ToolsAsked>,
    /// Parts of the grammar whose texts are listed.
    pub(crate) captures: CapturesAsked,
    pub(crate) reach: ReachAsked,
    /// Texts of each prompt, at least 1.
    pub(crate) choices: usize,
    pub(crate) stream: bool,
    /// Does a stream end with an event that has the usage?
    pub(crate) include_usage: bool,
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
        let stream = flag(&body, "stream")?;
        let schema_report = flag(&body, "schema_report")?;
        let finish = body.contains_key("finish").then(|| flag(&body, "finish")).transpose()?;
        let include_usage = include_usage(&mut body)?;
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
            Endpoint::Chat => vec![PromptAsked::Chat(prompts::chat(&mut body)?)],
            Endpoint::Completions => prompts::prompts(&mut body)?,
        };
        check_echo(echo, grammar.is_some())?;
        Ok(Self {
            grammar,
            tools,
            captures,
            reach,
            choices,
            stream,
            include_usage,
            schema_report,
            finish,
            seed,
            model,
            prompts,
            echo,
            drawing,
        })
    }
}

/// Is a last event with the usage wanted?
fn include_usage(body: &mut Map<String, Value>) -> Result<bool, Problem> {
    match body.shift_remove("stream_options") {
        None => Ok(false),
        Some(Value::Object(options)) => {
            fields::of_object(&options, "stream_options", &["include_usage", "include_obfuscation"])?;
            flag(&options, "include_usage")
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

#[cfg(test)]
mod tests;
