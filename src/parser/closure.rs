//! Prediction: computes the dotted rules of a set from those of its kernel. Completion is in `parser`, which
//! has the older sets.
//!
//! Nullable nonterminals are stepped over where they are predicted (Aycock and Horspool, "Practical Earley
//! Parsing", 2002), so nothing of empty extent is ever completed.

use super::{
    core::{OpenCore, RuleStart},
    lists::OpenLists,
};
use crate::{
    limits::{LimitExceeded, Work},
    lower::{AfterDot, Cfg, DottedRule, NonterminalId},
};

/// Scratch space of [`close`](Self::close), kept between calls. Between calls no nonterminal is marked.
#[derive(Debug)]
pub(super) struct Scratch {
    predicted: Vec<bool>,
    open: Vec<NonterminalId>,
}

impl Scratch {
    pub(super) fn new(cfg: &Cfg) -> Self {
        Self { predicted: vec![false; cfg.nonterminal_count()], open: Vec::new() }
    }

    /// Computes all dotted rules of a set with these in its kernel. Linear in the rules made.
    pub(super) fn close(
        &mut self,
        cfg: &Cfg,
        lists: &OpenLists,
        kernel: &[DottedRule],
        work: &mut Work,
    ) -> Result<OpenCore, LimitExceeded> {
        let mut core = OpenCore::default();
        let filled = self.fill(cfg, lists, kernel, &mut core, work);
        for nonterminal in self.open.drain(..) {
            self.predicted[nonterminal.index()] = false;
        }
        filled?;
        if cfg.has_ranks() {
            core.keep_firsts(cfg);
        }
        Ok(core)
    }

    /// Adds the rules of the kernel, then those of every nonterminal that is predicted.
    fn fill(
        &mut self,
        cfg: &Cfg,
        lists: &OpenLists,
        kernel: &[DottedRule],
        core: &mut OpenCore,
        work: &mut Work,
    ) -> Result<(), LimitExceeded> {
        for &dot in kernel {
            // Kernels hold an item for each nullable symbol stepped over already.
            self.add(cfg, lists, core, dot, RuleStart::Before, work)?;
        }
        let mut next = 0;
        while let Some(&nonterminal) = self.open.get(next) {
            next += 1;
            for &first in cfg.predicted(nonterminal) {
                let mut dot = first;
                while let AfterDot::Nonterminal(symbol) = cfg.slot(dot)
                    && cfg.is_nullable(symbol)
                {
                    self.add(cfg, lists, core, dot, RuleStart::Here, work)?;
                    dot = dot.next();
                }
                self.add(cfg, lists, core, dot, RuleStart::Here, work)?;
            }
        }
        Ok(())
    }

    /// Files one dotted rule under the symbol that it waits for, and queues the nonterminal that it predicts.
    fn add(
        &mut self,
        cfg: &Cfg,
        lists: &OpenLists,
        core: &mut OpenCore,
        dot: DottedRule,
        begun: RuleStart,
        work: &mut Work,
    ) -> Result<(), LimitExceeded> {
        let parts = lists.parts(cfg, dot, |part| {
            self.wait(core, part, dot, begun);
            work.spend(4)
        })?;
        if parts {
            return Ok(());
        }
        match lists.slot(cfg, dot) {
            AfterDot::Terminal(terminal) => core.by_terminal.push((terminal, dot, begun)),
            AfterDot::Nonterminal(nonterminal) => self.wait(core, nonterminal, dot, begun),
            AfterDot::End(_) => {}
        }
        // Sorting included.
        work.spend(4)
    }

    fn wait(&mut self, core: &mut OpenCore, nonterminal: NonterminalId, dot: DottedRule, begun: RuleStart) {
        core.by_nonterminal.push((nonterminal, dot, begun));
        if !std::mem::replace(&mut self.predicted[nonterminal.index()], true) {
            self.open.push(nonterminal);
        }
    }
}
