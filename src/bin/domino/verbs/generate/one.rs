//! One text, which is shown as it comes.

use std::{path::Path, time::Instant};

use domino::decode::{DecodeOptions, Decoder, Healing, Steps};
use domino::{StepError, grammar::GrammarWarning, store::CacheFolder};
use serde_json::json;

use super::facts::{forced_bytes, usual_tokens};
use super::grammar::{compiler, grammar};
use super::report::{EndedRun, RunEnd};
use super::{args::Generate, compare, destination::Destination, parsed, screen::Screen};
use crate::grammar::{compiler, warned};
use crate::session::chat::{PromptSource, asked_text};
use crate::session::drafts::{self, Keeper};
use crate::session::model;
use crate::session::runner::{Runner, bad_model, load, read_tokenizer, step_error};
use crate::terminal::failure::{self, Exit};
use crate::terminal::{count, progress};

/// Generates one text.
pub(super) fn run(
    command: &Generate,
    folder: &Path,
    prompt: &PromptSource,
    options: &DecodeOptions,
    cache: &CacheFolder,
) -> anyhow::Result<Exit> {
    let text = asked_text(prompt)?;
    let destination = Destination::of(command.out.as_deref())?;
    let vocabulary = model::vocabulary(folder, cache)?;
    let tokenizer = read_tokenizer(folder)?;
    let mut prompt = command.prompts(folder)?.tokens(&tokenizer, &text, &vocabulary)?;
    let healing = if command.heal { Healing::of(&vocabulary, &prompt) } else { Healing::default() };
    let healed = healing.bytes;
    if !healed.is_empty() {
        prompt.truncate(healing.kept);
    }
    let (grammar, capturing) = grammar(command, &compiler(command, &vocabulary, cache), &healed)?.unzip();
    let warnings = grammar.as_ref().map_or_else(Vec::new, |grammar| grammar.grammar_warnings().to_vec());
    let loaded = load(folder, &command.load, command.card)?;
    let mut builder = Decoder::builder(loaded).vocabulary(vocabulary).options(options.clone());
    let (mut speculation, mut draft) = (None, None);
    if let Some(grammar) = &grammar {
        builder = builder.constraint(grammar.constraint());
        // Counts learnt for a grammar do not apply to texts that begin with the end of a prompt.
        let source = command.grammar.as_ref().filter(|_| healed.is_empty());
        draft = command.speculation.draft_model(command.card, grammar, &tokenizer, cache)?;
        speculation = command.speculation.drafter(source, grammar, folder, &tokenizer, draft.as_ref())?;
    }
    let mut decoder = builder.build().map_err(|error| bad_model(&error))?;
    progress::watch_interrupts();
    let speculative = speculation.is_some();
    let (mut drafter, keeper) = speculation.unzip();
    let keeper = keeper.flatten();
    let mut comparison = None;
    if let Some(grammar) = grammar.as_ref().filter(|_| command.speculation.compare)
        && let Some(compared) = drafter.take()
    {
        comparison = compare::run(&mut decoder, &grammar.constraint(), compared, &prompt)?;
    } else {
        decoder.set_drafter(drafter);
    }
    let vocabulary = decoder.vocabulary().clone();
    let begun = Instant::now();
    let mut steps = decoder.steps(&prompt);
    let quiet = command.json || destination.is_file();
    let ended = stream(&mut steps, quiet, options.close, healed.len())?;
    let mut generation = steps.into_generation();
    let forced = forced_bytes(grammar.as_ref().filter(|_| command.json), &generation);
    generation.text.drain(..healed.len().min(generation.text.len()));
    let captures = parsed::fields_of(command.grammar.as_ref(), capturing.flatten().as_ref(), &generation);
    let ended = EndedRun {
        appended: usual_tokens(&tokenizer, &vocabulary, &generation),
        generation,
        end: ended,
        vocabulary: &vocabulary,
        options,
        seconds: begun.elapsed().as_secs_f64(),
        speculative,
        draft: draft.as_ref().map(drafts::draft_tally),
        forced,
        captures,
        comparison,
    };
    tell(command, &ended, &destination, keeper.as_ref(), &warnings)?;
    // The counts are kept last, so that a file that cannot be written costs nobody the text.
    if let Some(keeper) = keeper {
        keeper.keep()?;
    }
    Ok(ended.exit())
}

/// Tells how a run has ended, and writes its text or its object to the destination.
fn tell(
    command: &Generate,
    ended: &EndedRun<'_>,
    destination: &Destination<'_>,
    keeper: Option<&Keeper>,
    warnings: &[GrammarWarning],
) -> anyhow::Result<()> {
    if command.json {
        let mut object = ended.object();
        if let Some((lookahead, terminals)) = keeper.map(Keeper::learnt_at) {
            let lookahead = compiler::lookahead_number(lookahead);
            object["prior"] =
                json!({ "lookahead": lookahead, "terminals": compiler::terminals_name(terminals) });
        }
        destination.object(&warned::with(object, warnings))?;
    } else {
        destination.text(&ended.generation.text)?;
    }
    ended.tell_failure();
    if !command.json {
        ended.summary(command.speculation.asked);
    }
    Ok(())
}

/// Runs the steps to their end, to Ctrl-C or to a failure, and shows the text as it comes unless it goes into
/// an object. If `close`, an unfinished text is completed where a completion can be found. The first `hidden`
/// bytes are the prompt's.
fn stream(steps: &mut Steps<'_, Runner>, quiet: bool, close: bool, hidden: usize) -> anyhow::Result<RunEnd> {
    let mut screen = Screen::new(hidden);
    let mut failure = None;
    while !progress::interrupted() {
        match steps.next() {
            None => break,
            Some(Ok(_)) if quiet => {}
            Some(Ok(_)) => screen.show(steps.settled_text())?,
            Some(Err(error)) => {
                let error = step_error(error);
                // Bad input has made no text that could be shown.
                if Exit::of(&error) == Exit::BadInput {
                    return Err(error);
                }
                failure = Some(error);
                break;
            }
        }
    }
    let mut end = match (&failure, steps.finish()) {
        (None, Some(finish)) => RunEnd::Finished(finish),
        (None, None) => RunEnd::Interrupted,
        (Some(error), _) => failed(error, steps),
    };
    if close && let Err(error) = steps.close() {
        // The first of two failures is the one that is told.
        if failure.is_none() {
            end = failed(&error.into(), steps);
        }
    }
    if !quiet {
        screen.show(steps.text())?;
        screen.finish()?;
    }
    Ok(end)
}

/// Makes the end of a run that failed, with its place in text and grammar.
fn failed(error: &anyhow::Error, steps: &Steps<'_, Runner>) -> RunEnd {
    let mut told = failure::told(error.as_ref());
    // The error of a budget names its place itself.
    let place = error.chain().find_map(|cause| cause.downcast_ref::<StepError>()).and_then(StepError::place);
    if place.is_none() {
        let were = if steps.text().len() == 1 { "was" } else { "were" };
        told.sentence += &format!("; {} of text {were} made", count(steps.text().len(), "byte"));
    }
    if place.is_none_or(|place| place.rules.is_empty()) {
        told.sentence += &steps.constraint().map(failure::in_terminals).unwrap_or_default();
    }
    RunEnd::Failed(told, Exit::of(error))
}
