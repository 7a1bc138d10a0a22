//! Mistakes in grammar texts: errors, warnings, and the names that somebody may have meant.

mod error;
#[cfg(test)]
pub(in crate::grammar) mod mistakes;
pub mod suggest;
mod warning;

pub use error::{GrammarError, GrammarErrorKind, Location};
pub use warning::{GrammarWarning, GrammarWarningKind};

pub(in crate::grammar) use error::{MOST_SHOWN, quoted, quoted_list};
