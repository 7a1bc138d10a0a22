//! Flags of `domino serve`.

use std::{net::IpAddr, num::NonZeroUsize, path::PathBuf, time::Duration};

use clap::Args;
use domino::{
    decode::Masking,
    grammar::{json_schema::SchemaOptions, tools::Spelling},
};

use super::{
    engines::args::{EngineArgs, LowEngine},
    settings::flags::{LowRunning, RunningFlags},
};
use crate::{
    flags::{drawing::LowMasking, grammar::LowReach, schema::LowSchema},
    grammar::compiler::Reach,
    terminal::{failure::BadInput, log::LogFormat},
};

/// Serve a model over HTTP, by the protocol of OpenAI's API, with grammars.
///
/// The engine is this program's own runner, which writes many texts at once on the CPU and one at a time on a
/// card (--device), or mistral.rs's (--engine).
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
    host: IpAddr,
    /// The port to listen on; 0 is any free one.
    #[arg(long, value_name = "PORT", default_value = "8080")]
    port: u16,
    #[command(flatten)]
    running: LowRunning,
    /// Let pages of this origin (https://example.com) use the server too; a proxy may then pass its host on.
    /// Can be given several times.
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Serve the grammars in this folder by their names.
    ///
    /// They are *.gbnf, *.regex, *.lark, *.ebnf, *.tags.json, and *.json for JSON Schemas; a name is what
    /// comes before the ending, also before .schema.json. A file that is changed or added is seen by the next
    /// request.
    #[arg(long, value_name = "DIR")]
    grammar_dir: Option<PathBuf>,
    /// Spell calls of functions (`tools` in requests) as the model does: a name, or off.
    ///
    /// docs/tools.md has the names; with off the model sees its functions and answers without a grammar.
    /// Default: as the chat template shows; hermes where it shows nothing, and the functions are then listed
    /// in what the system says.
    #[arg(long, value_name = "NAME|off", value_parser = spelling)]
    tool_spelling: Option<ToolSpelling>,
    /// Texts that may wait; requests past that are refused with 429.
    #[arg(long, value_name = "N", default_value = "256")]
    max_queue: usize,
    /// Largest body of a request, in KiB.
    #[arg(long, value_name = "KIB", default_value = "4096")]
    max_body: NonZeroUsize,
    /// Close connections on which no request comes for this many seconds. The head of a request may take as
    /// long to come, and its body as long again.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    read_timeout: Duration,
    /// Largest grammar in a request, in KiB.
    #[arg(long, value_name = "KIB", default_value = "256")]
    max_grammar: NonZeroUsize,
    /// Memory of compiled grammars, in MiB; those that were not used for longest go first.
    #[arg(long, value_name = "MIB", default_value = "128")]
    grammar_cache: NonZeroUsize,
    /// Let a request wait this many seconds for its grammar to be compiled.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    compile_timeout: Duration,
    /// Answer requests with an error once the engine has made no token for this many seconds. The test of
    /// --grammar-speculate that comes before the first request may take as long.
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = seconds)]
    stall_timeout: Duration,
    /// Give running requests this many seconds to finish after Ctrl-C or SIGTERM.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    drain_timeout: Duration,
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

/// The resolved command `domino serve`.
#[derive(Debug)]
#[cfg_attr(not(feature = "serve"), expect(dead_code, reason = "a build without a server refuses them all"))]
pub(crate) struct Serve {
    pub(crate) engine: EngineArgs,
    pub(crate) host: IpAddr,
    pub(crate) port: u16,
    pub(crate) running: RunningFlags,
    /// Origins whose pages may use the server.
    pub(crate) origins: Vec<String>,
    pub(crate) grammar_dir: Option<PathBuf>,
    /// The spelling of calls; `None`: the one that the chat template shows; `Some(None)`: calls have no
    /// grammar.
    pub(crate) tool_spelling: Option<Option<Spelling>>,
    pub(crate) limits: ServerLimits,
    pub(crate) schemas: SchemaRules,
    /// The reach of masks, and the time at which they are made, where requests do not say.
    pub(crate) reach: Reach,
    pub(crate) masking: Masking,
    pub(crate) json: bool,
}

/// Options for the schemas of requests and files.
#[derive(Debug, Clone, Default)]
#[cfg_attr(not(feature = "serve"), expect(dead_code, reason = "a build without a server refuses them all"))]
pub(crate) struct SchemaRules {
    /// Defaults that requests may override. They hold no documents, so that comparing them is cheap.
    pub(crate) options: SchemaOptions,
    /// Addresses and texts of the documents that references may lead to.
    pub(crate) documents: Vec<(String, String)>,
    /// Take schemas with `strict` that OpenAI refuses?
    pub(crate) lenient_strict: bool,
}

/// Bounds on the work and memory that requests may take.
#[derive(Debug, Clone)]
#[cfg_attr(not(feature = "serve"), expect(dead_code, reason = "a build without a server refuses them all"))]
pub(crate) struct ServerLimits {
    /// Most texts that wait.
    pub(crate) waiting: usize,
    /// Largest body, in bytes.
    pub(crate) body: usize,
    /// Longest time for the head of a request to come, and again for its body.
    pub(crate) read: Duration,
    /// Largest text of a grammar, in bytes.
    pub(crate) grammar: usize,
    /// Memory of all compiled grammars, in bytes.
    pub(crate) grammars: usize,
    pub(crate) compile: Duration,
    pub(crate) stall: Duration,
    pub(crate) drain: Duration,
}

impl LowServe {
    /// The format of the log of requests.
    pub(crate) fn log(&self) -> LogFormat {
        self.running.log()
    }

    /// Checks the flags and converts them to the server's settings.
    pub(crate) fn resolve(self, json: bool) -> Result<Serve, BadInput> {
        let limits = ServerLimits {
            waiting: self.max_queue,
            body: self.max_body.get().saturating_mul(1 << 10),
            read: self.read_timeout,
            grammar: self.max_grammar.get().saturating_mul(1 << 10),
            grammars: self.grammar_cache.get().saturating_mul(1 << 20),
            compile: self.compile_timeout,
            stall: self.stall_timeout,
            drain: self.drain_timeout,
        };
        let running = self.running.resolve(self.host, limits.body)?;
        let mut options = self.schema.resolve(SchemaOptions::default())?;
        let documents = std::mem::take(&mut options.documents);
        let schemas = SchemaRules { options, documents, lenient_strict: self.lenient_strict };
        let engine = self.engine.resolve()?;
        let keyed = running.api_key.is_some() || running.api_keys.is_some();
        if engine.speculation.prior_dir.is_some()
            && !(keyed || engine.share_caches || self.host.to_canonical().is_loopback())
        {
            let message = "--prior-dir keeps what clients teach apart by their keys, and they have none";
            return Err(BadInput::new(message)
                .hint("ask for keys (--api-key, --api-keys), or let all share it (--share-caches)"));
        }
        Ok(Serve {
            engine,
            host: self.host,
            port: self.port,
            running,
            origins: self.allow_origin,
            grammar_dir: self.grammar_dir,
            tool_spelling: self.tool_spelling.map(|ToolSpelling(spelling)| spelling),
            limits,
            schemas,
            reach: self.reach.resolve(),
            masking: self.mask.resolve(),
            json,
        })
    }
}
