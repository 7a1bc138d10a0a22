//! `domino inspect`: shows what a grammar is compiled to, stage by stage.
//!
//! One file a stage; each prints text for people, JSON, or a graph.

mod along;
pub(crate) mod args;
mod dfas;
mod dot;
mod masks;
mod origins;
mod rules;
mod sets;
mod summary;
mod terminals;
mod trees;

use std::{
    io::{self, Write},
    time::{Duration, Instant},
};

use domino::{
    CompiledGrammar, Constraint, Vocabulary,
    ids::{RuleId, TerminalId},
    inspect::Inspection,
    store::CacheFolder,
};
use serde_json::{Value, json};

use self::{
    args::{Form, Inspect, Stage, Text},
    origins::Origins,
};
use crate::{
    grammar::{
        bytes::byte_vocabulary,
        keywords::report,
        places::Places,
        reading::{Leaving, Reading},
        warned,
    },
    session::reach::terminals_name,
    terminal::{
        failure::{BadInput, Exit},
        progress, stdout,
    },
};

/// The data that the stages show.
struct Subject<'a> {
    command: &'a Inspect,
    compiled: CompiledGrammar,
    inspection: Inspection,
    vocabulary: Vocabulary,
    places: Places,
    /// Origins in the schema; `None` if the grammar is no schema.
    origins: Option<Origins>,
    /// The rule that was asked for.
    rule: Option<RuleId>,
    /// The terminal that was asked for.
    terminal: Option<TerminalId>,
    reading: Duration,
    compiling: Duration,
}

impl Subject<'_> {
    /// Limit on the rows shown of anything.
    fn limit(&self) -> usize {
        self.command.limit
    }

    fn rule_name(&self, rule: RuleId) -> &str {
        self.inspection.rule_name(rule).unwrap_or_default()
    }

    fn rule_names(&self, rules: &[RuleId]) -> Vec<&str> {
        rules.iter().map(|&rule| self.rule_name(rule)).collect()
    }

    /// True if the terminal and one of these rules are those asked for, as far as any were.
    fn wants(&self, terminal: TerminalId, rules: &[RuleId]) -> bool {
        self.terminal.is_none_or(|wanted| wanted == terminal)
            && self.rule.is_none_or(|wanted| rules.contains(&wanted))
    }
}

/// Compiles the grammar and shows the stage that was asked for.
pub(crate) fn run(command: &Inspect, cache: &CacheFolder) -> anyhow::Result<Exit> {
    if command.stage == Stage::Schema {
        return keywords(command);
    }
    let vocabulary = match &command.tokens {
        Some(tokens) => tokens.vocabulary(cache)?,
        None => byte_vocabulary()?,
    };
    let compiler = crate::grammar::budgets::compiler(vocabulary.clone()).terminals(command.terminals);
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
    let terminal = command.terminal.map(TerminalId::new);
    if let Some(wanted) = terminal
        && inspection.terminals().len() <= wanted.index()
    {
        let count = inspection.terminals().len();
        return Err(BadInput::new(format!("no terminal {wanted}: there are {count}"))
            .hint("`domino inspect terminals` lists them")
            .into());
    }
    let origins = match command.stage {
        Stage::All | Stage::Terminals | Stage::Masks => Origins::of(&text, command.limit),
        _ => None,
    };
    let places = Places::new(text.text().into_owned());
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
    let mut out = stdout::lock();
    match command.stage {
        Stage::All => summary::show(&subject, &mut out)?,
        Stage::Rules => rules::show(&subject, &mut out)?,
        Stage::Terminals => terminals::show(&subject, &mut out)?,
        Stage::Dfas => dfas::show(&subject, &mut out)?,
        Stage::Trees => trees::show(&subject, &mut out)?,
        Stage::Masks => masks::show(&subject, &mut out)?,
        // This stage was shown without compiling.
        Stage::Schema => {}
        Stage::Sets => return follow(&subject, subject.compiled.constraint(), &mut out),
    }
    Ok(Exit::Success)
}

/// Shows the report on a schema's keywords, also of a schema that cannot be used; the exit code is then an
/// error's.
fn keywords(command: &Inspect) -> anyhow::Result<Exit> {
    let text = command.grammar.load()?;
    report(&command.grammar.name(), &text.reports()?, command.form == Form::Json)?;
    warned::tell(&command.grammar.name(), text.parse()?.warnings());
    Ok(Exit::Success)
}

/// Follows the text, and shows the state behind it.
fn follow(subject: &Subject<'_>, mut constraint: Constraint, out: &mut impl Write) -> anyhow::Result<Exit> {
    let text = match &subject.command.text {
        Text::Along(input) => {
            let text = input.read()?;
            along::show(subject, &mut constraint, &text, out)?;
            text
        }
        Text::After(text) => text.as_bytes().to_vec(),
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
    if let Text::After(_) = subject.command.text {
        sets::show(subject, &reading.into_state(), out)?;
    }
    Ok(Exit::Success)
}

fn left_language(leaving: &Leaving) -> anyhow::Error {
    let Leaving { line, column, what, .. } = leaving;
    anyhow::anyhow!("the text leaves the language at {line}:{column}: {what}")
}

fn find_rule(inspection: &Inspection, name: &str) -> Result<RuleId, BadInput> {
    inspection
        .rules()
        .find(|rule| rule.name == name)
        .map(|rule| rule.rule)
        .ok_or_else(|| BadInput::new(format!("no rule {name:?}")).hint("`domino inspect rules` lists them"))
}

/// Prints one JSON object.
fn print_json(out: &mut impl Write, object: &Value) -> io::Result<()> {
    writeln!(out, "{object}")
}

/// Prints the number of rows that were left out, if there are any.
fn print_rest(out: &mut impl Write, indent: usize, shown: usize, total: usize) -> io::Result<()> {
    if shown < total {
        writeln!(out, "{:indent$}and {} more (--limit 0 shows all)", "", total - shown)?;
    }
    Ok(())
}

/// Converts a time to milliseconds, rounded, for JSON and people.
fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// Makes the fields that every JSON answer begins with.
fn head(subject: &Subject<'_>, stage: &str) -> serde_json::Map<String, Value> {
    let mut map = serde_json::Map::new();
    map.insert("grammar".to_owned(), json!(subject.command.grammar.name()));
    map.insert("stage".to_owned(), json!(stage));
    map.insert("terminal_kind".to_owned(), json!(terminals_name(subject.command.terminals)));
    let warnings = subject.compiled.grammar_warnings();
    if !warnings.is_empty() {
        map.insert("grammar_warnings".to_owned(), warned::list(warnings));
    }
    map
}
