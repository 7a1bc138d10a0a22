//! Flags of `domino generate`.

use std::path::PathBuf;

use clap::Args;
use domino::{
    Lookahead,
    decode::{DecodeOptions, Masking, Penalties, Sampling, StopStrings},
};

use crate::{
    args::{Input, LowGrammar, lookahead},
    failure::BadInput,
    notation::GrammarSource,
};

/// Generate text of a grammar with a language model.
///
/// The text is written as it comes and ends when it is complete and the model ends it or must. Every token
/// is the model's own choice wherever the grammar allows that choice; where it does not, the choice is made
/// again among the allowed tokens (an intervention).
///
/// The draw of a token is a function of the seed and of its position, so the same command writes the same
/// text again.
///
/// With --json the text is not streamed: one object is printed at the end, with at least text, tokens,
/// token_ids, finish (stop, stop_string, length, or interrupted by Ctrl-C), tokens_per_second, interventions,
/// mask_seconds, seconds, complete, which says whether the text is in the language of the grammar, and
/// finished_by: model, completion (with --finish: then there are appended, appended_bytes and
/// appended_token_ids, and text has what was appended), or null where it is not finished. Exit code 3 says that
/// --max-tokens or the model's context cut the text, or --stop before it was complete, and nothing finished it.
#[derive(Debug, Args)]
pub(crate) struct LowGenerate {
    #[command(flatten)]
    grammar: LowGrammar,
    /// The text to go on from.
    #[arg(long, short = 'p', value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// A file with the text to go on from; - is standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    prompt_file: Option<PathBuf>,
    /// The model's folder (config.json, tokenizer.json, *.safetensors), a GGUF file (*.gguf), or a model on the
    /// Hugging Face hub, OWNER/NAME, OWNER/NAME@REVISION or OWNER/NAME:FILE.gguf, which is fetched once and kept
    /// in the hub's cache (HF_HOME).
    /// Default: models/domino-small in the current folder, beside the program or up to three folders above
    /// it, or in the package when run by cargo.
    #[arg(long, short = 'm', value_name = "DIR|FILE|ID")]
    model: Option<PathBuf>,
    /// 0 always takes the likeliest token; 1 draws as likely as the model says; more is more even.
    #[arg(long, short = 't', value_name = "T", default_value_t = 1.0)]
    temperature: f64,
    /// Draw only among the K likeliest allowed tokens; 0 means no limit.
    #[arg(long, value_name = "K", default_value_t = 0)]
    top_k: usize,
    /// Draw only among the likeliest allowed tokens that together have this probability.
    #[arg(long, value_name = "P", default_value_t = 1.0)]
    top_p: f64,
    /// Draw only among tokens at least this times as likely as the likeliest.
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    min_p: f64,
    /// Divide the logits of tokens that are among the last ones by this (negative ones are multiplied); 1
    /// changes nothing, 1.1 is usual.
    #[arg(long, value_name = "R", default_value_t = 1.0)]
    repeat_penalty: f64,
    /// How many last tokens, prompt included, the three penalties look at; 0 means none.
    #[arg(long, value_name = "N", default_value_t = 64)]
    repeat_last_n: usize,
    /// Subtract this from the logits of tokens that are among the last ones.
    #[arg(long, value_name = "P", default_value_t = 0.0, allow_hyphen_values = true)]
    presence_penalty: f64,
    /// Subtract this from the logits of tokens that are among the last ones, as often as they are.
    #[arg(long, value_name = "P", default_value_t = 0.0, allow_hyphen_values = true)]
    frequency_penalty: f64,
    /// The seed of the draws.
    #[arg(long, short = 's', value_name = "N", default_value_t = 0)]
    seed: u64,
    /// How many terminals past the current one a token may reach. Fewer allows fewer tokens and bends the
    /// model more. Default: any number, which bends it least.
    #[arg(long, short = 'k', value_name = "K")]
    lookahead: Option<u32>,
    /// Take the trees from this file of `domino compile`. One that is damaged or was made for something else is
    /// made again.
    #[arg(long, value_name = "FILE", requires = "LowGrammar")]
    trees: Option<PathBuf>,
    /// Ask the grammar about the model's own choice first and make a whole mask only if it says no. The
    /// text is the same, the time is not. Only for draws without --top-k, --top-p and --min-p.
    #[arg(long)]
    opportunistic: bool,
    /// Cut the text after this many tokens.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 256)]
    max_tokens: usize,
    /// End the text before this, wherever tokens begin and end; can be given more than once. With a grammar
    /// the text may then not be complete: `complete` in --json tells.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    stop: Vec<String>,
    /// If the text is cut, by --max-tokens, the model's context, --stop or Ctrl-C, append the shortest text that
    /// makes it one of the grammar; of equally short ones that of the fewest tokens.
    #[arg(long, requires = "LowGrammar")]
    finish: bool,
    /// With --json: list for each token its log-probability under the model's own distribution and under the
    /// constrained one (temperature 1, no penalties, no cuts), and the N likeliest tokens of both. Makes a
    /// mask for every token.
    #[arg(long, value_name = "N", requires = "json")]
    logprobs: Option<usize>,
}

/// `domino generate`.
#[derive(Debug)]
pub(crate) struct Generate {
    /// `None`: anything goes.
    pub(crate) grammar: Option<GrammarSource>,
    pub(crate) prompt: Prompt,
    /// `None`: the default model.
    pub(crate) model: Option<PathBuf>,
    pub(crate) options: DecodeOptions,
    pub(crate) lookahead: Lookahead,
    pub(crate) trees: Option<PathBuf>,
    pub(crate) json: bool,
}

/// The text to go on from.
#[derive(Debug)]
pub(crate) enum Prompt {
    Text(String),
    From(Input),
}

impl LowGenerate {
    /// What was asked for.
    pub(crate) fn resolve(self, json: bool) -> Result<Generate, BadInput> {
        let options = self.options()?;
        let prompt = match (self.prompt, self.prompt_file) {
            (Some(text), _) => Prompt::Text(text),
            (None, Some(file)) => Prompt::From(Input::new(file)),
            (None, None) => Prompt::Text(String::new()),
        };
        Ok(Generate {
            grammar: self.grammar.resolve()?,
            prompt,
            model: self.model,
            options,
            lookahead: lookahead(self.lookahead),
            trees: self.trees,
            json,
        })
    }

    /// How to draw, and when to end.
    fn options(&self) -> Result<DecodeOptions, BadInput> {
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
        options.masking = if self.opportunistic { Masking::Opportunistic } else { Masking::Always };
        options.logprobs = self.logprobs;
        options.close = self.finish;
        Ok(options)
    }
}
