//! `domino mask`: shows what may follow a text.

use std::{io::Write, path::PathBuf};

use clap::Args;
use domino::{Constraint, TokenId, Vocabulary, grammar::GrammarWarning, store::CacheFolder};
use serde_json::json;

use crate::flags::grammar::{LowGrammar, LowReach, LowVocabulary};
use crate::grammar::reading::{Leaving, Reading};
use crate::grammar::{compiled, warned};
use crate::terminal::failure::{self, Exit, Told, note};
use crate::terminal::{self, describe, extend, progress};

/// Limit on the tokens and threads shown, unless all are asked for.
const MOST_SHOWN: usize = 50;

/// Show which tokens may follow a text, and where in the grammar it is.
#[derive(Debug, Args)]
pub(crate) struct LowMask {
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

/// Advances by the text and shows the state.
pub(crate) fn run(command: &LowMask, json: bool, cache: &CacheFolder) -> anyhow::Result<Exit> {
    let (grammar, reach) = (command.grammar.required()?, command.reach.resolve());
    let vocabulary = command.tokens.resolve().vocabulary(cache)?;
    let compiler = reach.compiler(vocabulary.clone(), cache);
    let compiled = grammar.compile(&compiler)?;
    if let Some(file) = &command.trees {
        compiled::attach_trees(&compiled, file, &grammar.name())?;
    }
    let mut reading = Reading::new(compiled.constraint());
    let left = match reading.whole(command.text.as_bytes()) {
        Ok(left) => left,
        Err(unanswered) => return Ok(no_answer(json, unanswered.told)?),
    };
    if let Some(leaving) = left {
        return refused(json, &leaving, compiled.grammar_warnings());
    }
    let mut constraint = reading.into_state();
    let mask = progress::during("making the mask", || constraint.mask().map(|mask| mask.iter().collect()));
    let allowed: Vec<TokenId> = match mask {
        Ok(allowed) => allowed,
        Err(error) => {
            let mut told = failure::told_in_place(&error, &constraint);
            told.sentence = format!("no mask after the text: {}", told.sentence);
            return Ok(no_answer(json, told)?);
        }
    };
    let complete = constraint.is_complete();
    if json {
        let ids: Vec<u32> = allowed.iter().map(|token| token.raw()).collect();
        let eos = allowed.iter().any(|&token| vocabulary.is_end_of_text(token));
        let object = json!({
            "count": ids.len(), "allowed": ids, "complete": complete, "eos": eos,
            "threads": constraint.threads(),
        });
        writeln!(terminal::stdout(), "{}", warned::with(object, compiled.grammar_warnings()))?;
    } else {
        show(command.all, &vocabulary, &constraint, &allowed)?;
    }
    Ok(Exit::Success)
}

/// Reports that a budget was used up.
fn no_answer(json: bool, told: Told) -> std::io::Result<Exit> {
    if json {
        writeln!(terminal::stdout(), "{}", json!({ "error": told.sentence, "hint": told.hint }))?;
    }
    told.print();
    Ok(Exit::NoAnswer)
}

/// Reports that the text itself cannot be written.
fn refused(json: bool, leaving: &Leaving, warnings: &[GrammarWarning]) -> anyhow::Result<Exit> {
    let what = format!("the text cannot be continued: {}", leaving.what);
    if json {
        let mut object = json!({ "error": what });
        extend(&mut object, leaving.fields());
        writeln!(terminal::stdout(), "{}", warned::with(object, warnings))?;
    }
    Told { sentence: what, hint: None }.print();
    note!("  at byte {}, line {}, column {}", leaving.offset, leaving.line, leaving.column);
    for line in leaving.lines() {
        note!("  {line}");
    }
    Ok(Exit::Failure)
}

/// Prints the state for people.
fn show(
    all: bool,
    vocabulary: &Vocabulary,
    constraint: &Constraint,
    allowed: &[TokenId],
) -> anyhow::Result<()> {
    let most = if all { usize::MAX } else { MOST_SHOWN };
    let mut out = terminal::stdout();
    let complete = if constraint.is_complete() { "is complete" } else { "is not complete" };
    writeln!(out, "{} of {} tokens may follow; the text {complete}", allowed.len(), vocabulary.size())?;
    for &token in allowed.iter().take(most) {
        writeln!(out, "  {:>7}  {}", token.raw(), describe::token(vocabulary, token))?;
    }
    if allowed.len() > most {
        writeln!(out, "  and {} more (--all shows them)", allowed.len() - most)?;
    }
    let threads = constraint.threads();
    writeln!(out, "{} threads", threads.len())?;
    for thread in threads.iter().take(most) {
        let place = match (thread.begun, thread.scanner_state, thread.may_end) {
            (false, ..) => "may come next".to_owned(),
            (true, state, false) => format!("begun, in state {state}"),
            (true, state, true) => format!("begun, in state {state}, may end"),
        };
        writeln!(
            out,
            "  {}  ({place}; parser set {})",
            describe::one_line(&thread.terminal),
            thread.parser_set
        )?;
        for item in thread.items.iter().take(most) {
            writeln!(out, "      {}", describe::one_line(item))?;
        }
    }
    if threads.len() > most {
        writeln!(out, "  and {} more (--all shows them)", threads.len() - most)?;
    }
    Ok(())
}
