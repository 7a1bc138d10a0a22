//! Texts that are shown when they are whole: `domino generate --sampling conditional`, which draws one of
//! several, and `--tokenization canonical`, which takes tokens back.

use std::{num::NonZeroUsize, path::Path};

use anyhow::Context;
use domino::decode::{CanonicalDecoder, ConditionalDecoder, DecodeOptions, Generation};
use domino::{Constraint, TokenId, model::candle::CandleBatch, store::CacheFolder, vocab::Tokenizer};
use serde_json::{Value, json};

use super::args::{Generate, Way};
use super::grammar::{compiler, grammar};
use super::report::{EndedRun, RunEnd};
use super::{destination::Destination, facts::forced_bytes, parsed, screen::Screen};
use crate::session::chat::{PromptSource, prompt_text};
use crate::session::runner::{bad_model, load, read_tokenizer, step_error, tell_idle_quantising};
use crate::terminal::failure::{BadInput, Exit, note};
use crate::terminal::{count, extend, progress};
use crate::{grammar::warned, session::model};

/// A text with the facts about how it was written: fields of the object, and a note for people.
struct Written {
    generation: Generation,
    fields: Value,
    note: String,
}

/// Writes a text and prints it.
pub(super) fn run(
    command: &Generate,
    folder: &Path,
    (prompt, options, way): (&PromptSource, &DecodeOptions, Way),
    cache: &CacheFolder,
) -> anyhow::Result<Exit> {
    let destination = Destination::of(command.out.as_deref())?;
    let vocabulary = model::vocabulary(folder, cache)?;
    let tokenizer = read_tokenizer(folder)?;
    let prompt = command.prompts(folder)?.tokens(&tokenizer, &prompt_text(prompt)?, &vocabulary)?;
    let compiled = grammar(command, &compiler(command, &vocabulary, cache), &[])?;
    let (grammar, capturing) = compiled.context("there is no grammar")?;
    let (start, from) = (grammar.constraint(), (folder, &*prompt));
    let Written { generation, fields, note } = match way {
        Way::Conditional(particles) => conditional(command, from, &start, options, particles)?,
        Way::Canonical => canonical(command, from, &start, options, &tokenizer)?,
    };
    let ended = EndedRun {
        forced: forced_bytes(Some(&grammar).filter(|_| command.json), &generation),
        captures: parsed::fields_of(command.grammar.as_ref(), capturing.as_ref(), &generation),
        end: match progress::interrupted() {
            true => RunEnd::Interrupted,
            false => RunEnd::Finished(generation.finish),
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
        extend(&mut object, fields.as_object().cloned().unwrap_or_default());
        destination.object(&warned::with(object, grammar.grammar_warnings()))?;
    } else {
        if destination.is_file() {
            destination.text(&ended.generation.text)?;
        } else {
            let mut screen = Screen::new(0);
            screen.show(&ended.generation.text)?;
            screen.finish()?;
        }
        ended.summary(false);
        note!("[{note}]");
    }
    Ok(ended.exit())
}

/// Draws one of several texts by their weights.
fn conditional(
    command: &Generate,
    (folder, prompt): (&Path, &[TokenId]),
    start: &Constraint,
    options: &DecodeOptions,
    particles: NonZeroUsize,
) -> anyhow::Result<Written> {
    let model = progress::during(format!("loading {}", folder.display()), || {
        CandleBatch::load(folder, particles, &command.load)
    });
    let model = model.map_err(|error| bad_model(&error))?;
    tell_idle_quantising(folder, &command.load);
    let mut decoder = ConditionalDecoder::new(model, start, options).map_err(|error| {
        BadInput::new(error.to_string()).hint("give a temperature above 0, and leave such options out")
    })?;
    progress::watch_interrupts();
    let drawn = decoder.draw(prompt, &|| !progress::interrupted()).map_err(step_error)?;
    Ok(Written {
        fields: json!({
            "particles": particles, "log_kept": drawn.log_kept, "log_language": drawn.log_language,
            "effective": drawn.effective, "resamplings": drawn.resamplings, "fed": drawn.fed,
        }),
        note: format!(
            "{}, {:.1} effective, drawn anew {}, {} fed",
            count(particles.get(), "particle"),
            drawn.effective,
            count(drawn.resamplings, "time"),
            count(drawn.fed, "token")
        ),
        generation: drawn.generation,
    })
}

/// Writes a text of canonical tokens.
fn canonical(
    command: &Generate,
    (folder, prompt): (&Path, &[TokenId]),
    start: &Constraint,
    options: &DecodeOptions,
    tokenizer: &Tokenizer,
) -> anyhow::Result<Written> {
    let mut model = load(folder, &command.load, command.card)?;
    let mut decoder = CanonicalDecoder::new(&mut model, tokenizer, start, options).map_err(|error| {
        BadInput::new(error.to_string()).hint("leave one of the two out, or take --tokenization free")
    })?;
    progress::watch_interrupts();
    let text = decoder.write(prompt, &|| !progress::interrupted()).map_err(step_error)?;
    let tokens = match text.canonical {
        Some(true) => "canonical tokens",
        Some(false) => "tokens that are not canonical",
        None => "a text that the tokenizer does not split",
    };
    Ok(Written {
        fields: json!({ "redraws": text.redraws, "canonical": text.canonical }),
        note: format!("{tokens}, {} refused or taken back", text.redraws),
        generation: text.generation,
    })
}
