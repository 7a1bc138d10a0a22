//! Memoised moves between sets: the scanner and completer of Earley's algorithm.
//!
//! Invariants: the answer for a set and a terminal never changes, and an error leaves no half-made set
//! behind. The making of the last few such sets is kept, so that the next call goes on with it. A move costs
//! the items of the new set once, and a look-up ever after.

use std::{collections::VecDeque, ops::Range};

use hashbrown::{HashMap, HashSet};

use super::core::{Item, RuleStart};
use super::origin::{KnownOrigins, Memo};
use super::sets::{Firsts, Sets};
use crate::grammar::any_order::Chosen;
use crate::ids::{SetId, TerminalId, as_u64};
use crate::limits::{Budget, LimitExceeded, Limits, Work};
use crate::lower::{AfterDot, Cfg, DottedRule, NonterminalId};

/// Number of items up to which the scratch space of one set is kept for the next.
const KEPT_ITEMS: usize = 1_024;

/// Number of unfinished sets that are kept, so that this many texts can wait for a long step at once.
const KEPT_MAKINGS: usize = 8;

/// A set in progress.
#[derive(Debug, Default)]
struct Making {
    /// Items still to be processed.
    open: Vec<Item>,
    /// All items so far.
    seen: HashSet<Item>,
    /// Items that wait for something.
    kernel: Vec<Item>,
    /// May the text end here?
    complete: bool,
    /// The dominating ones among the comparable items.
    firsts: Firsts,
}

impl Making {
    /// Empties it, keeping the memory unless that is large.
    fn clear(&mut self) {
        if self.seen.capacity() > 2 * KEPT_ITEMS {
            self.seen = HashSet::new();
            self.firsts = Firsts::default();
        }
        self.open.clear();
        self.seen.clear();
        self.kernel.clear();
        self.complete = false;
        self.firsts.clear();
    }
}

/// An arena of sets and the moves between them. It grows; nothing in it changes but memos.
#[derive(Debug)]
pub(crate) struct Parser {
    sets: Sets,
    start: SetId,
    shifts: Memo<TerminalId>,
    origins: KnownOrigins,
    /// Scratch: the set in progress.
    making: Making,
    /// Sets whose making ran out of work, the oldest first, each with the move that leads to it.
    suspended: VecDeque<((SetId, TerminalId), Making)>,
    max_bytes: usize,
    /// Number of items completed and merged since the arena was made.
    effort: u64,
}

impl Parser {
    /// Creates an arena that holds the start set.
    pub(crate) fn new(cfg: &Cfg, limits: &Limits, work: &mut Work) -> Result<Self, LimitExceeded> {
        let mut parser = Self {
            sets: Sets::new(cfg),
            start: SetId::new(0),
            shifts: Memo::default(),
            origins: KnownOrigins::default(),
            making: Making::default(),
            suspended: VecDeque::new(),
            max_bytes: limits.parser_bytes,
            effort: 0,
        };
        parser.add(cfg, Item::START, work)?;
        parser.start = parser.complete(cfg, work)?;
        parser.making.clear();
        Ok(parser)
    }

    /// The set before any text.
    pub(crate) fn start(&self) -> SetId {
        self.start
    }

    /// Number of sets.
    pub(crate) fn len(&self) -> usize {
        self.sets.len()
    }

    /// Memory, in bytes.
    pub(crate) fn bytes(&self, cfg: &Cfg) -> usize {
        self.sets.bytes() + self.shifts.bytes() + self.origins.bytes(cfg)
    }

    /// Number of items completed, merged and predicted since the arena was made: the cost of moves that were
    /// not memoised.
    pub(crate) fn effort(&self) -> u64 {
        self.effort + self.sets.items_made()
    }

    pub(super) fn sets(&self) -> &Sets {
        &self.sets
    }

    /// Returns the set after `terminal`, if that is memoised.
    fn known_shift(&self, set: SetId, terminal: TerminalId) -> Option<SetId> {
        self.shifts.get(set, terminal)
    }

    /// Is the text complete in this set?
    pub(crate) fn is_complete(&self, set: SetId) -> bool {
        self.sets.is_complete(set)
    }

    /// The terminals that may follow, ascending.
    pub(crate) fn accepts(&self, set: SetId) -> &[TerminalId] {
        self.sets.core(set).accepts()
    }

    /// May this terminal follow?
    pub(crate) fn accepts_terminal(&self, set: SetId, terminal: TerminalId) -> bool {
        self.sets.core(set).waiting_for_terminal(terminal).is_some()
    }

    /// Returns the dotted rules that wait for `terminal`, for display.
    pub(crate) fn waiting<'a>(
        &'a self,
        cfg: &'a Cfg,
        set: SetId,
        terminal: TerminalId,
    ) -> impl Iterator<Item = DottedRule> + 'a {
        let core = self.sets.core(set);
        let rules = core.waiting_for_terminal(terminal).unwrap_or_default();
        rules.map(move |at| self.sets.lists().plain(cfg, core.terminal_rule(at).0))
    }

    /// Returns the set after `terminal`, or `None` if it cannot follow. A lookup if memoised; otherwise
    /// linear in the items that are moved on or completed, each as often as there are ways to.
    pub(crate) fn shift(
        &mut self,
        cfg: &Cfg,
        set: SetId,
        terminal: TerminalId,
        work: &mut Work,
    ) -> Result<Option<SetId>, LimitExceeded> {
        if let Some(to) = self.known_shift(set, terminal) {
            return Ok(Some(to));
        }
        let Some(waiting) = self.sets.core(set).waiting_for_terminal(terminal) else { return Ok(None) };
        let begun = self.suspended.iter().position(|(moved, _)| *moved == (set, terminal));
        if let Some((_, making)) = begun.and_then(|at| self.suspended.remove(at)) {
            self.making = making;
        }
        let to = work.spend(8).and_then(|()| self.after(cfg, set, terminal, waiting, work));
        if to.as_ref().is_err_and(|limit| limit.budget() == Budget::StepWork) {
            if self.suspended.len() >= KEPT_MAKINGS {
                self.suspended.pop_front();
            }
            self.suspended.push_back(((set, terminal), std::mem::take(&mut self.making)));
        }
        self.making.clear();
        let to = to?;
        self.shifts.insert(set, terminal, to);
        work.keep();
        Ok(Some(to))
    }

    /// Computes the set after `terminal`, which these rules of `set` wait for. On error the scratch space is
    /// left as it is, so that another call resumes.
    fn after(
        &mut self,
        cfg: &Cfg,
        set: SetId,
        terminal: TerminalId,
        waiting: Range<usize>,
        work: &mut Work,
    ) -> Result<SetId, LimitExceeded> {
        for at in waiting {
            let (dot, begun) = self.sets.core(set).terminal_rule(at);
            self.advance(cfg, set, dot, begun, AfterDot::Terminal(terminal), work)?;
        }
        self.complete(cfg, work)
    }

    /// Returns the set that continues as any of `sets` does (they end at the same byte of the text): the
    /// union of kernels.
    pub(crate) fn merge(
        &mut self,
        cfg: &Cfg,
        sets: &[SetId],
        work: &mut Work,
    ) -> Result<SetId, LimitExceeded> {
        let mut kernel = Vec::new();
        let mut complete = false;
        for &set in sets {
            work.spend(2 * self.sets.kernel(set).len())?;
            kernel.extend_from_slice(self.sets.kernel(set));
            complete |= self.sets.is_complete(set);
        }
        self.effort += as_u64(kernel.len());
        kernel.sort_unstable();
        kernel.dedup();
        if cfg.has_ranks() {
            let mut firsts = Firsts::default();
            kernel.iter().for_each(|&item| {
                firsts.meet(cfg, item);
            });
            kernel.retain(|&item| firsts.keeps(cfg, item));
        }
        self.intern(cfg, &kernel, complete, work)
    }

    /// Returns the older sets that the kernel of `set` refers to.
    pub(crate) fn origins_of(&self, set: SetId) -> impl Iterator<Item = SetId> + '_ {
        let origins = self.sets.kernel(set).iter().map(|item| item.origin);
        origins.filter(|origin| *origin != Item::START.origin)
    }

    /// Re-interns `other`'s set in this arena; returns its new id. `here` holds the new ids of its origins.
    pub(crate) fn adopt(
        &mut self,
        cfg: &Cfg,
        other: &Self,
        set: SetId,
        here: &HashMap<SetId, SetId>,
        work: &mut Work,
    ) -> Result<SetId, LimitExceeded> {
        let mut kernel = Vec::with_capacity(other.kernel_len(set));
        for item in other.sets.kernel(set) {
            let dot = self.sets.lists_mut().adopt(cfg, other.sets.lists(), item.dot)?;
            kernel.push(Item { dot, origin: *here.get(&item.origin).unwrap_or(&item.origin) });
        }
        kernel.sort_unstable();
        self.intern(cfg, &kernel, other.sets.is_complete(set), work)
    }

    /// Returns the set with this kernel, made if there is memory left. (Past the budget known sets are
    /// refused too.)
    fn intern(
        &mut self,
        cfg: &Cfg,
        kernel: &[Item],
        complete: bool,
        work: &mut Work,
    ) -> Result<SetId, LimitExceeded> {
        if self.bytes(cfg) >= self.max_bytes {
            return Err(LimitExceeded::new(Budget::ParserBytes, "bytes of parser sets", self.max_bytes));
        }
        self.sets.intern(cfg, kernel, complete, work)
    }

    /// Queues the items of `set` with one dotted rule, moved over the symbol that it waited for.
    fn advance(
        &mut self,
        cfg: &Cfg,
        set: SetId,
        dot: DottedRule,
        begun: RuleStart,
        symbol: AfterDot,
        work: &mut Work,
    ) -> Result<(), LimitExceeded> {
        work.spend(1)?;
        for next in self.sets.lists_mut().after(cfg, dot, symbol, work)?.into_iter().flatten() {
            match begun {
                RuleStart::Here => {
                    let origin = self.origin(cfg, set, cfg.lhs(dot), work)?;
                    self.add(cfg, Item { dot: next, origin }, work)?;
                }
                RuleStart::Before => {
                    for at in self.sets.with_dot(set, dot) {
                        self.add(cfg, Item { dot: next, ..self.sets.item(at) }, work)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the origin of a rule of `lhs` predicted in `set`: the set of those kernel items that lead to
    /// it.
    fn origin(
        &mut self,
        cfg: &Cfg,
        set: SetId,
        lhs: NonterminalId,
        work: &mut Work,
    ) -> Result<SetId, LimitExceeded> {
        if let Some(origin) = self.origins.known(set, lhs) {
            return Ok(origin);
        }
        let whole = self.sets.kernel(set);
        if self.origins.keeps_whole(cfg, whole) {
            return Ok(set);
        }
        let mut kernel = Vec::with_capacity(whole.len());
        for &item in whole {
            let dot = self.sets.lists().plain(cfg, item.dot);
            if self.origins.leads_to(cfg, dot, lhs, work)? {
                kernel.push(item);
            }
        }
        let origin = self.intern(cfg, &kernel, false, work)?;
        self.origins.remember(set, lhs, origin);
        Ok(origin)
    }

    /// Queues an item for [`complete`](Self::complete), once, unless another one dominates it.
    fn add(&mut self, cfg: &Cfg, item: Item, work: &mut Work) -> Result<(), LimitExceeded> {
        self.effort += 1;
        if self.making.firsts.meet(cfg, item) && self.making.seen.insert(item) {
            self.making.open.push(item);
            work.keep();
            work.spend(4)?;
        }
        work.spend(1)
    }

    /// Completes the queued items to a fixpoint and interns the set. All origins are older sets, so this
    /// never looks at the set in progress.
    fn complete(&mut self, cfg: &Cfg, work: &mut Work) -> Result<SetId, LimitExceeded> {
        while let Some(item) = self.making.open.pop() {
            if let Err(limit) = self.settle(cfg, item, work) {
                // Settled again by the next call: what was added already is not added twice.
                self.making.open.push(item);
                return Err(limit);
            }
        }
        let mut kernel = std::mem::take(&mut self.making.kernel);
        kernel.retain(|&item| self.making.firsts.keeps(cfg, item));
        kernel.sort_unstable();
        let set = self.intern(cfg, &kernel, self.making.complete, work);
        self.making.kernel = kernel;
        set
    }

    /// Files an item in the kernel, or completes it.
    fn settle(&mut self, cfg: &Cfg, item: Item, work: &mut Work) -> Result<(), LimitExceeded> {
        match self.sets.lists().slot(cfg, item.dot) {
            AfterDot::Terminal(_) => self.making.kernel.push(item),
            AfterDot::Nonterminal(nonterminal) => {
                if cfg.is_nullable(nonterminal) {
                    self.add(cfg, item.next(), work)?;
                }
                self.making.kernel.push(item);
            }
            AfterDot::End(_) if item.origin == Item::START.origin => self.making.complete = true,
            AfterDot::End(lhs) => {
                for at in self.sets.core(item.origin).waiting_for_nonterminal(lhs) {
                    let (dot, begun) = self.sets.core(item.origin).nonterminal_rule(at);
                    self.advance(cfg, item.origin, dot, begun, AfterDot::Nonterminal(lhs), work)?;
                }
            }
        }
        Ok(())
    }
}

/// The set in which an item was predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Predicted {
    /// The item was predicted before any text.
    AtStart,
    /// The item was predicted in an earlier set.
    In(SetId),
    /// The item was predicted in the set itself.
    Here,
}

impl Parser {
    /// Lists the items of a set: first its kernel, then its own predictions.
    pub(crate) fn items<'a>(
        &'a self,
        cfg: &'a Cfg,
        set: SetId,
    ) -> impl Iterator<Item = (DottedRule, Predicted)> + 'a {
        let plain = |dot| self.sets().lists().plain(cfg, dot);
        let of = move |item: &Item| match item.origin {
            origin if origin == Item::START.origin => (plain(item.dot), Predicted::AtStart),
            origin => (plain(item.dot), Predicted::In(origin)),
        };
        let here = |(dot, begun)| (begun == RuleStart::Here).then_some((dot, Predicted::Here));
        let predicted = self.sets().core(set).rules().filter_map(here);
        self.sets().kernel(set).iter().map(of).chain(predicted)
    }

    /// Lists the dotted rules of a set that were predicted in earlier ones, each with the parts of a list
    /// that have come.
    pub(crate) fn kernel_dots<'a>(
        &'a self,
        cfg: &'a Cfg,
        set: SetId,
    ) -> impl Iterator<Item = (DottedRule, Option<&'a Chosen>)> + 'a {
        let lists = self.sets().lists();
        let of = |item: &Item| (lists.plain(cfg, item.dot), lists.chosen(cfg, item.dot));
        self.sets().kernel(set).iter().map(of)
    }

    /// Number of items of a set that were predicted in earlier ones.
    pub(crate) fn kernel_len(&self, set: SetId) -> usize {
        self.sets().kernel(set).len()
    }

    /// Lists the terminals that may follow, each with the set it leads to if that is memoised.
    pub(crate) fn known_shifts(&self, set: SetId) -> impl Iterator<Item = (TerminalId, Option<SetId>)> + '_ {
        self.accepts(set).iter().map(move |&terminal| (terminal, self.known_shift(set, terminal)))
    }
}
