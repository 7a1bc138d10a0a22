//! `domino generate --sampling conditional`: one text, drawn by particles.

use std::{io::Write, num::NonZeroUsize, path::Path};

use anyhow::Context;
use domino::{
    decode::{ConditionalDecoder, ConditionalText, DecodeOptions},
    model::candle::CandleBatch,
    store::CacheFolder,
};
use serde_json::{Map, json};

use super::{
    args::{Generate, Prompt},
    bad_model, compiler, forced_bytes, grammar, prompt_text, prompt_tokens, read_tokenizer,
    report::{End, Ended},
    screen::Screen,
    step_error,
};
use crate::{
    check::extend,
    failure::{BadInput, Exit, note},
    interrupt, progress, stdout, tokenizer, warned,
};

/// Draws a text and prints it.
pub(super) fn run(
    command: &Generate,
    folder: &Path,
    (prompt, options, particles): (&Prompt, &DecodeOptions, NonZeroUsize),
    cache: &CacheFolder,
) -> anyhow::Result<Exit> {
    let vocabulary = tokenizer::vocabulary(folder, cache)?;
    let tokenizer = read_tokenizer(folder)?;
    let prompt = prompt_tokens(&tokenizer, &prompt_text(prompt)?, &vocabulary)?;
    let compiled = grammar(command, &compiler(command, &vocabulary, cache), &[])?;
    let (grammar, capturing) = compiled.context("there is no grammar")?;
    let model = progress::during(format!("loading {}", folder.display()), || {
        CandleBatch::load(folder, particles, &command.load)
    });
    let model = model.map_err(|error| bad_model(&error))?;
    let mut decoder = ConditionalDecoder::new(model, &grammar.constraint(), options).map_err(|error| {
        BadInput::new(error.to_string()).hint("give a temperature above 0, and leave such options out")
    })?;
    interrupt::watch();
    let drawn = decoder.draw(&prompt, &|| !interrupt::pressed()).map_err(step_error)?;
    let ConditionalText { generation, log_kept, log_language, effective, resamplings, fed, .. } = drawn;
    let ended = Ended {
        forced: forced_bytes(Some(&grammar).filter(|_| command.json), &generation),
        captures: capturing.map_or_else(Map::new, |capturing| capturing.fields(&generation.text)),
        end: match interrupt::pressed() {
            true => End::Interrupted,
            false => End::Finished(generation.finish),
        },
        vocabulary: &vocabulary,
        options,
        seconds: generation.stats.total_time.as_secs_f64(),
        generation,
        appended: None,
        speculative: false,
        draft: None,
        comparison: None,
    };
    if command.json {
        let mut object = ended.object();
        let weights = json!({
            "particles": particles, "log_kept": log_kept, "log_language": log_language,
            "effective": effective, "resamplings": resamplings, "fed": fed,
        });
        extend(&mut object, weights.as_object().cloned().unwrap_or_default());
        writeln!(stdout::lock(), "{}", warned::with(object, grammar.grammar_warnings()))?;
    } else {
        let mut screen = Screen::new(0);
        screen.show(&ended.generation.text)?;
        screen.finish()?;
        ended.summary();
        note!(
            "[{particles} particles, {effective:.1} effective, drawn anew {resamplings} times, {fed} tokens \
             fed]"
        );
    }
    Ok(ended.exit())
}
