//! Results of the measurements, as a table and as JSON.

use domino::proposer::Pass;
use serde_json::{Value, json};

use crate::measure::{Measured, Protocol, Sums};

/// One grammar's line.
pub(crate) struct Row {
    name: String,
    value: Value,
}

impl Row {
    pub(crate) fn new(name: &str, measured: &Measured) -> Self {
        let Measured { unconstrained, plain, speculative, same, cost } = measured;
        let sums = |sums: &Sums| {
            json!({
                "tokens": sums.tokens, "passes": sums.passes, "seconds": sums.time.as_secs_f64(),
                "first_seconds": sums.first.as_secs_f64(), "model_seconds": sums.model.as_secs_f64(),
                "mask_seconds": sums.masks.as_secs_f64(), "draft_seconds": sums.drafts.as_secs_f64(),
                "tokens_per_second": sums.rate(),
            })
        };
        let curve: Vec<f64> = (1..=18).map(|tokens| cost.relative(Pass::whole(tokens))).collect();
        let narrow: Vec<f64> = (1..=18).map(|tokens| cost.relative(Pass { tokens, whole: 0 })).collect();
        let value = json!({
            "grammar": name,
            "over_unconstrained": speculative.rate() / unconstrained.rate(),
            "over_unconstrained_with_prompt": speculative.whole_rate() / unconstrained.whole_rate(),
            "over_plain": speculative.rate() / plain.rate(),
            "plain_over_unconstrained": plain.rate() / unconstrained.rate(),
            "tokens_per_pass": speculative.tokens_per_pass(),
            "acceptance": ratio(speculative.accepted, speculative.drafted),
            "drafted": speculative.drafted, "accepted": speculative.accepted, "same": same,
            "runs": speculative.runs, "differing": speculative.runs.saturating_sub(*same),
            "unconstrained": sums(unconstrained), "plain": sums(plain), "speculative": sums(speculative),
            "first_pass_milliseconds": cost.seconds(Pass::whole(1)) * 1e3, "cost": curve,
            "cost_without_whole_rows": narrow,
        });
        Self { name: name.to_owned(), value }
    }

    /// A line of the table, with its head if it is the first.
    pub(crate) fn print(&self, head: bool) {
        if head {
            println!(
                "| grammar | unconstrained, tokens/s | plain | speculative | with prompt | over plain \
                 | tokens/pass | acceptance | same |"
            );
            println!("|---|---|---|---|---|---|---|---|---|");
        }
        let number = |key: &str| self.value[key].as_f64().unwrap_or(f64::NAN);
        println!(
            "| {} | {:.0} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {} |",
            self.name,
            self.value["unconstrained"]["tokens_per_second"].as_f64().unwrap_or(f64::NAN),
            number("plain_over_unconstrained"),
            number("over_unconstrained"),
            number("over_unconstrained_with_prompt"),
            number("over_plain"),
            number("tokens_per_pass"),
            number("acceptance"),
            self.value["same"],
        );
    }

    /// Everything, on one line.
    pub(crate) fn json(&self, protocol: &Protocol) -> String {
        let mut value = self.value.clone();
        value["protocol"] = json!(format!("{protocol:?}"));
        value.to_string()
    }
}

fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
