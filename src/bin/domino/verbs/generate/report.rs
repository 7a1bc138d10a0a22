//! The report on a text that was generated, with facts about it; and `domino generate --compare`, which
//! compares runs without grammar, with it, and with speculation too, from the same prompt and seed.

use std::time::Duration;

use domino::decode::{
    DecodeOptions, DecodeStats, Decoder, DraftTally, Finish, Generation, Logprobs, TokenLogprobs,
};
use domino::proposer::{Drafter, ForcedText};
use domino::{CompiledGrammar, Constraint, TokenId, Vocabulary, vocab::Tokenizer};
use serde_json::{Value, json};

use crate::session::model::{Runner, finish_name, step_error};
use crate::terminal::failure::{Exit, Paint, Told, note};
use crate::terminal::{count, describe::logprobs_json, extend, progress};

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RunEnd {
    /// The run ended by itself.
    Finished(Finish),
    /// Ctrl-C ended the run.
    Interrupted,
    /// An error ended the run, and the program ends with this code.
    Failed(Told, Exit),
}

/// A run that has ended in any way.
pub(super) struct EndedRun<'a> {
    pub(super) generation: Generation,
    pub(super) end: RunEnd,
    pub(super) vocabulary: &'a Vocabulary,
    /// The options that it was made with.
    pub(super) options: &'a DecodeOptions,
    /// The usual tokens of the completion, if there is one and they spell it.
    pub(super) appended: Option<Vec<TokenId>>,
    /// Wall time in seconds, with the prompt's pass and without loading and compiling.
    pub(super) seconds: f64,
    /// True if tokens could be drafted.
    pub(super) speculative: bool,
    /// The tally of the draft model's guesses, if there was one.
    pub(super) draft: Option<DraftTally>,
    /// Bytes of the text that the grammar forced, but for their spelling, if they were counted.
    pub(super) forced: Option<usize>,
    /// The fields about captures.
    pub(super) captures: Value,
    /// A comparison with other ways to make the text.
    pub(super) comparison: Option<Comparison>,
}

impl EndedRun<'_> {
    /// Chooses the exit code.
    pub(super) fn exit(&self) -> Exit {
        match self.end {
            RunEnd::Failed(_, exit) => exit,
            RunEnd::Interrupted => Exit::Interrupted,
            RunEnd::Finished(_) if self.trouble().is_some() => Exit::Failure,
            RunEnd::Finished(_) if self.finished_by().is_some() => Exit::Success,
            RunEnd::Finished(_) => Exit::Cut,
        }
    }

    /// Says what is wrong about the comparison, if there was one.
    fn trouble(&self) -> Option<&'static str> {
        self.comparison.as_ref().and_then(Comparison::trouble)
    }

    /// Names what made the text whole, if anything did.
    fn finished_by(&self) -> Option<&'static str> {
        let Generation { complete, completion, .. } = &self.generation;
        let stopped =
            matches!(self.end, RunEnd::Finished(Finish::Stop | Finish::OnlySpace | Finish::StopString));
        let ended = stopped || self.options.close;
        match completion {
            Some(_) => Some("completion"),
            None => (*complete && ended).then_some("model"),
        }
    }

    /// Tokens per second, the prompt's pass included.
    fn rate(&self) -> f64 {
        if self.seconds > 0.0 { float(self.generation.stats.tokens) / self.seconds } else { 0.0 }
    }

    /// Number of times that the model's own choice was refused; `None` if that is not known, as with `--mask
    /// ahead`.
    fn interventions(&self) -> Option<usize> {
        let stats = &self.generation.stats;
        (stats.own_draws == stats.draws).then_some(stats.interventions)
    }

    /// Makes the object that `--json` prints.
    pub(super) fn object(&self) -> Value {
        let Generation { tokens, text, stats, .. } = &self.generation;
        let ids: Vec<u32> = tokens.iter().map(|token| token.raw()).collect();
        let mut object = json!({
            "text": String::from_utf8_lossy(text),
            "tokens": stats.tokens,
            "finish": self.end.name(),
            "tokens_per_second": self.rate(),
            "interventions": self.interventions(),
            "mask_seconds": stats.mask_time.as_secs_f64(),
            "seconds": self.seconds,
            "token_ids": ids,
            "complete": self.generation.complete,
            "finished_by": self.finished_by(),
            "prompt_tokens": stats.prompt_tokens,
            "masks": stats.masks,
            "passes": stats.passes,
            "model_seconds": stats.model_time.as_secs_f64(),
        });
        if let RunEnd::Failed(Told { sentence, hint }, _) = &self.end {
            object["error"] = sentence.as_str().into();
            object["hint"] = hint.as_deref().into();
        }
        if self.speculative {
            object["drafted"] = stats.drafted.into();
            object["accepted"] = stats.accepted.into();
            object["acceptance"] = acceptance(stats).into();
            object["tokens_per_pass"] = tokens_per_pass(stats).into();
            object["draft_seconds"] = stats.draft_time.as_secs_f64().into();
        }
        if let Some(DraftTally { guessed, judged, right, .. }) = self.draft {
            object["draft_model"] = json!({ "guessed": guessed, "judged": judged, "right": right });
        }
        if let Some(forced) = self.forced {
            object["forced_bytes"] = forced.into();
            object["forced_share"] = ratio(forced, text.len()).into();
        }
        extend(&mut object, self.captures.clone());
        if let Some(thought) = self.generation.reasoning.as_ref().filter(|_| stats.reasoning_tokens > 0) {
            object["reasoning_content"] = String::from_utf8_lossy(thought).into();
            object["thought_tokens"] = stats.reasoning_tokens.into();
        }
        if let Some(comparison) = &self.comparison {
            object["compare"] = comparison.object();
        }
        if let Some(completion) = &self.generation.completion {
            object["appended"] = String::from_utf8_lossy(&completion.bytes).into();
            object["appended_bytes"] = completion.bytes.len().into();
            let tokens = self.appended.as_ref().or(completion.tokens.as_ref());
            let ids = tokens.map(|tokens| tokens.iter().map(|token| token.raw()).collect::<Vec<_>>());
            object["appended_token_ids"] = ids.into();
        }
        if self.options.logprobs.is_some() {
            let list = self.generation.logprobs.iter().map(|entry| self.logprobs(entry)).collect();
            object["logprobs"] = Value::Array(list);
        }
        object
    }

    /// Makes an entry of `logprobs`.
    fn logprobs(&self, logprobs: &Logprobs) -> Value {
        let one = |entry: &TokenLogprobs| logprobs_json(self.vocabulary, entry);
        let mut object = one(&logprobs.taken);
        object["top"] = logprobs.top.iter().map(one).collect();
        object["top_allowed"] = logprobs.top_allowed.iter().map(one).collect();
        object
    }

    /// Tells on standard error why the run failed, if it did, and what is wrong about the comparison.
    pub(super) fn tell_failure(&self) {
        if let RunEnd::Failed(told, _) = &self.end {
            told.print();
        }
        if let Some(trouble) = self.trouble() {
            Told { sentence: trouble.to_owned(), hint: None }.print();
        }
    }

    /// Prints on standard error what the run cost, and the fate of drafts if a flag asked for them.
    pub(super) fn summary(&self, drafts_asked: bool) {
        let stats = &self.generation.stats;
        let paint = Paint::for_stderr();
        let end = match self.end {
            RunEnd::Finished(Finish::Stop) => "stop".to_owned(),
            RunEnd::Finished(Finish::OnlySpace) => "stop: only white space could follow".to_owned(),
            RunEnd::Finished(Finish::StopString) if self.finished_by() == Some("model") => {
                "stop string".to_owned()
            }
            RunEnd::Finished(Finish::StopString) => {
                paint.red("cut: a stop string came before the text was in the language")
            }
            RunEnd::Finished(Finish::Thought) => {
                paint.red("cut inside of the thought: --reasoning-tokens bounds it, --finish closes it")
            }
            RunEnd::Finished(_) => paint.red("cut: the limit of tokens or the model's context was reached"),
            RunEnd::Interrupted => paint.red("interrupted"),
            RunEnd::Failed(..) => paint.red("failed"),
        };
        let end = match &self.generation.completion {
            Some(completion) => format!("{end}, finished by {}", count(completion.bytes.len(), "more byte")),
            None => end,
        };
        let (tokens, rate) = (count(stats.tokens, "token"), self.rate());
        let interventions =
            self.interventions().map(|made| format!(", {}", count(made, "intervention"))).unwrap_or_default();
        let masks = stats.mask_time.as_secs_f64() * 1e3;
        note!(
            "[{end}; {tokens}, {rate:.1} tokens/s{interventions}, {masks:.1} ms in masks of {:.2} s]",
            self.seconds
        );
        if self.speculative && drafts_asked {
            let (accepted, drafted) = (stats.accepted, count(stats.drafted, "drafted token"));
            note!("[{accepted} of {drafted} accepted, {:.2} tokens a pass]", tokens_per_pass(stats));
        }
        if let Some(DraftTally { judged, right, .. }) = self.draft {
            note!("[{right} of {} of the draft model right]", count(judged, "guess"));
        }
        if let Some(comparison) = &self.comparison {
            comparison.summary();
        }
    }
}

impl RunEnd {
    /// The value of `finish` in JSON.
    fn name(&self) -> &'static str {
        match self {
            Self::Finished(finish) => finish_name(*finish),
            Self::Interrupted => "interrupted",
            Self::Failed(..) => "error",
        }
    }
}

/// Leaves of a text only what is behind its thought, which is kept by itself.
pub(super) fn only_answer(generation: &mut Generation) {
    let at = std::mem::take(&mut generation.answer_at);
    generation.text.drain(..at.min(generation.text.len()));
}

/// Counts the bytes of a text that its grammar forced, but for their spelling. It is only for machines, since
/// it reads the text once more.
pub(super) fn forced_bytes(grammar: Option<&CompiledGrammar>, generation: &Generation) -> Option<usize> {
    ForcedText::count(&grammar?.constraint(), &generation.text)
}

/// The tokens that the tokenizer makes of the completion by itself, if there is one and they spell it.
pub(super) fn usual_tokens(
    tokenizer: &Tokenizer,
    vocabulary: &Vocabulary,
    generation: &Generation,
) -> Option<Vec<TokenId>> {
    let bytes = &generation.completion.as_ref()?.bytes;
    let tokens = tokenizer.encode(str::from_utf8(bytes).ok()?, false).ok()?;
    (vocabulary.concat(&tokens) == *bytes).then_some(tokens)
}

/// Tokens per pass of the model, the pass over the prompt included.
fn tokens_per_pass(stats: &DecodeStats) -> f64 {
    ratio(stats.tokens, stats.passes)
}

/// The share of the drafted tokens that were drawn as well.
fn acceptance(stats: &DecodeStats) -> f64 {
    ratio(stats.accepted, stats.drafted)
}

fn ratio(part: usize, whole: usize) -> f64 {
    float(part) / float(whole.max(1))
}

/// Rounds whose times count. One more comes first: it fills caches and measures what passes cost.
const ROUNDS: usize = 3;

/// A comparison of three ways to make a text.
#[derive(Default)]
pub(super) struct Comparison {
    /// True if the speculative runs made the tokens of the plain ones.
    same_tokens: bool,
    /// Tokens and their time over all rounds: without grammar, with it, and with speculation too.
    sums: [(usize, Duration); 3],
    tokens_per_pass: f64,
    acceptance: f64,
}

/// Runs the three in turns. `None` if Ctrl-C was pressed. The decoder stays as it was, but for the drafter,
/// which it keeps.
pub(super) fn compare(
    decoder: &mut Decoder<Runner>,
    constraint: &Constraint,
    drafter: Drafter,
    prompt: &[TokenId],
) -> anyhow::Result<Option<Comparison>> {
    let mut found = Comparison { same_tokens: true, ..Comparison::default() };
    let bar = progress::bar("comparing", 3 * (ROUNDS + 1));
    let mut drafter = Some(drafter);
    for round in 0..=ROUNDS {
        let mut texts: [Vec<TokenId>; 3] = Default::default();
        for turn in 0..3 {
            if progress::interrupted() {
                return Ok(None);
            }
            // The order changes from round to round, so that a drift of the machine favours no kind.
            let kind = (round + turn) % 3;
            decoder.set_constraint((kind > 0).then(|| constraint.clone()))?;
            if kind == 2 {
                decoder.set_drafter(drafter.take());
                decoder.calibrate()?;
            }
            let generation = decoder.generate(prompt).map_err(step_error);
            if kind == 2 {
                drafter = decoder.set_drafter(None);
            }
            let Generation { tokens, stats, .. } = generation?;
            texts[kind] = tokens;
            // Round 0 only warms up.
            if round > 0 {
                found.sums[kind].0 += stats.tokens;
                found.sums[kind].1 += stats.total_time;
            }
            if kind == 2 {
                (found.tokens_per_pass, found.acceptance) = (tokens_per_pass(&stats), acceptance(&stats));
            }
            bar.inc(1);
        }
        found.same_tokens &= round == 0 || texts[1] == texts[2];
    }
    decoder.set_constraint(Some(constraint.clone()))?;
    decoder.set_drafter(drafter);
    Ok(Some(found))
}

impl Comparison {
    /// Tokens per second: without grammar, with it, and with speculation too.
    fn rates(&self) -> [f64; 3] {
        self.sums.map(|(tokens, time)| float(tokens) / time.as_secs_f64().max(1e-9))
    }

    /// Says what is wrong: speculation made other tokens, or nothing could be compared.
    pub(super) fn trouble(&self) -> Option<&'static str> {
        if self.sums[1].0 == 0 {
            return Some("nothing was compared: no token was generated");
        }
        (!self.same_tokens).then_some("with speculation other tokens were generated, which must not be")
    }

    /// Makes the object that `--json` prints as `compare`.
    pub(super) fn object(&self) -> Value {
        let [free, plain, speculative] = self.rates();
        json!({
            "same_tokens": self.same_tokens, "speedup_over_plain": speculative / plain,
            "speedup_over_unconstrained": speculative / free, "tokens_per_pass": self.tokens_per_pass,
            "acceptance": self.acceptance, "unconstrained_tokens_per_second": free,
            "plain_tokens_per_second": plain, "speculative_tokens_per_second": speculative,
        })
    }

    /// Prints the comparison on standard error.
    pub(super) fn summary(&self) {
        let [free, plain, speculative] = self.rates();
        let same = if self.same_tokens { "the same tokens" } else { "OTHER TOKENS, which must not be" };
        note!(
            "[tokens/s: {free:.1} without grammar, {plain:.1} with it, {speculative:.1} with speculation: \
             {:.2} times the first, {:.2} times the second, with {same}]",
            speculative / free,
            speculative / plain
        );
    }
}

/// Converts a count of tokens to a number to divide.
fn float(tokens: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
    let count = tokens as f64;
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_reports_other_tokens_and_empty_texts() {
        let compared = |same_tokens, tokens| Comparison {
            same_tokens,
            sums: [(0, Duration::ZERO), (tokens, Duration::from_secs(1)), (0, Duration::ZERO)],
            tokens_per_pass: 1.0,
            acceptance: 0.0,
        };
        assert_eq!(compared(true, 3).trouble(), None);
        assert!(compared(false, 3).trouble().is_some_and(|why| why.contains("other tokens")));
        assert!(compared(true, 0).trouble().is_some_and(|why| why.contains("nothing")));
    }
}
