//! Flags about the drawing of texts and their ends, which a request or a row of a batch may change.

use clap::{Args, Command, FromArgMatches};
use domino::TrailingSpace;
use domino::decode::{DecodeOptions, Masking, Penalties, Sampling, StopStrings};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ByName, NamedValue};
use crate::terminal::extend;
use crate::terminal::failure::{BadInput, remark};

impl ByName for Masking {
    const NAMES: &'static [(&'static str, Self)] =
        &[("ahead", Self::Ahead), ("always", Self::Always), ("opportunistic", Self::Opportunistic)];
}

impl ByName for TrailingSpace {
    const NAMES: &'static [(&'static str, Self)] = &[("stop", Self::Stop), ("keep", Self::Keep)];
}

/// Flags of when masks are made.
#[derive(Debug, Clone, Copy, Args, Serialize, Deserialize)]
#[serde(from = "NamedValue<Masking>", into = "NamedValue<Masking>")]
pub(crate) struct LowMasking {
    /// Make the grammar's mask at this time. ahead: before the model's pass, which then computes only the
    /// logits that count. always: after the pass, beside the model's own choice, so that interventions can be
    /// counted. opportunistic: only if the model's own choice is refused (which makes no difference with
    /// --top-k, --top-p and --min-p). The text is the same, the time is not.
    #[arg(long, value_name = "WHEN", default_value = "ahead")]
    mask: NamedValue<Masking>,
    /// Short for --mask opportunistic.
    #[arg(long, conflicts_with = "mask")]
    opportunistic: bool,
}

impl From<NamedValue<Masking>> for LowMasking {
    fn from(mask: NamedValue<Masking>) -> Self {
        Self { mask, opportunistic: false }
    }
}

impl From<LowMasking> for NamedValue<Masking> {
    fn from(flags: LowMasking) -> Self {
        if flags.opportunistic { Self(Masking::Opportunistic) } else { flags.mask }
    }
}

impl LowMasking {
    /// Reads the flags.
    pub(crate) fn resolve(self) -> Masking {
        NamedValue::from(self).0
    }
}

/// Default number of tokens that penalties look at.
const LAST: usize = 64;

/// Flags of drawing tokens and of ending a text, which are keys of rows too.
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
pub(crate) struct LowOptions {
    /// Draw tokens more or less evenly: 0 takes the likeliest, 1 draws as the model says.
    ///
    /// 0 always takes the likeliest token; 1 draws as likely as the model says; more is more even.
    #[arg(long, short = 't', value_name = "T", default_value_t = 1.0)]
    pub(crate) temperature: f64,
    /// Draw only among the K likeliest allowed tokens; 0 means no limit.
    #[arg(long, value_name = "K", default_value_t = 0)]
    pub(crate) top_k: usize,
    /// Draw only among the likeliest allowed tokens that together have this probability.
    #[arg(long, value_name = "P", default_value_t = 1.0)]
    pub(crate) top_p: f64,
    /// Draw only among tokens that are at least P times as likely as the likeliest one.
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    pub(crate) min_p: f64,
    /// Divide the logits of tokens that are among the last ones by R (negative logits are multiplied); 1
    /// changes nothing, 1.1 is usual.
    #[arg(long, value_name = "R", default_value_t = 1.0)]
    pub(crate) repeat_penalty: f64,
    /// Apply the three penalties to tokens among this many last ones, prompt included; 0 means none.
    #[arg(long, value_name = "N", default_value_t = LAST)]
    pub(crate) repeat_last_n: usize,
    /// Subtract this from the logits of tokens that are among the last ones.
    #[arg(long, value_name = "P", default_value_t = 0.0, allow_hyphen_values = true)]
    pub(crate) presence_penalty: f64,
    /// Subtract this from the logits of tokens that are among the last ones, as often as they are.
    #[arg(long, value_name = "P", default_value_t = 0.0, allow_hyphen_values = true)]
    pub(crate) frequency_penalty: f64,
    /// The seed of the draws.
    #[arg(long, short = 's', value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) mask: LowMasking,
    /// Cut the text after this many tokens.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 256)]
    pub(crate) max_tokens: usize,
    /// Close a thought after this many tokens; they count for --max-tokens, too. Default: no limit.
    #[arg(long, value_name = "N")]
    pub(crate) reasoning_tokens: Option<usize>,
    /// End the text before this, wherever tokens begin and end; can be given more than once. With a grammar
    /// the text may then not be complete: `complete` in --json tells.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) stop: Vec<String>,
    /// End a complete text where nothing but white space can follow it, or let the model go on. stop: the
    /// text ends there, and the model is not asked (finish is only_space). keep: the model goes on and ends
    /// the text when it likes, as in the DOMINO paper. Not asked by --sampling conditional, which draws the
    /// end.
    #[arg(long, value_name = "WHAT", default_value = "stop")]
    pub(crate) trailing_space: NamedValue<TrailingSpace>,
    /// If the text is cut, by --max-tokens, the model's context, --stop or Ctrl-C, append the shortest text
    /// that completes it; of equally short ones the one of the fewest tokens.
    #[arg(long)]
    pub(crate) finish: bool,
    /// List for each token its log-probability under the model's own distribution and under the constrained
    /// one (temperature 1, no penalties, no cuts), and the N likeliest tokens of both. Makes a mask for
    /// every token. generate: in JSON, and not unless asked for; explain: 8 unless asked for.
    #[arg(long, value_name = "N")]
    pub(crate) logprobs: Option<usize>,
}

impl LowOptions {
    /// Warns of flags that change nothing beside others, unless `others` may come with the rows of a batch.
    pub(crate) fn tell_idle(&self, others: bool) {
        let greedy = self.temperature == 0.0;
        let penalised =
            self.repeat_penalty != 1.0 || self.presence_penalty != 0.0 || self.frequency_penalty != 0.0;
        let idle = [
            (greedy && self.top_k > 0, "--top-k", "at temperature 0 the likeliest token is taken"),
            (greedy && self.top_p < 1.0, "--top-p", "at temperature 0 the likeliest token is taken"),
            (greedy && self.min_p > 0.0, "--min-p", "at temperature 0 the likeliest token is taken"),
            (!penalised && self.repeat_last_n != LAST, "--repeat-last-n", "there are no penalties"),
        ];
        for (_, flag, why) in idle.into_iter().filter(|(idle, ..)| *idle && !others) {
            remark!("warning:", "{flag} changes nothing: {why}");
        }
    }

    /// The flags that are given by default.
    pub(crate) fn usual() -> Result<Self, BadInput> {
        let matches = Self::augment_args(Command::new("row")).try_get_matches_from(["row"]);
        let read = matches.and_then(|matches| Self::from_arg_matches(&matches));
        read.map_err(|error| BadInput::new(error.to_string()))
    }

    /// These flags, but for the keys of `changes`, which have their names.
    pub(crate) fn changed(&self, changes: &Map<String, Value>) -> serde_json::Result<Self> {
        let mut all = serde_json::to_value(self)?;
        extend(&mut all, changes.clone());
        serde_json::from_value(all)
    }

    /// Reads the flags as options of decoding.
    pub(crate) fn resolve(&self) -> Result<DecodeOptions, BadInput> {
        let mut options = DecodeOptions::default();
        options.sampling = Sampling::with_temperature(self.temperature)
            .and_then(|sampling| sampling.top_p(self.top_p)?.min_p(self.min_p))
            .and_then(|sampling| if self.top_k > 0 { sampling.top_k(self.top_k) } else { Ok(sampling) })
            .map_err(|error| BadInput::new(error.to_string()))?;
        options.penalties = Penalties::none()
            .repeat(self.repeat_penalty)
            .and_then(|penalties| {
                penalties.presence(self.presence_penalty)?.frequency(self.frequency_penalty)
            })
            .map_err(|error| BadInput::new(error.to_string()))?
            .last_tokens(self.repeat_last_n);
        options.stop = StopStrings::new(self.stop.iter().map(String::as_str)).map_err(|error| {
            BadInput::new(error.to_string()).hint("--stop takes a text of one byte or more")
        })?;
        options.seed = self.seed;
        options.max_new_tokens = self.max_tokens;
        options.reasoning_tokens = self.reasoning_tokens;
        options.masking = self.mask.resolve();
        options.logprobs = self.logprobs;
        options.trailing_space = self.trailing_space.0;
        options.close = self.finish;
        Ok(options)
    }
}
