//! Lists of parts in any order, as the context-free grammar has them.
//!
//! The productions `list ::= part | list separator part`, `part ::= one | other | ...` say what every
//! analysis may rely on: which symbols can stand where. They allow more than the list does. The parser knows
//! which parts have come: it predicts only those that still may, and completes the list where it may end.

use hashbrown::HashMap;

use super::symbols::{DottedRule, NonterminalId, Symbol};
use crate::{
    grammar::any_order::{AnyOrder, Chosen, OrderRules},
    ids::as_index,
    store::PayloadWriter,
};

/// The length of a text that does not exist.
pub(crate) const NEVER: u64 = u64::MAX;

/// A list while symbols still have the numbers of `emit`.
#[derive(Debug)]
pub(in crate::lower) struct EmittedList {
    pub(in crate::lower) list: u32,
    pub(in crate::lower) part: u32,
    /// Nonterminals of the parts, in the order of `of`.
    pub(in crate::lower) parts: Vec<u32>,
    pub(in crate::lower) separator: Symbol,
    pub(in crate::lower) of: AnyOrder,
}

impl EmittedList {
    /// Has the list any text, if these nonterminals have?
    pub(in crate::lower) fn has_text(&self, found: &[bool]) -> bool {
        self.choice(found).has_list()
    }

    pub(in crate::lower) fn choice(&self, found: &[bool]) -> OrderRules {
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
    pub(in crate::lower) fn new(lists: Vec<AnyOrderList>) -> Self {
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
    pub(in crate::lower) fn write(&self, writer: &mut PayloadWriter) {
        for list in &self.lists {
            writer.u32(list.symbol.0);
            list.choice.words().for_each(|word| writer.u64(word));
        }
    }

    /// Memory, in bytes.
    pub(in crate::lower) fn bytes(&self) -> usize {
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
    pub(in crate::lower) fn least_from(
        &self,
        chosen: &Chosen,
        price: impl Fn(usize) -> u64,
        separator: u64,
    ) -> u64 {
        self.choice.least_from(chosen, price, separator).unwrap_or(NEVER)
    }
}
