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
use domino::{Constraint, inspect::Inspection, store::CacheFolder};

use self::args::{Inspect, OutputForm, SetsText, View};
use self::subject::{Origins, Subject, left_language};
use crate::grammar::warned::{self, report_keywords};
use crate::terminal::failure::{BadInput, Exit};
use crate::terminal::{self, progress};
use crate::{grammar::compiled::LineIndex, grammar::compiler::byte_vocabulary, grammar::reading::Reading};

/// Compiles the grammar and shows the stage that was asked for.
pub(crate) fn run(command: &Inspect, cache: &CacheFolder) -> anyhow::Result<Exit> {
    if command.stage == View::Schema {
        return keywords(command);
    }
    let vocabulary = match &command.tokens {
        Some(tokens) => tokens.vocabulary(cache)?,
        None => byte_vocabulary()?,
    };
    let compiler = crate::grammar::compiler::compiler(vocabulary.clone()).terminals(command.terminals);
    // Without a tokenizer any special token may exist.
    let compiler = if command.tokens.is_none() { compiler.any_special() } else { compiler };
    let text = command.grammar.load()?;
    let start = Instant::now();
    let grammar = text.parse()?;
    let reading = start.elapsed();
    let compiled = progress::during(format!("compiling {}", command.grammar.name()), || {
        text.compile_parsed(&grammar, &compiler)
    })?;
    let compiling = start.elapsed().saturating_sub(reading);
    warned::tell(&command.grammar.name(), compiled.grammar_warnings());
    let inspection = compiled.inspect();
    let rule = match &command.rule {
        Some(name) => Some(find_rule(&inspection, name)?),
        None => None,
    };
    let terminal = command.terminal.map(|number| find_terminal(&inspection, number)).transpose()?;
    let origins = match command.stage {
        View::All | View::Terminals | View::Masks => Origins::of(&text, command.limit),
        _ => None,
    };
    let places = LineIndex::new(text.text().into_owned());
    let subject = Subject {
        command,
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
        View::Sets => return follow(&subject, subject.compiled.constraint(), &mut out),
    }
    Ok(Exit::Success)
}

/// Shows the report on a schema's keywords, also of a schema that cannot be used; the exit code is then an
/// error's.
fn keywords(command: &Inspect) -> anyhow::Result<Exit> {
    let text = command.grammar.load()?;
    report_keywords(&command.grammar.name(), &text.reports()?, command.form == OutputForm::Json)?;
    warned::tell(&command.grammar.name(), text.parse()?.warnings());
    Ok(Exit::Success)
}

/// Follows the text, and shows the state behind it.
fn follow(subject: &Subject<'_>, mut constraint: Constraint, out: &mut impl Write) -> anyhow::Result<Exit> {
    let text = match &subject.command.text {
        SetsText::Along(input) => {
            let text = input.read()?;
            along::show(subject, &mut constraint, &text, out)?;
            text
        }
        SetsText::After(text) => text.as_bytes().to_vec(),
    };
    let mut reading = Reading::new(subject.compiled.constraint());
    let left = match reading
        .push(&text)
        .and_then(|left| left.map_or_else(|| reading.finish(), |left| Ok(Some(left))))
    {
        Ok(left) => left,
        Err(unanswered) => {
            unanswered.told().print();
            return Ok(Exit::NoAnswer);
        }
    };
    if let Some(leaving) = left {
        return Err(left_language(&leaving));
    }
    if let SetsText::After(_) = subject.command.text {
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
