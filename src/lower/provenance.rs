//! Where terminals and nonterminals come from, and what lowering made of each rule.
//!
//! Nothing of this is needed to constrain a text: it lets messages, `inspect` and warnings speak of the rules
//! that the author wrote.

use super::{
    Lowered,
    cfg::{Dot, NonterminalId, Slot},
    emit::Symbol,
    names::shown_automaton,
    reduce::Numbers,
    work::WorkGrammar,
};
use crate::{
    grammar::Span,
    ids::{RuleId, TerminalId},
};

/// Symbols shown on either side of a dot.
const MOST_SYMBOLS: usize = 20;

/// At which ends a rule mentioned itself, before that became repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EndRecursion {
    pub(crate) left: bool,
    pub(crate) right: bool,
}

/// Where a symbol comes from.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// What it is called; empty if it is a part of a rule and has no name.
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

/// What lowering made of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleFate {
    /// The start rule does not lead to it.
    Unreachable,
    /// No sentence uses it.
    Useless,
    /// It is a part of larger terminals only.
    Absorbed,
    /// It is one terminal, or one terminal and the empty string.
    Terminal(Symbol),
    /// It has productions.
    Productions {
        /// Of this number.
        nonterminal: u32,
        /// Is it regular all the same, but too large an automaton?
        regular: bool,
    },
}

/// Where a symbol stands in the grammar text, with its number if it is a terminal: many symbols that repetition makes
/// have one place.
pub(crate) type Place = (RuleId, Span, Option<TerminalId>);

/// A rule of the source.
#[derive(Debug)]
pub(crate) struct RuleSource {
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) recursion: Option<EndRecursion>,
    pub(crate) fate: RuleFate,
    /// Terminals of others that it went into (up to a bound on all such notes), ascending.
    pub(crate) inside: Vec<TerminalId>,
}

/// The sources of everything in a lowered grammar.
#[derive(Debug)]
pub(crate) struct Provenance {
    pub(crate) root: RuleId,
    pub(crate) rules: Vec<RuleSource>,
    pub(crate) terminals: Vec<Origin>,
    /// Without number 0, the start.
    pub(crate) nonterminals: Vec<Origin>,
}

/// What the passes noted about rules.
#[derive(Debug)]
pub(super) struct Notes<'a> {
    pub(super) reachable: &'a [Vec<RuleId>],
    pub(super) rewritten: &'a [(RuleId, EndRecursion)],
    pub(super) symbols: &'a [Option<RuleSymbol>],
    pub(super) absorbed: &'a [(RuleId, Symbol)],
}

/// The sources of all rules. `only_terminal` says which terminal a nonterminal stands for that is a terminal
/// or empty. Linear.
pub(super) fn rules(
    work: &WorkGrammar,
    notes: &Notes<'_>,
    numbers: &Numbers,
    only_terminal: impl Fn(u32) -> Option<TerminalId>,
) -> Vec<RuleSource> {
    let mut rules: Vec<RuleSource> = (0..work.rule_count())
        .filter_map(RuleId::from_index)
        .map(|rule| RuleSource {
            name: work.name(rule).to_owned(),
            span: work.rule_span(rule),
            recursion: None,
            fate: RuleFate::Unreachable,
            inside: Vec::new(),
        })
        .collect();
    for &rule in notes.reachable.iter().flatten() {
        rules[rule.index()].fate = match notes.symbols[rule.index()] {
            None => RuleFate::Useless,
            Some(known) => match (numbers.renamed(known.symbol), known.folded) {
                (None, _) => RuleFate::Useless,
                (Some(symbol), true) => RuleFate::Terminal(symbol),
                (Some(Symbol::Nonterminal(nonterminal)), false) => {
                    RuleFate::Productions { nonterminal, regular: known.regular }
                }
                // What is not folded is a nonterminal.
                (Some(symbol @ Symbol::Terminal(_)), false) => RuleFate::Terminal(symbol),
            },
        };
    }
    for &(rule, recursion) in notes.rewritten {
        rules[rule.index()].recursion = Some(recursion);
    }
    for &(rule, symbol) in notes.absorbed {
        let terminal = match numbers.renamed(symbol) {
            Some(Symbol::Terminal(terminal)) => Some(TerminalId::new(terminal)),
            Some(Symbol::Nonterminal(nonterminal)) => only_terminal(nonterminal),
            None => None,
        };
        let rule = &mut rules[rule.index()];
        rule.inside.extend(terminal);
        if rule.fate == RuleFate::Useless && terminal.is_some() {
            rule.fate = RuleFate::Absorbed;
        }
    }
    for rule in &mut rules {
        rule.inside.sort_unstable();
        rule.inside.dedup();
    }
    rules
}

impl Lowered {
    /// Where a nonterminal comes from; `None` for the start.
    fn origin(&self, nonterminal: NonterminalId) -> Option<&Origin> {
        nonterminal.index().checked_sub(1).map(|at| &self.provenance.nonterminals[at])
    }

    /// The rule that a nonterminal is, or is a part of.
    pub(crate) fn rule_of(&self, nonterminal: NonterminalId) -> RuleId {
        self.origin(nonterminal).map_or(self.provenance.root, |origin| origin.rule)
    }

    /// The source of the rule that a nonterminal is, or is a part of.
    pub(crate) fn rule(&self, nonterminal: NonterminalId) -> &RuleSource {
        &self.provenance.rules[self.rule_of(nonterminal).index()]
    }

    /// Is the nonterminal only a part of its rule, and where in the text does it stand?
    pub(crate) fn part(&self, nonterminal: NonterminalId) -> (bool, Span) {
        let rule = self.rule(nonterminal);
        match self.origin(nonterminal) {
            Some(origin) => (origin.name != rule.name, origin.span),
            None => (false, rule.span),
        }
    }

    /// Where a symbol stands in the grammar text.
    pub(crate) fn place(&self, symbol: Slot) -> Place {
        match symbol {
            Slot::Terminal(terminal) => {
                let origin = &self.provenance.terminals[terminal.index()];
                (origin.rule, origin.span, Some(terminal))
            }
            Slot::Nonterminal(nonterminal) | Slot::End(nonterminal) => {
                (self.rule_of(nonterminal), self.part(nonterminal).1, None)
            }
        }
    }

    /// The nonterminal's name: its rule's, with a number where it is only a part of it.
    pub(crate) fn name(&self, nonterminal: NonterminalId) -> String {
        let Some(origin) = self.origin(nonterminal) else { return "start".to_owned() };
        match origin.name.as_str() {
            "" => format!("{}#{}", self.rule(nonterminal).name, nonterminal.0),
            name => name.to_owned(),
        }
    }

    /// The dotted rule as text, `a ::= b . c`, cut where it is long.
    pub(crate) fn show(&self, dot: Dot) -> String {
        let at = dot.0 as usize;
        let is_end =
            |at: usize| matches!(self.cfg.slot(Dot(u32::try_from(at).unwrap_or(u32::MAX))), Slot::End(_));
        let mut first = at;
        while first > 0 && at - first < MOST_SYMBOLS && !is_end(first - 1) {
            first -= 1;
        }
        let mut text = format!("{} ::=", self.name(self.cfg.lhs(dot)));
        if first > 0 && !is_end(first - 1) {
            text += " ...";
        }
        for here in first..self.cfg.dot_count() {
            if here == at {
                text += " .";
            }
            if is_end(here) {
                break;
            }
            if here - at.min(here) >= MOST_SYMBOLS {
                text += " ...";
                break;
            }
            text.push(' ');
            text += &self.symbol_name(self.cfg.slot(Dot(u32::try_from(here).unwrap_or(u32::MAX))));
        }
        text
    }

    /// Memory of all this file is about, in bytes.
    pub(crate) fn source_bytes(&self) -> usize {
        let origins = self.provenance.terminals.iter().chain(&self.provenance.nonterminals);
        let origins = origins.map(|origin| size_of_val(origin) + origin.name.len());
        let names = self.terminal_names.iter();
        let names = names.map(|name| size_of_val(name) + name.as_ref().map_or(0, String::len));
        let rules = self.provenance.rules.iter();
        let rules =
            rules.map(|rule| size_of_val(rule) + rule.name.len() + size_of_val::<[TerminalId]>(&rule.inside));
        origins.sum::<usize>() + names.sum::<usize>() + rules.sum::<usize>()
    }

    /// How a terminal is written, for display: as its rule is called, or by its automaton. Linear in that.
    pub(crate) fn terminal_name(&self, terminal: TerminalId) -> String {
        let known = self.terminal_names[terminal.index()].clone();
        known.unwrap_or_else(|| shown_automaton(self.scanner.dfa(terminal)))
    }

    /// How all terminals are written.
    #[cfg(test)]
    pub(crate) fn terminal_names(&self) -> Vec<String> {
        (0..self.terminal_names.len())
            .filter_map(TerminalId::from_index)
            .map(|it| self.terminal_name(it))
            .collect()
    }

    /// What a symbol is called.
    pub(crate) fn symbol_name(&self, slot: Slot) -> String {
        match slot {
            Slot::Terminal(terminal) => self.terminal_name(terminal),
            Slot::Nonterminal(nonterminal) | Slot::End(nonterminal) => self.name(nonterminal),
        }
    }
}
