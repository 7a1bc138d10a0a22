//! Log-probabilities of the tokens of a text, in OpenAI's two forms.
//!
//! They are natural logarithms at temperature 1: of the model's own distribution, or under a grammar of that
//! over the tokens that may follow.

use domino::{
    CompiledGrammar, TokenId, Vocabulary,
    decode::{Logprobs, TokenLogprobs},
};
use serde_json::{Map, Value, json};

use super::super::endpoint::Endpoint;

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
    logprob: f64,
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
            OneChance { bytes: spelt.bytes(token.token), logprob: logprob.max(NEVER) }
        };
        Self { taken: one(&logprobs.taken), others: others.iter().map(one).collect(), offset }
    }
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
pub(crate) fn to_json(chances: &[Chance], endpoint: Endpoint) -> Value {
    if endpoint == Endpoint::Chat {
        let entry = |chance: &Chance| {
            let mut entry = chance.taken.of_chat();
            entry["top_logprobs"] = chance.others.iter().map(OneChance::of_chat).collect();
            entry
        };
        return json!({ "content": chances.iter().map(entry).collect::<Vec<_>>(), "refusal": null });
    }
    let top = |chance: &Chance| -> Value {
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
