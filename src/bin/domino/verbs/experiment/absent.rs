//! `domino experiment`, `trace`, `bench-model` and `retokenize` in a build without experiments: they say how
//! to build one with them.

use std::ffi::OsString;

use clap::Args;
use domino::store::CacheFolder;

use crate::terminal::failure::{BadInput, Exit};

pub(crate) mod retokenize {
    pub(crate) use super::{LowExperiment as LowRetokenize, run};
}

pub(crate) mod bench_model {
    pub(crate) use super::{LowExperiment as LowBenchModel, run};
}

pub(crate) mod trace {
    pub(crate) use super::run;

    pub(crate) mod args {
        pub(crate) use super::super::LowExperiment as LowTrace;
    }
}

/// Say how to build domino with this command. Not in this build: it needs the feature `experiments`.
#[derive(Debug, Args)]
pub(crate) struct LowExperiment {
    /// The arguments of the command in other builds; ignored here.
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _words: Vec<OsString>,
}

/// Refuses the command, since this build has no experiments.
pub(crate) fn run(_: &LowExperiment, _json: bool, _cache: &CacheFolder) -> anyhow::Result<Exit> {
    let hint = "build one that has: cargo install --path src/bin/domino --features experiments";
    Err(BadInput::new("this build of domino has no experiments").hint(hint).into())
}
