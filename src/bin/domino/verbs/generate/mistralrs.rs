//! `domino generate --engine mistralrs`: writes a text in mistral.rs's engine.

use std::{path::Path, time::Instant};

use domino::{
    decode::DecodeOptions,
    mistralrs::{EngineDrafts, EngineRunner, GoOn, RunnerError},
    store::CacheFolder,
};

use super::{
    args::Generate,
    destination::Destination,
    facts::forced_bytes,
    grammar::{compiler, grammar},
    parsed,
    report::{EndedRun, RunEnd},
    screen::Screen,
};
use crate::{
    files::output::Output,
    grammar::warned,
    session::{
        prompt::{PromptSource, prompt_text},
        tokenizer,
    },
    terminal::{
        failure::{BadInput, Exit},
        interrupt, progress,
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
    let vocabulary = tokenizer::vocabulary(folder, cache)?;
    let (grammar, capturing) = grammar(command, &compiler(command, &vocabulary, cache), &[])?.unzip();
    let warnings = grammar.as_ref().map_or_else(Vec::new, |grammar| grammar.grammar_warnings().to_vec());
    let mut fixed = None;
    if let Some((source, grammar)) = command.grammar.as_ref().zip(grammar.as_ref()) {
        fixed = command.speculation.fixed(source, grammar, folder)?;
    }
    // The last row's token has no successor, so it needs no draft.
    let rows = fixed.as_ref().map_or(EngineDrafts::None, |fixed| EngineDrafts::Rows(fixed.most + 1));
    let loading = format!("loading {} in mistral.rs", folder.display());
    let runner = progress::during(loading, || EngineRunner::load(folder, rows)).map_err(bad_model)?;
    if *runner.vocabulary() != vocabulary {
        return Err(BadInput::new("mistral.rs reads other tokens from this model than domino does")
            .hint("use domino's own runner")
            .into());
    }
    let prompt = command.prompts(folder)?.tokens(runner.tokenizer(), &text, &vocabulary)?;
    let file = fixed.as_ref().and_then(|fixed| fixed.file.clone());
    let guesses =
        grammar.as_ref().zip(fixed).map(|(grammar, fixed)| fixed.guesses(grammar, runner.tokenizer()));
    let constraint = grammar.as_ref().map(domino::CompiledGrammar::constraint);
    interrupt::watch();
    let (mut screen, mut broken) = (Screen::new(0), Ok(()));
    let begun = Instant::now();
    let generation = runner.generate(&prompt, constraint.as_ref(), guesses.as_ref(), options, |tokens| {
        // Text that may become a stop string is shown later or never, so it is not shown as it comes.
        if !command.json && !destination.is_file() && options.stop.is_empty() {
            broken = screen.show(&vocabulary.concat(tokens));
        }
        if broken.is_err() || interrupt::pressed() { GoOn::No } else { GoOn::Yes }
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    broken?;
    if !command.json && !destination.is_file() {
        screen.show(&generation.text)?;
        screen.finish()?;
    }
    if let Some((file, guesses)) = file.zip(guesses.as_ref()) {
        Output::prepare(&file)?.write(&guesses.prior().to_bytes())?;
    }
    let forced = forced_bytes(grammar.as_ref().filter(|_| command.json), &generation);
    let captures = parsed::fields_of(command.grammar.as_ref(), capturing.flatten().as_ref(), &generation);
    let ended = EndedRun {
        end: if interrupt::pressed() { RunEnd::Interrupted } else { RunEnd::Finished(generation.finish) },
        generation,
        vocabulary: &vocabulary,
        options,
        appended: None,
        seconds,
        speculative: guesses.is_some(),
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

/// Makes the error of a model that cannot be loaded bad input of the user's.
fn bad_model(error: RunnerError) -> anyhow::Error {
    match error {
        RunnerError::Load(_) | RunnerError::Vocabulary(_) | RunnerError::Speculation(_) => {
            BadInput::new(error.to_string()).into()
        }
        error => error.into(),
    }
}
