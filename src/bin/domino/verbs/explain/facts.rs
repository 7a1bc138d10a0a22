//! Facts about a text, token by token, and as JSON; and the writing of the text, with a record of its passes.

use std::ops::Range;

use domino::decode::{Decoder, Generation, Replayed, TokenLogprobs};
use domino::{TerminalRun, TokenId, Vocabulary};
use serde_json::{Value, json};

use crate::session::model::{Runner, step_error};
use crate::terminal::{count, describe, progress};

/// A text with everything that is known of it.
pub(super) struct Facts {
    pub(super) model: String,
    /// Name of the grammar; `None` if any text was allowed.
    pub(super) grammar: Option<String>,
    pub(super) prompt: String,
    /// Names and values of the settings of sampling.
    pub(super) settings: Vec<(&'static str, String)>,
    pub(super) text: Vec<u8>,
    /// The reason why the text ended.
    pub(super) finish: &'static str,
    /// True if the text is in the language.
    pub(super) complete: bool,
    /// The tokens of the text, and the end of text if that was drawn.
    pub(super) tokens: Vec<TokenFacts>,
    /// Bytes that were appended to complete the text.
    pub(super) appended: Option<Vec<u8>>,
    /// The terminals of the text, if there is a grammar.
    pub(super) underneath: Option<Underneath>,
    pub(super) passes: usize,
    pub(super) drafted: usize,
    pub(super) accepted: usize,
    pub(super) vocabulary: Vocabulary,
}

/// The names of a terminal.
pub(super) struct Name {
    /// A short name: the rule's, or the terminal as it is written.
    pub(super) label: String,
    /// The terminal as it is written.
    pub(super) whole: String,
}

/// The terminals that the parts of a text belong to.
pub(super) struct Underneath {
    pub(super) runs: Vec<TerminalRun>,
    /// Names of the terminals, by the terminal's number.
    pub(super) names: Vec<Name>,
    /// The reason why there are no runs, if there are none.
    pub(super) trouble: Option<String>,
}

/// A token and its facts.
pub(super) struct TokenFacts {
    pub(super) id: TokenId,
    pub(super) replayed: Replayed,
    pub(super) draft: Draft,
    /// Number of the pass that it was drawn from, from 0.
    pub(super) pass: usize,
    /// The parts of the text that it brought, by terminals.
    pub(super) pieces: Vec<TokenPart>,
}

/// The verdict of a draft on a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Draft {
    /// There was no draft.
    None,
    /// The draft had the same token.
    Accepted,
    /// The draft had another token, and lost those behind it.
    Refused { said: TokenId, lost: usize },
    /// The draft was accepted as a whole, and the token was drawn from the row behind it.
    Beyond,
}

/// A part of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TokenPart {
    /// Range of its bytes in the text.
    pub(super) bytes: Range<usize>,
    /// Numbers of the terminals that it may belong to.
    pub(super) terminals: Vec<usize>,
    /// True if the terminal's text begins here.
    pub(super) begins: bool,
    /// True if the terminal's text ends here.
    pub(super) ends: bool,
}

/// Joins the facts about each token.
pub(super) fn tokens(
    vocabulary: &Vocabulary,
    generation: &Generation,
    replayed: Vec<Replayed>,
    passes: &[ObservedPass],
    underneath: Option<&Underneath>,
) -> Vec<TokenFacts> {
    let runs = underneath.map(|underneath| &*underneath.runs).unwrap_or_default();
    let mut start = 0;
    let token = |(index, replayed): (usize, Replayed)| {
        let id = replayed.logprobs.taken.token;
        let end = start + vocabulary.bytes(id).map_or(0, <[u8]>::len);
        // A stop string may cut the text inside a token.
        let pieces = pieces(runs, start..end.min(generation.text.len()));
        start = end;
        let (pass, draft) = drafted(passes, index, id);
        TokenFacts { id, replayed, draft, pass, pieces }
    };
    replayed.into_iter().enumerate().map(token).collect()
}

/// The pass that a token was drawn from, and the verdict of its draft.
fn drafted(passes: &[ObservedPass], index: usize, id: TokenId) -> (usize, Draft) {
    let number = passes.partition_point(|pass| pass.first <= index).saturating_sub(1);
    let Some(pass) = passes.get(number) else { return (number, Draft::None) };
    let draft = match pass.drafted.get(index - pass.first) {
        None if pass.drafted.is_empty() => Draft::None,
        None => Draft::Beyond,
        Some(&said) if said == id => Draft::Accepted,
        Some(&said) => Draft::Refused { said, lost: pass.drafted.len() - (index - pass.first) - 1 },
    };
    (number, draft)
}

/// Cuts a range of the text into parts by terminals.
fn pieces(runs: &[TerminalRun], bytes: Range<usize>) -> Vec<TokenPart> {
    let first = runs.partition_point(|run| run.bytes.end <= bytes.start);
    let overlapping = runs[first..].iter().take_while(|run| run.bytes.start < bytes.end);
    let piece = |run: &TerminalRun| TokenPart {
        bytes: run.bytes.start.max(bytes.start)..run.bytes.end.min(bytes.end),
        terminals: run.terminals.iter().map(|terminal| terminal.index()).collect(),
        begins: run.bytes.start >= bytes.start,
        ends: run.bytes.end <= bytes.end,
    };
    overlapping.map(piece).collect()
}

impl TokenFacts {
    /// The surprise of the token to the model by itself: minus the logarithm of its probability.
    pub(super) fn surprise(&self) -> f64 {
        -self.replayed.logprobs.taken.model
    }

    /// True if the model by itself would have drawn another token.
    pub(super) fn intervened(&self) -> bool {
        self.replayed.own != self.id
    }

    /// The token and its alternatives, the model's likeliest first: those that the model wanted, and those
    /// that were allowed.
    pub(super) fn alternatives(&self) -> Vec<TokenLogprobs> {
        let logprobs = &self.replayed.logprobs;
        let mut found: Vec<TokenLogprobs> = Vec::new();
        for entry in logprobs.top.iter().chain(&logprobs.top_allowed).chain([&logprobs.taken]) {
            if !found.iter().any(|known| known.token == entry.token) {
                found.push(*entry);
            }
        }
        found.sort_by(|one, other| other.model.total_cmp(&one.model).then(one.token.cmp(&other.token)));
        found
    }
}

impl Facts {
    /// The names of a piece's terminals.
    pub(super) fn terminals(&self, piece: &TokenPart) -> impl Iterator<Item = &Name> {
        let names = self.underneath.as_ref().map(|underneath| &*underneath.names).unwrap_or_default();
        piece.terminals.iter().filter_map(|&terminal| names.get(terminal))
    }

    /// Number of tokens of the text itself.
    pub(super) fn length(&self) -> usize {
        self.tokens.iter().filter(|token| !self.vocabulary.is_end_of_text(token.id)).count()
    }

    /// The perplexity of the text under the model by itself, without the end of text; `None` if there are no
    /// tokens.
    pub(super) fn perplexity(&self) -> Option<f64> {
        let text = || self.tokens.iter().filter(|token| !self.vocabulary.is_end_of_text(token.id));
        let count = f64::from(u32::try_from(text().count()).ok().filter(|count| *count > 0)?);
        Some((text().map(TokenFacts::surprise).sum::<f64>() / count).exp())
    }

    /// The logarithm of the probability that the masks kept over the whole text; `None` without a grammar.
    pub(super) fn log_kept(&self) -> Option<f64> {
        self.grammar.as_ref()?;
        Some(self.tokens.iter().filter_map(|token| token.replayed.logprobs.kept).sum())
    }

    /// Number of tokens that the model by itself would not have drawn.
    pub(super) fn interventions(&self) -> usize {
        self.tokens.iter().filter(|token| token.intervened()).count()
    }

    /// Summarises the facts in a line.
    pub(super) fn summary(&self) -> String {
        let (tokens, interventions) = (self.length(), self.interventions());
        let Self { passes, accepted, drafted, .. } = self;
        let complete = if self.complete { "complete" } else { "not complete" };
        format!(
            "{}, {complete}; {}; {}, {accepted} of {} accepted",
            count(tokens, "token"),
            count(interventions, "intervention"),
            count(*passes, "pass"),
            count(*drafted, "drafted token"),
        )
    }
}

/// Makes the object. Minus infinity has no number in JSON: it is null.
pub(super) fn facts_as_json(facts: &Facts) -> Value {
    let tokens: Vec<Value> = facts.tokens.iter().map(|token| facts.token(token)).collect();
    let mut object = json!({
        "text": String::from_utf8_lossy(&facts.text),
        "finish": facts.finish,
        "complete": facts.complete,
        "model": facts.model,
        "grammar": facts.grammar,
        "prompt": facts.prompt,
        "perplexity": facts.perplexity(),
        "log_kept": facts.log_kept(),
        "interventions": facts.interventions(),
        "passes": facts.passes,
        "drafted": facts.drafted,
        "accepted": facts.accepted,
        "tokens": tokens,
    });
    for (name, value) in &facts.settings {
        object["settings"][name.replace(' ', "_")] = value.as_str().into();
    }
    if let Some(appended) = &facts.appended {
        object["appended"] = String::from_utf8_lossy(appended).into();
    }
    if let Some(trouble) = facts.underneath.as_ref().and_then(|underneath| underneath.trouble.as_ref()) {
        object["no_terminals_because"] = trouble.as_str().into();
    }
    object
}

impl Facts {
    fn token(&self, token: &TokenFacts) -> Value {
        let (replayed, named) = (&token.replayed, |token| describe::token_json(&self.vocabulary, token));
        let mut object = named(token.id);
        object["logprob"] = replayed.logprobs.taken.model.into();
        object["constrained_logprob"] = replayed.logprobs.taken.constrained.into();
        object["log_kept"] = replayed.logprobs.kept.into();
        object["allowed"] = replayed.allowed.into();
        object["own"] = named(replayed.own);
        object["intervened"] = token.intervened().into();
        object["pass"] = token.pass.into();
        object["draft"] = match token.draft {
            Draft::None => json!({ "what": "none" }),
            Draft::Accepted => json!({ "what": "accepted" }),
            Draft::Refused { said, lost } => {
                json!({ "what": "refused", "said": named(said), "lost_behind_it": lost })
            }
            Draft::Beyond => json!({ "what": "beyond" }),
        };
        object["pieces"] = token.pieces.iter().map(|piece| self.piece(piece)).collect();
        let alternative = |entry: &TokenLogprobs| describe::logprobs_json(&self.vocabulary, entry);
        object["alternatives"] = token.alternatives().iter().map(alternative).collect();
        object
    }

    fn piece(&self, piece: &TokenPart) -> Value {
        let text = String::from_utf8_lossy(self.text.get(piece.bytes.clone()).unwrap_or_default());
        let TokenPart { begins, ends, .. } = piece;
        let terminals: Vec<Value> =
            self.terminals(piece).map(|name| json!({ "name": name.label, "written": name.whole })).collect();
        json!({ "text": text, "terminals": terminals, "begins": begins, "ends": ends })
    }
}

/// A pass of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObservedPass {
    /// Index of the first token that was drawn from it.
    pub(super) first: usize,
    /// Tokens of the draft that it verified.
    pub(super) drafted: Vec<TokenId>,
}

/// A text and the passes that wrote it.
pub(super) struct Watched {
    pub(super) generation: Generation,
    pub(super) passes: Vec<ObservedPass>,
    /// True if Ctrl-C ended it.
    pub(super) interrupted: bool,
}

/// Writes the text behind a prompt, to its end or to Ctrl-C.
pub(super) fn write_watched(decoder: &mut Decoder<Runner>, prompt: &[TokenId]) -> anyhow::Result<Watched> {
    let close = decoder.options_mut().close;
    let mut steps = decoder.steps(prompt);
    let mut passes: Vec<ObservedPass> = Vec::new();
    let mut known = steps.stats().passes;
    while !progress::interrupted() {
        let first = steps.tokens().len();
        let step = steps.next();
        if steps.stats().passes > known {
            passes.push(ObservedPass { first, drafted: steps.drafted().to_vec() });
        }
        known = steps.stats().passes;
        match step {
            None => break,
            Some(step) => step.map_err(step_error)?,
        };
    }
    let interrupted = steps.finish().is_none();
    if interrupted && close {
        steps.close()?;
    }
    Ok(Watched { generation: steps.into_generation(), passes, interrupted })
}
