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
