//! Flags of `domino generate`.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use domino::decode::{DecodeOptions, Masking};
use domino::{TokenId, Vocabulary, grammar::json_schema::SchemaOptions};
use domino::{model::candle::LoadOptions, vocab::Tokenizer};

use crate::flags::grammar::{LowCapture, LowGrammar, LowReach, UsualGrammar};
use crate::flags::{self, LowContext, LowDevice};
use crate::flags::{drawing::LowOptions, speculate::LowSpeculate, tools::LowChat};
use crate::grammar::{compiler::Reach, thinking::WantedThought};
use crate::serve::{self, TextEngine};
use crate::session::chat::{Chat, PromptSource, Prompts};
use crate::session::{drafts::Speculation, model::RunBy};
use crate::terminal::failure::BadInput;

/// Generate text of a grammar with a language model.
///
/// The text is written as it comes and ends when it is complete and the model ends it or must. Every token is
/// the model's own choice wherever the grammar allows that choice; where it does not, the choice is made
/// again among the allowed tokens (an intervention).
///
/// The draw of a token is a function of the seed and of its position, so the same command writes the same
/// text again.
///
/// With --json the text is not streamed: one object is printed at the end. It has at least text, tokens,
/// token_ids, finish (stop, only_space, stop_string, length, thought, interrupted by Ctrl-C, or error),
/// complete (is the text in the language of the grammar?), finished_by (model, completion with --finish, or
/// null where the text is not finished), tokens_per_second, interventions (null with --mask ahead, which does
/// not ask what the model would have chosen by itself), mask_seconds and seconds.
///
/// Further fields come where they apply. captures, if the grammar has named groups or marks rules, or
/// --capture names some: a list of name, start, end (in bytes of text) and text, sorted by start, outer ones
/// first. Of an unfinished text it has what is decided; where a budget ended it is null, and captures_error
/// says why. With a grammar, but not with --batch: forced_bytes and forced_share, the bytes of the text about
/// which the grammar leaves no choice but that of white space and escapes. Where --finish appended something,
/// which text includes: appended, appended_bytes and appended_token_ids. With speculation: drafted, accepted,
/// acceptance and tokens_per_pass. With a prior: an object prior with the lookahead (null: unbounded) and the
/// terminals that it was learnt at. With a thought before the text, which is then not in text:
/// reasoning_content and thought_tokens; where it was cut in the thought, finish is thought. With
/// --draft-model: an object draft_model with guessed (tokens that it guessed, heard or not), judged (those
/// among them that the text came to) and right (those of the judged that were drawn). With --compare: an
/// object compare.
///
/// Exit code 3 says that --max-tokens or the model's context cut the text, or --stop before it was complete,
/// and nothing finished it. Where a step fails, the exit code is 4 for a budget and 1 for anything else; the
/// object has then the text so far (completed with --finish, if that can be), error and hint, and finish is
/// error.
#[derive(Debug, Args)]
pub(crate) struct LowGenerate {
    #[command(flatten)]
    grammar: LowGrammar,
    /// The text to go on from; - is standard input.
    #[arg(long, short = 'p', value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// A file with the text to go on from; - is standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    prompt_file: Option<PathBuf>,
    #[command(flatten)]
    chat: LowChat,
    /// The model: a folder, a GGUF file, or OWNER/NAME on the Hugging Face hub.
    ///
    /// A folder has config.json, tokenizer.json and *.safetensors. A model on the hub, OWNER/NAME,
    /// OWNER/NAME@REVISION or OWNER/NAME:FILE.gguf, is fetched once and kept in the hub's cache (HF_HOME).
    /// Default: that of the variable DOMINO_MODEL; else models/domino-small in the current folder, beside the
    /// program or up to three folders above it, or in the package when run by cargo.
    #[arg(long, short = 'm', value_name = "DIR|FILE|ID")]
    pub(super) model: Option<PathBuf>,
    #[command(flatten)]
    pub(super) device: LowDevice,
    #[command(flatten)]
    context: LowContext,
    /// Generate a text for each of the lines of JSON in this file, several at once; - is standard input.
    ///
    /// A line is {"id": .., "prompt": ".."}. It may have, where they differ from the flags: schema (an
    /// object), grammar (a name or a file; with syntax its text), regex or tools, the flags about these, and
    /// seed, max_tokens and the like, under their names; and n (texts of the row, told apart by index). See
    /// docs/batch.md. For each text a line is printed as soon as it has ended: what --json prints, with its
    /// id, or {"id": .., "error": ..}. Exit code 1 says that some rows failed.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["prompt", "prompt_file", "prior", "learn", "compare", "draft_model"]
    )]
    pub(super) batch: Option<PathBuf>,
    /// Write the text, or with --json the object, or the lines of --batch, to this file.
    ///
    /// It takes the place of standard output. With --batch a run goes on where an earlier one has ended,
    /// however that was: what is in the file stays, and is not made again.
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    /// Copy columns of rows that are not known to the answers, with --batch; otherwise they are refused.
    #[arg(long, requires = "batch")]
    pub(super) keep_fields: bool,
    /// Generate this many texts of --batch at once. Each takes the memory of a cache of keys and values.
    #[arg(long, value_name = "N", default_value = "4", requires = "batch")]
    pub(super) parallel: NonZeroUsize,
    #[command(flatten)]
    pub(super) options: LowOptions,
    #[command(flatten)]
    reach: LowReach,
    /// Take the trees from this file of `domino compile`.
    ///
    /// One that is damaged or was made for something else is made again.
    #[arg(long, value_name = "FILE", requires = "LowGrammar")]
    pub(super) trees: Option<PathBuf>,
    /// Let tokens cross the end of the prompt (token healing). The prompt's last tokens are taken back where
    /// a longer token begins as they do, and the text begins with their bytes, which are not shown. It cannot
    /// be used with what was learnt of the grammar alone (--prior, --trees).
    #[arg(long, conflicts_with_all = ["batch", "prior", "trees", "compare", "learn"])]
    pub(super) heal: bool,
    /// Draw a text from this distribution. masked: token by token from what the grammar's masks keep.
    /// conditional: from the model conditioned on the language, as nearly as --particles allow; a research
    /// mode, which takes a temperature above 0 and neither cuts (--top-k, --top-p, --min-p) nor penalties.
    /// With conditional, --json has also particles, log_kept (of the text), log_language (an estimate of the
    /// log of the probability that the model by itself writes a text of the language within --max-tokens;
    /// null if no particle did), effective (sample size), resamplings and fed (tokens of all passes).
    /// Default: masked.
    #[arg(long, value_name = "FROM", value_enum)]
    sampling: Option<DrawnFrom>,
    /// Write this many texts side by side with --sampling conditional, and draw one of them. Each takes the
    /// memory of a cache of keys and values. Default: 8.
    #[arg(long, value_name = "N", requires = "sampling")]
    particles: Option<NonZeroUsize>,
    /// Spell texts in these tokens. free: any that make up the text. canonical: only those that the tokenizer
    /// itself would make of it; another token is refused and drawn again, and where none is left the token
    /// before it is taken back. With canonical nothing is drafted, the text comes as a whole, and --json has
    /// also redraws (refusals and steps back) and canonical: true, or false where 256 steps back led to no
    /// such text, or null where the tokenizer cannot split the text, such as one that was cut inside a
    /// character. Default: free.
    #[arg(long, value_name = "TOKENS", value_enum)]
    tokenization: Option<Tokenization>,
    #[command(flatten)]
    pub(super) capture: LowCapture,
    #[command(flatten)]
    speculate: LowSpeculate,
}

/// A way to write a text that is shown when it is whole.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    /// Draw from the conditional distribution, with this number of particles.
    Conditional(NonZeroUsize),
    /// Write in the tokens that the tokenizer would make of the text.
    Canonical,
}

impl Way {
    /// The flag that asks for it.
    pub(super) fn flag(self) -> &'static str {
        match self {
            Self::Conditional(_) => "--sampling conditional",
            Self::Canonical => "--tokenization canonical",
        }
    }
}

/// The value of `--sampling`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DrawnFrom {
    Masked,
    Conditional,
}

/// The value of `--tokenization`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Tokenization {
    Free,
    Canonical,
}

/// Default number of particles.
const PARTICLES: NonZeroUsize = NonZeroUsize::new(8).expect("it is not 0");

/// The command `domino generate`: its flags, and what they mean.
#[derive(Debug)]
pub(crate) struct Generate {
    pub(super) flags: LowGenerate,
    /// The grammar of the texts; with `--batch`, of the rows that name none.
    pub(super) usual: UsualGrammar,
    /// The flags of the chat template; `None` if prompts stay as they are.
    pub(super) chat: Option<Chat>,
    pub(super) prompt: PromptSource,
    pub(super) options: DecodeOptions,
    /// The way to write a text that is shown when it is whole; `None` for one that is shown as it comes.
    pub(super) way: Option<Way>,
    pub(super) by: RunBy,
    pub(super) load: LoadOptions,
    pub(super) reach: Reach,
    pub(super) speculation: Speculation,
    pub(super) json: bool,
}

impl LowGenerate {
    /// Chooses the way to write a text that is shown when it is whole, if one is asked for.
    fn way(&self) -> Result<Option<Way>, BadInput> {
        let conditional = self.sampling == Some(DrawnFrom::Conditional);
        let canonical = self.tokenization == Some(Tokenization::Canonical);
        if self.particles.is_some() && !conditional {
            return Err(BadInput::new("--particles is for --sampling conditional"));
        }
        if conditional {
            refuse("--sampling conditional", &[(canonical, "--tokenization canonical")])?;
            return Ok(Some(Way::Conditional(self.particles.unwrap_or(PARTICLES))));
        }
        Ok(canonical.then_some(Way::Canonical))
    }

    /// Refuses options that an engine which writes texts itself does not have, or treats otherwise.
    fn check_text_engine(&self, way: Option<Way>, options: &DecodeOptions) -> Result<(), BadInput> {
        let Some(engine) = serve::other(self.device.resolve()) else { return Ok(()) };
        let asked = [
            (self.batch.is_some(), "--batch"),
            (way.is_some(), "--sampling conditional or --tokenization canonical"),
            (!options.penalties.is_none(), "penalties"),
            (options.close, "--finish"),
            (self.heal, "--heal"),
            (options.logprobs.is_some(), "--logprobs"),
            (self.speculate.compares(), "--compare"),
            (self.speculate.has_draft_model(), "--draft-model"),
        ];
        refuse(&format!("--engine {}", engine.name()), &asked)
    }

    /// Reads the flags as the command.
    pub(crate) fn resolve(mut self, json: bool) -> Result<Generate, BadInput> {
        let (options, way) = (self.options.resolve()?, self.way()?);
        let prompt = PromptSource::of(self.prompt.take(), self.prompt_file.take());
        let batch = self.batch.is_some();
        let template = self.grammar.is_for(self.model.as_deref(), self.chat.is_asked());
        let chat = self.chat.resolve(template);
        let usual = self.grammar.resolve_beside(SchemaOptions::default(), batch)?;
        refuse("--heal", &[(self.heal && usual.thinking.of_text().is_some(), "--reasoning")])?;
        let constrained = usual.source.is_some() || batch;
        let captured = self.capture.resolve(json || batch)?;
        if !captured.is_empty() && !constrained {
            return Err(BadInput::new("--capture needs a grammar: without one there are no rules"));
        }
        let load = self.context.beside(self.device.load_options()?);
        let by = self.device.resolve();
        let tensors = by.tensors().is_some();
        self.check_text_engine(way, &options)?;
        self.reach.refuse_idle(constrained)?;
        self.options.tell_idle(batch);
        if let Some(way) = way {
            let by_particles = matches!(way, Way::Conditional(_));
            if !constrained {
                let hint = "give --grammar or --regex; --regex '(?s:.)*' allows everything";
                return Err(BadInput::new(format!("{} needs a grammar", way.flag())).hint(hint));
            }
            refuse(
                way.flag(),
                &[
                    (batch, "--batch"),
                    (self.heal, "--heal"),
                    (self.speculate.asks(), "speculation"),
                    (options.masking != Masking::Ahead, "--mask"),
                    (by_particles && tensors, "--device or --precision"),
                ],
            )?;
        }
        if !batch && options.close && !constrained {
            return Err(BadInput::new("--finish needs a grammar: without one any text is finished"));
        }
        if !batch && options.logprobs.is_some() && !json {
            return Err(BadInput::new("--logprobs needs --json"));
        }
        let (reach, speculation) = (self.reach.resolve(), self.speculate.resolve(constrained)?);
        Ok(Generate { flags: self, usual, chat, prompt, options, way, by, load, reach, speculation, json })
    }
}

impl Generate {
    /// The engine that writes the texts itself, if one does.
    pub(super) fn text_engine(&self) -> Option<&'static dyn TextEngine> {
        serve::other(self.by)
    }

    /// Makes the maker of the prompts' tokens, for the model in `folder`.
    pub(super) fn prompts(&self, folder: &Path) -> Result<Prompts, BadInput> {
        Prompts::open(self.chat.as_ref(), folder, self.usual.source.as_ref(), self.json)
    }

    /// Makes the tokens of a prompt for the model in `folder`, and finds the thought before its text.
    pub(super) fn asked(
        &self,
        folder: &Path,
        prompt: &str,
        tokenizer: &Tokenizer,
        vocabulary: &Vocabulary,
    ) -> anyhow::Result<(Vec<TokenId>, Option<WantedThought>)> {
        let prompts = self.prompts(folder)?;
        let (tokens, shown) = prompts.shown(tokenizer, prompt, vocabulary)?;
        let source = self.usual.source.as_ref().filter(|_| !self.flags.heal);
        let thought = source.and_then(|source| {
            prompts.thought(&self.usual.thinking, source, shown.as_bytes(), self.chat.is_some())
        });
        Ok((tokens, thought))
    }
}

/// Refuses the first of the options asked for that do not go with `this`.
fn refuse(this: &str, cannot: &[(bool, &str)]) -> Result<(), BadInput> {
    let why = |what: &str| BadInput::new(format!("{what}: not with {this}"));
    flags::refuse(cannot, |what| why(what).hint("leave one of the two out"))
}
