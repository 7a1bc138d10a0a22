//! Memoised moves between sets.

use hashbrown::{HashMap, HashSet};

use super::{
    closure::{Scratch, close},
    item::{Item, Origin},
    origin::Origins,
    sets::{ClosedSet, Sets},
};
use crate::{
    ids::{SetId, TerminalId},
    limits::{LimitExceeded, Limits},
    lower::{Cfg, Dot, NonterminalId, Slot},
};

/// An arena of sets and the moves between them. Grows; what it holds is never changed but for memos.
#[derive(Debug)]
pub(crate) struct Parser {
    sets: Sets,
    start: SetId,
    origins: Origins,
    scratch: Scratch,
    work: Vec<Item>,
    seen: HashSet<Item>,
    kernel: Vec<Item>,
    max_set_items: usize,
    /// Items completed and merged since the arena was made.
    effort: u64,
}

impl Parser {
    /// An arena that holds the start set.
    pub(crate) fn new(cfg: &Cfg, limits: &Limits) -> Result<Self, LimitExceeded> {
        let mut parser = Self {
            sets: Sets::new(limits),
            start: SetId::new(0),
            origins: Origins::default(),
            scratch: Scratch::new(cfg),
            work: Vec::new(),
            seen: HashSet::new(),
            kernel: Vec::new(),
            max_set_items: limits.set_items,
            effort: 0,
        };
        parser.add(Item::START)?;
        parser.start = parser.complete(cfg)?;
        parser.clear();
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

    /// Number of items in all sets.
    pub(crate) fn item_count(&self) -> usize {
        self.sets.item_count()
    }

    /// Items completed, merged and predicted since the arena was made: what moves that were not looked up have cost.
    pub(crate) fn effort(&self) -> u64 {
        self.effort + u64::try_from(self.sets.item_count()).unwrap_or(u64::MAX)
    }

    pub(super) fn set(&self, set: SetId) -> &ClosedSet {
        self.sets.get(set)
    }

    /// Is the text complete in this set?
    pub(crate) fn is_complete(&self, set: SetId) -> bool {
        self.sets.get(set).is_complete()
    }

    /// The terminals that may follow, ascending.
    pub(crate) fn accepts(&self, set: SetId) -> &[TerminalId] {
        self.sets.get(set).accepts()
    }

    /// May this terminal follow?
    pub(crate) fn accepts_terminal(&self, set: SetId, terminal: TerminalId) -> bool {
        self.sets.get(set).place(terminal).is_some()
    }

    /// The dotted rules that wait for `terminal`, for display.
    pub(crate) fn waiting(&self, set: SetId, terminal: TerminalId) -> impl Iterator<Item = Dot> + '_ {
        let set = self.sets.get(set);
        set.place(terminal).map(|place| set.waiting_at(place)).unwrap_or_default().iter().map(|(dot, _)| *dot)
    }

    /// The set after `terminal`, or `None` if it cannot follow. One lookup when it was asked before;
    /// otherwise linear in the items completed.
    pub(crate) fn shift(
        &mut self,
        cfg: &Cfg,
        set: SetId,
        terminal: TerminalId,
    ) -> Result<Option<SetId>, LimitExceeded> {
        let from = self.sets.get(set);
        let Some(place) = from.place(terminal) else { return Ok(None) };
        if let Some(to) = from.shift(place) {
            return Ok(Some(to));
        }
        let waiting = from.waiting_at(place).to_vec();
        let to = self.after(cfg, set, &waiting);
        // Also when a budget is used up: what is left on the work list would be taken for the next call's.
        self.clear();
        let to = to?;
        self.sets.set_shift(set, place, to);
        Ok(Some(to))
    }

    /// The set after what `waiting`, items of `set`, wait for. Leaves the scratch space as it is.
    fn after(&mut self, cfg: &Cfg, set: SetId, waiting: &[(Dot, Origin)]) -> Result<SetId, LimitExceeded> {
        for &(dot, origin) in waiting {
            self.advance(cfg, set, dot, origin)?;
        }
        self.complete(cfg)
    }

    /// The set that continues as any of `sets` does (they end at the same byte of the text): the union of kernels.
    pub(crate) fn merge(&mut self, cfg: &Cfg, sets: &[SetId]) -> Result<SetId, LimitExceeded> {
        let mut kernel = Vec::new();
        let mut complete = false;
        for &set in sets {
            let set = self.sets.get(set);
            kernel.extend_from_slice(set.kernel());
            complete |= set.is_complete();
        }
        self.effort += u64::try_from(kernel.len()).unwrap_or(u64::MAX);
        kernel.sort_unstable();
        kernel.dedup();
        self.check_size(kernel.len())?;
        self.intern(cfg, &kernel, complete)
    }

    /// The older sets that the kernel of `set` refers to.
    pub(crate) fn origins_of(&self, set: SetId) -> impl Iterator<Item = SetId> + '_ {
        let origins = self.sets.get(set).kernel().iter().map(|item| item.origin);
        origins.filter(|origin| *origin != Item::START.origin)
    }

    /// The set that is here what `set` is in `other`. `here` holds what its origins are here.
    pub(crate) fn adopt(
        &mut self,
        cfg: &Cfg,
        other: &Self,
        set: SetId,
        here: &HashMap<SetId, SetId>,
    ) -> Result<SetId, LimitExceeded> {
        let set = other.sets.get(set);
        let renamed =
            |item: &Item| Item { dot: item.dot, origin: *here.get(&item.origin).unwrap_or(&item.origin) };
        let mut kernel: Vec<Item> = set.kernel().iter().map(renamed).collect();
        kernel.sort_unstable();
        self.intern(cfg, &kernel, set.is_complete())
    }

    fn check_size(&self, items: usize) -> Result<(), LimitExceeded> {
        if items > self.max_set_items {
            return Err(LimitExceeded::new("items of one parser set", self.max_set_items));
        }
        Ok(())
    }

    fn intern(&mut self, cfg: &Cfg, kernel: &[Item], complete: bool) -> Result<SetId, LimitExceeded> {
        let (scratch, max) = (&mut self.scratch, self.max_set_items);
        self.sets.intern(kernel, complete, |kernel| close(cfg, scratch, kernel, max))
    }

    /// Puts an item of `set`, moved on by what it waited for, on the work list.
    fn advance(&mut self, cfg: &Cfg, set: SetId, dot: Dot, origin: Origin) -> Result<(), LimitExceeded> {
        let origin = match origin {
            Origin::Set(origin) => origin,
            Origin::Here => self.origin(cfg, set, cfg.lhs(dot))?,
        };
        self.add(Item { dot: dot.next(), origin })
    }

    /// The origin of what `lhs` begins in `set`: the set of those kernel items that lead to it.
    fn origin(&mut self, cfg: &Cfg, set: SetId, lhs: NonterminalId) -> Result<SetId, LimitExceeded> {
        if let Some(origin) = self.origins.known(set, lhs) {
            return Ok(origin);
        }
        let whole = self.sets.get(set);
        if self.origins.keeps_whole(cfg, whole.kernel()) {
            return Ok(set);
        }
        let mut kernel = whole.kernel().to_vec();
        kernel.retain(|item| self.origins.leads_to(cfg, item.dot, lhs));
        let origin = self.intern(cfg, &kernel, false)?;
        self.origins.remember(set, lhs, origin);
        Ok(origin)
    }

    /// Puts an item on the work list of [`complete`](Self::complete), once.
    fn add(&mut self, item: Item) -> Result<(), LimitExceeded> {
        self.effort += 1;
        if self.seen.insert(item) {
            self.work.push(item);
        }
        if self.seen.len() > self.max_set_items {
            return Err(LimitExceeded::new("items of one parser set", self.max_set_items));
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.work.clear();
        self.seen.clear();
        self.kernel.clear();
    }

    /// Completes the items on the work list to a fixpoint and interns the set. All origins are older
    /// sets, so this never looks at the set in the making.
    fn complete(&mut self, cfg: &Cfg) -> Result<SetId, LimitExceeded> {
        let mut complete = false;
        while let Some(item) = self.work.pop() {
            match cfg.slot(item.dot) {
                Slot::Terminal(_) => self.kernel.push(item),
                Slot::Nonterminal(nonterminal) => {
                    self.kernel.push(item);
                    if cfg.is_nullable(nonterminal) {
                        self.add(item.next())?;
                    }
                }
                Slot::End(_) if item.origin == Item::START.origin => complete = true,
                Slot::End(lhs) => {
                    let waiting = self.sets.get(item.origin).waiting_for(lhs);
                    for at in waiting {
                        let (dot, origin) = self.sets.get(item.origin).by_nonterminal(at);
                        self.advance(cfg, item.origin, dot, origin)?;
                    }
                }
            }
        }
        let mut kernel = std::mem::take(&mut self.kernel);
        kernel.sort_unstable();
        let set = self.intern(cfg, &kernel, complete);
        self.kernel = kernel;
        set
    }
}
