//! The walk that takes one parse from a chart, and its captures.
//!
//! Only those links of a chart count that lead to an end that is asked for. They are found backwards from
//! that end, for one call of a part at a time. Along them a walk forwards takes the first way at every node.
//! A call may end at any place from which its caller can reach its own end, and the walk inside of the call
//! decides which. So no step is ever taken back, and the parse is the one that a backtracking matcher finds
//! first.
//!
//! If a part can derive itself there are infinitely many parses, perhaps without a first one. Then the walk
//! keeps to the links that were found first.

use hashbrown::{HashMap, HashSet};

use super::chart::{Chart, ItemId, Link, NONE, Spending};
use super::facts::NetworkFacts;
use super::network::{NetNode, Network, Node, PartId};
use crate::{ids::as_index, limits::LimitExceeded};

/// A capture: the index of its name, and its place; without an end while the part is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FoundCapture {
    pub(super) name: usize,
    pub(super) start: u32,
    pub(super) end: Option<u32>,
}

/// A step forwards, from an item to the next one of its part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ItemStep {
    from: ItemId,
    pub(super) to: ItemId,
    /// The end of the part that was called, or [`NONE`].
    pub(super) child: ItemId,
}

/// All steps of a call that lead to one of its ends, sorted by the items they lead from.
#[derive(Debug)]
struct CallSteps {
    steps: Vec<ItemStep>,
    /// The first item of the call.
    pub(super) start: ItemId,
}

impl CallSteps {
    /// The steps from an item.
    pub(super) fn from(&self, item: ItemId) -> &[ItemStep] {
        let first = self.steps.partition_point(|step| step.from < item);
        let rest = &self.steps[first..];
        &rest[..rest.partition_point(|step| step.from == item)]
    }
}

/// A call that the walk is in.
#[derive(Debug)]
struct CallFrame {
    steps: CallSteps,
    /// The item that the walk has reached.
    at: ItemId,
    /// The steps that may follow the call that it is waiting for.
    after: Vec<ItemStep>,
    /// The captures of the part, as indices of [`ChartWalk::found`].
    found: std::ops::Range<usize>,
}

/// A walk through a chart.
#[derive(Debug)]
pub(super) struct ChartWalk<'c> {
    pub(super) network: &'c Network,
    pub(super) facts: &'c NetworkFacts,
    pub(super) chart: &'c Chart,
    budget: &'c mut Spending,
    pub(super) found: Vec<FoundCapture>,
    /// The last stretch that is left out at the end of a capture.
    ignored: Option<(u32, u32)>,
    /// The last search that met each item.
    met: Vec<u32>,
    searches: u32,
}

impl<'c> ChartWalk<'c> {
    pub(super) fn new(
        network: &'c Network,
        facts: &'c NetworkFacts,
        chart: &'c Chart,
        budget: &'c mut Spending,
    ) -> Self {
        let met = vec![0; chart.len()];
        Self { network, facts, chart, budget, found: Vec::new(), ignored: None, met, searches: 0 }
    }

    /// All steps that lead to one of these items, which are of the same call.
    fn steps_to(&mut self, mut open: Vec<ItemId>) -> Result<CallSteps, LimitExceeded> {
        let mut found = CallSteps { steps: Vec::new(), start: NONE };
        // This cannot wrap: each search takes a unit of a budget of `usize`, and the chart has taken some
        // already.
        self.searches = self.searches.wrapping_add(1);
        open.iter().for_each(|&item| self.met[as_index(item)] = self.searches);
        while let Some(to) = open.pop() {
            for Link { before: from, child } in self.chart.links(to) {
                if from == NONE {
                    found.start = to;
                    continue;
                }
                self.budget.spend(1)?;
                found.steps.push(ItemStep { from, to, child });
                if std::mem::replace(&mut self.met[as_index(from)], self.searches) != self.searches {
                    open.push(from);
                }
            }
        }
        found.steps.sort_unstable();
        found.steps.dedup();
        Ok(found)
    }

    /// The steps of the parse that was found first, to this item.
    fn first_steps_to(&mut self, mut to: ItemId) -> Result<CallSteps, LimitExceeded> {
        let mut steps = Vec::new();
        loop {
            let Link { before: from, child } = self.chart.item(to).first;
            if from == NONE {
                steps.sort_unstable();
                return Ok(CallSteps { steps, start: to });
            }
            self.budget.spend(1)?;
            steps.push(ItemStep { from, to, child });
            to = from;
        }
    }

    /// Walks through a call that may end in any of these items, the first way, and captures on the way.
    pub(super) fn through(&mut self, ends: Vec<ItemId>) -> Result<(), LimitExceeded> {
        let mut frames = vec![self.enter(ends)?];
        while let Some(frame) = frames.last_mut() {
            let (at, steps) = (frame.at, frame.steps.from(frame.at));
            let taken = match steps {
                [_] | [] => steps.to_vec(),
                _ => self.first_of(at, steps),
            };
            if taken.is_empty() {
                // An end has no step.
                let found = frame.found.clone();
                self.leave(found, at);
                frames.pop();
                if let Some(caller) = frames.last_mut()
                    && let Some(step) = caller.after.iter().find(|step| step.child == at)
                {
                    caller.at = step.to;
                }
            } else if let [step] = taken[..]
                && step.child == NONE
            {
                frame.at = step.to;
            } else {
                let ends = taken.iter().map(|step| step.child).collect();
                frame.after = taken;
                let called = self.enter(ends)?;
                frames.push(called);
            }
        }
        Ok(())
    }

    fn enter(&mut self, ends: Vec<ItemId>) -> Result<CallFrame, LimitExceeded> {
        let part = ends.first().map(|&end| self.network.owner(self.chart.item(end).node));
        let last = ends.iter().copied().max_by_key(|&end| self.chart.item(end).at);
        let steps = match (part, last) {
            (Some(part), Some(last)) if self.facts.is_cyclic(part) => self.first_steps_to(last)?,
            _ => self.steps_to(ends)?,
        };
        let found = self.begin(steps.start);
        Ok(CallFrame { at: steps.start, steps, after: Vec::new(), found })
    }

    /// Begins the captures of a part; `start` is its first item.
    pub(super) fn begin(&mut self, start: ItemId) -> std::ops::Range<usize> {
        let item = self.chart.item(start);
        let names = &self.network.part(self.network.owner(item.node)).names;
        let first = self.found.len();
        self.found.extend(names.iter().map(|&name| FoundCapture { name, start: item.origin, end: None }));
        first..self.found.len()
    }

    /// Ends the captures of a part; `end` is its last item.
    fn leave(&mut self, found: std::ops::Range<usize>, end: ItemId) {
        let item = self.chart.item(end);
        if self.network.part(self.network.owner(item.node)).ignored {
            self.ignored = Some((item.origin, item.at));
        }
        for found in &mut self.found[found] {
            found.end = Some(match self.ignored {
                Some((start, end)) if end == item.at && start >= found.start => start,
                _ => item.at,
            });
        }
    }

    /// The preferred steps from an item: one, or several by calls of one part.
    fn first_of(&self, at: ItemId, steps: &[ItemStep]) -> Vec<ItemStep> {
        let node = self.chart.item(at).node;
        if let Node::Ways(ways) = self.network.node(node) {
            let steps = steps.iter().map(|&step| (self.chart.item(step.to).node, step));
            let steps: HashMap<NetNode, ItemStep> = steps.collect();
            return ways.iter().find_map(|way| steps.get(way)).into_iter().copied().collect();
        }
        let ranks: Vec<usize> = steps.iter().map(|step| self.rank(node, step)).collect();
        let least = ranks.iter().min();
        let taken = steps.iter().zip(&ranks).filter(|(_, rank)| Some(*rank) == least);
        taken.map(|(&step, _)| step).collect()
    }

    /// The order in which steps from a node other than [`Node::Ways`] are tried; equal only for calls of one
    /// part.
    fn rank(&self, node: NetNode, step: &ItemStep) -> usize {
        let calls = step.child != NONE;
        match self.network.node(node) {
            // The longest is preferred.
            Node::Automaton(..) | Node::Substrings(..) | Node::LengthBounded(..) | Node::Spelled(..) => {
                usize::MAX - self.chart.item(step.to).at as usize
            }
            Node::Repeat { greedy, .. } => usize::from(calls != *greedy),
            Node::Separator { .. } => usize::from(!calls),
            Node::List { list, .. } if calls => {
                let part = self.network.owner(self.chart.item(step.child).node);
                self.network.lists[*list].parts.partition_point(|&other| other < part)
            }
            _ => 0,
        }
    }
}

// Captures may be decided in a text that is still being written: all ways in which it may go on begin at
// items that read on, or in calls that contain such items. As long as the walk has only one way, every whole
// text is read like this.

/// A call, by its part and the place where it began.
type PartCall = (PartId, u32);

impl ChartWalk<'_> {
    /// Captures what is decided, up to the first item with more than one way on.
    pub(super) fn so_far(&mut self) -> Result<(), LimitExceeded> {
        let alive = self.alive();
        let mut call: PartCall = (self.network.root, 0);
        let mut entered = HashSet::new();
        while let Some(ends) = alive.get(&call) {
            // Left recursion may end after any number of rounds.
            if self.facts.is_cyclic(call.0) || !entered.insert(call) {
                return Ok(());
            }
            let steps = self.steps_to(ends.clone())?;
            let mut at = steps.start;
            self.begin(at);
            while ends.binary_search(&at).is_err() {
                let &[ItemStep { to, child, .. }] = steps.from(at) else { return Ok(()) };
                if child != NONE {
                    self.through(vec![child])?;
                }
                at = to;
            }
            if !steps.from(at).is_empty() {
                return Ok(());
            }
            let item = self.chart.item(at);
            let called = self.network.calls(item.node).iter().map(|&part| (part, item.at));
            let mut called = called.filter(|call| alive.contains_key(call));
            let (Some(only), None) = (called.next(), called.next()) else { return Ok(()) };
            call = only;
        }
        Ok(())
    }

    /// The calls that are not over. Each comes with its items, ascending, that read on, that have called one
    /// that is not over, or at which the text may end.
    fn alive(&self) -> HashMap<PartCall, Vec<ItemId>> {
        let mut alive: HashMap<PartCall, Vec<ItemId>> = HashMap::new();
        let mut open: Vec<ItemId> = self.chart.open.iter().copied().chain(self.chart.end).collect();
        while let Some(id) = open.pop() {
            let item = self.chart.item(id);
            let call = (self.network.owner(item.node), item.origin);
            let items = alive.entry(call).or_default();
            if items.is_empty() {
                open.extend(self.chart.callers(call.0, call.1));
            }
            items.push(id);
        }
        for items in alive.values_mut() {
            items.sort_unstable();
            items.dedup();
        }
        alive
    }
}
