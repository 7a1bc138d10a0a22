//! Provenance: the source of terminals and nonterminals, and the fate of each rule.
//!
//! Constraining a text needs none of this: it lets messages, `inspect` and warnings speak of the rules that
//! the author wrote.

pub(super) mod fates;
pub(super) mod names;

use super::cfg::symbols::Symbol;
use crate::{
    grammar::Span,
    ids::{RuleId, TerminalId},
};

/// The ends at which a rule mentioned itself, before that became repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EndRecursion {
    pub(crate) left: bool,
    pub(crate) right: bool,
}

/// The source of a symbol.
#[derive(Debug, Clone)]
pub(crate) struct SymbolOrigin {
    /// The symbol's name; empty if it is a part of a rule and has none.
    pub(crate) name: String,
    /// The rule that it is, or is a part of.
    pub(crate) rule: RuleId,
    /// The part of the grammar text.
    pub(crate) span: Span,
}

/// The symbol that a rule became.
#[derive(Debug, Clone, Copy)]
pub(super) struct RuleSymbol {
    pub(super) symbol: Symbol,
    /// Is it one terminal (and maybe the empty string)?
    pub(super) folded: bool,
    /// Is its language known to be regular?
    pub(super) regular: bool,
}

/// The fate of a rule in lowering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleFate {
    /// The start rule does not lead to it.
    Unreachable,
    /// No sentence uses it.
    Useless,
    /// The rule is only a part of larger terminals.
    Absorbed,
    /// The rule is one terminal, or one terminal and the empty string.
    Terminal(Symbol),
    /// The rule has productions.
    Productions {
        /// The nonterminal of the productions.
        nonterminal: u32,
        /// Is it regular nevertheless, but its automaton too large?
        regular: bool,
    },
}

/// The place of a symbol in the grammar text, with its number if it is a terminal: many symbols that
/// repetition makes have one place.
pub(crate) type SourceSpan = (RuleId, Span, Option<TerminalId>);

/// A rule of the source.
#[derive(Debug)]
pub(crate) struct RuleSource {
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) recursion: Option<EndRecursion>,
    pub(crate) fate: RuleFate,
    /// Terminals of other rules that it became part of (up to a bound on all such notes), ascending.
    pub(crate) inside: Vec<TerminalId>,
}

/// The sources of everything in a lowered grammar.
#[derive(Debug)]
pub(crate) struct Provenance {
    pub(crate) root: RuleId,
    pub(crate) rules: Vec<RuleSource>,
    pub(crate) terminals: Vec<SymbolOrigin>,
    /// Origins of nonterminals, from number 1 on: number 0 is the start.
    pub(crate) nonterminals: Vec<SymbolOrigin>,
}
