//! Flags as they are typed ([`LowArgs`]) and what they mean ([`Command`]).
//!
//! Invariant: whoever has a [`Command`] need not look at flags again; every mistake that flags alone can show
//! was reported on the way.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use domino::{grammar::json_schema::SchemaOptions, store::CacheFolder};

use crate::{
    batch::Batch,
    bench_model::{BenchModel, LowBenchModel},
    budgets::LowBudgetFlags,
    cache::{Cache, LowCache, LowCacheFlags},
    captures::LowCapture,
    check::Check,
    compile::{Compile, LowCompile},
    experiment::{Experiment, LowExperiment},
    explain::args::{Explain, LowExplain},
    facts::{LowModel, ModelFacts},
    failure::{BadInput, Exit},
    generate::args::{Generate, LowGenerate},
    grammars::{Grammars, LowGrammars},
    help,
    input::Input,
    inspect::args::{Inspect, LowInspect},
    learn::{Learn, LowLearn},
    log::LogFormat,
    notation::{GrammarSource, Notation},
    numbers,
    reach::{LowReach, Reach},
    retokenize::{LowRetokenize, Retokenize},
    rows::UsualGrammar,
    schema::{self, LowSchema},
    serve::{
        self,
        args::{LowServe, Serve},
    },
    shell::{completions::LowCompletions, man::LowMan},
    tokenizer::{LowVocabulary, TokensOf},
    tools::LowTools,
    trace::args::{LowTrace, Trace},
};

/// Limit on the bytes that `check` reads of a text, unless a flag says otherwise.
const DEFAULT_MAX_BYTES: u64 = 1 << 30;

/// Make a language model write only text of a given grammar, and bend it as little as possible.
#[derive(Debug, Parser)]
#[command(
    name = "domino",
    version,
    after_help = help::examples::SHORT,
    after_long_help = help::examples::LONG,
    max_term_width = 100
)]
pub(crate) struct LowArgs {
    /// Print JSON on standard output instead of text for people.
    #[arg(long, global = true)]
    json: bool,
    /// Say nothing on standard error but errors: no warnings, notes, progress and summaries.
    #[arg(long, short = 'q', global = true)]
    quiet: bool,
    #[command(flatten)]
    cache: LowCacheFlags,
    #[command(flatten)]
    budgets: LowBudgetFlags,
    #[command(subcommand)]
    verb: LowVerb,
}

#[derive(Debug, Subcommand)]
enum LowVerb {
    Generate(Box<LowGenerate>),
    Explain(Box<LowExplain>),
    Learn(LowLearn),
    Serve(Box<LowServe>),
    Check(LowCheck),
    Mask(LowMask),
    Compile(LowCompile),
    Inspect(LowInspect),
    Grammars(LowGrammars),
    Cache(LowCache),
    Model(LowModel),
    BenchModel(LowBenchModel),
    Retokenize(LowRetokenize),
    Trace(LowTrace),
    Experiment(LowExperiment),
    Completions(LowCompletions),
    Man(LowMan),
}

/// Which grammar.
#[derive(Debug, Args)]
pub(crate) struct LowGrammar {
    /// The grammar: a file, or the name of a grammar that comes with the program (`domino grammars`).
    ///
    /// The notation of a file is known by its ending: .gbnf, .regex, .lark, .ebnf, .tags.json, or .json,
    /// .jsonschema or .schema for a JSON Schema.
    // Derived groups leave out the fields of structs that have flags of other structs.
    #[arg(long, short = 'g', value_name = "FILE|NAME", group = "LowGrammar")]
    grammar: Option<PathBuf>,
    /// A file with a JSON Schema, whatever its ending, instead of a grammar.
    #[arg(long, value_name = "FILE", group = "LowGrammar", conflicts_with_all = ["grammar", "regex"])]
    schema: Option<PathBuf>,
    /// A regular expression that the whole text must match, instead of a grammar.
    ///
    /// The dialect is that of Rust's `regex` crate, Unicode on, without look-around and
    /// back-references:
    ///   . \w \d \s \p{Greek}   Unicode, about as in Python; PCRE's are ASCII, and
    ///                          ECMAScript's \w and \d
    ///   [[:alpha:]]            a POSIX class, always ASCII, only inside of a class
    ///   [a[b]  [[]  [^[]       a literal `[`, as in Python, PCRE and ECMAScript
    ///   [\w&&[^\d]] [\w--\d]   set operations (`~~` too); Python and PCRE: characters
    ///   a*+  a{2}+             a repeat of a repeat; Python and PCRE: possessive
    ///   \0 \012 \cJ \e [\b]    NUL, an octal number, control characters, ESC, backspace
    ///   (?i) (?s) (?x) (?-u)   flags, anywhere; in a group (?i:...)
    ///   ^ $ \A \z \Z           only at the ends, where they change nothing
    ///   (?P<TEXT_UNTIL>stop)   a language by name; QUOTED_TEXT, SUBSTRING_OF and others
    ///   \1 (?P=x) (?R) (?1) (?(1)a) (?=a) (?>a) (?#a) \b   refused by name
    /// What Python, PCRE or ECMAScript read in another way is warned of. The whole table
    /// is in docs/regex.md.
    #[arg(
        verbatim_doc_comment,
        long,
        short = 'r',
        value_name = "REGEX",
        group = "LowGrammar",
        allow_hyphen_values = true,
        conflicts_with = "grammar"
    )]
    regex: Option<String>,
    /// The notation of the grammar file, when its ending does not say.
    #[arg(long, value_name = "SYNTAX", requires = "grammar")]
    syntax: Option<Notation>,
    #[command(flatten)]
    schemas: LowSchema,
    #[command(flatten)]
    tools: LowTools,
}

impl LowGrammar {
    /// Tells the flags of tools the model, and whether prompts are put into its chat template (a chat
    /// template may then be given without tools, and tools without a spelling). Returns the file of that
    /// template.
    pub(crate) fn is_for(&mut self, model: Option<&Path>, chat: bool) -> Option<PathBuf> {
        self.tools.is_for(model, chat)
    }

    /// Reads the flags as a grammar, if one was given.
    pub(crate) fn resolve(self) -> Result<Option<GrammarSource>, BadInput> {
        Ok(self.resolve_beside(SchemaOptions::default(), false)?.source)
    }

    /// Reads the flags as a grammar, if one was given; `defaults` hold where flags say nothing. With `rows`,
    /// no flag is idle, since rows may bring the grammars that it is for.
    pub(crate) fn resolve_beside(
        self,
        defaults: SchemaOptions,
        rows: bool,
    ) -> Result<UsualGrammar, BadInput> {
        let given = self.schemas.given();
        let options = self.schemas.resolve(defaults)?;
        // Clap lets a flag pass that needs another one where a third one excludes that.
        if self.grammar.is_none() && self.syntax.is_some() {
            return Err(BadInput::new("--syntax is for the file of --grammar").hint("leave --syntax out"));
        }
        if !rows {
            self.tools.refuse_idle()?;
        }
        let (tools, calling) = self.tools.resolve(rows)?;
        let boxed = Box::new(options.clone());
        let source = match (self.grammar, self.schema, self.regex, tools) {
            (Some(grammar), ..) => Some(GrammarSource::resolve(&grammar, self.syntax, *boxed)?),
            (None, Some(schema), ..) => Some(GrammarSource::schema(schema, *boxed)?),
            (None, None, Some(regex), _) => Some(GrammarSource::Regex(regex)),
            (None, None, None, Some(tools)) => {
                Some(GrammarSource::Tools(tools, Box::new(calling.calling()?), boxed))
            }
            (None, None, None, None) => None,
        };
        if !rows {
            schema::refuse_idle(&given, source.as_ref().map(GrammarSource::schema_flags))?;
        }
        Ok(UsualGrammar { source, options, calling })
    }

    /// Reads the flags as a grammar, and refuses them if there is none.
    pub(crate) fn required(self) -> Result<GrammarSource, BadInput> {
        self.required_beside(SchemaOptions::default())
    }

    /// Reads the flags as [`required`](Self::required) does; `defaults` hold where flags say nothing.
    pub(crate) fn required_beside(self, defaults: SchemaOptions) -> Result<GrammarSource, BadInput> {
        self.resolve_beside(defaults, false)?.source.ok_or_else(|| {
            let hint = "give --grammar FILE, --grammar json, --schema FILE, or --regex REGEX";
            BadInput::new("no grammar given").hint(hint)
        })
    }
}

/// Tell whether texts are in the language of a grammar, and where they leave it.
///
/// For each text that is not, the line and column (in characters, from 1) of the first character that cannot
/// follow are printed with what could have followed. Every byte counts, a line feed at the end too. Texts are
/// read only as far as it takes: one that never ends is refused as soon as it leaves the language.
///
/// Exit code 0 says that all texts are in the language, 1 that some are not, 4 that for some there is no
/// answer (a budget of work or memory was used up, or --max-bytes), 2 that some could not be read.
///
/// With --json one object is printed for each text: file, accepted (null where there is no answer), complete,
/// error; where it is accepted, and the grammar has named groups or marks rules, or --capture names some,
/// captures: a list of name, start, end (in bytes) and text, by start, what is around others first (of a
/// --prefix what is decided so far; null with captures_error where a budget ended); where it leaves the
/// language also offset (in bytes), line and column (in characters), character, expected, more_expected (how
/// many more there are) and terminals; where a budget ends line, column, rules and terminals.
///
/// With --batch the one input is lines of JSON (docs/batch.md), {"id": .., "text": "..", "prefix": false},
/// such as `generate --batch` writes; with schema, grammar and syntax, regex or tools where the grammar is
/// not that of the flags, and flags for JSON Schemas as further keys ("order": "schema", "max_depth": 3). For
/// each a line {"id": .., "accepted": true|false|null, "error": ..} comes at once; accepted is null, with
/// an error, where there is no answer, such as for a wrong grammar. Where it is false, the line also
/// has message, offset, line, column and so on, as with --json. Equal grammars are compiled once. The exit
/// code is then 0 if all rows had an answer, whatever it is, and 1 if some had none.
#[derive(Debug, Args)]
struct LowCheck {
    #[command(flatten)]
    grammar: LowGrammar,
    /// Ask whether the text can still be completed, not whether it is complete.
    #[arg(long)]
    prefix: bool,
    #[command(flatten)]
    capture: LowCapture,
    /// Before the texts, list every keyword of the JSON Schema and what becomes of it.
    ///
    /// It is enforced, annotation, unknown (it restricts nothing, and no draft knows it), relaxed (--lenient)
    /// or refused, and why; also of the schemas of --tools. No text need be given then. With --json one
    /// object: grammar, counts, keywords (pointer, keyword, status, note) and error, or functions with these.
    /// With --batch the answers have it as schema_report.
    #[arg(long)]
    report: bool,
    /// Read lines of JSON with a text each, and a grammar where it is not that of the flags.
    #[arg(long, conflicts_with = "rules")]
    batch: bool,
    /// Copy columns of rows that are not known to the answers, with --batch; otherwise they are refused.
    #[arg(long, requires = "batch")]
    keep_fields: bool,
    /// Read no more than this of a text, or of a line with --batch.
    ///
    /// A longer text that has not left the language by then has no answer (exit code 4).
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT_MAX_BYTES)]
    max_bytes: u64,
    /// The texts; - is standard input. With --batch at most one, and standard input if none.
    #[arg(value_name = "FILE", required_unless_present_any = ["batch", "report"])]
    files: Vec<PathBuf>,
}

/// Show which tokens may follow a text, and where in the grammar it is.
#[derive(Debug, Args)]
struct LowMask {
    #[command(flatten)]
    grammar: LowGrammar,
    #[command(flatten)]
    tokens: LowVocabulary,
    /// The text so far.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, default_value = "")]
    text: String,
    #[command(flatten)]
    reach: LowReach,
    /// Take the trees from this file of `domino compile`.
    ///
    /// One that is damaged or was made for something else is made again.
    #[arg(long, value_name = "FILE")]
    trees: Option<PathBuf>,
    /// Print all allowed tokens, not only the first.
    #[arg(long)]
    all: bool,
}

/// A command with everything that it needs.
#[derive(Debug)]
pub(crate) enum Command {
    Generate(Box<Generate>),
    Explain(Box<Explain>),
    Learn(Learn),
    Serve(Box<Serve>),
    Check(Check),
    Batch(Batch),
    Mask(Mask),
    Compile(Compile),
    Inspect(Inspect),
    Grammars(Grammars),
    Cache(Cache),
    Model(ModelFacts),
    BenchModel(BenchModel),
    Retokenize(Retokenize),
    Trace(Box<Trace>),
    Experiment(Experiment),
    Completions(LowCompletions),
    Man(LowMan),
}

/// The resolved command `domino mask`.
#[derive(Debug)]
pub(crate) struct Mask {
    pub(crate) grammar: GrammarSource,
    pub(crate) tokens: TokensOf,
    pub(crate) text: String,
    pub(crate) reach: Reach,
    pub(crate) trees: Option<PathBuf>,
    pub(crate) all: bool,
    pub(crate) json: bool,
}

impl LowArgs {
    /// The flags of this run, those of a file (`serve --config`) among them. Ends the program where they make
    /// no sense, and for `--help` and `--version`.
    ///
    /// # Errors
    /// If the file cannot be read or used.
    pub(crate) fn from_command_line() -> Result<Self, BadInput> {
        let mut command = Self::arranged();
        let line: Vec<OsString> = std::env::args_os().collect();
        let merged = serve::settings::merge(&command, line.clone())?;
        let mut read = |line: &[OsString]| {
            let matches = command.try_get_matches_from_mut(line);
            let args = matches.and_then(|matches| Self::from_arg_matches(&matches));
            args.map_err(|error| numbers::explained(error, &mut command))
        };
        read(&merged).or_else(|error| match merged == line || read(&line).is_err() {
            true => error.exit(),
            // Without the file the line is right.
            false => Err(serve::settings::of_file(&error)),
        })
    }

    /// Returns the format of the log of requests.
    pub(crate) fn log(&self) -> LogFormat {
        match &self.verb {
            LowVerb::Serve(serve) => serve.log(),
            _ => LogFormat::Off,
        }
    }

    /// Lists all commands and flags, as help shows them.
    pub(crate) fn arranged() -> clap::Command {
        help::arranged(numbers::may_be_negative(Self::command()))
    }

    /// True if standard error gets nothing but errors.
    pub(crate) fn quiet(&self) -> bool {
        self.quiet
    }

    /// True if `--json` was given.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// The exit code for a failure of the work. It is not 1 for `check` of texts, whose 1 says that a text is
    /// not in the language.
    pub(crate) fn failure(&self) -> Exit {
        let is_of_texts = matches!(&self.verb, LowVerb::Check(check) if !check.batch);
        if is_of_texts { Exit::NoAnswer } else { Exit::Failure }
    }

    /// Does the command take signals itself?
    pub(crate) fn takes_signals(&self) -> bool {
        cfg!(feature = "serve") && matches!(self.verb, LowVerb::Serve(_))
    }

    /// Takes the flags about budgets for this run.
    pub(crate) fn install_budgets(&self) -> Result<(), BadInput> {
        self.budgets.install()
    }

    /// Finds the cache folder.
    pub(crate) fn cache(&self) -> CacheFolder {
        self.cache.resolve()
    }

    /// Turns the flags into the command that they ask for.
    pub(crate) fn resolve(self) -> Result<Command, BadInput> {
        let json = self.json;
        match self.verb {
            LowVerb::Generate(low) => low.resolve(json).map(Box::new).map(Command::Generate),
            LowVerb::Explain(low) => low.resolve(json).map(Box::new).map(Command::Explain),
            LowVerb::Learn(low) => low.resolve(json).map(Command::Learn),
            LowVerb::Serve(low) => low.resolve(json).map(Box::new).map(Command::Serve),
            LowVerb::Check(low) => low.resolve(json),
            LowVerb::Mask(low) => low.resolve(json).map(Command::Mask),
            LowVerb::Compile(low) => low.resolve(json).map(Command::Compile),
            LowVerb::Inspect(low) => low.resolve(json).map(Command::Inspect),
            LowVerb::Grammars(low) => low.resolve(json).map(Command::Grammars),
            LowVerb::Cache(low) => Ok(Command::Cache(low.resolve(json))),
            LowVerb::Model(low) => Ok(Command::Model(low.resolve(json))),
            LowVerb::BenchModel(low) => low.resolve(json).map(Command::BenchModel),
            LowVerb::Retokenize(low) => low.resolve(json).map(Command::Retokenize),
            LowVerb::Trace(low) => low.resolve(json).map(Box::new).map(Command::Trace),
            LowVerb::Experiment(low) => low.resolve(json).map(Command::Experiment),
            LowVerb::Completions(low) => Ok(Command::Completions(low)),
            LowVerb::Man(low) => Ok(Command::Man(low)),
        }
    }
}

impl LowCheck {
    fn resolve(self, json: bool) -> Result<Command, BadInput> {
        let mut inputs: Vec<Input> = self.files.into_iter().map(Input::new).collect();
        if !self.batch {
            let grammar = self.grammar.required_beside(schema::for_checking())?;
            let captured = self.capture.resolve(json)?;
            let Self { prefix, report, max_bytes, .. } = self;
            return Ok(Command::Check(Check { grammar, prefix, inputs, captured, report, max_bytes, json }));
        }
        match (inputs.pop().unwrap_or(Input::Stdin), inputs.is_empty()) {
            (input, true) => {
                let usual = self.grammar.resolve_beside(schema::for_checking(), true)?;
                let Self { max_bytes, keep_fields: keep, prefix, report, .. } = self;
                Ok(Command::Batch(Batch { input, max_bytes, usual, keep, prefix, report }))
            }
            _ => Err(BadInput::new("--batch takes one file of JSON lines, or - for standard input")),
        }
    }
}

impl LowMask {
    fn resolve(self, json: bool) -> Result<Mask, BadInput> {
        let grammar = self.grammar.required()?;
        let reach = self.reach.resolve();
        let Self { tokens, text, trees, all, .. } = self;
        Ok(Mask { grammar, tokens: tokens.resolve(), text, reach, trees, all, json })
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn flags_fit_together() {
        super::LowArgs::command().debug_assert();
        crate::help::arranged(super::LowArgs::command()).debug_assert();
        crate::help::check_tables(&super::LowArgs::command());
    }
}
