//! Lengths of shortest texts: of nonterminals, and of the rests of productions.

use std::{cmp::Reverse, collections::BinaryHeap};

use hashbrown::HashMap;

use super::{AfterDot, AnyOrderList, Cfg, DottedRule, NEVER};
use crate::{grammar::any_order::Chosen, ids::as_index};

/// The uses of nonterminals in productions.
#[derive(Debug)]
pub(crate) struct NonterminalUses {
    /// Numbers of the productions that use each nonterminal, once for each use.
    pub(crate) productions: Vec<Vec<u32>>,
    /// First dot of each production.
    pub(crate) firsts: Vec<DottedRule>,
}

impl NonterminalUses {
    /// Collects all uses. Linear in the productions.
    pub(crate) fn new(cfg: &Cfg) -> Self {
        let mut uses = Self { productions: vec![Vec::new(); cfg.nonterminal_count()], firsts: Vec::new() };
        let mut at_start = true;
        // A production has a dot of its own, so numbers of dots suffice.
        let (mut production, mut next) = (0_u32, 0_u32);
        for (dot, slot) in cfg.dots() {
            if std::mem::replace(&mut at_start, matches!(slot, AfterDot::End(_))) {
                uses.firsts.push(dot);
                production = next;
                next += 1;
            }
            if let AfterDot::Nonterminal(nonterminal) = slot {
                uses.productions[nonterminal.index()].push(production);
            }
        }
        uses
    }
}

/// Returns the shortest text of each nonterminal: its length in bytes (saturating below [`NEVER`]) and its
/// production. Takes the lengths of the terminals' shortest texts. Knuth's generalisation of Dijkstra's
/// algorithm, `O(n log n)` for `n` symbols in productions.
pub(crate) fn shortest(cfg: &Cfg, terminals: &[u64], uses: &NonterminalUses) -> Vec<(u64, DottedRule)> {
    let mut found = vec![(NEVER, Cfg::START); cfg.nonterminal_count()];
    let mut heap = BinaryHeap::new();
    // By production: the number of nonterminals whose shortest text is unknown, and the length of the others.
    let mut open: Vec<(usize, u64)> = Vec::with_capacity(uses.firsts.len());
    let lists = ListsByPart::new(cfg);
    for (number, &first) in uses.firsts.iter().enumerate() {
        let (mut missing, mut length) = (0, 0_u64);
        for slot in cfg.symbols(first) {
            match slot {
                AfterDot::Terminal(terminal) => length = length.saturating_add(terminals[terminal.index()]),
                _ => missing += 1,
            }
        }
        open.push((missing, length));
        if missing == 0 && cfg.lists().of_symbol(cfg.lhs(first)).is_none() {
            heap.push(Reverse((length, cfg.lhs(first).index(), number)));
        }
    }
    while let Some(Reverse((length, nonterminal, number))) = heap.pop() {
        // They come in order of length, so the first production of a nonterminal is a shortest one.
        if found[nonterminal].0 != NEVER {
            continue;
        }
        found[nonterminal] = (length, uses.firsts[number]);
        for &number in &uses.productions[nonterminal] {
            let (missing, total) = &mut open[as_index(number)];
            *missing -= 1;
            *total = total.saturating_add(length).min(NEVER - 1);
            let lhs = cfg.lhs(uses.firsts[as_index(number)]);
            if *missing == 0 && cfg.lists().of_symbol(lhs).is_none() {
                heap.push(Reverse((*total, lhs.index(), number as usize)));
            }
        }
        // A list is measured again whenever a part of it is known.
        for &list in lists.with(nonterminal) {
            let list = cfg.lists().get(list);
            let length = shortest_list(cfg, list, terminals, &found);
            let number = uses.firsts.binary_search(&list.first).unwrap_or(0);
            if length < NEVER {
                heap.push(Reverse((length, list.symbol.index(), number)));
            }
        }
    }
    found
}

/// The lists in any order that have a nonterminal as a part or as the separator.
struct ListsByPart(HashMap<usize, Vec<u32>>);

impl ListsByPart {
    fn new(cfg: &Cfg) -> Self {
        let mut lists: HashMap<usize, Vec<u32>> = HashMap::new();
        for (number, list) in cfg.lists().iter() {
            let separator = match cfg.slot(list.between) {
                AfterDot::Nonterminal(separator) => Some(separator),
                _ => None,
            };
            for symbol in list.parts.iter().copied().chain(separator) {
                lists.entry(symbol.index()).or_default().push(number);
            }
        }
        Self(lists)
    }

    fn with(&self, nonterminal: usize) -> &[u32] {
        self.0.get(&nonterminal).map_or(&[], Vec::as_slice)
    }
}

/// Length of the shortest text of a list in any order, by the parts that were found.
fn shortest_list(cfg: &Cfg, list: &AnyOrderList, terminals: &[u64], found: &[(u64, DottedRule)]) -> u64 {
    let separator = match cfg.slot(list.between) {
        AfterDot::Nonterminal(separator) => found[separator.index()].0,
        AfterDot::Terminal(separator) => terminals[separator.index()],
        AfterDot::End(_) => 0,
    };
    list.least_from(&list.choice.start(), |part| found[list.parts[part].index()].0, separator)
}

/// Length of the shortest text of the symbols after each dot in its production, saturating below [`NEVER`].
/// Linear.
pub(crate) fn rests(cfg: &Cfg, terminals: &[u64]) -> Vec<u64> {
    let shortest = shortest(cfg, terminals, &NonterminalUses::new(cfg));
    let mut rests = vec![0; cfg.dot_count()];
    let slots: Vec<AfterDot> = cfg.dots().map(|(_, slot)| slot).collect();
    let mut rest = 0_u64;
    for (rest_of, slot) in rests.iter_mut().zip(slots).rev() {
        rest = match slot {
            AfterDot::Terminal(terminal) => rest.saturating_add(terminals[terminal.index()]),
            AfterDot::Nonterminal(nonterminal) => rest.saturating_add(shortest[nonterminal.index()].0),
            AfterDot::End(_) => 0,
        }
        .min(NEVER - 1);
        *rest_of = rest;
    }
    for (_, list) in cfg.lists().iter() {
        rests[as_index(list.first.0)] = shortest[list.symbol.index()].0.min(NEVER - 1);
    }
    rests
}

/// Prices the rests of lists, by the shortest rests of productions; see [`rests`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prices<'a> {
    pub(crate) cfg: &'a Cfg,
    pub(crate) rests: &'a [u64],
}

impl Prices<'_> {
    fn of(self, list: &AnyOrderList, part: usize) -> u64 {
        self.cfg.productions(list.parts[part]).first().map_or(NEVER, |dot| self.rests[as_index(dot.0)])
    }

    fn separator(self, list: &AnyOrderList) -> u64 {
        self.rests[as_index(list.between.0)].saturating_sub(self.rests[as_index(list.again.0)])
    }

    /// Length of the shortest text that ends the list after these parts.
    pub(crate) fn to_end(self, list: &AnyOrderList, chosen: &Chosen) -> u64 {
        list.choice.least(chosen, |part| self.of(list, part), self.separator(list)).unwrap_or(NEVER)
    }

    /// Length of the shortest text that ends the list if another part comes first.
    pub(crate) fn least_from(self, list: &AnyOrderList, chosen: &Chosen) -> u64 {
        list.least_from(chosen, |part| self.of(list, part), self.separator(list))
    }
}
