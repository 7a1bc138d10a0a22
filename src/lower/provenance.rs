//! Provenance: the source of terminals and nonterminals, and the fate of each rule.
//!
//! Constraining a text needs none of this: it lets messages, `inspect` and warnings speak of the rules that
//! the author wrote.

use super::{
    Lowered,
    cfg::{AfterDot, DottedRule, NonterminalId},
    emit::Symbol,
    names::shown_automaton,
    reduce::Renumbering,
    rewrite::WorkGrammar,
};
use crate::{
    grammar::Span,
    ids::{RuleId, TerminalId, as_index, numbers},
};

/// Number of symbols shown on either side of a dot.
const MOST_SYMBOLS: u32 = 20;

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
pub(super) fn rules(
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
                // What is not folded is a nonterminal.
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
        for here in numbers(self.cfg.dot_count()).skip(as_index(first)) {
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
