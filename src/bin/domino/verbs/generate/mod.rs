//! `domino generate`: a model writes, and a grammar decides what it may write.

pub(crate) mod args;
mod batch;
mod grammar;
mod one;
mod report;
mod served;

use domino::{model::candle::join_threads, store::CacheFolder};

use self::args::Generate;
use crate::{files::Input, session::model, terminal::failure::Exit};

/// Generates one text, or one for each request of a batch.
pub(crate) fn run(command: &Generate, cache: &CacheFolder) -> anyhow::Result<Exit> {
    let folder = model::locate(command.flags.model.as_deref())?;
    if let Some(engine) = command.text_engine() {
        return served::run(command, engine, &folder, cache);
    }
    join_threads(command.flags.device.threads);
    match (&command.flags.batch, command.way) {
        (Some(rows), _) => batch::run(command, &folder, &Input::new(rows.clone()), cache),
        (None, Some(way)) => one::run_whole(command, &folder, way, cache),
        (None, None) => one::run(command, &folder, cache),
    }
}
