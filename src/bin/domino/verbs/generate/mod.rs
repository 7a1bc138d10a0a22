//! `domino generate`: a model writes, and a grammar decides what it may write.

pub(crate) mod args;
mod batch;
mod grammar;
mod one;
mod report;
mod served;

use domino::{model::candle::join_threads, store::CacheFolder};

use self::args::{Generate, TextsToWrite};
use crate::{session::model, terminal::failure::Exit};

/// Generates one text, or one for each request of a batch.
pub(crate) fn run(command: &Generate, cache: &CacheFolder) -> anyhow::Result<Exit> {
    let folder = model::locate(command.model.as_deref())?;
    if let (Some(engine), TextsToWrite::One(prompt, options)) = (command.text_engine(), &command.work) {
        return served::run(command, engine, &folder, (prompt, options), cache);
    }
    join_threads(command.threads);
    match &command.work {
        TextsToWrite::One(prompt, options) => one::run(command, &folder, prompt, options, cache),
        TextsToWrite::Whole { prompt, options, way } => {
            one::run_whole(command, &folder, (prompt, options, *way), cache)
        }
        TextsToWrite::Batch(rows) => batch::run(command, &folder, rows, cache),
    }
}
