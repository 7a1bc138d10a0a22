//! The context-free grammar as the parser reads it: dotted rules are indices.
//!
//! Invariants: reduced (see `reduce`); a dot's successor in its production is the next number;
//! production 0 is `start ::= root`, where `start` occurs nowhere else.

pub(super) mod dominance;
pub(super) mod follow;
pub(super) mod shortest;

use hashbrown::HashMap;

use crate::grammar::any_order::{AnyOrder, Chosen, OrderRules};
use crate::ids::{TerminalId, as_index, numbered};
use crate::store::PayloadWriter;

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
    fn first_dots(&self) -> impl Iterator<Item = DottedRule> + '_ {
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
    fn previous(self) -> Self {
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

// Lists of parts in any order stand in the grammar as productions of their own. The productions `list ::=
// part | list separator part`, `part ::= one | other | ...` say what every analysis may rely on: which
// symbols can stand where. They allow more than the list does. The parser knows which parts have come: it
// predicts only those that still may, and completes the list where it may end.

/// The length of a text that does not exist.
pub(crate) const NEVER: u64 = u64::MAX;

/// A list while symbols still have the numbers of `emit`.
#[derive(Debug)]
pub(super) struct EmittedList {
    pub(super) list: u32,
    pub(super) part: u32,
    /// Nonterminals of the parts, in the order of `of`.
    pub(super) parts: Vec<u32>,
    pub(super) separator: Symbol,
    pub(super) of: AnyOrder,
}

impl EmittedList {
    /// Has the list any text, if these nonterminals have?
    pub(super) fn has_text(&self, found: &[bool]) -> bool {
        self.choice(found).has_list()
    }

    pub(super) fn choice(&self, found: &[bool]) -> OrderRules {
        let separated = match self.separator {
            Symbol::Terminal(_) => true,
            Symbol::Nonterminal(separator) => found[as_index(separator)],
        };
        OrderRules::new(&self.of, |part| found[as_index(self.parts[part])], separated)
    }
}

/// A list of parts in any order.
#[derive(Debug)]
pub(crate) struct AnyOrderList {
    pub(crate) symbol: NonterminalId,
    /// The nonterminal of any part.
    pub(crate) part: NonterminalId,
    pub(crate) parts: Vec<NonterminalId>,
    pub(crate) choice: OrderRules,
    /// Dots before the first part, between two parts, before a further part, and at the end.
    pub(crate) first: DottedRule,
    pub(crate) between: DottedRule,
    pub(crate) again: DottedRule,
    pub(crate) end: DottedRule,
}

/// All lists of a grammar.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    lists: Vec<AnyOrderList>,
    by_symbol: HashMap<NonterminalId, u32>,
    by_part: HashMap<NonterminalId, u32>,
    /// The list of each part, and its place there.
    parts: HashMap<NonterminalId, (u32, usize)>,
}

impl Lists {
    /// Indexes the lists by their symbols and parts.
    pub(super) fn new(lists: Vec<AnyOrderList>) -> Self {
        let mut all = Self::default();
        for (number, list) in (0..).zip(&lists) {
            all.by_symbol.insert(list.symbol, number);
            all.by_part.insert(list.part, number);
            all.parts.extend((0..).zip(&list.parts).map(|(at, &part)| (part, (number, at))));
        }
        all.lists = lists;
        all
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    pub(crate) fn get(&self, number: u32) -> &AnyOrderList {
        &self.lists[as_index(number)]
    }

    /// Iterates over all lists with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &AnyOrderList)> {
        (0..).zip(&self.lists)
    }

    /// Returns the list that this symbol stands for.
    pub(crate) fn of_symbol(&self, symbol: NonterminalId) -> Option<u32> {
        self.by_symbol.get(&symbol).copied()
    }

    /// Returns the list of which this symbol stands for any part.
    pub(crate) fn of_any_part(&self, symbol: NonterminalId) -> Option<u32> {
        self.by_part.get(&symbol).copied()
    }

    /// Returns the list of which this symbol is one part, and its place there.
    pub(crate) fn of_part(&self, symbol: NonterminalId) -> Option<(u32, usize)> {
        self.parts.get(&symbol).copied()
    }

    /// Serialises all that the productions do not say; nothing if there are no lists.
    pub(super) fn write(&self, writer: &mut PayloadWriter) {
        for list in &self.lists {
            writer.u32(list.symbol.0);
            list.choice.words().for_each(|word| writer.u64(word));
        }
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let lists = self.lists.iter().map(|list| size_of_val(list) + list.parts.len() * PART_BYTES);
        lists.sum()
    }
}

/// Memory of a part in a list and in two tables, in bytes.
const PART_BYTES: usize = 64;

impl AnyOrderList {
    /// Returns the parts of the cheapest list, in an order in which they may come.
    pub(crate) fn shortest(&self, price: impl Fn(usize) -> u64, separator: u64) -> Vec<usize> {
        let (mut chosen, mut parts) = (self.choice.start(), Vec::new());
        while parts.is_empty() || !self.choice.may_end(&chosen) {
            let Some(least) = self.choice.least_from(&chosen, &price, separator) else { break };
            // The first part with which it can be had.
            let mut ways =
                (0..self.choice.len()).filter_map(|part| Some((part, self.choice.after(&chosen, part)?)));
            let next = ways.find(|(part, after)| {
                let rest = self.choice.least(after, &price, separator).unwrap_or(NEVER);
                price(*part).saturating_add(rest) == least
            });
            let Some((part, after)) = next else { break };
            parts.push(part);
            chosen = after;
        }
        parts
    }

    /// Returns the least price of a rest of the list that begins with a part, after the parts that have come.
    /// `price` maps a part's number to its price.
    pub(super) fn least_from(&self, chosen: &Chosen, price: impl Fn(usize) -> u64, separator: u64) -> u64 {
        self.choice.least_from(chosen, price, separator).unwrap_or(NEVER)
    }
}
