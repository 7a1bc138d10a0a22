//! A record of one run: the text, its cost, and measures taken afterwards.
//!
//! Invariant: a row is a line of JSON, and its [`RunId`] is the same in every process that runs the
//! definition.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Lookahead, decode::Finish, ids::as_f64};

/// The paper's `k`: the number of terminals past the current one that a token may reach. A number in files,
/// or `"infinite"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum K {
    /// At most this number of terminals.
    Terminals(u32),
    /// No bound.
    Infinite,
}

impl From<K> for Lookahead {
    fn from(k: K) -> Self {
        match k {
            K::Terminals(terminals) => Self::Terminals(terminals),
            K::Infinite => Self::Unbounded,
        }
    }
}

impl fmt::Display for K {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Terminals(terminals) => terminals.fmt(f),
            Self::Infinite => f.write_str("infinite"),
        }
    }
}

impl Serialize for K {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Terminals(terminals) => serializer.serialize_u32(*terminals),
            Self::Infinite => serializer.serialize_str("infinite"),
        }
    }
}

impl<'de> Deserialize<'de> for K {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl serde::de::Visitor<'_> for Visitor {
            type Value = K;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of terminals, or \"infinite\"")
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<K, E> {
                let unexpected = || E::invalid_value(serde::de::Unexpected::Unsigned(number), &self);
                u32::try_from(number).map(K::Terminals).map_err(|_| unexpected())
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<K, E> {
                let unexpected = || E::invalid_value(serde::de::Unexpected::Signed(number), &self);
                u32::try_from(number).map(K::Terminals).map_err(|_| unexpected())
            }

            // TOML has a number of that name.
            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<K, E> {
                if number == f64::INFINITY {
                    return Ok(K::Infinite);
                }
                Err(E::invalid_value(serde::de::Unexpected::Float(number), &self))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<K, E> {
                match text {
                    "infinite" | "infinity" | "inf" => Ok(K::Infinite),
                    _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
                }
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

/// The identity of a run: a point of the definition's grid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunId {
    /// The model's name in the definition.
    pub model: String,
    /// The grammar's name in the definition. An unconstrained run has one too: that of its task.
    pub grammar: String,
    /// Index of the grammar's prompt, from 0.
    pub prompt: usize,
    /// Temperature of the draws.
    pub temperature: f64,
    /// Seed of the draws.
    pub seed: u64,
    /// The method, as the definition writes it.
    pub method: String,
    /// Lookahead; `None` for a method that has none.
    pub k: Option<K>,
    /// Most tokens of a draft; `None` where nothing is drafted or drafts are as long as pays.
    pub s: Option<usize>,
    /// The least acceptance of a guess in a draft of a fixed length.
    pub threshold: Option<f64>,
    /// Number of texts learnt from before, if the definition has several numbers of them.
    #[serde(default)]
    pub warm_ups: Option<usize>,
    /// Most tokens of the thought before the answer; `None` where the answer comes at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think: Option<usize>,
}

impl RunId {
    /// Formats it as one line, different for different runs of a definition.
    #[must_use]
    pub fn key(&self) -> String {
        let Self { model, grammar, prompt, temperature, seed, method, k, s, threshold, warm_ups, think } =
            self;
        let or_none = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        let (k, s) = (or_none(k.map(|k| k.to_string())), or_none(s.map(|s| s.to_string())));
        let threshold = or_none(threshold.map(|threshold| threshold.to_string()));
        let warm_ups = warm_ups.map(|texts| format!(" {texts}")).unwrap_or_default();
        let think = think.map(|tokens| format!(" think {tokens}")).unwrap_or_default();
        format!(
            "{model} {grammar} {prompt} {temperature} {seed} {method} {k} {s} {threshold}{warm_ups}{think}"
        )
    }
}

/// The reason for the end of a text, as in [`Finish`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The model ended it, or nothing could follow.
    Stop,
    /// The limit of tokens, or the model's context.
    Length,
}

impl From<Finish> for End {
    fn from(finish: Finish) -> Self {
        match finish {
            Finish::Length | Finish::Thought => Self::Length,
            _ => Self::Stop,
        }
    }
}

/// One run. Times are in seconds, logarithms natural.
///
/// Measures that need whole rows of logits (`log_kept`, `nll`) are computed by another pass over prompt and
/// text after the timed run, so that they disturb no time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the definition.
    pub definition: String,
    /// The run's identity.
    #[serde(flatten)]
    pub run: RunId,
    /// Number of the run in the process, from 0: methods take turns.
    pub turn: usize,
    /// The text; bytes that are no UTF-8 as U+FFFD.
    pub text: String,
    /// The text's tokens, without end of text.
    pub tokens: Vec<u32>,
    /// The reason for its end.
    pub finish: End,
    /// Did it end in the language? Without a constraint: did it end other than by length?
    pub complete: bool,
    /// Is the judged text in the language of the grammar, whether a constraint was there or not?
    pub well_formed: bool,
    /// Number of the tokens that are in the thought, with its marks and the line feeds behind them; `None`
    /// where the method has none. All counts and times are of thought and answer together, and all other
    /// measures of the answer alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought_tokens: Option<usize>,
    /// Byte of the text at which the answer begins, behind a thought; the text's length if the thought did
    /// not end. `None` where the method has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_at: Option<usize>,
    /// The part of the text that is judged, where the definition has `stop` or `first_value`, or a thought
    /// comes first; `None` where the whole text is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<String>,
    /// Is the whole text, or the whole answer, a prefix of one in the language?
    pub prefix: bool,
    /// Did the warm-ups that the method learnt from use this prompt too? `None` if it learnt from none, and
    /// in older records.
    #[serde(default)]
    pub seen: Option<bool>,
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Passes of the model, the prompt's included.
    pub passes: usize,
    /// Tokens drafted.
    pub drafted: usize,
    /// Drafted tokens that were drawn too.
    pub accepted: usize,
    /// Masks made or looked up.
    pub masks: usize,
    /// Draws in which the model's own choice was refused; `None` where it was not asked for.
    pub interventions: Option<usize>,
    /// Number of further draws after a refused one, for the method that draws again.
    pub redraws: Option<usize>,
    /// Number of tokens appended without a draw, for templates.
    pub inserted: Option<usize>,
    /// Number of tokens at whose place the grammar allowed no other text of their length; `None` without a
    /// constraint.
    pub forced_tokens: Option<usize>,
    /// Bytes of the text that the grammar forced, but for their spelling; `None` without a constraint.
    pub forced_bytes: Option<usize>,
    /// Seconds of the whole run.
    pub seconds: f64,
    /// Seconds until the first token: the prompt's pass.
    pub first_seconds: f64,
    /// Processor seconds behind the first token, of all threads of the process; `None` where another process
    /// wrote the text, where the method is not the decoder's own, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    /// Seconds in the model's passes.
    pub model_seconds: f64,
    /// Seconds in the constraint: masks, questions about tokens, and advancing.
    pub mask_seconds: f64,
    /// Seconds in proposers.
    pub draft_seconds: f64,
    /// Seconds to compile the grammar and make its trees, once for the process; `None` without a constraint.
    pub compile_seconds: Option<f64>,
    /// Sum over steps of the logarithm of the probability that the masks kept, at the temperature of the run,
    /// end of text included: the importance weight of the text against the model conditioned on the language.
    /// `None` without a constraint, and at temperature 0.
    pub log_kept: Option<f64>,
    /// Negative log-likelihood of the tokens under the unconstrained model at temperature 1, end of text left
    /// out.
    pub nll: Option<f64>,
    /// Number of tokens at whose places the counts that drafted were compared with the model; `None` if
    /// nothing drafts by counts, and at temperature 0.
    #[serde(default)]
    pub positions: Option<usize>,
    /// Sum over them of 1 - TV, the total variation between the counts and the model under the mask: the
    /// greatest possible rate of agreement of the two (maximal coupling).
    #[serde(default)]
    pub overlap: Option<f64>,
    /// Number of times that the guess by counts was the token that came.
    #[serde(default)]
    pub guessed: Option<usize>,
    /// Are the tokens those that the tokenizer makes of the text? `None` where the tokenizer cannot say.
    pub canonical: Option<bool>,
    /// Tokens that the tokenizer makes of the text.
    pub canonical_tokens: Option<usize>,
    /// Negative log-likelihood of the tokenizer's tokens, as [`nll`](Self::nll); `None` where the definition
    /// does not ask.
    #[serde(default)]
    pub canonical_nll: Option<f64>,
    /// Are the tokens those that the model would choose greedily if it had to write just this text (paper,
    /// algorithm 3)? `None` where the definition does not ask.
    #[serde(default)]
    pub preferred: Option<bool>,
    /// Number of those tokens.
    #[serde(default)]
    pub preferred_tokens: Option<usize>,
    /// Negative log-likelihood of those tokens, as [`nll`](Self::nll).
    #[serde(default)]
    pub preferred_nll: Option<f64>,
    /// Is the answer the prompt's? `None` where the definition has no answers.
    pub correct: Option<bool>,
    /// Is the text that of the unconstrained run of the same prompt, temperature and seed, if that is
    /// well-formed? `None` if it is not, or there is no such run. Filled in when rows are read, as it is
    /// about two of them.
    #[serde(default)]
    pub reproduced: Option<bool>,
}

impl Row {
    /// Tokens a second after the first one; `None` for a text of one token.
    #[must_use]
    pub fn tokens_per_second(&self) -> Option<f64> {
        let seconds = self.seconds - self.first_seconds;
        (self.tokens.len() > 1 && seconds > 0.0).then(|| as_f64(self.tokens.len() - 1) / seconds)
    }

    /// Tokens for each pass after the prompt's; `None` for a text of one token.
    #[must_use]
    pub fn tokens_per_pass(&self) -> Option<f64> {
        (self.tokens.len() > 1 && self.passes > 1)
            .then(|| as_f64(self.tokens.len() - 1) / as_f64(self.passes - 1))
    }

    /// Number of tokens behind the thought; all if there is none.
    #[must_use]
    pub fn answer_tokens(&self) -> usize {
        self.tokens.len().saturating_sub(self.thought_tokens.unwrap_or(0))
    }

    /// The text behind the thought; all of it if there is none.
    #[must_use]
    pub fn answer(&self) -> &str {
        self.text.get(self.answer_at.unwrap_or(0)..).unwrap_or_default()
    }

    /// Perplexity of the answer under the unconstrained model.
    #[must_use]
    pub fn perplexity(&self) -> Option<f64> {
        let nll = self.nll.filter(|_| self.answer_tokens() > 0)?;
        Some((nll / as_f64(self.answer_tokens())).exp())
    }
}

/// Fills in [`Row::reproduced`] from the unconstrained rows among them. Compares the judged parts of texts if
/// there are some, otherwise the tokens. A text with a thought is another one by intention, and left out.
pub fn fill_reproduced(rows: &mut [Row]) {
    let place = |run: &RunId| {
        let RunId { model, grammar, prompt, temperature, seed, .. } = run;
        (model.clone(), grammar.clone(), *prompt, temperature.to_bits(), *seed)
    };
    let free = rows.iter().filter(|row| row.run.method == UNCONSTRAINED && row.well_formed);
    let written = |row: &Row| (row.judged.clone(), row.tokens.clone());
    let free: std::collections::HashMap<_, _> = free.map(|row| (place(&row.run), written(row))).collect();
    for row in rows.iter_mut().filter(|row| row.run.method != UNCONSTRAINED && row.run.think.is_none()) {
        row.reproduced = free.get(&place(&row.run)).map(|(judged, tokens)| match (judged, &row.judged) {
            (Some(one), Some(other)) => one == other,
            _ => *tokens == row.tokens,
        });
    }
}

/// The method without a constraint, by which throughput is divided.
pub const UNCONSTRAINED: &str = "unconstrained";

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Creates a row of a made-up run.
    pub(in crate::experiment) fn example(method: &str, prompt: usize, seed: u64) -> Row {
        Row {
            definition: "made-up".to_owned(),
            run: RunId {
                model: "small".to_owned(),
                grammar: "json".to_owned(),
                prompt,
                temperature: 1.0,
                seed,
                method: method.to_owned(),
                k: (method != UNCONSTRAINED).then_some(K::Infinite),
                s: None,
                threshold: None,
                warm_ups: None,
                think: None,
            },
            turn: 0,
            text: "{}".to_owned(),
            tokens: vec![5, 6, 7],
            finish: End::Stop,
            complete: true,
            well_formed: true,
            thought_tokens: None,
            answer_at: None,
            judged: None,
            prefix: true,
            seen: None,
            prompt_tokens: 4,
            passes: 3,
            drafted: 2,
            accepted: 1,
            masks: 3,
            interventions: None,
            redraws: None,
            inserted: None,
            forced_tokens: Some(1),
            forced_bytes: Some(1),
            seconds: 0.5,
            first_seconds: 0.3,
            cpu_seconds: Some(0.4),
            model_seconds: 0.4,
            mask_seconds: 0.01,
            draft_seconds: 0.02,
            compile_seconds: Some(0.1),
            log_kept: Some(-0.7),
            nll: Some(1.5),
            positions: (method != UNCONSTRAINED).then_some(3),
            overlap: (method != UNCONSTRAINED).then_some(2.4),
            guessed: (method != UNCONSTRAINED).then_some(2),
            canonical: Some(true),
            canonical_tokens: Some(3),
            canonical_nll: Some(1.5),
            preferred: Some(false),
            preferred_tokens: Some(2),
            preferred_nll: Some(1.25),
            correct: None,
            reproduced: None,
        }
    }

    #[test]
    fn rows_are_read_back_from_json() {
        for k in [None, Some(K::Infinite), Some(K::Terminals(2))] {
            let mut row = example("masks", 1, u64::MAX);
            row.run.k = k;
            row.run.threshold = Some(0.1);
            let line = serde_json::to_string(&row).unwrap();
            assert!(!line.contains('\n'));
            assert_eq!(serde_json::from_str::<Row>(&line).unwrap(), row, "{line}");
        }
        let line = serde_json::to_string(&example("masks", 1, 2)).unwrap();
        for wrong in ["-1", "1.5", "\"endless\"", "[]", "4294967296"] {
            let line = line.replace("\"infinite\"", wrong);
            assert!(serde_json::from_str::<Row>(&line).is_err(), "{wrong}");
        }
    }

    #[test]
    fn keys_of_different_runs_differ() {
        let run = example("masks", 1, 2).run;
        let mut others = vec![run.clone(); 11];
        others[0].model = "large".to_owned();
        others[1].grammar = "c".to_owned();
        others[2].prompt = 2;
        others[3].temperature = 0.5;
        others[4].seed = 1;
        others[5].method = "ours".to_owned();
        others[6].k = Some(K::Terminals(0));
        others[7].s = Some(3);
        others[8].threshold = Some(0.5);
        others[9].warm_ups = Some(10);
        others[10].think = Some(10);
        assert!(others.iter().all(|other| other.key() != run.key()));
        assert_eq!(run.clone().key(), run.key());
    }

    #[test]
    fn rates_exclude_the_first_token() {
        let row = example("masks", 0, 0);
        assert!((row.tokens_per_second().unwrap() - 10.0).abs() < 1e-9);
        assert!((row.tokens_per_pass().unwrap() - 1.0).abs() < 1e-12);
        assert!((row.perplexity().unwrap() - 0.5_f64.exp()).abs() < 1e-12);
        let short = Row { tokens: vec![1], passes: 1, ..row };
        assert_eq!((short.tokens_per_second(), short.tokens_per_pass()), (None, None));
        assert_eq!(Row { tokens: Vec::new(), ..short }.perplexity(), None);
    }

    #[test]
    fn only_valid_unconstrained_texts_are_reproduced() {
        let mut rows = vec![
            example(UNCONSTRAINED, 0, 0),
            example("masks", 0, 0),
            Row { tokens: vec![1], ..example("naive", 0, 0) },
            Row { well_formed: false, ..example(UNCONSTRAINED, 1, 0) },
            example("masks", 1, 0),
            example("masks", 2, 0),
        ];
        fill_reproduced(&mut rows);
        let filled: Vec<_> = rows.iter().map(|row| row.reproduced).collect();
        assert_eq!(filled, [None, Some(true), Some(false), None, None, None]);
        // What is judged is compared, whatever stands around it.
        for (row, judged) in rows.iter_mut().zip(["{}", "{}", "[]"]) {
            row.judged = Some(judged.to_owned());
        }
        rows[1].tokens = vec![9];
        fill_reproduced(&mut rows);
        assert_eq!((rows[1].reproduced, rows[2].reproduced), (Some(true), Some(false)));
    }
}
