//! The part of a set that does not depend on the stack.
//!
//! The predictions of a set follow from the dotted rules of its kernel, wherever these began. So sets whose
//! kernels differ only in their origins share one *core*. A text that nests ever deeper makes new sets, but
//! soon no new cores.

use std::ops::Range;

use hashbrown::HashMap;

use super::lists::OpenLists;
use crate::automata::HashIndex;
use crate::ids::{SetId, TerminalId, as_index};
use crate::limits::{Budget, LimitExceeded, Work};
use crate::lower::{AfterDot, Cfg, DominanceRank, DottedRule, NonterminalId};

/// Number of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CoreId(u32);

/// The place where a dotted rule of a set began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleStart {
    /// The rule began in the set itself.
    Here,
    /// The rule began in the origins that it has in the kernel.
    Before,
}

/// Dotted rules, grouped by the symbol that they wait for.
#[derive(Debug)]
struct Groups<K> {
    /// The symbols that rules wait for, ascending.
    keys: Box<[K]>,
    /// Start of each group in `rules`, and the end of the last one.
    starts: Box<[u32]>,
    rules: Box<[(DottedRule, RuleStart)]>,
}

impl<K: Copy + Ord> Groups<K> {
    /// Sorts the rules and groups them by symbol.
    fn new(mut waiting: Vec<(K, DottedRule, RuleStart)>) -> Self {
        waiting.sort_unstable_by_key(|&(key, dot, _)| (key, dot));
        let (mut keys, mut starts) = (Vec::new(), Vec::new());
        // A core has fewer rules than a grammar has dots, which have numbers.
        let mut count = 0_u32;
        for &(key, ..) in &waiting {
            if keys.last() != Some(&key) {
                keys.push(key);
                starts.push(count);
            }
            count += 1;
        }
        starts.push(count);
        let rules = waiting.into_iter().map(|(_, dot, begun)| (dot, begun)).collect();
        Self { keys: keys.into(), starts: starts.into(), rules }
    }

    /// Returns the range in `rules` of the rules that wait for `key`.
    fn range(&self, key: K) -> Option<Range<usize>> {
        let place = self.keys.binary_search(&key).ok()?;
        Some(self.starts[place] as usize..self.starts[place + 1] as usize)
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.keys) + size_of_val(&*self.starts) + size_of_val(&*self.rules)
    }
}

/// The contents of the sets with one core, without origins.
#[derive(Debug)]
pub(super) struct Core {
    /// Dotted rules of the kernel, ascending.
    dots: Box<[DottedRule]>,
    by_terminal: Groups<TerminalId>,
    by_nonterminal: Groups<NonterminalId>,
}

/// The dotted rules of a core in progress.
#[derive(Debug, Default)]
struct OpenCore {
    by_terminal: Vec<(TerminalId, DottedRule, RuleStart)>,
    by_nonterminal: Vec<(NonterminalId, DottedRule, RuleStart)>,
}

impl OpenCore {
    /// Keeps, among the comparable rules that begin here, those that dominate others (see `lower::cfg`).
    fn keep_firsts(&mut self, cfg: &Cfg) {
        let mut firsts: HashMap<u32, u32> = HashMap::new();
        let rules =
            |(dot, begun): (DottedRule, RuleStart)| cfg.rank(dot).filter(|_| begun == RuleStart::Here);
        let of_terminals = self.by_terminal.iter().map(|&(_, dot, begun)| (dot, begun));
        let of_nonterminals = self.by_nonterminal.iter().map(|&(_, dot, begun)| (dot, begun));
        for DominanceRank { class, place } in of_terminals.chain(of_nonterminals).filter_map(rules) {
            let first = firsts.entry(class).or_insert(place);
            *first = place.min(*first);
        }
        let keeps = |dot, begun| rules((dot, begun)).is_none_or(|rank| firsts[&rank.class] == rank.place);
        self.by_terminal.retain(|&(_, dot, begun)| keeps(dot, begun));
        self.by_nonterminal.retain(|&(_, dot, begun)| keeps(dot, begun));
    }
}

impl Core {
    /// The terminals that may follow, ascending.
    pub(super) fn accepts(&self) -> &[TerminalId] {
        &self.by_terminal.keys
    }

    /// Returns the numbers of the rules that wait for `terminal`; `None` if none does.
    pub(super) fn waiting_for_terminal(&self, terminal: TerminalId) -> Option<Range<usize>> {
        self.by_terminal.range(terminal)
    }

    /// Returns the rule with a number from [`waiting_for_terminal`](Self::waiting_for_terminal).
    pub(super) fn terminal_rule(&self, at: usize) -> (DottedRule, RuleStart) {
        self.by_terminal.rules[at]
    }

    /// Iterates over all rules, by the symbols that they wait for.
    pub(super) fn rules(&self) -> impl Iterator<Item = (DottedRule, RuleStart)> + '_ {
        self.by_terminal.rules.iter().chain(&*self.by_nonterminal.rules).copied()
    }

    /// Returns the numbers of the rules that wait for `nonterminal`.
    pub(super) fn waiting_for_nonterminal(&self, nonterminal: NonterminalId) -> Range<usize> {
        self.by_nonterminal.range(nonterminal).unwrap_or_default()
    }

    /// Returns the rule with a number from [`waiting_for_nonterminal`](Self::waiting_for_nonterminal).
    pub(super) fn nonterminal_rule(&self, at: usize) -> (DottedRule, RuleStart) {
        self.by_nonterminal.rules[at]
    }
}

/// All cores of an arena, hash-consed by the kernel's dotted rules.
#[derive(Debug)]
pub(super) struct Cores {
    cores: Vec<Core>,
    index: HashIndex,
    scratch: Scratch,
    lists: OpenLists,
    /// Memory of the cores, without the index.
    bytes: usize,
    rules: usize,
}

impl Cores {
    pub(super) fn new(cfg: &Cfg) -> Self {
        let (index, scratch, lists) = (HashIndex::default(), Scratch::new(cfg), OpenLists::default());
        Self { cores: Vec::new(), index, scratch, lists, bytes: 0, rules: 0 }
    }

    pub(super) fn get(&self, core: CoreId) -> &Core {
        &self.cores[as_index(core.0)]
    }

    /// The dotted rules of lists in any order.
    pub(super) fn lists(&self) -> &OpenLists {
        &self.lists
    }

    pub(super) fn lists_mut(&mut self) -> &mut OpenLists {
        &mut self.lists
    }

    /// Number of rules of all cores.
    pub(super) fn rule_count(&self) -> usize {
        self.rules
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.index.bytes() + self.lists.bytes()
    }

    /// Returns the core of these dotted rules (sorted, without duplicates). A new one is linear in its items.
    pub(super) fn intern(
        &mut self,
        cfg: &Cfg,
        dots: &[DottedRule],
        work: &mut Work,
    ) -> Result<CoreId, LimitExceeded> {
        let hash = self.index.hash(dots);
        if let Some(known) = self.index.find(hash, |core| *self.cores[as_index(core)].dots == *dots) {
            return Ok(CoreId(known));
        }
        let open = self.scratch.close(cfg, &self.lists, dots, work)?;
        let core = Core {
            dots: dots.into(),
            by_terminal: Groups::new(open.by_terminal),
            by_nonterminal: Groups::new(open.by_nonterminal),
        };
        let id = u32::try_from(self.cores.len()).map_err(|_| {
            LimitExceeded::new(Budget::ParserBytes, "cores of parser sets", u32::MAX as usize)
        })?;
        self.bytes += size_of::<Core>()
            + size_of_val(&*core.dots)
            + core.by_terminal.bytes()
            + core.by_nonterminal.bytes();
        self.rules += core.by_terminal.rules.len() + core.by_nonterminal.rules.len();
        self.cores.push(core);
        self.index.insert(hash, id);
        Ok(CoreId(id))
    }
}

/// An Earley item `(dotted rule, origin)`: a dotted rule and the set in which the rule was predicted, as far
/// as it matters.
///
/// ```text
/// grammar  s ::= "(" s ")" | "x"       text so far  ((
///
/// set 0    s ::= . "(" s ")"                         predicted here, as is  s ::= . "x"
/// set 1    s ::= "(" . s ")" , origin 0              after (
/// set 2    s ::= "(" . s ")" , origin 1              after ((
/// ```
///
/// Origins link the sets to a stack: completing the item of set 2 moves on those of set 1 that wait for `s`.
/// Sets are hash-consed, so a set's id stands for the whole stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Item {
    /// The dotted rule: a production, and how much of it has come.
    pub(super) dot: DottedRule,
    /// The set in which the rule was predicted, not an input position. Only what can lead to the rule is kept
    /// of that set (see `origin`), so equal continuations are equal items.
    pub(super) origin: SetId,
}

impl Item {
    /// The item before any text: `start ::= . root`. Its origin is never looked at.
    pub(super) const START: Self = Self { dot: Cfg::START, origin: SetId::new(u32::MAX) };

    /// Moves the dot over one symbol.
    pub(super) fn next(self) -> Self {
        Self { dot: self.dot.next(), origin: self.origin }
    }
}

// Prediction computes the dotted rules of a set from those of its kernel. Completion is in `parser`, which
// has the older sets.
//
// Nullable nonterminals are stepped over where they are predicted (Aycock and Horspool, "Practical Earley
// Parsing", 2002), so nothing of empty extent is ever completed.

/// Scratch space of [`close`](Self::close), kept between calls. Between calls no nonterminal is marked.
#[derive(Debug)]
struct Scratch {
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
