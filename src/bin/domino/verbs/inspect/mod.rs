//! `domino inspect`: shows what a grammar is compiled to, stage by stage.
//!
//! One file a stage; each prints text for people, JSON, or a graph.

mod along;
pub(crate) mod args;
mod rules;
mod subject;
mod summary;
mod terminals;
mod trees;

use std::{io::Write, time::Instant};

use domino::ids::{RuleId, TerminalId};
use domino::{inspect::Inspection, store::CacheFolder};

use self::args::{LowInspect, View};
use self::subject::{Origins, Subject, left_language};
use crate::grammar::warned::{self, report_keywords};
use crate::grammar::{
    compiled::LineIndex, compiler::byte_vocabulary, reading::Reading, source::GrammarSource,
};
use crate::terminal::failure::{BadInput, Exit};
use crate::terminal::{self, progress};

/// Compiles the grammar and shows the stage that was asked for.
pub(crate) fn run(command: &LowInspect, json: bool, cache: &CacheFolder) -> anyhow::Result<Exit> {
    let (form, source) = (command.form(json)?, command.grammar.required()?);
    if command.stage == View::Schema {
        return keywords(&source, json);
    }
    let tokens = command.tokens.given();
    let vocabulary = match &tokens {
        Some(tokens) => tokens.vocabulary(cache)?,
        None => byte_vocabulary()?,
    };
    let compiler = crate::grammar::compiler::compiler(vocabulary.clone());
    let compiler = compiler.terminals(command.terminals.resolve());
    // Without a tokenizer any special token may exist.
    let compiler = if tokens.is_none() { compiler.any_special() } else { compiler };
    let (name, text) = (source.name(), source.load()?);
    let start = Instant::now();
    let grammar = text.parse()?;
    let reading = start.elapsed();
    let compiled =
        progress::during(format!("compiling {name}"), || text.compile_parsed(&grammar, &compiler))?;
    let compiling = start.elapsed().saturating_sub(reading);
    warned::tell(&name, compiled.grammar_warnings());
    let inspection = compiled.inspect();
    let rule = command.rule.as_ref().map(|name| find_rule(&inspection, name)).transpose()?;
    let terminal = command.terminal.map(|number| find_terminal(&inspection, number)).transpose()?;
    let origins = match command.stage {
        View::All | View::Terminals | View::Masks => Origins::of(&text, command.limit),
        _ => None,
    };
    let places = LineIndex::new(text.text().into_owned());
    let subject = Subject {
        command,
        name,
        form,
        with_tokens: tokens.is_some(),
        compiled,
        inspection,
        vocabulary,
        places,
        origins,
        rule,
        terminal,
        reading,
        compiling,
    };
    let mut out = terminal::stdout();
    match command.stage {
        View::All => summary::show(&subject, &mut out)?,
        View::Rules => rules::show(&subject, &mut out)?,
        View::Terminals => terminals::show(&subject, &mut out)?,
        View::Dfas => terminals::show_automata(&subject, &mut out)?,
        View::Trees => trees::show(&subject, &mut out)?,
        View::Masks => along::show_masks(&subject, &mut out)?,
        // This stage was shown without compiling.
        View::Schema => {}
        View::Sets => return follow(&subject, &mut out),
    }
    Ok(Exit::Success)
}

/// Shows the report on a schema's keywords, also of a schema that cannot be used; the exit code is then an
/// error's.
fn keywords(source: &GrammarSource, json: bool) -> anyhow::Result<Exit> {
    let text = source.load()?;
    report_keywords(&source.name(), &text.reports()?, json)?;
    warned::tell(&source.name(), text.parse()?.warnings());
    Ok(Exit::Success)
}

/// Follows the text, and shows the state behind it.
fn follow(subject: &Subject<'_>, out: &mut impl Write) -> anyhow::Result<Exit> {
    let text = subject.command.text()?;
    if subject.command.along.is_some() {
        along::show(subject, &mut subject.compiled.constraint(), &text, out)?;
    }
    let mut reading = Reading::new(subject.compiled.constraint());
    let left = match reading.whole(&text) {
        Ok(left) => left,
        Err(unanswered) => {
            unanswered.told.print();
            return Ok(Exit::NoAnswer);
        }
    };
    if let Some(leaving) = left {
        return Err(left_language(&leaving));
    }
    if subject.command.along.is_none() {
        along::show_sets(subject, &reading.into_state(), out)?;
    }
    Ok(Exit::Success)
}

fn find_terminal(inspection: &Inspection, number: u32) -> Result<TerminalId, BadInput> {
    let (wanted, count) = (TerminalId::new(number), inspection.terminals().len());
    if wanted.index() < count {
        return Ok(wanted);
    }
    let error = BadInput::new(format!("no terminal {wanted}: there are {count}"));
    Err(error.hint("`domino inspect terminals` lists them"))
}

fn find_rule(inspection: &Inspection, name: &str) -> Result<RuleId, BadInput> {
    inspection
        .rules()
        .find(|rule| rule.name == name)
        .map(|rule| rule.rule)
        .ok_or_else(|| BadInput::new(format!("no rule {name:?}")).hint("`domino inspect rules` lists them"))
}
