//! Texts in tokens, and the exact masks of their steps, in the format `FORMAT.md` of the compared engines.

use std::fmt;

use domino::{TokenId, Vocabulary};
use serde::Deserialize;

use super::walk::Digest;
use crate::files::lines;

/// An error for a file that cannot be used.
#[derive(Debug)]
pub(crate) struct Malformed {
    message: String,
    hint: Option<&'static str>,
}

impl Malformed {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    fn hinted(message: impl Into<String>, hint: &'static str) -> Self {
        Self { message: message.into(), hint: Some(hint) }
    }

    /// Advice on what to do about it.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        self.hint
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Malformed {}

/// The texts of one grammar in the tokens of one vocabulary.
#[derive(Debug)]
pub(crate) struct Traces {
    pub(crate) grammar: String,
    pub(crate) vocab: String,
    /// The token that ends a text, if the file names it.
    eos: Option<TokenId>,
    pub(crate) list: Vec<Trace>,
}

/// A text with its tokens.
#[derive(Debug)]
pub(crate) struct Trace {
    text: String,
    pub(crate) tokens: Vec<TokenId>,
}

#[derive(Deserialize)]
struct RawTraces {
    grammar: String,
    vocab: String,
    eos: Option<u32>,
    traces: Vec<RawTrace>,
}

#[derive(Deserialize)]
struct RawTrace {
    text: String,
    tokens: Vec<u32>,
}

const OTHER_TOKENIZER: &str = "is this the tokenizer that the traces were made with?";

impl Traces {
    /// Reads a file of traces, called `name` in messages.
    pub(crate) fn parse(json: &[u8], name: &str) -> Result<Self, Malformed> {
        let raw: RawTraces = serde_json::from_slice(lines::content(json)).map_err(|error| {
            Malformed::hinted(
                format!("{name}: not a file of traces: {error}"),
                "it looks like {\"grammar\": .., \"vocab\": .., \"eos\": 2, \
                 \"traces\": [{\"text\": .., \"tokens\": [..]}]}",
            )
        })?;
        if raw.traces.is_empty() {
            return Err(Malformed::new(format!("{name}: there is no trace in it")));
        }
        let trace = |raw: RawTrace| Trace {
            text: raw.text,
            tokens: raw.tokens.into_iter().map(TokenId::new).collect(),
        };
        let list = raw.traces.into_iter().map(trace).collect();
        Ok(Self { grammar: raw.grammar, vocab: raw.vocab, eos: raw.eos.map(TokenId::new), list })
    }

    /// Checks that the tokens are those of `vocabulary` and spell the texts.
    pub(crate) fn fit(&self, vocabulary: &Vocabulary) -> Result<(), Malformed> {
        if let Some(eos) = self.eos.filter(|&eos| !vocabulary.is_end_of_text(eos)) {
            let ids: Vec<String> = vocabulary.end_of_text().iter().map(ToString::to_string).collect();
            return Err(Malformed::hinted(
                format!("the traces end with token {eos}, texts of the vocabulary with {}", ids.join(", ")),
                OTHER_TOKENIZER,
            ));
        }
        for (number, trace) in self.list.iter().enumerate() {
            let odd = |token: &&TokenId| vocabulary.bytes(**token).is_none();
            if let Some(token) = trace.tokens.iter().find(odd) {
                let why = match vocabulary.name(*token) {
                    Some(special) => format!("is the special token {special}"),
                    None => format!("is no text token of the {} of the vocabulary", vocabulary.size()),
                };
                return Err(Malformed::hinted(
                    format!("trace {number}: token {token} {why}"),
                    OTHER_TOKENIZER,
                ));
            }
            let spelt = vocabulary.concat(&trace.tokens);
            if spelt != trace.text.as_bytes() {
                let same = spelt.iter().zip(trace.text.as_bytes()).take_while(|(a, b)| a == b).count();
                return Err(Malformed::hinted(
                    format!("trace {number}: its tokens spell another text than its own from byte {same} on"),
                    OTHER_TOKENIZER,
                ));
            }
        }
        Ok(())
    }
}

impl Trace {
    /// The text before the token at `step`.
    pub(crate) fn before(&self, vocabulary: &Vocabulary, step: usize) -> Vec<u8> {
        vocabulary.concat(self.tokens.get(..step).unwrap_or(&self.tokens))
    }
}

/// The exact masks of every step of the traces.
#[derive(Debug)]
pub(crate) struct Expected {
    traces: Vec<Vec<Digest>>,
}

#[derive(Deserialize)]
struct RawExpected {
    traces: Vec<RawMasks>,
}

#[derive(Deserialize)]
struct RawMasks {
    pop: Vec<u64>,
    hash: Vec<String>,
    eos: Vec<u8>,
}

impl Expected {
    /// Reads the expected masks of `traces`, from a file called `name` in messages.
    pub(crate) fn parse(json: &[u8], name: &str, traces: &Traces) -> Result<Self, Malformed> {
        let raw: RawExpected = serde_json::from_slice(lines::content(json))
            .map_err(|error| Malformed::new(format!("{name}: not a file of expected masks: {error}")))?;
        let other = |what: String| {
            Malformed::hinted(format!("{name}: {what}"), "are these the masks of the same traces?")
        };
        if raw.traces.len() != traces.list.len() {
            return Err(other(format!(
                "masks of {} traces are expected, there are {}",
                raw.traces.len(),
                traces.list.len()
            )));
        }
        let mut read = Vec::new();
        for (number, (masks, trace)) in raw.traces.iter().zip(&traces.list).enumerate() {
            let steps = trace.tokens.len() + 1;
            if [masks.pop.len(), masks.hash.len(), masks.eos.len()] != [steps; 3] {
                return Err(other(format!(
                    "trace {number} has {steps} masks, of which {} are expected",
                    masks.pop.len()
                )));
            }
            let digest = |((&pop, hash), &eos): ((&u64, &String), &u8)| {
                let hash = u64::from_str_radix(hash, 16)
                    .map_err(|_| other(format!("trace {number}: {hash:?} is not a hash")))?;
                Ok(Digest { pop, hash, eos: eos != 0 })
            };
            let masks = masks.pop.iter().zip(&masks.hash).zip(&masks.eos);
            read.push(masks.map(digest).collect::<Result<Vec<_>, Malformed>>()?);
        }
        Ok(Self { traces: read })
    }

    /// The masks of a trace.
    pub(crate) fn of(&self, trace: usize) -> &[Digest] {
        self.traces.get(trace).map_or(&[], Vec::as_slice)
    }

    /// Compares masks with those of the trace. The error is the first step with another mask, and the
    /// difference.
    pub(crate) fn compare(&self, trace: usize, found: &[Digest]) -> Result<(), (usize, String)> {
        let expected = self.of(trace);
        let differs = expected.iter().zip(found).position(|(expected, found)| expected != found);
        match differs {
            Some(step) => Err((step, format!("the mask is {}, not {}", found[step], expected[step]))),
            None if found.len() < expected.len() => {
                Err((found.len(), "the trace ends early: its token is not in the mask".to_owned()))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary() -> Vocabulary {
        Vocabulary::builder()
            .token(TokenId::new(0), "a")
            .token(TokenId::new(1), "bc")
            .special(TokenId::new(2), "<eos>")
            .end_of_text(TokenId::new(2))
            .build()
            .unwrap()
    }

    fn traces(text: &str, tokens: &[u32], eos: u32) -> Traces {
        let json = serde_json::json!({
            "grammar": "g", "vocab": "v", "eos": eos, "traces": [{ "text": text, "tokens": tokens }],
        });
        Traces::parse(json.to_string().as_bytes(), "file").unwrap()
    }

    #[test]
    fn traces_must_fit_the_vocabulary() {
        assert!(traces("abc", &[0, 1], 2).fit(&vocabulary()).is_ok());
        for (text, tokens, eos, says) in [
            ("abc", &[0, 1][..], 1, "the traces end with token 1"),
            ("abc", &[0, 7], 2, "token 7 is no text token"),
            ("abc", &[0, 2], 2, "special token <eos>"),
            ("abd", &[0, 1], 2, "from byte 2 on"),
            ("abcd", &[0, 1], 2, "from byte 3 on"),
        ] {
            let error = traces(text, tokens, eos).fit(&vocabulary()).unwrap_err();
            assert!(error.to_string().contains(says) && error.hint().is_some(), "{error}");
        }
    }

    #[test]
    fn files_of_another_format_are_refused() {
        for json in ["", "[]", r#"{"grammar": "g", "vocab": "v", "traces": []}"#, r#"{"traces": [{}]}"#] {
            assert!(Traces::parse(json.as_bytes(), "file").is_err(), "{json}");
        }
        let traces = traces("a", &[0], 2);
        for json in [
            "",
            r#"{"traces": []}"#,
            r#"{"traces": [{"pop": [1], "hash": ["0"], "eos": [0]}]}"#,
            r#"{"traces": [{"pop": [1, 1], "hash": ["0", "x"], "eos": [0, 0]}]}"#,
        ] {
            assert!(Expected::parse(json.as_bytes(), "file", &traces).is_err(), "{json}");
        }
    }

    #[test]
    fn the_first_wrong_mask_is_named() {
        let json = br#"{"traces": [{"pop": [1, 2], "hash": ["00a", "b"], "eos": [0, 1]}]}"#;
        let expected = Expected::parse(json, "file", &traces("a", &[0], 2)).unwrap();
        let right = [Digest { pop: 1, hash: 10, eos: false }, Digest { pop: 2, hash: 11, eos: true }];
        assert_eq!(expected.compare(0, &right), Ok(()));
        let mut wrong = right;
        wrong[1].eos = false;
        assert_eq!(expected.compare(0, &wrong).unwrap_err().0, 1);
        assert_eq!(expected.compare(0, &right[..1]).unwrap_err().0, 1);
    }
}
