//! Symbols and places in productions, before and after reduction.

use crate::ids::TerminalId;

/// A symbol of a production.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Symbol {
    /// A terminal, by number.
    Terminal(u32),
    /// A nonterminal, by number.
    Nonterminal(u32),
}

/// A nonterminal of the reduced grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NonterminalId(pub(crate) u32);

impl NonterminalId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A dotted rule: a place between the symbols of one production.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct DottedRule(pub(crate) u32);

impl DottedRule {
    /// The number, as an index.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    /// Moves the dot over the next symbol, which must exist.
    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// Moves the dot back over a symbol, which must exist.
    pub(in crate::lower) fn previous(self) -> Self {
        Self(self.0 - 1)
    }
}

/// The symbol after a dot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum AfterDot {
    /// A terminal.
    Terminal(TerminalId),
    /// A nonterminal.
    Nonterminal(NonterminalId),
    /// No symbol: a production of this nonterminal is complete.
    End(NonterminalId),
}
