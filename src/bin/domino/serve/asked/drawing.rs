//! Reads the parameters of a request that decide how a text is drawn and when it ends.
//!
//! Invariant: each is in its range, whatever the text must be.

use domino::TokenId;
use domino::decode::{
    DecodeOptions, LogitBias, Penalties, PenaltyError, Sampling, SamplingError, StopStrings,
};
use serde_json::{Map, Value};

use super::{super::problem::Problem, fields, fields::Endpoint};

/// Most strings that end an answer.
const MOST_STOPS: usize = 16;

/// Most bytes of all of them: a search takes some 30 bytes of memory for each, as long as its request waits.
const MOST_STOP_BYTES: usize = 16 << 10;

/// Most tokens with a bias, as in OpenAI's API.
const MOST_BIASES: usize = 300;

/// Most alternatives of a token in an answer.
const MOST_ALTERNATIVES: u64 = 20;

/// A request's parameters for drawing a text.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct DrawingAsked {
    /// Sampling, penalties and log-probabilities; seed and length are not known yet.
    pub(crate) options: DecodeOptions,
    /// Strings that end a text.
    pub(crate) stops: StopStrings,
    /// Most tokens of the text; `None`: as many as the model has room for.
    pub(crate) most: Option<usize>,
    /// Least tokens of the text, as far as its grammar has no end before.
    pub(crate) least: Option<usize>,
}

impl DrawingAsked {
    /// Takes the parameters of drawing out of a body. An answer that `echoes` its prompt may have no token
    /// more.
    pub(crate) fn read(
        body: &mut Map<String, Value>,
        endpoint: Endpoint,
        echoes: bool,
    ) -> Result<Self, Problem> {
        let mut options = DecodeOptions::default();
        options.sampling = sampling(body)?;
        options.penalties = penalties(body)?;
        options.bias = bias(body)?;
        options.logprobs = match endpoint {
            Endpoint::Completions => whole(body, "logprobs", 0, MOST_ALTERNATIVES)?,
            _ => logprobs_of_chat(body)?,
        };
        options.reasoning_tokens = whole(body, "reasoning_tokens", 0, u64::MAX)?;
        let newer = whole(body, "max_completion_tokens", 1, u64::MAX)?;
        let most = newer.or(whole(body, "max_tokens", u64::from(!echoes), u64::MAX)?);
        for name in ["dry_allowed_length", "dry_base", "dry_multiplier", "dry_sequence_breakers"] {
            if body.shift_remove(name).is_some() {
                return Err(Problem::unsupported(name, format!("`{name}` is not served")));
            }
        }
        let ends = !fields::flag(body, "ignore_eos")?;
        body.shift_remove("ignore_eos");
        let least = whole(body, "min_tokens", 0, u64::MAX)?;
        Ok(Self { options, stops: stops(body)?, most, least: if ends { least } else { Some(usize::MAX) } })
    }
}

fn sampling(body: &mut Map<String, Value>) -> Result<Sampling, Problem> {
    let wrong = |param: &'static str| {
        move |error: SamplingError| Problem::invalid(param, format!("`{param}`: {error}"))
    };
    let temperature = number(body, "temperature")?.unwrap_or(1.0);
    let mut sampling = Sampling::with_temperature(temperature).map_err(wrong("temperature"))?;
    // Servers write "all tokens" as -1 or 0.
    if let Some(k) = number(body, "top_k")?
        && k != -1.0
        && k != 0.0
    {
        let k = Some(k).filter(|k| *k > 0.0 && k.fract() == 0.0 && *k <= f64::from(u32::MAX));
        let k = k.and_then(|k| format!("{k:.0}").parse().ok());
        let k = k.ok_or_else(|| Problem::invalid("top_k", "`top_k` must be a whole number, 1 or more"))?;
        sampling = sampling.top_k(k).map_err(wrong("top_k"))?;
    }
    if let Some(p) = number(body, "top_p")? {
        sampling = sampling.top_p(p).map_err(wrong("top_p"))?;
    }
    if let Some(p) = number(body, "min_p")? {
        sampling = sampling.min_p(p).map_err(wrong("min_p"))?;
    }
    Ok(sampling)
}

fn penalties(body: &mut Map<String, Value>) -> Result<Penalties, Problem> {
    let wrong = |param: &'static str| {
        move |error: PenaltyError| Problem::invalid(param, format!("`{param}`: {error}"))
    };
    let mut penalties = Penalties::none();
    for param in ["presence_penalty", "frequency_penalty"] {
        let Some(amount) = number(body, param)? else { continue };
        if !(-2.0..=2.0).contains(&amount) {
            let message = format!("`{param}` is {amount}; it must be from -2 to 2");
            return Err(Problem::invalid(param, message));
        }
        penalties = match param {
            "presence_penalty" => penalties.presence(amount),
            _ => penalties.frequency(amount),
        }
        .map_err(wrong(param))?;
    }
    if let Some(factor) = number(body, "repetition_penalty")? {
        penalties = penalties.repeat(factor).map_err(wrong("repetition_penalty"))?;
    }
    Ok(penalties)
}

/// Reads what is added to the logits of tokens, which are named by their numbers.
fn bias(body: &mut Map<String, Value>) -> Result<LogitBias, Problem> {
    const FIELD: &str = "logit_bias";
    let wrong = |message: String| Problem::invalid(FIELD, format!("`{FIELD}`: {message}"));
    let amounts = match body.shift_remove(FIELD) {
        None => return Ok(LogitBias::default()),
        Some(Value::Object(amounts)) if amounts.len() <= MOST_BIASES => amounts,
        Some(_) => {
            let message = format!("it takes an object of up to {MOST_BIASES} numbers of tokens and amounts");
            return Err(wrong(message));
        }
    };
    let amount = |(token, amount): (String, Value)| {
        #[expect(clippy::cast_possible_truncation, reason = "to the nearest of the logits' own type")]
        let number = amount.as_f64().map(|amount| amount as f32);
        token.parse().ok().map(TokenId::new).zip(number).ok_or_else(|| {
            wrong(format!("{token:?}: {amount} is no number of a token with an amount from -100 to 100"))
        })
    };
    let amounts: Vec<_> = amounts.into_iter().map(amount).collect::<Result<_, _>>()?;
    LogitBias::new(amounts).map_err(|error| wrong(error.to_string()))
}

/// Alternatives of each token, if log-probabilities are wanted.
fn logprobs_of_chat(body: &mut Map<String, Value>) -> Result<Option<usize>, Problem> {
    let wanted = fields::flag(body, "logprobs")?;
    body.shift_remove("logprobs");
    let alternatives = whole(body, "top_logprobs", 0, MOST_ALTERNATIVES)?;
    match (wanted, alternatives) {
        (true, alternatives) => Ok(Some(alternatives.unwrap_or(0))),
        (false, None | Some(0)) => Ok(None),
        (false, Some(_)) => {
            Err(Problem::invalid("top_logprobs", "`top_logprobs` needs `logprobs` to be true"))
        }
    }
}

/// The strings that end a text.
fn stops(body: &mut Map<String, Value>) -> Result<StopStrings, Problem> {
    let wrong = || {
        let message = format!(
            "`stop` takes a string, or up to {MOST_STOPS} of them, none of them empty, of {MOST_STOP_BYTES} \
             bytes in all"
        );
        Problem::invalid("stop", message)
    };
    let stops: Vec<String> = match body.shift_remove("stop") {
        None => Vec::new(),
        Some(Value::String(stop)) => vec![stop],
        Some(Value::Array(list)) => {
            let texts = list.into_iter().map(|stop| stop.as_str().map(str::to_owned));
            texts.collect::<Option<_>>().ok_or_else(wrong)?
        }
        Some(_) => return Err(wrong()),
    };
    if stops.len() > MOST_STOPS || stops.iter().map(String::len).sum::<usize>() > MOST_STOP_BYTES {
        return Err(wrong());
    }
    StopStrings::new(stops).map_err(|_| wrong())
}

fn number(body: &mut Map<String, Value>, param: &str) -> Result<Option<f64>, Problem> {
    let Some(value) = body.shift_remove(param) else { return Ok(None) };
    match value.as_f64() {
        Some(number) => Ok(Some(number)),
        None => Err(Problem::invalid(param, format!("`{param}` is {value}; it must be a number"))),
    }
}

/// A whole number from `least` to `most`.
fn whole(
    body: &mut Map<String, Value>,
    param: &str,
    least: u64,
    most: u64,
) -> Result<Option<usize>, Problem> {
    let Some(value) = body.shift_remove(param) else { return Ok(None) };
    let number = value.as_u64().filter(|number| (least..=most).contains(number));
    let number = number.and_then(|number| usize::try_from(number).ok());
    let range = if most == u64::MAX { format!("{least} or more") } else { format!("from {least} to {most}") };
    let wrong =
        || Problem::invalid(param, format!("`{param}` is {value}; it must be a whole number, {range}"));
    number.map(Some).ok_or_else(wrong)
}
