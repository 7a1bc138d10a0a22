//! `domino generate --compare`: compares runs without grammar, with it, and with speculation too, from the
//! same prompt and seed.

use std::time::Duration;

use domino::decode::{Decoder, Generation};
use domino::{Constraint, TokenId, proposer::Drafter};
use serde_json::{Value, json};

use crate::session::runner::{Runner, step_error};
use crate::{terminal::failure::note, terminal::progress};

/// Rounds whose times count. One more comes first: it fills caches and measures what passes cost.
const ROUNDS: usize = 3;

/// A comparison of three ways to make a text.
pub(super) struct Comparison {
    /// True if the speculative runs made the tokens of the plain ones.
    same_tokens: bool,
    unconstrained: RoundTimes,
    plain: RoundTimes,
    speculative: RoundTimes,
    tokens_per_pass: f64,
    acceptance: f64,
}

/// Sums over rounds.
#[derive(Default)]
struct RoundTimes {
    tokens: usize,
    time: Duration,
}

impl RoundTimes {
    fn add(&mut self, generation: &Generation) {
        self.tokens += generation.stats.tokens;
        self.time += generation.stats.total_time;
    }

    fn rate(&self) -> f64 {
        count(self.tokens) / self.time.as_secs_f64().max(1e-9)
    }
}

/// Runs the three in turns. `None` if Ctrl-C was pressed. The decoder stays as it was, but for the drafter,
/// which it keeps.
pub(super) fn run(
    decoder: &mut Decoder<Runner>,
    constraint: &Constraint,
    drafter: Drafter,
    prompt: &[TokenId],
) -> anyhow::Result<Option<Comparison>> {
    let mut found = Comparison {
        same_tokens: true,
        unconstrained: RoundTimes::default(),
        plain: RoundTimes::default(),
        speculative: RoundTimes::default(),
        tokens_per_pass: 0.0,
        acceptance: 0.0,
    };
    let bar = progress::StepBar::start("comparing", 3 * (ROUNDS + 1));
    let mut drafter = Some(drafter);
    for round in 0..=ROUNDS {
        let mut texts: [Option<Generation>; 3] = [None, None, None];
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
            texts[kind] = Some(generation?);
            bar.one_more();
        }
        // Round 0 only warms up.
        if let ([Some(free), Some(plain), Some(speculative)], 1..) = (&texts, round) {
            found.unconstrained.add(free);
            found.plain.add(plain);
            found.speculative.add(speculative);
            found.same_tokens &= plain.tokens == speculative.tokens;
            let stats = &speculative.stats;
            found.tokens_per_pass = super::facts::tokens_per_pass(stats);
            found.acceptance = super::facts::acceptance(stats);
        }
    }
    decoder.set_constraint(Some(constraint.clone()))?;
    decoder.set_drafter(drafter);
    Ok(Some(found))
}

impl Comparison {
    fn over_plain(&self) -> f64 {
        self.speculative.rate() / self.plain.rate()
    }

    fn over_unconstrained(&self) -> f64 {
        self.speculative.rate() / self.unconstrained.rate()
    }

    /// Says what is wrong: speculation made other tokens, or nothing could be compared.
    pub(super) fn trouble(&self) -> Option<&'static str> {
        if self.plain.tokens == 0 {
            return Some("nothing was compared: no token was generated");
        }
        (!self.same_tokens).then_some("with speculation other tokens were generated, which must not be")
    }

    /// Makes the object that `--json` prints as `compare`.
    pub(super) fn object(&self) -> Value {
        json!({
            "same_tokens": self.same_tokens,
            "speedup_over_plain": self.over_plain(),
            "speedup_over_unconstrained": self.over_unconstrained(),
            "tokens_per_pass": self.tokens_per_pass,
            "acceptance": self.acceptance,
            "unconstrained_tokens_per_second": self.unconstrained.rate(),
            "plain_tokens_per_second": self.plain.rate(),
            "speculative_tokens_per_second": self.speculative.rate(),
        })
    }

    /// Prints the comparison on standard error.
    pub(super) fn summary(&self) {
        let [free, plain, speculative] =
            [&self.unconstrained, &self.plain, &self.speculative].map(RoundTimes::rate);
        let same = if self.same_tokens { "the same tokens" } else { "OTHER TOKENS, which must not be" };
        note!(
            "[tokens/s: {free:.1} without grammar, {plain:.1} with it, {speculative:.1} with speculation: \
             {:.2} times the first, {:.2} times the second, with {same}]",
            self.over_unconstrained(),
            self.over_plain()
        );
    }
}

/// Converts a count of tokens to a number to divide.
fn count(tokens: usize) -> f64 {
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
            unconstrained: RoundTimes::default(),
            plain: RoundTimes { tokens, time: Duration::from_secs(1) },
            speculative: RoundTimes::default(),
            tokens_per_pass: 1.0,
            acceptance: 0.0,
        };
        assert_eq!(compared(true, 3).trouble(), None);
        assert!(compared(false, 3).trouble().is_some_and(|why| why.contains("other tokens")));
        assert!(compared(true, 0).trouble().is_some_and(|why| why.contains("nothing")));
    }
}
