//! Flags of lookahead: how many terminals a token may begin, and what counts as one.

use clap::{Args, ValueEnum};
use domino::{Lookahead, Terminals};
use serde::Deserialize;

use crate::{
    session::reach::{Reach, lookahead, lookahead_number},
    terminal::failure::{BadInput, Paint, note},
};

/// Flags of how far masks look ahead.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct LowReach {
    /// Let a token reach at most this many terminals past the current one. Default: infinite.
    ///
    /// Fewer allow fewer tokens and bend the model more; infinite, that is, any number, bends it least.
    /// --terminals says which parts of the grammar are terminals.
    #[arg(short = 'k', long, value_name = "K|infinite", value_parser = lookahead)]
    lookahead: Option<Lookahead>,
    #[command(flatten)]
    terminals: LowTerminals,
}

/// The flag that says which parts of a grammar are terminals.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct LowTerminals {
    /// Take these parts of the grammar as terminals: the largest regular ones, or those of a lexer.
    ///
    /// folded: the largest regular parts. written: those that a lexer written for the grammar would have:
    /// literals, classes, and token-like rules such as string, number, name and ws. Without --lookahead the
    /// text is the same, and folded is faster; with it only written counts as the DOMINO paper does. `domino
    /// inspect terminals` lists them. Default: folded.
    #[arg(long, value_name = "WHICH", value_enum)]
    terminals: Option<WhichTerminals>,
}

/// The value of `--terminals`, also in requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WhichTerminals {
    /// The largest regular parts.
    Folded,
    /// The terminals of a lexer.
    Written,
}

impl From<WhichTerminals> for Terminals {
    fn from(which: WhichTerminals) -> Self {
        match which {
            WhichTerminals::Folded => Self::Folded,
            WhichTerminals::Written => Self::Written,
        }
    }
}

impl LowReach {
    /// Refuses the flags if there is no grammar for them.
    pub(crate) fn refuse_idle(self, constrained: bool) -> Result<(), BadInput> {
        let flags =
            [(self.lookahead.is_some(), "--lookahead"), (self.terminals.terminals.is_some(), "--terminals")];
        match flags.into_iter().find(|(given, _)| *given && !constrained) {
            Some((_, flag)) => {
                Err(BadInput::new(format!("{flag} needs a grammar")).hint("give --grammar or --regex"))
            }
            None => Ok(()),
        }
    }

    /// Reads the flags. Notes on standard error which terminals a lookahead counts, if no flag says.
    pub(crate) fn resolve(self) -> Reach {
        let lookahead = self.lookahead.unwrap_or_default();
        if let (Some(k), None) = (lookahead_number(lookahead), self.terminals.terminals) {
            let note = Paint::for_stderr().cyan("note:");
            note!(
                "{note} -k {k} counts folded terminals, the largest regular parts of the grammar; \
                 --terminals written counts those of a lexer, as the DOMINO paper does"
            );
        }
        Reach { lookahead, terminals: self.terminals.resolve() }
    }
}

impl LowTerminals {
    /// Reads the flag.
    pub(crate) fn resolve(self) -> Terminals {
        self.terminals.map_or_else(Terminals::default, Terminals::from)
    }
}
