//! The context-free grammar as the parser reads it: dotted rules are indices.
//!
//! Invariants: reduced (see `reduce`); a dot's successor in its production is the next number;
//! production 0 is `start ::= root`, where `start` occurs nowhere else.

use crate::ids::TerminalId;

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
pub(crate) struct Dot(pub(crate) u32);

impl Dot {
    /// One symbol further; the caller knows that there is one.
    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// What stands after a dot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// A terminal.
    Terminal(TerminalId),
    /// A nonterminal.
    Nonterminal(NonterminalId),
    /// Nothing: a production of this nonterminal is complete.
    End(NonterminalId),
}

/// Productions with everything the parser asks of them.
#[derive(Debug)]
pub(crate) struct Cfg {
    pub(super) slots: Vec<Slot>,
    /// Left-hand side of each slot's production.
    pub(super) lhs: Vec<NonterminalId>,
    /// First dots of each nonterminal's productions.
    pub(super) productions: Vec<Vec<Dot>>,
    pub(super) nullable: Vec<bool>,
    pub(super) names: Vec<String>,
}

impl Cfg {
    /// The dot before the root in `start ::= root`.
    pub(crate) const START: Dot = Dot(0);

    /// What stands after a dot.
    pub(crate) fn slot(&self, dot: Dot) -> Slot {
        self.slots[dot.0 as usize]
    }

    /// The nonterminal whose production the dot is in.
    pub(crate) fn lhs(&self, dot: Dot) -> NonterminalId {
        self.lhs[dot.0 as usize]
    }

    /// First dots of the nonterminal's productions.
    pub(crate) fn productions(&self, nonterminal: NonterminalId) -> &[Dot] {
        &self.productions[nonterminal.index()]
    }

    /// Does it derive the empty string?
    pub(crate) fn is_nullable(&self, nonterminal: NonterminalId) -> bool {
        self.nullable[nonterminal.index()]
    }

    /// Number of nonterminals.
    pub(crate) fn nonterminal_count(&self) -> usize {
        self.productions.len()
    }

    /// The dotted rule as text, `a ::= b . c`; terminals by the given names.
    pub(crate) fn show(&self, dot: Dot, terminal_names: &[String]) -> String {
        let mut first = dot.0 as usize;
        while first > 0 && !matches!(self.slots[first - 1], Slot::End(_)) {
            first -= 1;
        }
        let mut text = String::new();
        for (at, &slot) in self.slots.iter().enumerate().skip(first) {
            if at == dot.0 as usize {
                text.push_str(" .");
            }
            match slot {
                Slot::Terminal(terminal) => text = text + " " + &terminal_names[terminal.index()],
                Slot::Nonterminal(nonterminal) => text = text + " " + &self.name(nonterminal),
                Slot::End(nonterminal) => return format!("{} ::={text}", self.name(nonterminal)),
            }
        }
        text
    }

    /// The rule's name, or a number for nonterminals that are made for parts of rules.
    pub(crate) fn name(&self, nonterminal: NonterminalId) -> String {
        match self.names[nonterminal.index()].as_str() {
            "" => format!("#{}", nonterminal.0),
            name => name.to_owned(),
        }
    }
}
