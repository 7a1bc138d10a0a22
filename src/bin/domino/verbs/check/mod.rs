//! `domino check`: judges whether a text is in the language, and names the place where it leaves it.
//!
//! Tokens do not matter here: the vocabulary is the 256 bytes.

pub(crate) mod args;
mod batch;
mod faults;
mod texts;
pub(crate) mod verdict;

use self::args::Check;
use crate::terminal::failure::Exit;

/// Judges all texts, or all rows.
pub(crate) fn run(command: &Check) -> anyhow::Result<Exit> {
    match command {
        Check::Texts(texts) => texts::run(texts),
        Check::Rows(rows) => batch::run(rows),
    }
}

#[cfg(test)]
mod tests;
