//! Views of the rules as written, and of the productions they became.

use super::Inspection;
use crate::{
    grammar::Span,
    ids::{RuleId, TerminalId, numbered},
    lower::{AfterDot, NonterminalId, RuleFate, Symbol},
};

/// A rule of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleView {
    /// The rule's number, as in [`Grammar::rules`](crate::Grammar::rules).
    pub rule: RuleId,
    /// The rule's name.
    pub name: String,
    /// The place of its definition in the grammar text.
    pub span: Span,
    /// The result of lowering it.
    pub became: Became,
    /// Did it begin with itself, and has that become repetition?
    pub left_recursion: bool,
    /// Did it end with itself, and has that become repetition?
    pub right_recursion: bool,
    /// Terminals made for rules that mention it, of which it is a part. Notes on this are kept up to a bound.
    pub inside: Vec<TerminalId>,
}

/// The result of lowering a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Became {
    /// Nothing: the start rule does not lead to it.
    Unreachable,
    /// Nothing: no sentence uses it.
    Useless,
    /// Part of larger terminals, and nothing by itself.
    Absorbed,
    /// One terminal.
    Terminal {
        /// The terminal's number.
        terminal: TerminalId,
        /// Can it also be empty?
        or_empty: bool,
    },
    /// The empty string, and nothing else.
    Empty,
    /// Productions.
    Productions {
        /// The nonterminal's number.
        nonterminal: u32,
        /// Is it regular, and has productions only because its automaton would have too many states?
        regular: bool,
    },
}

/// A nonterminal of the lowered grammar: a rule, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NonterminalView {
    /// The nonterminal's number; 0 is the start.
    pub number: u32,
    /// The rule's name, followed by a number for a part of it.
    pub name: String,
    /// The rule that it is, or is a part of.
    pub rule: RuleId,
    /// Is it only a part of the rule?
    pub is_part: bool,
    /// The part of the grammar text that it stands for.
    pub span: Span,
    /// May it be empty?
    pub nullable: bool,
    /// May it begin with itself? Repetition is made of this.
    pub left_recursive: bool,
    /// May it end with itself? Then each text that ends it ends all that are open.
    pub right_recursive: bool,
    /// May it be nothing but itself?
    pub cyclic: bool,
    /// Number of its productions.
    pub productions: usize,
}

/// A symbol of a production.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SymbolView {
    /// A terminal.
    Terminal(TerminalId),
    /// A nonterminal, by number.
    Nonterminal(u32),
}

impl Inspection {
    /// The rules of the source, in order of first mention.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = RuleView> + '_ {
        let rules = &self.program().lowered.provenance.rules;
        numbered(rules).map(|(rule, source)| RuleView {
            rule: RuleId::new(rule),
            name: source.name.clone(),
            span: source.span,
            became: self.became(source.fate),
            left_recursion: source.recursion.is_some_and(|ends| ends.left),
            right_recursion: source.recursion.is_some_and(|ends| ends.right),
            inside: source.inside.clone(),
        })
    }

    /// Returns what lowering made of a rule.
    fn became(&self, fate: RuleFate) -> Became {
        match fate {
            RuleFate::Unreachable => Became::Unreachable,
            RuleFate::Useless => Became::Useless,
            RuleFate::Absorbed => Became::Absorbed,
            RuleFate::Terminal(Symbol::Terminal(terminal)) => {
                Became::Terminal { terminal: TerminalId::new(terminal), or_empty: false }
            }
            RuleFate::Terminal(Symbol::Nonterminal(nonterminal)) => {
                let terminal = self.program().lowered.cfg.only_terminal(nonterminal);
                terminal.map_or(Became::Empty, |terminal| Became::Terminal { terminal, or_empty: true })
            }
            RuleFate::Productions { nonterminal, regular } => Became::Productions { nonterminal, regular },
        }
    }

    /// The name of a rule, if there is one of this number.
    #[must_use]
    pub fn rule_name(&self, rule: RuleId) -> Option<&str> {
        self.program().lowered.provenance.rules.get(rule.index()).map(|source| source.name.as_str())
    }

    /// The nonterminals, the start first.
    pub fn nonterminals(&self) -> impl ExactSizeIterator<Item = NonterminalView> + '_ {
        let lowered = &self.program().lowered;
        lowered.cfg.nonterminals().map(|nonterminal| {
            let at = nonterminal.index();
            let (is_part, span) = lowered.part(nonterminal);
            NonterminalView {
                number: nonterminal.0,
                name: lowered.name(nonterminal),
                rule: lowered.rule_of(nonterminal),
                is_part,
                span,
                nullable: lowered.cfg.is_nullable(nonterminal),
                left_recursive: self.marks.left_recursive[at],
                right_recursive: self.marks.right_recursive[at],
                cyclic: self.marks.cyclic[at],
                productions: lowered.cfg.productions(nonterminal).len(),
            }
        })
    }

    /// The productions of a nonterminal, each a row of symbols; none if there is no such nonterminal.
    pub fn productions(&self, nonterminal: u32) -> impl Iterator<Item = Vec<SymbolView>> + '_ {
        let cfg = &self.program().lowered.cfg;
        let known = (nonterminal as usize) < cfg.nonterminal_count();
        let productions = if known { cfg.productions(NonterminalId(nonterminal)) } else { &[] };
        productions.iter().map(|&first| {
            let symbol = |slot| match slot {
                AfterDot::Terminal(terminal) => SymbolView::Terminal(terminal),
                AfterDot::Nonterminal(symbol) | AfterDot::End(symbol) => SymbolView::Nonterminal(symbol.0),
            };
            cfg.symbols(first).map(symbol).collect()
        })
    }

    /// Returns the name of a symbol, if there is one of this number.
    #[must_use]
    pub fn symbol_name(&self, symbol: SymbolView) -> Option<String> {
        let lowered = &self.program().lowered;
        match symbol {
            SymbolView::Terminal(terminal) => {
                (terminal.index() < lowered.scanner.terminal_count()).then(|| lowered.terminal_name(terminal))
            }
            SymbolView::Nonterminal(number) => ((number as usize) < lowered.cfg.nonterminal_count())
                .then(|| lowered.name(NonterminalId(number))),
        }
    }
}
