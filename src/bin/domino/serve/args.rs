//! Flags of `domino serve`, those about the model and the engine that runs it among them.

use std::num::{NonZeroUsize, ParseIntError};
use std::{net::IpAddr, path::PathBuf, str::FromStr, time::Duration};

use clap::{Args, ValueEnum};
use domino::model::candle::LoadOptions;
use domino::{decode::Masking, grammar::json_schema::SchemaOptions, grammar::tools::Spelling};

use super::engines::texts::{self, TextEngine, WantedTexts};
use super::settings::RunningFlags;
use crate::engine::{self, WantedModel};
use crate::flags::{LowContext, LowDevice};
use crate::session::drafts::{PAPER_DRAFT, Which, threshold};
use crate::{
    flags::drawing::LowMasking, flags::grammar::LowReach, flags::schema::LowSchema, grammar::compiler::Reach,
    session::model::RunBy, terminal::failure::BadInput, terminal::log::LogFormat,
};

/// Serve a model over HTTP, by the protocol of OpenAI's API, with grammars.
///
/// The engine is this program's own runner, on the CPU or on a card (--device), or the other one of the
/// program (--engine).
/// /v1/chat/completions and /v1/completions take a grammar:
///
/// "grammar": {"type": "gbnf", "regex", "lark", "lark_greedy" or "ebnf", "value": TEXT}
///
/// "grammar": {"type": "structural_tag", "value": TAGS} (an object, or its text)
///
/// "grammar": {"type": "named", "value": NAME} (one of --grammar-dir, or one that comes with the program)
///
/// "grammar": {"type": "json_schema", "value": SCHEMA} (an object, or its text)
///
/// "response_format": {"type": "json_schema", "json_schema": {"name": NAME, "schema": SCHEMA}}
///
/// "response_format": {"type": "structural_tag", "format": FORMAT} (XGrammar's structural tags)
///
/// "response_format": {"type": "json_object"}
///
/// Functions in "tools" of a chat are called in the model's own spelling, their names and arguments always
/// valid ("tool_choice", "parallel_tool_calls"; docs/tools.md), and come back as "tool_calls".
///
/// A text is a valid instance of its schema when it ends by itself. Beside "value" a grammar of type
/// json_schema takes the flags for JSON Schemas below as fields ("draft", "format", "whitespace", "order",
/// "duplicate_keys", "escapes", "numbers", "closed", "max_depth", "lenient"), and "grammar_options": {...} in
/// the request has them for all its schemas; what both leave out is as the flags say. Schemas of tools and
/// in structural tags take "order", "whitespace", "escapes" and "numbers". A schema is never ignored: with
/// "strict": false it is as binding as with true, and what cannot be had exactly is refused, or with
/// --lenient allowed and listed in the field "relaxed" of the answer (of its first event, in a stream).
/// Keywords that nobody knows are in "grammar_warnings", and with "schema_report": true the answer lists what
/// becomes of each keyword.
///
/// "lookahead", "terminals" and "mask" are --lookahead, --terminals and --mask for one request. guided_json,
/// guided_regex, guided_choice, guided_grammar and structured_outputs of vLLM are taken too.
///
/// Which bytes the named groups and marked rules of a grammar have matched is in each choice under "domino",
/// in "captures" (in a stream in the last event of the text); "captures": [RULE, ...] names further rules.
///
/// With "seed" the same request writes the same text again, streamed or not; text i of n has the seed plus i.
/// What a text cost is in its usage, under "domino". Fields of OpenAI's API that are about its service
/// ("user", "metadata", "store", ...) have no effect; a field that is not served is refused with 400. An
/// error is OpenAI's object {"error": {message, type, param, code}}; for a grammar it has line and column
/// too, for a schema its JSON pointer and keyword.
///
/// GET /v1/models lists the model, GET /v1/grammars the named grammars, GET /metrics is for Prometheus, GET
/// /health says whether a text can be made, GET /ready whether requests are taken. There are no other
/// addresses. Every answer has its request's id in `x-request-id`, the caller's own if it sent one. On
/// loopback (the default --host) only requests to localhost, 127.0.0.1 and [::1] are answered, and only those
/// web pages may send them that came from there too.
///
/// Ctrl-C or SIGTERM ends the server when the running requests are done; a second one ends it at once. With
/// --json one object is printed when the server is ready: address, model, device.
#[derive(Debug, Args)]
pub(crate) struct LowServe {
    #[command(flatten)]
    engine: LowEngine,
    /// The address to listen on. 0.0.0.0 is all of this machine's.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(super) host: IpAddr,
    /// The port to listen on; 0 is any free one.
    #[arg(long, value_name = "PORT", default_value = "8080")]
    pub(super) port: u16,
    #[command(flatten)]
    pub(super) running: RunningFlags,
    /// Let pages of this origin (https://example.com) use the server too; a proxy may then pass its host on.
    /// Can be given several times.
    #[arg(long, value_name = "ORIGIN")]
    pub(super) allow_origin: Vec<String>,
    /// Serve the grammars in this folder by their names.
    ///
    /// They are *.gbnf, *.regex, *.lark, *.ebnf, *.tags.json, and *.json for JSON Schemas; a name is what
    /// comes before the ending, also before .schema.json. A file that is changed or added is seen by the next
    /// request.
    #[arg(long, value_name = "DIR")]
    pub(super) grammar_dir: Option<PathBuf>,
    /// Spell calls of functions (`tools` in requests) as the model does: a name, or off.
    ///
    /// docs/tools.md has the names; with off the model sees its functions and answers without a grammar.
    /// Default: as the chat template shows; hermes where it shows nothing, and the functions are then listed
    /// in what the system says.
    #[arg(long, value_name = "NAME|off", value_parser = spelling)]
    tool_spelling: Option<ToolSpelling>,
    #[command(flatten)]
    pub(super) limits: ServerLimits,
    /// Take schemas with "strict": true that OpenAI refuses: with objects that are open, or with properties
    /// that are not required.
    #[arg(long)]
    lenient_strict: bool,
    #[command(flatten)]
    schema: LowSchema,
    #[command(flatten)]
    reach: LowReach,
    #[command(flatten)]
    mask: LowMasking,
}

/// The spelling of calls; `None`: no grammar holds the model to a spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ToolSpelling(Option<Spelling>);

fn spelling(text: &str) -> Result<ToolSpelling, String> {
    let named = if text == "off" { Some(None) } else { Spelling::named(text).map(Some) };
    named.map(ToolSpelling).ok_or_else(|| {
        let known: Vec<String> = Spelling::all().map(|spelling| spelling.to_string()).collect();
        format!("there are {} and off", known.join(", "))
    })
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text:?} is not a number of seconds"))?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if duration > Duration::ZERO && seconds <= 1e6 => Ok(duration),
        _ => Err("it must be above 0 and at most 1000000 seconds".to_owned()),
    }
}

/// The command `domino serve`: its flags, and what they mean.
#[derive(Debug)]
pub(crate) struct Serve {
    pub(crate) flags: LowServe,
    pub(crate) engine: EngineArgs,
    pub(crate) schemas: SchemaRules,
    /// The reach of masks, where requests do not say.
    pub(crate) reach: Reach,
    pub(crate) json: bool,
}

impl Serve {
    /// The spelling of calls; `None`: the one that the chat template shows; `Some(None)`: calls have no
    /// grammar.
    pub(crate) fn tool_spelling(&self) -> Option<Option<Spelling>> {
        self.flags.tool_spelling.map(|ToolSpelling(spelling)| spelling)
    }

    /// The time at which masks are made, where requests do not say.
    pub(crate) fn masking(&self) -> Masking {
        self.flags.mask.resolve()
    }
}

/// Options for the schemas of requests and files.
#[derive(Debug, Clone, Default)]
pub(crate) struct SchemaRules {
    /// Defaults that requests may override. They hold no documents, so that comparing them is cheap.
    pub(crate) options: SchemaOptions,
    /// Addresses and texts of the documents that references may lead to.
    pub(crate) documents: Vec<(String, String)>,
    /// Take schemas with `strict` that OpenAI refuses?
    pub(crate) lenient_strict: bool,
}

/// Flags that bound the work and memory that requests may take; sizes are in bytes.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServerLimits {
    /// Texts that may wait; requests past that are refused with 429.
    #[arg(long, value_name = "N", default_value = "256")]
    pub(crate) max_queue: usize,
    /// Largest body of a request, in KiB.
    #[arg(long, value_name = "KIB", default_value = "4096", value_parser = kib)]
    pub(crate) max_body: usize,
    /// Close connections on which no request comes for this many seconds. The head of a request may take as
    /// long to come, and its body as long again.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub(crate) read_timeout: Duration,
    /// Largest grammar in a request, in KiB.
    #[arg(long, value_name = "KIB", default_value = "256", value_parser = kib)]
    pub(crate) max_grammar: usize,
    /// Memory of compiled grammars, in MiB; those that were not used for longest go first.
    #[arg(long, value_name = "MIB", default_value = "128", value_parser = mib)]
    pub(crate) grammar_cache: usize,
    /// Let a request wait this many seconds for its grammar to be compiled.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub(crate) compile_timeout: Duration,
    /// Answer requests with an error once the engine has made no token for this many seconds. The test of
    /// --grammar-speculate that comes before the first request may take as long.
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = seconds)]
    pub(crate) stall_timeout: Duration,
    /// Give running requests this many seconds to finish after Ctrl-C or SIGTERM.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub(crate) drain_timeout: Duration,
}

/// Reads a number of KiB as bytes.
fn kib(text: &str) -> Result<usize, ParseIntError> {
    Ok(text.parse::<NonZeroUsize>()?.get().saturating_mul(1 << 10))
}

/// Reads a number of MiB, which may be none, as bytes.
fn mib_or_none(text: &str) -> Result<usize, ParseIntError> {
    Ok(text.parse::<usize>()?.saturating_mul(1 << 20))
}

/// Reads a number of MiB as bytes.
pub(crate) fn mib(text: &str) -> Result<usize, ParseIntError> {
    Ok(text.parse::<NonZeroUsize>()?.get().saturating_mul(1 << 20))
}

impl LowServe {
    /// The format of the log of requests.
    pub(crate) fn log(&self) -> LogFormat {
        self.running.log()
    }

    /// Checks the flags and converts them to the server's settings.
    pub(crate) fn resolve(self, json: bool) -> Result<Serve, BadInput> {
        self.running.check(self.host, self.limits.max_body)?;
        let mut options = self.schema.resolve(&SchemaOptions::default())?;
        let documents = std::mem::take(&mut options.documents);
        let schemas = SchemaRules { options, documents, lenient_strict: self.lenient_strict };
        let engine = self.engine.resolve()?;
        if engine.speculation.prior_dir.is_some()
            && !(self.running.is_keyed()
                || self.engine.share_caches
                || self.host.to_canonical().is_loopback())
        {
            let message = "--prior-dir keeps what clients teach apart by their keys, and they have none";
            return Err(BadInput::new(message)
                .hint("ask for keys (--api-key, --api-keys), or let all share it (--share-caches)"));
        }
        let reach = self.reach.resolve();
        Ok(Serve { flags: self, engine, schemas, reach, json })
    }
}

/// Texts that our own engine writes at once, unless told otherwise.
const USUAL_TEXTS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(15);
/// Texts that it writes at once with a model as tensors, whose caches are all there from the first on.
const USUAL_TEXTS_OF_TENSORS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(3);

/// Flags of the model and its engine.
#[derive(Debug, Clone, Args)]
pub(crate) struct LowEngine {
    /// The model: a folder, a GGUF file, or OWNER/NAME on the Hugging Face hub.
    ///
    /// A folder has config.json, tokenizer.json, tokenizer_config.json and *.safetensors. Default: that of
    /// the variable DOMINO_MODEL, or models/domino-small, as for `generate`.
    #[arg(long, short = 'm', value_name = "DIR|FILE|ID")]
    pub(super) model: Option<PathBuf>,
    #[command(flatten)]
    pub(super) device: LowDevice,
    #[command(flatten)]
    context: LowContext,
    /// Guess tokens ahead by the grammar and verify several in one pass of the model: auto, on or off.
    ///
    /// The texts are the same. Without a value: on. Default: auto, which guesses for as long as that pays,
    /// and never with the engine mistralrs.
    #[arg(long, value_name = "WHEN", value_enum, num_args = 0..=1, require_equals = true,
        default_missing_value = "on", default_value = "auto")]
    pub(super) grammar_speculate: WhenToGuess,
    /// Tokens of a guess: N, or auto. Default: auto, and 10 with --proposer paper.
    #[arg(long = "s", value_name = "N|auto")]
    s: Option<DraftSize>,
    /// Guess by shipped (counts of what came at such a place of the grammar and after such tokens, repeats,
    /// and without a prior also text that the grammar forces) or paper (section 3.6 of the DOMINO paper: the
    /// token that came most often at such a place, and nothing else). The texts are the same.
    #[arg(long, value_name = "WHICH", value_enum)]
    proposer: Option<Which>,
    /// Guess only tokens that are accepted with this probability, from 0 to 1, as the proposer thinks; of
    /// paper, its share of the counts at its place. For guesses of N tokens, since auto weighs that itself.
    /// Default: 0, and 0.5 with --proposer paper.
    #[arg(long, value_name = "SHARE", value_parser = threshold)]
    threshold: Option<f64>,
    /// Guess by the counts in this file of `domino learn`, or in a folder's files NAME.prior.
    ///
    /// A file is for the grammar it was made for, the files of a folder (and of the folders in it) are for
    /// the named grammars. Default: the folder priors of the model.
    #[arg(long, value_name = "FILE|DIR")]
    prior: Option<PathBuf>,
    /// Keep what guesses learn in this folder, and begin with it at the next start.
    ///
    /// The files hold parts of the texts that were written for users: guard the folder as you would guard
    /// these. Each client (API key) has a folder of its own in it, unless --share-caches; on a network the
    /// server therefore needs keys. It is written every five minutes and at the end, 1 GiB at the most. It is
    /// for one server.
    #[arg(long, value_name = "DIR")]
    prior_dir: Option<PathBuf>,
    /// Memory for keys and values of the texts that are written, in MiB. Texts past that wait. For the engine
    /// domino. Default: enough for all places, at most half of the free memory.
    #[arg(long, value_name = "MIB", value_parser = mib)]
    pub(super) kv_memory: Option<usize>,
    /// Memory for keys and values of the beginnings of prompts, in MiB, which need not be read again; those
    /// that were not used for longest go first. 0 keeps none. For the engine domino.
    #[arg(long, value_name = "MIB", default_value = "256", value_parser = mib_or_none)]
    pub(super) prefix_cache: usize,
    /// Share the beginnings of prompts that are kept, and the counts that guesses are made by, between all
    /// clients.
    ///
    /// They are apart for each API key unless this is given: from times, from cached_tokens and from the
    /// share of right guesses one client could tell what another one wrote.
    #[arg(long)]
    pub(super) share_caches: bool,
    /// Close a text that would be cut by its length by its shortest completion, within the limit, where a
    /// request does not say otherwise ("finish": false).
    #[arg(long)]
    pub(super) finish: bool,
    /// A chat template (*.jinja, or *.json with chat_template), instead of the model's.
    #[arg(long, value_name = "FILE")]
    pub(super) chat_template: Option<PathBuf>,
    /// Texts written at once; others wait. Default: 16; 1 with --device cuda or --precision, and with the
    /// engine mistralrs.
    #[arg(long, value_name = "N")]
    max_seqs: Option<NonZeroUsize>,
}

/// `--grammar-speculate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhenToGuess {
    Auto,
    On,
    Off,
}

/// Tokens of a guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DraftSize {
    /// Guess as many as pay.
    Auto,
    /// Guess at most this number, whether that pays or not.
    Tokens(NonZeroUsize),
}

impl FromStr for DraftSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            _ => {
                text.parse().map(Self::Tokens).map_err(|_| format!("{text:?} is neither auto nor 1 or more"))
            }
        }
    }
}

/// A model, and the engine that is to run it: flags, and what they mean.
#[derive(Debug, Clone)]
pub(crate) struct EngineArgs {
    pub(crate) flags: LowEngine,
    /// Way to guess, where that is done.
    pub(crate) speculation: Speculation,
    /// Options of our own runner for loading the model.
    pub(crate) load: LoadOptions,
    pub(crate) by: RunBy,
}

/// Ways to speculate.
#[derive(Debug, Clone)]
pub(crate) struct Speculation {
    pub(crate) size: DraftSize,
    pub(crate) proposer: Which,
    /// The least acceptance of guessed tokens, where a guess has a fixed number of them.
    pub(crate) threshold: f64,
    pub(crate) prior: Option<PathBuf>,
    /// Folder for what is learnt. `None`: it is forgotten.
    pub(crate) prior_dir: Option<PathBuf>,
}

impl LowEngine {
    /// Resolves the flags.
    pub(crate) fn resolve(&self) -> Result<EngineArgs, BadInput> {
        let asked = self.s.is_some() || self.proposer.is_some() || self.threshold.is_some();
        let files = self.prior.is_some() || self.prior_dir.is_some();
        if self.grammar_speculate == WhenToGuess::Off && (asked || files) {
            return Err(BadInput::new(
                "--s, --proposer, --threshold, --prior and --prior-dir are for guesses",
            )
            .hint("leave them out, or take --grammar-speculate=off back"));
        }
        let proposer = self.proposer.unwrap_or_default();
        let usual = match proposer {
            Which::Paper => NonZeroUsize::new(PAPER_DRAFT).map_or(DraftSize::Auto, DraftSize::Tokens),
            Which::Shipped => DraftSize::Auto,
        };
        let size = self.s.unwrap_or(usual);
        if size == DraftSize::Auto && self.threshold.is_some() {
            return Err(BadInput::new("--threshold is for guesses of a fixed length").hint("give --s N too"));
        }
        let threshold = self.threshold.unwrap_or_else(|| proposer.threshold());
        let (prior, prior_dir) = (self.prior.clone(), self.prior_dir.clone());
        let speculation = Speculation { size, proposer, threshold, prior, prior_dir };
        let load = self.context.beside(self.device.load_options()?);
        Ok(EngineArgs { flags: self.clone(), speculation, load, by: self.device.resolve() })
    }
}

impl EngineArgs {
    /// Texts that the engine writes at once. On a card the caches of all are there from the first on.
    pub(crate) fn texts(&self) -> NonZeroUsize {
        let usual = match (self.by.tensors().is_some(), self.text_engine().is_some()) {
            (_, true) => NonZeroUsize::MIN,
            (true, _) => USUAL_TEXTS_OF_TENSORS,
            _ => USUAL_TEXTS,
        };
        self.flags.max_seqs.unwrap_or(usual)
    }

    /// The other engine, if it runs the model and writes texts itself.
    pub(crate) fn text_engine(&self) -> Option<&'static dyn TextEngine> {
        texts::other(self.by)
    }

    /// Returns the options of an engine that writes texts itself.
    pub(crate) fn wanted_texts(&self) -> WantedTexts {
        WantedTexts {
            model: WantedModel { context: self.load.context, threads: self.flags.device.threads },
            texts: self.texts(),
            drafts: self.guesses().map(|speculation| speculation.size),
            chat_template: self.flags.chat_template.clone(),
        }
    }

    /// Names what runs the model, and the numbers there if the model's are not kept.
    pub(crate) fn device(&self) -> String {
        match self.by {
            RunBy::Stored => "cpu".to_owned(),
            RunBy::Tensors(place) => format!("{place} in {}", place.precision),
            RunBy::Other { .. } => {
                engine::other().map_or_else(String::new, |engine| engine.name().to_owned())
            }
        }
    }

    /// Returns the way in which texts are guessed, if they are. An engine that writes texts itself cannot say
    /// whether guesses pay, so it makes them only if that is asked for.
    pub(crate) fn guesses(&self) -> Option<&Speculation> {
        let made = match self.flags.grammar_speculate {
            WhenToGuess::Auto => self.text_engine().is_none(),
            WhenToGuess::On => true,
            WhenToGuess::Off => false,
        };
        made.then_some(&self.speculation)
    }

    /// Refuses flags that an engine which writes texts itself does not know, and those that a model of
    /// tensors cannot follow: its caches are as large as its context.
    ///
    /// # Errors
    /// If there is such a flag.
    pub(crate) fn check(&self) -> Result<(), BadInput> {
        if let Some(engine) = self.text_engine() {
            if self.speculation.prior_dir.is_some() && self.guesses().is_none() {
                let message = "--prior-dir keeps what guesses learn; none are made with --engine";
                return Err(BadInput::new(format!("{message} {}", engine.name()))
                    .hint("give --grammar-speculate too, or leave it out"));
            }
            return engine.check(&self.wanted_texts());
        }
        if self.by.tensors().is_some() && self.flags.kv_memory.is_some() {
            return Err(BadInput::new("--kv-memory: not with --device cuda or --precision")
                .hint("leave it out; --max-seqs and --context bound the memory of texts"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        engine: LowEngine,
    }

    fn resolved(flags: &[&str]) -> Result<EngineArgs, BadInput> {
        Line::parse_from([&["serve"], flags].concat()).engine.resolve()
    }

    #[test]
    fn drafts_are_made_unless_told_otherwise() {
        let made = |flags: &[&str]| resolved(flags).unwrap().guesses().is_some();
        for flags in [
            &[][..],
            &["--grammar-speculate=auto"],
            &["--grammar-speculate"],
            &["--grammar-speculate=on", "--s", "3"],
        ] {
            assert!(made(flags), "{flags:?}");
        }
        assert!(!made(&["--grammar-speculate=off"]));
        assert!(resolved(&["--grammar-speculate=off", "--s", "3"]).is_err());
        assert!(resolved(&["--grammar-speculate=off", "--prior-dir", "a"]).is_err());
        assert!(resolved(&["--threshold", "0.5"]).is_err());
        assert!(resolved(&["--threshold", "0.5", "--s", "3"]).is_ok());
    }

    #[test]
    fn a_card_has_room_for_four_texts_unless_more_are_asked_for() {
        for card in [["--device", "cuda"], ["--device", "cuda:3"], ["--precision", "bf16"]] {
            let checked = |more: &[&str]| {
                let args = resolved(&[&card[..], more].concat()).unwrap();
                (args.texts().get(), args.check().is_ok())
            };
            assert_eq!(checked(&[]), (4, true));
            assert_eq!(checked(&["--max-seqs", "9"]), (9, true));
            assert!(!checked(&["--kv-memory", "64"]).1);
        }
        assert_eq!(resolved(&["--device", "cpu"]).unwrap().texts(), USUAL_TEXTS);
        // As everywhere.
        for flags in [["--device", "cuda", "--quantize", "q8_0"], ["--device", "cuda", "--kv", "f16"]] {
            assert!(resolved(&flags).is_err(), "{flags:?}");
        }
        let device = |flags: &[&str]| resolved(flags).unwrap().device();
        assert_eq!(device(&[]), "cpu");
        assert_eq!(device(&["--precision", "f16"]), "cpu in f16");
        assert_eq!(device(&["--device", "cuda:1"]), "cuda:1 in bf16");
    }
}
