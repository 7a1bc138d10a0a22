//! `domino generate`: a model writes, a grammar watches.

use crate::{args::Generate, failure::Exit};

/// Generates.
pub(crate) fn run(_command: &Generate) -> anyhow::Result<Exit> {
    anyhow::bail!("not yet")
}
