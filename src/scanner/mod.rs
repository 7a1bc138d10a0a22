//! Terminals as byte automata. This stage knows patterns, not grammars or vocabularies.

mod build;
mod dfa;
mod distance;
mod implicit_dfa;
mod intervals;
mod numbered;
#[expect(clippy::module_inception, reason = "the stage's main type lives in the file of its name")]
mod scanner;
mod strings;
mod substrings;

pub(crate) use build::{build, build_pattern};
pub(crate) use dfa::{NONE, TerminalDfa};
pub(crate) use scanner::Scanner;
pub(crate) use strings::{StringCounts, Strings};
