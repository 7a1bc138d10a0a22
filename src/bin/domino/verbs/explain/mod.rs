//! `domino explain`: writes one text and shows how each token came about, as a page of HTML or as JSON.

pub(crate) mod args;
mod facts;
mod html;
mod json;
mod page;
mod watch;

use std::{io::Write, path::Path};

use domino::decode::{Decoder, Finish};
use domino::{
    CompiledGrammar, Lookahead, TerminalRun, Terminals, grammar::GrammarWarning, inspect::TerminalView,
    model::candle::join_threads, store::CacheFolder,
};

use self::facts::{Facts, Name, Underneath};
use self::{args::Explain, watch::Watched};
use crate::grammar::compiler::{Reach, byte_vocabulary};
use crate::grammar::{compiled, warned};
use crate::session::runner::{bad_model, load, read_tokenizer, step_error};
use crate::terminal::failure::{self, Exit};
use crate::terminal::{self, progress};
use crate::{files::Output, grammar::source::GrammarSource, session::chat::prompt_text, session::model};

/// Limit on the characters of an expression that is its own name; longer ones are called by their rule.
const SHORT: usize = 10;

/// Writes the text, replays it, and shows the facts of both.
pub(crate) fn run(command: &Explain, cache: &CacheFolder) -> anyhow::Result<Exit> {
    // The file is checked before minutes are spent on its content.
    let out = command.out.as_deref().map(Output::prepare).transpose()?;
    let folder = model::locate(command.model.as_deref())?;
    join_threads(command.threads);
    let prompt = prompt_text(&command.prompt)?;
    let vocabulary = model::vocabulary(&folder, cache)?;
    let grammar = match &command.grammar {
        Some(source) => {
            let compiled = source.compile(&command.reach.compiler(vocabulary.clone(), cache))?;
            compiled::give_advice(source, &compiled);
            Some((source, compiled))
        }
        None => None,
    };
    let tokenizer = read_tokenizer(&folder)?;
    let (ids, prompt) = command.prompts(&folder)?.shown(&tokenizer, &prompt, &vocabulary)?;
    let model = load(&folder, &command.load, command.card)?;
    let mut builder = Decoder::builder(model).vocabulary(vocabulary.clone()).options(command.options.clone());
    let mut drafter = None;
    if let Some((source, grammar)) = &grammar {
        builder = builder.constraint(grammar.constraint());
        let draft = command.speculation.draft_model(command.card, grammar, &tokenizer, cache)?;
        drafter = command.speculation.drafter(Some(source), grammar, &folder, &tokenizer, draft.as_ref())?;
    }
    let mut decoder = builder.build().map_err(|error| bad_model(&error))?;
    decoder.set_drafter(drafter.map(|(drafter, _)| drafter));
    progress::watch_interrupts();
    let Watched { generation, passes, interrupted } =
        progress::during("writing the text", || watch::write(&mut decoder, &ids))?;
    let mut tokens = generation.tokens.clone();
    tokens.extend(generation.end_of_text);
    let replayed = progress::during("looking at it again", || {
        decoder.replay(&ids, &tokens, command.alternatives).map_err(step_error)
    })?;
    let underneath = grammar.as_ref().map(|(source, grammar)| underneath(source, grammar, &generation.text));
    let facts = Facts {
        model: model_name(command.model.as_deref(), &folder),
        grammar: command.grammar.as_ref().map(|source| without_folder(source.name())),
        prompt,
        settings: settings(command),
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

/// Writes the facts as JSON, or says where the page is.
fn tell(command: &Explain, facts: &Facts, warnings: &[GrammarWarning]) -> anyhow::Result<()> {
    let mut stdout = terminal::stdout();
    if command.json {
        writeln!(stdout, "{}", warned::with(json::object(facts), warnings))?;
    } else if let Some(file) = &command.out {
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

fn settings(command: &Explain) -> Vec<(&'static str, String)> {
    let options = &command.options;
    let mut settings = vec![
        ("temperature", options.sampling.temperature().to_string()),
        ("seed", options.seed.to_string()),
        ("at most", format!("{} tokens", options.max_new_tokens)),
    ];
    if let Lookahead::Terminals(k) = command.reach.lookahead {
        settings.push(("lookahead", k.to_string()));
    }
    settings
}

fn finish_name(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::OnlySpace => "only_space",
        Finish::StopString => "stop_string",
        _ => "length",
    }
}
