//! The context-free grammar as the parser reads it: dotted rules are indices.
//!
//! Invariants: reduced (see `reduce`); a dot's successor in its production is the next number;
//! production 0 is `start ::= root`, where `start` occurs nowhere else.

pub(super) mod any_order;
pub(super) mod dominance;
pub(super) mod follow;
pub(super) mod shortest;
pub(super) mod symbols;

use self::{
    any_order::{AnyOrderList, Lists},
    symbols::{AfterDot, DottedRule, NonterminalId},
};
use crate::{
    ids::{TerminalId, numbered},
    store::PayloadWriter,
};

/// The rank of a dotted rule in its class. Of the items of one class and one origin, the first dominates the
/// others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DominanceRank {
    /// Dotted rules with the same symbols left, in productions whose left-hand sides are comparable.
    pub(crate) class: u32,
    /// Position in the class; the first dominates.
    pub(crate) place: u32,
}

/// The ranks of a grammar's dotted rules.
#[derive(Debug, Default)]
pub(super) struct Dominance {
    /// Ranks by dot; empty if no class has two members.
    ranks: Vec<Option<DominanceRank>>,
}

impl Dominance {
    /// Takes the ranks by dot; none if no class has two members.
    pub(super) fn new(ranks: Vec<Option<DominanceRank>>) -> Self {
        Self { ranks }
    }

    pub(super) fn get(&self, dot: DottedRule) -> Option<DominanceRank> {
        self.ranks.get(dot.0 as usize).copied().flatten()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.ranks)
    }
}

/// Productions, with the facts that the parser looks up.
#[derive(Debug)]
pub(crate) struct Cfg {
    pub(super) slots: Vec<AfterDot>,
    /// Left-hand side of each slot's production.
    pub(super) lhs: Vec<NonterminalId>,
    /// First dots of each nonterminal's productions.
    pub(super) productions: Vec<Vec<DottedRule>>,
    pub(super) nullable: Vec<bool>,
    pub(super) lists: Lists,
    pub(super) ranks: Dominance,
}

impl Cfg {
    /// The dot before the root in `start ::= root`.
    pub(crate) const START: DottedRule = DottedRule(0);

    /// Returns the symbol after a dot.
    pub(crate) fn slot(&self, dot: DottedRule) -> AfterDot {
        self.slots[dot.0 as usize]
    }

    /// The nonterminal whose production the dot is in.
    pub(crate) fn lhs(&self, dot: DottedRule) -> NonterminalId {
        self.lhs[dot.0 as usize]
    }

    /// First dots of the nonterminal's productions.
    pub(crate) fn productions(&self, nonterminal: NonterminalId) -> &[DottedRule] {
        &self.productions[nonterminal.index()]
    }

    /// Iterates over all dots in order, with the symbols after them.
    pub(crate) fn dots(&self) -> impl Iterator<Item = (DottedRule, AfterDot)> + '_ {
        (0..).map(DottedRule).zip(self.slots.iter().copied())
    }

    /// The symbols of the production that begins at `first`.
    pub(crate) fn symbols(&self, first: DottedRule) -> impl Iterator<Item = AfterDot> + '_ {
        self.slots[first.0 as usize..].iter().copied().take_while(|slot| !matches!(slot, AfterDot::End(_)))
    }

    /// First dots of what the parser predicts for the nonterminal: of a list in any order only its first
    /// part.
    pub(crate) fn predicted(&self, nonterminal: NonterminalId) -> &[DottedRule] {
        let all = self.productions(nonterminal);
        if self.lists.of_symbol(nonterminal).is_some() { all.get(..1).unwrap_or(all) } else { all }
    }

    /// The lists of parts in any order.
    pub(crate) fn lists(&self) -> &Lists {
        &self.lists
    }

    /// First dots of all productions.
    pub(super) fn first_dots(&self) -> impl Iterator<Item = DottedRule> + '_ {
        self.productions.iter().flatten().copied()
    }

    /// The dot at the end of a dot's production. Linear in the symbols on the way.
    pub(super) fn end(&self, mut dot: DottedRule) -> DottedRule {
        while !matches!(self.slot(dot), AfterDot::End(_)) {
            dot = dot.next();
        }
        dot
    }

    /// Does the nonterminal derive the empty string?
    pub(crate) fn is_nullable(&self, nonterminal: NonterminalId) -> bool {
        self.nullable[nonterminal.index()]
    }

    /// Does a part or the separator of a list match the empty text?
    pub(super) fn has_empty_part(&self, list: &AnyOrderList) -> bool {
        let separator = match self.slot(list.between) {
            AfterDot::Nonterminal(separator) => Some(separator),
            AfterDot::Terminal(_) | AfterDot::End(_) => None,
        };
        list.parts.iter().copied().chain(separator).any(|symbol| self.is_nullable(symbol))
    }

    /// Returns the rank of a dotted rule in the order of dominance, if it has any.
    pub(crate) fn rank(&self, dot: DottedRule) -> Option<DominanceRank> {
        self.ranks.get(dot)
    }

    /// Removes all ranks, so that the parser keeps every item.
    #[cfg(test)]
    pub(crate) fn without_ranks(mut self) -> Self {
        self.ranks = Dominance::default();
        self
    }

    /// Has any dotted rule a rank?
    pub(crate) fn has_ranks(&self) -> bool {
        !self.ranks.is_empty()
    }

    /// Number of dots.
    pub(crate) fn dot_count(&self) -> usize {
        self.slots.len()
    }

    /// Serialises everything that distinguishes the grammar, except for names.
    pub(crate) fn write(&self, writer: &mut PayloadWriter) {
        writer.count(self.slots.len());
        for slot in &self.slots {
            let (kind, number) = match slot {
                AfterDot::Terminal(terminal) => (0, terminal.raw()),
                AfterDot::Nonterminal(nonterminal) => (1, nonterminal.0),
                AfterDot::End(nonterminal) => (2, nonterminal.0),
            };
            writer.u8(kind);
            writer.u32(number);
        }
        self.lists.write(writer);
    }

    /// All nonterminals, the start first.
    pub(crate) fn nonterminals(&self) -> impl ExactSizeIterator<Item = NonterminalId> {
        numbered(&self.productions).map(|(number, _)| NonterminalId(number))
    }

    /// Number of nonterminals.
    pub(crate) fn nonterminal_count(&self) -> usize {
        self.productions.len()
    }

    /// Memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let productions =
            self.productions.iter().map(|dots| size_of_val(dots) + size_of_val::<[DottedRule]>(dots));
        self.slots.len() * size_of::<AfterDot>()
            + self.lhs.len() * size_of::<NonterminalId>()
            + self.nullable.len()
            + self.lists.bytes()
            + self.ranks.bytes()
            + productions.sum::<usize>()
    }

    /// Returns the only terminal of a nonterminal that is a terminal or empty.
    pub(crate) fn only_terminal(&self, nonterminal: u32) -> Option<TerminalId> {
        let mut only = None;
        for &dot in self.productions.get(nonterminal as usize)? {
            match (self.slot(dot), self.slots.get(dot.0 as usize + 1)) {
                (AfterDot::End(_), _) => {}
                (AfterDot::Terminal(terminal), Some(AfterDot::End(_))) if only.is_none() => {
                    only = Some(terminal)
                }
                _ => return None,
            }
        }
        only
    }
}
