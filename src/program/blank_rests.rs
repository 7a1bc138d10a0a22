//! Rests of productions that are white space whatever they are read as.

use super::white_space;
use crate::lower::{AfterDot, Cfg, Lowered, NonterminalId};

/// Answers by dot: is every text of the rest of its production white space?
#[derive(Debug)]
pub(crate) struct BlankRests(Vec<bool>);

impl BlankRests {
    /// Linear in the grammar, and in the states of those terminals that begin with white space.
    pub(super) fn new(lowered: &Lowered) -> Self {
        let (cfg, scanner) = (&lowered.cfg, &lowered.scanner);
        let terminals: Vec<bool> = scanner.dfas().iter().map(|dfa| white_space::is_blank(dfa, 0)).collect();
        let blank = blank_nonterminals(cfg, &terminals);
        let slots: Vec<AfterDot> = cfg.dots().map(|(_, slot)| slot).collect();
        let mut rests = vec![true; slots.len()];
        let mut rest = true;
        for (rest_of, slot) in rests.iter_mut().zip(slots).rev() {
            rest = match slot {
                AfterDot::Terminal(terminal) => rest && terminals[terminal.index()],
                AfterDot::Nonterminal(nonterminal) => rest && blank[nonterminal.index()],
                AfterDot::End(_) => true,
            };
            *rest_of = rest;
        }
        Self(rests)
    }

    /// The answers, by dot.
    pub(crate) fn by_dot(&self) -> &[bool] {
        &self.0
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.0.len()
    }
}

/// Tells of each nonterminal whether every text of it is white space. One that has another spreads to all
/// that use it.
fn blank_nonterminals(cfg: &Cfg, terminals: &[bool]) -> Vec<bool> {
    let mut users: Vec<Vec<NonterminalId>> = vec![Vec::new(); cfg.nonterminal_count()];
    let mut open: Vec<NonterminalId> = Vec::new();
    for (dot, slot) in cfg.dots() {
        match slot {
            AfterDot::Nonterminal(used) => users[used.index()].push(cfg.lhs(dot)),
            AfterDot::Terminal(terminal) if !terminals[terminal.index()] => open.push(cfg.lhs(dot)),
            AfterDot::Terminal(_) | AfterDot::End(_) => {}
        }
    }
    let mut blank = vec![true; cfg.nonterminal_count()];
    while let Some(nonterminal) = open.pop() {
        if std::mem::replace(&mut blank[nonterminal.index()], false) {
            open.extend(&users[nonterminal.index()]);
        }
    }
    blank
}
