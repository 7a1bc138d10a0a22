//! Fates of rules, from the notes that the passes left.

use super::{EndRecursion, RuleFate, RuleSource, RuleSymbol};
use crate::{
    ids::{RuleId, TerminalId},
    lower::{
        cfg::symbols::Symbol,
        passes::{reduce::Renumbering, rewrite::WorkGrammar},
    },
};

/// The notes that the passes left about rules.
#[derive(Debug)]
pub(in crate::lower) struct Notes<'a> {
    pub(in crate::lower) reachable: &'a [Vec<RuleId>],
    pub(in crate::lower) rewritten: &'a [(RuleId, EndRecursion)],
    pub(in crate::lower) symbols: &'a [Option<RuleSymbol>],
    pub(in crate::lower) absorbed: &'a [(RuleId, Symbol)],
}

/// Returns the sources of all rules. `only_terminal` returns the terminal that a nonterminal stands for, if
/// it is a terminal or empty. Linear.
pub(in crate::lower) fn rules(
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
