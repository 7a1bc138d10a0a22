//! `domino explain`: writes one text and shows how each token came about, as a page of HTML or as JSON.

mod facts;
mod page;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use domino::decode::{DecodeOptions, Decoder, Generation};
use domino::model::candle::{LoadOptions, join_threads};
use domino::{
    CompiledGrammar, Compiler, Lookahead, TerminalRun, Terminals, grammar::GrammarWarning,
    grammar::json_schema::SchemaOptions, inspect::TerminalView, store::CacheFolder,
};

use self::facts::{Facts, Name, Underneath, Watched};
use crate::flags::grammar::{LowGrammar, LowReach, UsualGrammar};
use crate::flags::{LowContext, LowDevice};
use crate::flags::{drawing::LowOptions, speculate::LowSpeculate, tools::LowChat};
use crate::grammar::compiler::{Reach, byte_vocabulary};
use crate::grammar::{compiled, warned};
use crate::session::chat::{Chat, PromptSource, Prompts, prompt_text};
use crate::session::model::{self, RunBy, bad_model, finish_name, load, read_tokenizer, step_error};
use crate::terminal::failure::{self, BadInput, Exit};
use crate::terminal::{self, progress};
use crate::{files::Output, grammar::source::GrammarSource, session::drafts::Speculation};

/// Limit on the characters of an expression that is its own name; longer ones are called by their rule.
const SHORT: usize = 10;

/// Writes the text, replays it, and shows the facts of both.
pub(crate) fn run(command: &Explain, cache: &CacheFolder) -> anyhow::Result<Exit> {
    // The file is checked before minutes are spent on its content.
    let flags = &command.flags;
    let out = flags.out.as_deref().map(Output::prepare).transpose()?;
    let folder = model::locate(flags.model.as_deref())?;
    join_threads(flags.device.threads);
    let prompt = prompt_text(&command.prompt)?;
    let vocabulary = model::vocabulary(&folder, cache)?;
    let (tokenizer, prompts) = (read_tokenizer(&folder)?, command.prompts(&folder)?);
    let (ids, prompt) = prompts.shown(&tokenizer, &prompt, &vocabulary)?;
    let source = command.source(&prompts, &prompt);
    let compiler = command.reach.compiler(vocabulary.clone(), cache);
    let grammar = source.map(|source| compile(source, &compiler)).transpose()?;
    let model = load(&folder, &command.load, command.by)?;
    let drafts = model.no_drafts().is_none();
    let mut builder = Decoder::builder(model).vocabulary(vocabulary.clone()).options(command.options.clone());
    let mut drafter = None;
    if let Some((source, grammar)) = &grammar {
        builder = builder.constraint(grammar.constraint());
        if drafts {
            let guesses = &command.speculation;
            let draft = guesses.draft_model(command.by, grammar, &tokenizer, cache)?;
            drafter = guesses.drafter(Some(source), grammar, &folder, &tokenizer, draft.as_ref())?;
        }
    }
    let mut decoder = builder.build().map_err(|error| bad_model(&error))?;
    decoder.set_drafter(drafter.map(|(drafter, _)| drafter));
    progress::watch_interrupts();
    let Watched { generation, passes, interrupted } =
        progress::during("writing the text", || facts::write_watched(&mut decoder, &ids))?;
    let mut tokens = generation.tokens.clone();
    tokens.extend(generation.end_of_text);
    let replayed = progress::during("looking at it again", || {
        decoder.replay(&ids, &tokens, command.alternatives).map_err(step_error)
    })?;
    let underneath = grammar.as_ref().map(|(source, grammar)| underneath(source, grammar, &generation.text));
    let facts = Facts {
        model: model_name(flags.model.as_deref(), &folder),
        grammar: command.usual.source.as_ref().map(|source| without_folder(source.name())),
        prompt,
        settings: settings(command, &generation),
        finish: if interrupted { "interrupted" } else { finish_name(generation.finish) },
        tokens: facts::tokens(&vocabulary, &generation, replayed, &passes, underneath.as_ref()),
        passes: generation.stats.passes,
        drafted: generation.stats.drafted,
        accepted: generation.stats.accepted,
        text: generation.text,
        complete: generation.complete,
        appended: generation.completion.map(|completion| completion.bytes),
        underneath,
        vocabulary,
    };
    if let Some(out) = out {
        out.write(page::page(&facts).as_bytes())?;
    }
    let warnings = grammar.as_ref().map(|(_, grammar)| grammar.grammar_warnings()).unwrap_or_default();
    tell(command, &facts, warnings)?;
    Ok(if interrupted { Exit::Interrupted } else { Exit::Success })
}

/// Compiles the grammar, and advises on what it costs.
fn compile(source: GrammarSource, compiler: &Compiler) -> Result<(GrammarSource, CompiledGrammar), BadInput> {
    let compiled = source.compile(compiler)?;
    compiled::give_advice(&source, &compiled);
    Ok((source, compiled))
}

/// Writes the facts as JSON, or says where the page is.
fn tell(command: &Explain, facts: &Facts, warnings: &[GrammarWarning]) -> anyhow::Result<()> {
    let mut stdout = terminal::stdout();
    if command.json {
        writeln!(stdout, "{}", warned::with(facts::facts_as_json(facts), warnings))?;
    } else if let Some(file) = &command.flags.out {
        writeln!(stdout, "{}: {}", file.display(), facts.summary())?;
    }
    Ok(())
}

/// Finds the terminals that the parts of the text belong to. They are those that the grammar is written with,
/// which its readers know, and need no tokens. If that costs too much, the result holds the reason.
fn underneath(source: &GrammarSource, grammar: &CompiledGrammar, text: &[u8]) -> Underneath {
    let reach = Reach { lookahead: Lookahead::Unbounded, terminals: Terminals::Written };
    let written = byte_vocabulary().map_err(anyhow::Error::from).and_then(|vocabulary| {
        Ok(source.load()?.compile_quietly(&reach.compiler(vocabulary, &CacheFolder::none()))?)
    });
    let grammar = written.as_ref().unwrap_or(grammar);
    let runs = grammar.constraint().terminal_runs(text);
    let inspection = grammar.inspect();
    let rule = |terminal: &TerminalView| inspection.rule_name(terminal.rule).unwrap_or_default().to_owned();
    let name = |terminal: TerminalView| {
        let rule_name = rule(&terminal);
        // A key of an object of a schema: the rules of objects are named after places in the schema.
        let text: Option<String> = serde_json::from_str(&terminal.name).ok();
        let is_key = |text: &String| text.len() > 2 && text.starts_with('"') && text.ends_with('"');
        if let Some(key) = text.filter(|text| rule_name.starts_with('#') && is_key(text)) {
            let name = format!("key {key}");
            return Name { label: name.clone(), whole: name };
        }
        // Long literals are recognised by their beginning, so they keep their own name too.
        let short = terminal.name.chars().count() <= SHORT || terminal.name.starts_with('"');
        let label = if short { terminal.name.clone() } else { rule_name };
        Name { label, whole: terminal.name }
    };
    let names = inspection.terminals().map(name).collect();
    match runs {
        Ok(runs) => Underneath { runs: runs.unwrap_or_default(), names, trouble: None },
        Err(error) => {
            let trouble = Some(failure::told(&error).sentence);
            Underneath { runs: Vec::<TerminalRun>::new(), names, trouble }
        }
    }
}

/// The name that was given, or that of the folder: output does not reveal the path to it.
fn model_name(given: Option<&Path>, folder: &Path) -> String {
    let name = given.unwrap_or_else(|| folder.file_name().map_or(folder, Path::new));
    without_folder(name.display().to_string())
}

/// The name of a file or a folder without those that it lies in. Other names, such as those of models on the
/// hub, stay as they are.
fn without_folder(name: String) -> String {
    let path = Path::new(&name);
    let own = path.file_name().filter(|_| path.exists()).map(|own| own.to_string_lossy().into_owned());
    own.unwrap_or(name)
}

fn settings(command: &Explain, generation: &Generation) -> Vec<(&'static str, String)> {
    let options = &command.options;
    let mut settings = vec![
        ("temperature", options.sampling.temperature().to_string()),
        ("seed", options.seed.to_string()),
        ("at most", format!("{} tokens", options.max_new_tokens)),
    ];
    if let Lookahead::Terminals(k) = command.reach.lookahead {
        settings.push(("lookahead", k.to_string()));
    }
    if generation.reasoning.is_some() {
        settings.push(("the grammar begins at byte", generation.answer_at.to_string()));
    }
    settings
}

/// Number of alternatives that are listed unless `--logprobs` says otherwise.
const USUAL_ALTERNATIVES: usize = 8;

const EXAMPLES: &str = "\
Examples:
  domino explain --grammar json --prompt 'A JSON file describing a person: ' -o person.html
  domino explain --grammar my.schema.json -p 'One order:' --temperature 0 --speculate 6 -o order.html
  domino explain --regex '[0-9]{4}-[0-9]{2}' -p 'Today is ' --json";

/// Show how a text was written: what the model wanted, what the grammar allowed, and what was drafted.
///
/// Writes the text that `domino generate` writes with the same flags, then goes over it once more with all
/// probabilities, and writes a page of HTML that needs nothing but a browser. Each token is a box. Its hue
/// is the surprise -ln p under the model without a grammar. The bar below shows the share of the model's
/// probability that the grammar kept. The line under the bar names the terminals that the token's text
/// belongs to, as the grammar writes them, whatever --terminals says. Where the grammar intervened, the token
/// that the model alone would have drawn stands above the box, struck through. Marks show which tokens were
/// drafted and accepted, and where a draft was refused. The pointer or the arrow keys show alternatives.
///
/// All probabilities are of the model's distribution at temperature 1, without penalties and cuts.
///
/// With --json the same is printed as an object: text, finish, complete, tokens (a list, each with token,
/// token_id, logprob, constrained_logprob, log_kept, allowed, own, intervened, draft, pieces and
/// alternatives), and sums. The exit code is 0 once the page is written, whether the text is complete or cut.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LowExplain {
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
    /// The model: a folder, a GGUF file, or OWNER/NAME on the Hugging Face hub, as for `domino generate`.
    #[arg(long, short = 'm', value_name = "DIR|FILE|ID")]
    model: Option<PathBuf>,
    #[command(flatten)]
    device: LowDevice,
    #[command(flatten)]
    context: LowContext,
    #[command(flatten)]
    options: LowOptions,
    #[command(flatten)]
    reach: LowReach,
    #[command(flatten)]
    speculate: LowSpeculate,
    /// The file that the page is written to. Can be left out with --json.
    #[arg(long, short = 'o', value_name = "FILE.html")]
    out: Option<PathBuf>,
}

/// The command `domino explain`: its flags, and what they mean.
#[derive(Debug)]
pub(crate) struct Explain {
    flags: LowExplain,
    usual: UsualGrammar,
    prompt: PromptSource,
    /// The flags of the chat template; `None` if the prompt stays as it is.
    chat: Option<Chat>,
    by: RunBy,
    load: LoadOptions,
    options: DecodeOptions,
    /// Number of alternatives of each kind that are listed for a token.
    alternatives: usize,
    reach: Reach,
    speculation: Speculation,
    json: bool,
}

impl Explain {
    /// Makes the maker of the prompt's tokens, for the model in `folder`.
    fn prompts(&self, folder: &Path) -> Result<Prompts, BadInput> {
        Prompts::open(self.chat.as_ref(), folder, self.usual.source.as_ref(), self.json)
    }

    /// Finds the grammar of the text that goes on from a prompt as the model gets it, behind its thought.
    fn source(&self, prompts: &Prompts, prompt: &str) -> Option<GrammarSource> {
        let source = self.usual.source.clone()?;
        let thought = prompts.thought(&self.usual.thinking, &source, prompt.as_bytes(), self.chat.is_some());
        Some(source.behind(thought))
    }
}

impl LowExplain {
    /// Reads the flags as the command.
    pub(crate) fn resolve(mut self, json: bool) -> Result<Explain, BadInput> {
        let mut options = self.options.resolve()?;
        let template = self.grammar.is_for(self.model.as_deref(), self.chat.is_asked());
        let chat = self.chat.resolve(template);
        let usual = self.grammar.resolve_beside(SchemaOptions::default(), false)?;
        let constrained = usual.source.is_some();
        self.reach.refuse_idle(constrained)?;
        self.options.tell_idle(false);
        if options.close && !constrained {
            return Err(BadInput::new("--finish needs a grammar: without one any text is finished"));
        }
        if self.speculate.compares() {
            return Err(BadInput::new("--compare makes no text to explain").hint("see `domino generate`"));
        }
        if self.out.is_none() && !json {
            return Err(
                BadInput::new("no place for the page").hint("give -o FILE.html, or --json to print its data")
            );
        }
        // The text is drawn as `generate` would draw it; the alternatives are found afterwards, by a replay.
        let alternatives = options.logprobs.take().unwrap_or(USUAL_ALTERNATIVES);
        let load = self.context.beside(self.device.load_options()?);
        let prompt = PromptSource::of(self.prompt.take(), self.prompt_file.take());
        let (by, reach) = (self.device.resolve(), self.reach.resolve());
        let speculation = self.speculate.resolve(constrained)?;
        let flags = self;
        Ok(Explain { flags, usual, prompt, chat, by, load, options, alternatives, reach, speculation, json })
    }
}
