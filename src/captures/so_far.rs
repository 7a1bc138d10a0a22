//! Captures that are decided in a text that is still being written.
//!
//! All ways in which the text may go on begin at items that read on, or in calls that contain such items. As
//! long as the walk has only one way, every whole text is read like this.

use hashbrown::{HashMap, HashSet};

use super::{
    chart::{ItemId, NONE},
    network::PartId,
    walk::{ChartWalk, ItemStep},
};
use crate::limits::LimitExceeded;

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
