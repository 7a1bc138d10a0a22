//! The lowered grammar, the names of all that is in it, and the fates of the rules.

use std::{sync::Arc, time::Duration};

use super::cfg::{AfterDot, Cfg, DottedRule, NonterminalId, Symbol};
use super::passes::{reduce::Renumbering, rewrite::WorkGrammar};
use super::provenance::{
    EndRecursion, Provenance, RuleFate, RuleSource, RuleSymbol, SourceSpan, SymbolOrigin, shown_automaton,
};
use crate::grammar::{DistinctItems, DistinctKeys, Span, Thought};
use crate::ids::{RuleId, TerminalId, as_index};
use crate::scanner::Scanner;

/// Number of symbols shown on either side of a dot.
const MOST_SYMBOLS: u32 = 20;

/// A grammar as the parser and the scanner need it.
#[derive(Debug)]
pub(crate) struct Lowered {
    /// The productions.
    pub(crate) cfg: Cfg,
    /// The terminals' automata.
    pub(crate) scanner: Scanner,
    /// Name of each terminal, unless its automaton gives it.
    pub(super) terminal_names: Vec<Option<String>>,
    /// Source rules of everything here.
    pub(crate) provenance: Provenance,
    /// May no key of an object come twice?
    pub(crate) keys: Option<DistinctKeys>,
    /// May no item of some arrays come twice?
    pub(crate) items: Option<DistinctItems>,
    /// The thought before a text, if one may come.
    pub(crate) thought: Option<Arc<Thought>>,
    /// Does each terminal stand only after an item that is new in its array?
    pub(crate) after_new: Vec<bool>,
    /// Does a terminal go on as long as any that may stand there can (greedy lexing)?
    pub(crate) greedy: bool,
    /// Time that each pass took, in order.
    pub(crate) times: Vec<(&'static str, Duration)>,
}

impl Lowered {
    /// Returns the source of a nonterminal; `None` for the start.
    fn origin(&self, nonterminal: NonterminalId) -> Option<&SymbolOrigin> {
        nonterminal.index().checked_sub(1).map(|at| &self.provenance.nonterminals[at])
    }

    /// Returns the rule that a nonterminal is, or is a part of.
    pub(crate) fn rule_of(&self, nonterminal: NonterminalId) -> RuleId {
        self.origin(nonterminal).map_or(self.provenance.root, |origin| origin.rule)
    }

    /// Returns the source of the rule that a nonterminal is, or is a part of.
    pub(crate) fn rule(&self, nonterminal: NonterminalId) -> &RuleSource {
        &self.provenance.rules[self.rule_of(nonterminal).index()]
    }

    /// Is the nonterminal only a part of its rule? Also returns its place in the text.
    pub(crate) fn part(&self, nonterminal: NonterminalId) -> (bool, Span) {
        let rule = self.rule(nonterminal);
        match self.origin(nonterminal) {
            Some(origin) => (origin.name != rule.name, origin.span),
            None => (false, rule.span),
        }
    }

    /// Returns the place of a symbol in the grammar text.
    pub(crate) fn place(&self, symbol: AfterDot) -> SourceSpan {
        match symbol {
            AfterDot::Terminal(terminal) => {
                let origin = &self.provenance.terminals[terminal.index()];
                (origin.rule, origin.span, Some(terminal))
            }
            AfterDot::Nonterminal(nonterminal) | AfterDot::End(nonterminal) => {
                (self.rule_of(nonterminal), self.part(nonterminal).1, None)
            }
        }
    }

    /// Names a nonterminal: after its rule, with a number if it is only a part of it.
    pub(crate) fn name(&self, nonterminal: NonterminalId) -> String {
        let Some(origin) = self.origin(nonterminal) else { return "start".to_owned() };
        match origin.name.as_str() {
            "" => format!("{}#{}", self.rule(nonterminal).name, nonterminal.0),
            name => name.to_owned(),
        }
    }

    /// Shows a dotted rule as text, `a ::= b . c`, cut where it is long.
    pub(crate) fn show(&self, dot: DottedRule) -> String {
        let at = dot.0;
        let is_end = |at: u32| matches!(self.cfg.slot(DottedRule(at)), AfterDot::End(_));
        let mut first = at;
        while first > 0 && at - first < MOST_SYMBOLS && !is_end(first - 1) {
            first -= 1;
        }
        let mut text = format!("{} ::=", self.name(self.cfg.lhs(dot)));
        if first > 0 && !is_end(first - 1) {
            text += " ...";
        }
        for here in (first..).take(self.cfg.dot_count().saturating_sub(as_index(first))) {
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
            text += &self.symbol_name(self.cfg.slot(DottedRule(here)));
        }
        text
    }

    /// Memory of the provenance, in bytes.
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

    /// Names a terminal for display: after its rule, or by its automaton. Linear in that.
    pub(crate) fn terminal_name(&self, terminal: TerminalId) -> String {
        let known = self.terminal_names[terminal.index()].clone();
        known.unwrap_or_else(|| shown_automaton(self.scanner.dfa(terminal)))
    }

    /// Names all terminals.
    #[cfg(test)]
    pub(crate) fn terminal_names(&self) -> Vec<String> {
        (0..self.terminal_names.len())
            .filter_map(TerminalId::from_index)
            .map(|it| self.terminal_name(it))
            .collect()
    }

    /// Names a symbol.
    pub(crate) fn symbol_name(&self, slot: AfterDot) -> String {
        match slot {
            AfterDot::Terminal(terminal) => self.terminal_name(terminal),
            AfterDot::Nonterminal(nonterminal) | AfterDot::End(nonterminal) => self.name(nonterminal),
        }
    }
}

/// The notes that the passes left about rules.
#[derive(Debug)]
pub(super) struct Notes<'a> {
    pub(super) reachable: &'a [Vec<RuleId>],
    pub(super) rewritten: &'a [(RuleId, EndRecursion)],
    pub(super) symbols: &'a [Option<RuleSymbol>],
    pub(super) absorbed: &'a [(RuleId, Symbol)],
}

/// Returns the sources of all rules. `only_terminal` returns the terminal that a nonterminal stands for, if
/// it is a terminal or empty. Linear.
pub(super) fn rule_fates(
    work: &WorkGrammar,
    notes: &Notes<'_>,
    numbers: &Renumbering,
    only_terminal: impl Fn(u32) -> Option<TerminalId>,
) -> Vec<RuleSource> {
    // A rule that no pass has noted is reached by no sentence.
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
    // Rules that emission met: a terminal, productions, or dropped by reduction.
    for &rule in notes.reachable.iter().flatten() {
        rules[rule.index()].fate = match notes.symbols[rule.index()] {
            None => RuleFate::Useless,
            Some(known) => match (numbers.renamed(known.symbol), known.folded) {
                (None, _) => RuleFate::Useless,
                (Some(symbol), true) => RuleFate::Terminal(symbol),
                (Some(Symbol::Nonterminal(nonterminal)), false) => {
                    RuleFate::Productions { nonterminal, regular: known.regular }
                }
                // Not met: a rule that is not folded has a nonterminal.
                (Some(symbol @ Symbol::Terminal(_)), false) => RuleFate::Terminal(symbol),
            },
        };
    }
    for &(rule, recursion) in notes.rewritten {
        rules[rule.index()].recursion = Some(recursion);
    }
    // Rules that folding took into larger terminals; some have nothing else left.
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
