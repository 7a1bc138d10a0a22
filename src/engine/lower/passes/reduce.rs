//! Drops nonterminals that derive no text and symbols that occur in no sentence.
//!
//! Only in a reduced grammar does "a terminal can follow" mean "a sentence can follow".

use std::sync::Arc;

use hashbrown::HashSet;

use super::emit::Emitted;
use crate::{
    automata::Grouped,
    ids::TerminalId,
    lower::{
        cfg::{
            AfterDot, AnyOrderList, Cfg, Dominance, DottedRule, EmittedList, Lists, NonterminalId, Symbol,
            dominance::dominance,
        },
        provenance::SymbolOrigin,
    },
    scanner::TerminalDfa,
};

/// The reduced grammar, in new numbers.
#[derive(Debug)]
pub(in crate::lower) struct Reduced {
    pub(in crate::lower) cfg: Cfg,
    pub(in crate::lower) terminals: Vec<Arc<TerminalDfa>>,
    pub(in crate::lower) terminal_names: Vec<Option<String>>,
    pub(in crate::lower) terminal_origins: Vec<SymbolOrigin>,
    /// Does each terminal stand only after items that are new in their array?
    pub(in crate::lower) after_new: Vec<bool>,
    /// Origins of nonterminals; the start, which has no rule of its own, counts as the root.
    pub(in crate::lower) nonterminal_origins: Vec<SymbolOrigin>,
    /// New numbers of the symbols of [`Emitted`].
    pub(in crate::lower) numbers: Renumbering,
}

/// Reduces the grammar; `None` if no sentence is left. Linear.
///
/// First productive symbols are found bottom-up, then productions of productive symbols are numbered top-down
/// from the start, so that only reachable ones get a number. Terminals are sorted by their new numbers last.
pub(in crate::lower) fn reduce(emitted: Emitted) -> Option<Reduced> {
    let count = emitted.nonterminals.len();
    let is_text = |symbol: &Symbol| matches!(symbol, Symbol::Terminal(_));
    let productive = derives(count, &emitted.productions, &emitted.lists, is_text);
    let good = |symbol: &Symbol| match symbol {
        Symbol::Terminal(_) => true,
        Symbol::Nonterminal(nonterminal) => productive[*nonterminal as usize],
    };
    if !good(&emitted.root) {
        return None;
    }
    let whole = (0..).zip(&emitted.productions).filter(|(_, (_, symbols))| symbols.iter().all(good));
    let whole: Vec<(u32, u32)> = whole.map(|(index, (lhs, _))| (*lhs, index)).collect();
    let by_lhs = Grouped::new(count, || whole.iter().copied());
    let mut numbers = Renumbering::new(count, emitted.terminals.len());
    // Number 0 is `start`.
    let mut slots = vec![numbers.slot(emitted.root), AfterDot::End(NonterminalId(0))];
    let mut productions = vec![vec![Cfg::START]];
    let mut next = 0;
    while let Some(&old) = numbers.order.get(next) {
        next += 1;
        let lhs = NonterminalId(u32::try_from(next).ok()?);
        let mut dots = Vec::new();
        for &production in by_lhs.of(old) {
            dots.push(DottedRule(u32::try_from(slots.len()).ok()?));
            slots.extend(
                emitted.productions[production as usize].1.iter().map(|&symbol| numbers.slot(symbol)),
            );
            slots.push(AfterDot::End(lhs));
        }
        productions.push(dots);
    }
    let nullable = nullable(&slots, &productions);
    let lhs = left_hand_sides(&slots);
    let lists = emitted.lists.iter().filter_map(|list| numbers.list(list, &productive, &productions));
    let lists = Lists::new(lists.collect());
    let mut cfg = Cfg { slots, lhs, productions, nullable, lists, ranks: Dominance::default() };
    cfg.ranks = dominance(&cfg);

    let origins = &emitted.nonterminals;
    let nonterminal_origins = numbers.order.iter().map(|&old| origins[old as usize].clone()).collect();
    let mut terminals: Vec<(TerminalId, Arc<TerminalDfa>, Option<String>, SymbolOrigin)> = numbers
        .terminals
        .iter()
        .zip(
            emitted
                .terminals
                .into_iter()
                .zip(emitted.terminal_names.into_iter().zip(emitted.terminal_origins)),
        )
        .filter_map(|(number, (dfa, (name, origin)))| number.map(|number| (number, dfa, name, origin)))
        .collect();
    terminals.sort_by_key(|(number, ..)| *number);
    let mut after_new = vec![false; terminals.len()];
    for (number, &flag) in numbers.terminals.iter().zip(&emitted.after_new) {
        number.iter().for_each(|number| after_new[number.index()] = flag);
    }
    let mut reduced = Reduced {
        cfg,
        after_new,
        terminals: Vec::with_capacity(terminals.len()),
        terminal_names: Vec::with_capacity(terminals.len()),
        terminal_origins: Vec::with_capacity(terminals.len()),
        nonterminal_origins,
        numbers,
    };
    for (_, dfa, name, origin) in terminals {
        reduced.terminals.push(dfa);
        reduced.terminal_names.push(name);
        reduced.terminal_origins.push(origin);
    }
    Some(reduced)
}

/// Returns the left-hand side of each slot: the nonterminal of the end that follows it.
fn left_hand_sides(slots: &[AfterDot]) -> Vec<NonterminalId> {
    let mut current = NonterminalId(0);
    let mut lhs: Vec<NonterminalId> = slots
        .iter()
        .rev()
        .map(|slot| {
            if let AfterDot::End(nonterminal) = slot {
                current = *nonterminal;
            }
            current
        })
        .collect();
    lhs.reverse();
    lhs
}

/// New numbers in order of first use; unused symbols get none.
#[derive(Debug)]
pub(in crate::lower) struct Renumbering {
    nonterminals: Vec<Option<NonterminalId>>,
    terminals: Vec<Option<TerminalId>>,
    /// Old numbers of nonterminals 1, 2, ...
    order: Vec<u32>,
    /// The last number of a nonterminal.
    last_nonterminal: NonterminalId,
    terminal_count: u32,
}

impl Renumbering {
    /// Creates the renumbering of a grammar with these numbers of symbols. None has a new number yet.
    fn new(nonterminals: usize, terminals: usize) -> Self {
        Self {
            nonterminals: vec![None; nonterminals],
            terminals: vec![None; terminals],
            order: Vec::new(),
            last_nonterminal: NonterminalId(0),
            terminal_count: 0,
        }
    }

    /// Returns the new name of a symbol, if any sentence uses it.
    pub(in crate::lower) fn renamed(&self, old: Symbol) -> Option<Symbol> {
        match old {
            Symbol::Terminal(old) => self.terminals[old as usize].map(|new| Symbol::Terminal(new.raw())),
            Symbol::Nonterminal(old) => self.nonterminals[old as usize].map(|new| Symbol::Nonterminal(new.0)),
        }
    }

    /// Returns a list in any order, if any sentence uses it. Its productions are those for one part and for
    /// more, in this order; the latter is missing if nothing can stand between two parts.
    fn list(
        &self,
        list: &EmittedList,
        productive: &[bool],
        productions: &[Vec<DottedRule>],
    ) -> Option<AnyOrderList> {
        let symbol = self.nonterminals[list.list as usize]?;
        let dots = &productions[symbol.index()];
        let first = *dots.first()?;
        let between = dots.get(1).map_or(first, |dot| dot.next());
        let again = dots.get(1).map_or(first, |_| between.next());
        let parts = list.parts.iter().filter(|&&part| productive[part as usize]);
        Some(AnyOrderList {
            symbol,
            part: self.nonterminals[list.part as usize]?,
            parts: parts.filter_map(|&part| self.nonterminals[part as usize]).collect(),
            choice: list.choice(productive),
            first,
            between,
            again,
            end: again.next(),
        })
    }

    /// Returns the symbol with its new number, by order of first use.
    fn slot(&mut self, symbol: Symbol) -> AfterDot {
        match symbol {
            Symbol::Terminal(old) => {
                let count = &mut self.terminal_count;
                AfterDot::Terminal(*self.terminals[old as usize].get_or_insert_with(|| {
                    *count += 1;
                    TerminalId::new(*count - 1)
                }))
            }
            Symbol::Nonterminal(old) => {
                let (order, last) = (&mut self.order, &mut self.last_nonterminal);
                AfterDot::Nonterminal(*self.nonterminals[old as usize].get_or_insert_with(|| {
                    order.push(old);
                    last.0 += 1;
                    *last
                }))
            }
        }
    }
}

/// Marks the nonterminals that derive a string of symbols for which `base` holds: the usual worklist with a
/// count of open symbols per production. Linear. A list in any order is not judged by its productions: it
/// derives something once its parts do.
fn derives(
    count: usize,
    productions: &[(u32, Vec<Symbol>)],
    lists: &[EmittedList],
    base: impl Fn(&Symbol) -> bool,
) -> Vec<bool> {
    let is_list: HashSet<u32> = lists.iter().map(|list| list.list).collect();
    let mut uses: Vec<(u32, u32)> = Vec::new();
    let mut missing: Vec<usize> = Vec::with_capacity(productions.len());
    let mut found = vec![false; count];
    let mut work = Vec::new();
    // Counts the symbols of each production that are still open, and notes who uses each nonterminal.
    for (index, (lhs, symbols)) in (0..).zip(productions) {
        let mut open = 0;
        for symbol in symbols.iter().filter(|symbol| !base(symbol)) {
            open += 1;
            if let Symbol::Nonterminal(used) = symbol {
                uses.push((*used, index));
            }
        }
        missing.push(open);
        if open == 0 && !is_list.contains(lhs) && !std::mem::replace(&mut found[*lhs as usize], true) {
            work.push(*lhs);
        }
    }
    let uses = Grouped::new(count, || uses.iter().copied());
    // The lists are looked at again whenever the worklist is empty.
    loop {
        // A nonterminal that derives a text closes one symbol in each production that uses it.
        while let Some(nonterminal) = work.pop() {
            for &production in uses.of(nonterminal) {
                let (missing, lhs) = (&mut missing[production as usize], productions[production as usize].0);
                *missing -= 1;
                if *missing == 0
                    && !is_list.contains(&lhs)
                    && !std::mem::replace(&mut found[lhs as usize], true)
                {
                    work.push(lhs);
                }
            }
        }
        for list in lists {
            if !found[list.list as usize] && list.has_text(&found) {
                found[list.list as usize] = true;
                work.push(list.list);
            }
        }
        if work.is_empty() {
            return found;
        }
    }
}

/// Marks the nonterminals that derive the empty string, by productions without terminals.
fn nullable(slots: &[AfterDot], productions: &[Vec<DottedRule>]) -> Vec<bool> {
    let symbols = |&DottedRule(dot): &DottedRule| {
        let slots = slots[dot as usize..].iter().take_while(|slot| !matches!(slot, AfterDot::End(_)));
        let symbol = |slot: &AfterDot| match slot {
            AfterDot::Nonterminal(nonterminal) => Some(Symbol::Nonterminal(nonterminal.0)),
            _ => None,
        };
        slots.map(symbol).collect::<Option<Vec<Symbol>>>()
    };
    let of = |(lhs, dots)| std::iter::repeat(lhs).zip(dots);
    let all = (0..).zip(productions).flat_map(of);
    let list: Vec<(u32, Vec<Symbol>)> = all.filter_map(|(lhs, dot)| Some((lhs, symbols(dot)?))).collect();
    // Lists in any order have no empty parts: that is looked at next.
    derives(productions.len(), &list, &[], |_| false)
}
