//! `domino generate --engine mistralrs`: writes a text in mistral.rs's engine.

mod drafts;

use std::{path::Path, time::Instant};

use domino::{
    CompiledGrammar,
    decode::DecodeOptions,
    mistralrs::{EngineRunner, GoOn, RunnerError},
    store::CacheFolder,
};

use self::drafts::TextDrafts;
use super::{
    args::Generate,
    grammar::{fields_of, grammar},
    one::{Destination, Screen},
    report::{EndedRun, RunEnd, forced_bytes},
};
use crate::{
    grammar::warned,
    session::{
        chat::{PromptSource, prompt_text},
        model,
    },
    terminal::{
        failure::{BadInput, Exit},
        progress,
    },
};

/// Generates one text.
pub(super) fn run(
    command: &Generate,
    folder: &Path,
    prompt: &PromptSource,
    options: &DecodeOptions,
    cache: &CacheFolder,
) -> anyhow::Result<Exit> {
    let (text, destination) = (prompt_text(prompt)?, Destination::of(command.out.as_deref())?);
    let (vocabulary, tokenizer) = (model::vocabulary(folder, cache)?, model::read_tokenizer(folder)?);
    let (prompt, thought) = command.asked(folder, &text, &tokenizer, &vocabulary)?;
    let (grammar, capturing) = grammar(command, (&vocabulary, cache), (&[], thought))?.unzip();
    let warnings = grammar.as_ref().map_or_else(Vec::new, |grammar| grammar.grammar_warnings().to_vec());
    let mut drafts = drafts(command, grammar.as_ref(), folder)?;
    let what = format!("loading {} in mistral.rs", folder.display());
    let runner = progress::during(what, || EngineRunner::load(folder, drafts.rows())).map_err(bad_model)?;
    if *runner.vocabulary() != vocabulary {
        return Err(BadInput::new("mistral.rs reads other tokens from this model than domino does")
            .hint("use domino's own runner")
            .into());
    }
    drafts.begin(grammar.as_ref(), &runner);
    let constraint = grammar.as_ref().map(CompiledGrammar::constraint);
    progress::watch_interrupts();
    let (mut screen, mut broken) = (Screen::new(0), Ok(()));
    let begun = Instant::now();
    let generation = drafts.write(&runner, &prompt, constraint.as_ref(), options, |tokens| {
        // Text that may become a stop string is shown later or never, so it is not shown as it comes.
        if !command.json && !destination.is_file() && options.stop.is_empty() {
            broken = screen.show(&vocabulary.concat(tokens));
        }
        if broken.is_err() || progress::interrupted() { GoOn::No } else { GoOn::Yes }
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    broken?;
    if !command.json && !destination.is_file() {
        screen.show(&generation.text)?;
        screen.finish()?;
    }
    drafts.keep()?;
    let forced = forced_bytes(grammar.as_ref().filter(|_| command.json), &generation);
    let captures = fields_of(command.grammar.as_ref(), capturing.flatten().as_ref(), &generation);
    let ended = EndedRun {
        end: if progress::interrupted() { RunEnd::Interrupted } else { RunEnd::Finished(generation.finish) },
        generation,
        vocabulary: &vocabulary,
        options,
        appended: None,
        seconds,
        speculative: drafts.are_made(),
        draft: None,
        forced,
        captures,
        comparison: None,
    };
    if command.json {
        destination.object(&warned::with(ended.object(), &warnings))?;
    } else {
        destination.text(&ended.generation.text)?;
        ended.summary(command.speculation.asked);
    }
    Ok(ended.exit())
}

/// Chooses drafts by the flags, and by the prior that comes with the model.
fn drafts(
    command: &Generate,
    grammar: Option<&CompiledGrammar>,
    folder: &Path,
) -> Result<TextDrafts, BadInput> {
    let Some((source, grammar)) = command.grammar.as_ref().zip(grammar) else {
        return Ok(TextDrafts::default());
    };
    Ok(match command.speculation.fixed(source, grammar, folder)? {
        None => TextDrafts::default(),
        Some(fixed) => {
            let (most, file) = (fixed.most, fixed.file.clone());
            TextDrafts::new(most, file, Box::new(|grammar, tokenizer| fixed.guesses(grammar, tokenizer)))
        }
    })
}

/// Makes the error of a model that cannot be loaded bad input of the user's.
fn bad_model(error: RunnerError) -> anyhow::Error {
    match error {
        RunnerError::Load(_) | RunnerError::Vocabulary(_) => BadInput::new(error.to_string()).into(),
        RunnerError::Speculation(_) => BadInput::new(error.to_string()).into(),
        error => error.into(),
    }
}
