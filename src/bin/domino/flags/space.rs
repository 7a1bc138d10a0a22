//! `--trailing-space`, as a flag and as a key of rows.

use clap::ValueEnum;
use domino::TrailingSpace;
use serde::Deserialize;

/// Value of `--trailing-space`: the fate of white space behind a complete text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Trailing {
    Stop,
    Keep,
}

impl From<Trailing> for TrailingSpace {
    fn from(trailing: Trailing) -> Self {
        match trailing {
            Trailing::Stop => Self::Stop,
            Trailing::Keep => Self::Keep,
        }
    }
}
