//! Prediction: from a kernel to all items of the set. Completion lives in `parser`, where old sets are
//! at hand.
//!
//! Nullable nonterminals are stepped over where they are predicted (Aycock and Horspool, "Practical
//! Earley Parsing", 2002), so nothing of empty extent is ever completed.

use super::{
    item::{Item, Origin},
    sets::OpenSet,
};
use crate::{
    limits::LimitExceeded,
    lower::{Cfg, Dot, NonterminalId, Slot},
};

/// Scratch space of [`close`], kept between calls, so that closing allocates nothing. Between calls no nonterminal is
/// marked.
#[derive(Debug)]
pub(super) struct Scratch {
    predicted: Vec<bool>,
    work: Vec<NonterminalId>,
    open: OpenSet,
}

impl Scratch {
    pub(super) fn new(cfg: &Cfg) -> Self {
        Self { predicted: vec![false; cfg.nonterminal_count()], work: Vec::new(), open: OpenSet::default() }
    }
}

/// All items of the set with this kernel. Linear in the items made.
pub(super) fn close<'a>(
    cfg: &Cfg,
    scratch: &'a mut Scratch,
    kernel: &[Item],
    max_items: usize,
) -> Result<&'a mut OpenSet, LimitExceeded> {
    scratch.open.clear();
    let mut next = 0;
    for item in kernel {
        // Kernels hold an item for each nullable symbol stepped over already.
        add(cfg, scratch, item.dot, Origin::Set(item.origin));
    }
    let mut result = Ok(());
    while next < scratch.work.len() {
        let nonterminal = scratch.work[next];
        next += 1;
        for &first in cfg.productions(nonterminal) {
            let mut dot = first;
            while let Slot::Nonterminal(symbol) = cfg.slot(dot)
                && cfg.is_nullable(symbol)
            {
                add(cfg, scratch, dot, Origin::Here);
                dot = dot.next();
            }
            add(cfg, scratch, dot, Origin::Here);
        }
        if scratch.open.len() > max_items {
            result = Err(LimitExceeded::new("items of one parser set", max_items));
            break;
        }
    }
    for nonterminal in scratch.work.drain(..) {
        scratch.predicted[nonterminal.index()] = false;
    }
    result.map(|()| &mut scratch.open)
}

/// Files one item under what it waits for and notes what it predicts.
fn add(cfg: &Cfg, scratch: &mut Scratch, dot: Dot, origin: Origin) {
    match cfg.slot(dot) {
        Slot::Terminal(terminal) => scratch.open.by_terminal.push((terminal, dot, origin)),
        Slot::Nonterminal(nonterminal) => {
            scratch.open.by_nonterminal.push((nonterminal, dot, origin));
            if !std::mem::replace(&mut scratch.predicted[nonterminal.index()], true) {
                scratch.work.push(nonterminal);
            }
        }
        Slot::End(_) => {}
    }
}
