//! How short texts can be: of nonterminals, and of what is left of a production.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::cfg::{Cfg, Dot, Slot};

/// The length of a text that there is not.
pub(crate) const NEVER: u64 = u64::MAX;

/// Where nonterminals stand in productions.
#[derive(Debug)]
pub(crate) struct Uses {
    /// By nonterminal: numbers of the productions that use it, once for each use.
    pub(crate) productions: Vec<Vec<u32>>,
    /// By number of production: its first dot.
    pub(crate) firsts: Vec<Dot>,
}

impl Uses {
    /// Linear in the productions.
    pub(crate) fn new(cfg: &Cfg) -> Self {
        let mut uses = Self { productions: vec![Vec::new(); cfg.nonterminal_count()], firsts: Vec::new() };
        let mut at_start = true;
        for (dot, slot) in cfg.dots() {
            if std::mem::replace(&mut at_start, matches!(slot, Slot::End(_))) {
                uses.firsts.push(dot);
            }
            if let Slot::Nonterminal(nonterminal) = slot {
                uses.productions[nonterminal.index()]
                    .push(u32::try_from(uses.firsts.len() - 1).unwrap_or(u32::MAX));
            }
        }
        uses
    }
}

/// The shortest text of each nonterminal, as its length in bytes (saturating below [`NEVER`]) and the production it
/// is of, given the lengths of the terminals' shortest: Knuth's generalisation of Dijkstra's algorithm.
/// `O(n log n)` for `n` symbols in productions.
pub(crate) fn shortest(cfg: &Cfg, terminals: &[u64], uses: &Uses) -> Vec<(u64, Dot)> {
    let mut found = vec![(NEVER, Cfg::START); cfg.nonterminal_count()];
    let mut heap = BinaryHeap::new();
    let mut open: Vec<(usize, u64)> = Vec::with_capacity(uses.firsts.len());
    for (number, &first) in uses.firsts.iter().enumerate() {
        let (mut missing, mut length) = (0, 0_u64);
        for slot in cfg.symbols(first) {
            match slot {
                Slot::Terminal(terminal) => length = length.saturating_add(terminals[terminal.index()]),
                _ => missing += 1,
            }
        }
        open.push((missing, length));
        if missing == 0 {
            heap.push(Reverse((length, cfg.lhs(first).index(), number)));
        }
    }
    while let Some(Reverse((length, nonterminal, number))) = heap.pop() {
        if found[nonterminal].0 != NEVER {
            continue;
        }
        found[nonterminal] = (length, uses.firsts[number]);
        for &number in &uses.productions[nonterminal] {
            let (missing, total) = &mut open[number as usize];
            *missing -= 1;
            *total = total.saturating_add(length).min(NEVER - 1);
            if *missing == 0 {
                let lhs = cfg.lhs(uses.firsts[number as usize]).index();
                heap.push(Reverse((*total, lhs, number as usize)));
            }
        }
    }
    found
}

/// By dot the length of the shortest text of the symbols after it in its production, saturating below [`NEVER`].
/// Linear.
pub(crate) fn rests(cfg: &Cfg, terminals: &[u64]) -> Vec<u64> {
    let shortest = shortest(cfg, terminals, &Uses::new(cfg));
    let mut rests = vec![0; cfg.dot_count()];
    let slots: Vec<Slot> = cfg.dots().map(|(_, slot)| slot).collect();
    let mut rest = 0_u64;
    for (rest_of, slot) in rests.iter_mut().zip(slots).rev() {
        rest = match slot {
            Slot::Terminal(terminal) => rest.saturating_add(terminals[terminal.index()]),
            Slot::Nonterminal(nonterminal) => rest.saturating_add(shortest[nonterminal.index()].0),
            Slot::End(_) => 0,
        }
        .min(NEVER - 1);
        *rest_of = rest;
    }
    rests
}
