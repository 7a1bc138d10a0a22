//! `domino mask`: what may follow a text.

use std::io::{self, Write};

use domino::{
    Constraint, TokenId, Vocabulary,
    grammar::{GrammarWarning, Source},
    store::CacheFolder,
};
use serde_json::{Value, json};

use crate::{
    args::Mask,
    compile, describe,
    failure::{Exit, Paint},
    progress, tokenizer, warned,
};

/// Tokens and threads shown unless all are asked for.
const MOST_SHOWN: usize = 50;

/// Advances by the text and shows the state.
pub(crate) fn run(command: &Mask, cache: &CacheFolder) -> anyhow::Result<Exit> {
    let vocabulary = tokenizer::vocabulary(&command.tokenizer, cache)?;
    let compiler = command.reach.compiler(vocabulary.clone(), cache);
    let compiled = command.grammar.compile(&compiler)?;
    if let Some(file) = &command.trees {
        compile::attach(&compiled, file, &command.grammar.name())?;
    }
    let mut constraint = compiled.constraint();
    let text = command.text.as_bytes();
    let followed = constraint.advance_bytes(text)?;
    if followed < text.len() {
        constraint.advance_bytes(&text[..followed])?;
        return refused(command, followed, &mut constraint, compiled.grammar_warnings());
    }
    let allowed: Vec<TokenId> =
        progress::during("making the mask", || constraint.mask().map(|mask| mask.iter().collect()))?;
    let complete = constraint.is_complete();
    if command.json {
        let ids: Vec<u32> = allowed.iter().map(|token| token.raw()).collect();
        let eos = allowed.iter().any(|&token| vocabulary.is_end_of_text(token));
        let object = json!({
            "count": ids.len(), "allowed": ids, "complete": complete, "eos": eos,
            "threads": threads_json(&constraint),
        });
        writeln!(io::stdout().lock(), "{}", warned::with(object, compiled.grammar_warnings()))?;
    } else {
        show(command, &vocabulary, &constraint, &allowed)?;
    }
    Ok(Exit::Success)
}

/// The text itself cannot be written.
fn refused(
    command: &Mask,
    followed: usize,
    constraint: &mut Constraint,
    warnings: &[GrammarWarning],
) -> anyhow::Result<Exit> {
    let source = Source::new(&command.text);
    let position = source.position(u32::try_from(followed).unwrap_or(u32::MAX));
    let byte = command.text.as_bytes().get(followed).copied().map(describe::byte).unwrap_or_default();
    let what = format!("the text cannot be continued: {byte} cannot follow");
    let expected = describe::byte_ranges(&constraint.next_bytes()?);
    if command.json {
        let object = json!({
            "error": what, "offset": followed, "line": position.line, "column": position.column,
            "expected": expected,
        });
        writeln!(io::stdout().lock(), "{}", warned::with(object, warnings))?;
    }
    let paint = Paint::for_stderr();
    eprintln!("{} {what}", paint.red("error:"));
    eprintln!("  at byte {followed}, line {}, column {}", position.line, position.column);
    eprintln!("  could follow: {}", expected.join(", "));
    Ok(Exit::Failure)
}

fn threads_json(constraint: &Constraint) -> Vec<Value> {
    let threads = constraint.threads();
    let thread = |thread: &domino::ThreadView| {
        json!({
            "parser_set": thread.parser_set, "terminal": thread.terminal,
            "begun": thread.begun, "scanner_state": thread.scanner_state, "may_end": thread.may_end, "items": thread.items,
        })
    };
    threads.iter().map(thread).collect()
}

/// Prints the state for people.
fn show(
    command: &Mask,
    vocabulary: &Vocabulary,
    constraint: &Constraint,
    allowed: &[TokenId],
) -> anyhow::Result<()> {
    let most = if command.all { usize::MAX } else { MOST_SHOWN };
    let mut out = io::stdout().lock();
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
