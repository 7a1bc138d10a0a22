//! Multi-valued decision diagrams (MDDs): which parts of a list may come together.
//!
//! A diagram asks one name after the other which of its parts comes, if any; its ends say which marks the
//! list must then have, and how many parts. A choice so far is an assignment of some names, so what may still
//! come is reachability in the diagram, and the cheapest rest is a shortest path: both are linear in its
//! edges, times the numbers of parts that its ends tell apart.

use crate::ids::{as_index, as_u64, saturating_usize};

/// A diagram that says which parts of an [`AnyOrder`](super::any_order::AnyOrder) may come together.
///
/// Places from 0 on are nodes, then ends. Each path from the first place to an end asks every name once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DecisionDiagram {
    /// The nodes, each before all places that it leads to.
    pub nodes: Vec<DecisionNode>,
    /// The ends: the list may end in any of the ways of one.
    pub ends: Vec<Vec<ListEnd>>,
    /// The number of names, counted from the first, whose parts come in the order of the names and before all
    /// other parts.
    pub ordered: u32,
}

/// A question of a [`DecisionDiagram`]: which part of a name comes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DecisionNode {
    /// The name, as an index of [`AnyOrder::required`](super::any_order::AnyOrder::required).
    pub name: u32,
    /// The place if no part of the name comes; `None` if one must.
    pub absent: Option<u32>,
    /// The parts that may come, each with the place after it.
    pub parts: Vec<(u32, u32)>,
}

/// A way in which a list may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ListEnd {
    /// The bits of the marks that have been found; all others have not.
    pub marks: u8,
    /// The least number of parts.
    pub min: u64,
    /// The greatest number of parts.
    pub max: Option<u64>,
}

/// The parts that have come so far, as far as they matter for those to come.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Chosen {
    /// A bit for each name; in lists with a diagram a number for each.
    pub(super) used: Box<[u64]>,
    pub(super) count: u64,
    pub(super) marks: u8,
}

impl Chosen {
    /// All numbers that tell the value from others.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> + '_ {
        self.used.iter().copied().chain([self.count, u64::from(self.marks)])
    }

    pub(super) fn is_used(&self, name: usize) -> bool {
        self.used[name / 64] >> (name % 64) & 1 == 1
    }
}

/// The states of a name: it is open, or no part of it can come any more; numbers from `FIRST` on say which
/// part has come.
const OPEN: u64 = 0;
const PASSED: u64 = 1;
const FIRST: u64 = 2;

/// A diagram over the parts that are left of a list.
#[derive(Debug, Clone)]
pub(super) struct Decisions {
    diagram: DecisionDiagram,
    /// The name and the marks of each part, and the parts without a name.
    parts: Vec<(Option<u32>, u8)>,
    unnamed: Vec<usize>,
    /// The number from which on numbers of parts are not told apart.
    enough: u64,
    /// True if the names that come in order are asked for in that order, before all others.
    asked_in_order: bool,
}

impl DecisionDiagram {
    /// A diagram of these nodes and ends, whose first `ordered` names come in order.
    #[must_use]
    pub fn new(nodes: Vec<DecisionNode>, ends: Vec<Vec<ListEnd>>, ordered: u32) -> Self {
        Self { nodes, ends, ordered }
    }
}

impl Decisions {
    /// The diagram over the parts that `place` keeps, by their new numbers; lists of one part at most if
    /// there is no separator.
    pub(super) fn new(
        of: &DecisionDiagram,
        place: impl Fn(u32) -> Option<usize>,
        parts: &[(Option<u32>, u8)],
        separated: bool,
    ) -> Self {
        let mut diagram = of.clone();
        for node in &mut diagram.nodes {
            let kept =
                node.parts.iter().filter_map(|&(part, to)| Some((u32::try_from(place(part)?).ok()?, to)));
            node.parts = kept.collect();
        }
        let ends = || of.ends.iter().flatten();
        let mut enough = ends().map(|end| end.min.max(end.max.map_or(0, |max| max + 1))).max().unwrap_or(0);
        if !separated {
            enough = enough.max(2);
            for end in diagram.ends.iter_mut().flatten() {
                end.max = Some(end.max.map_or(1, |max| max.min(1)));
            }
        }
        let mut last = None;
        let asked_in_order = diagram.nodes.iter().all(|node| {
            let before = last.replace(node.name);
            node.name >= diagram.ordered || before.is_none_or(|before| before <= node.name)
        });
        let unnamed = (0..parts.len()).filter(|&part| parts[part].0.is_none()).collect();
        Self { diagram, parts: parts.to_vec(), unnamed, enough, asked_in_order }
    }

    /// The diagram itself.
    #[cfg(feature = "oracle")]
    pub(super) fn diagram(&self) -> &DecisionDiagram {
        &self.diagram
    }

    /// The state before any part of a list with this number of names.
    pub(super) fn start(names: usize) -> Chosen {
        Chosen { used: vec![OPEN; names].into(), count: 0, marks: 0 }
    }

    /// All numbers that tell the diagram from others.
    pub(super) fn words(&self) -> impl Iterator<Item = u64> + '_ {
        let nodes = self.diagram.nodes.iter().flat_map(|node| {
            let absent = node.absent.map_or(0, |to| u64::from(to) + 1);
            let parts = node.parts.iter().map(|&(part, to)| u64::from(part) << 32 | u64::from(to));
            [u64::from(node.name), absent, as_u64(node.parts.len())].into_iter().chain(parts)
        });
        let ends = self.diagram.ends.iter().flat_map(|ways| {
            let ways = ways.iter().flat_map(|end| {
                [u64::from(end.marks), end.min, end.max.map_or(0, |max| max.saturating_add(1))]
            });
            [u64::MAX].into_iter().chain(ways)
        });
        [as_u64(self.diagram.nodes.len()), u64::from(self.diagram.ordered)]
            .into_iter()
            .chain(nodes)
            .chain(ends)
    }

    /// The number of edges, which a search looks at.
    pub(super) fn edges(&self) -> usize {
        self.diagram.nodes.iter().map(|node| node.parts.len() + 1).sum()
    }

    /// True if a list of exactly these parts may be.
    pub(super) fn may_end(&self, chosen: &Chosen) -> bool {
        let mut place = 0;
        while let Some(node) = self.diagram.nodes.get(place) {
            let to = match chosen.used[as_index(node.name)] {
                OPEN | PASSED => node.absent,
                part => to(node, part),
            };
            let Some(to) = to else { return false };
            place = as_index(to);
        }
        let ways = self.diagram.ends.get(place - self.diagram.nodes.len());
        ways.is_some_and(|ways| ways.iter().any(|end| end.holds(chosen.marks, chosen.count)))
    }

    /// The choice after one more part; `None` if no list goes on like this.
    pub(super) fn after(&self, chosen: &Chosen, part: usize) -> Option<Chosen> {
        let after = self.with(chosen, part)?;
        self.cheapest(&after, &|_| 0, 0).map(|_| after)
    }

    /// The choice with one more part, whether or not a list goes on like this; `None` if its name was used.
    fn with(&self, chosen: &Chosen, part: usize) -> Option<Chosen> {
        let (name, marks) = self.parts[part];
        let mut after = chosen.clone();
        let ordered = as_index(self.diagram.ordered).min(after.used.len());
        let passed = match name.map(as_index) {
            Some(name) => {
                if after.used[name] != OPEN {
                    return None;
                }
                after.used[name] = FIRST + as_u64(part);
                name.min(ordered)
            }
            None => ordered,
        };
        after.used[..passed].iter_mut().filter(|used| **used == OPEN).for_each(|used| *used = PASSED);
        after.marks |= marks;
        after.count = (chosen.count + 1).min(self.enough);
        Some(after)
    }

    /// The parts that may come next: true for each that may.
    ///
    /// One search from the start and one from the ends find the edges that lie on a path between them. Where
    /// numbers of parts count, or names are asked for in another order than they come in, each part is tried.
    pub(super) fn possible(&self, chosen: &Chosen) -> Vec<bool> {
        let alone = |part: usize| self.after(chosen, part).is_some();
        if self.enough > 0 || !self.asked_in_order {
            return (0..self.parts.len()).map(alone).collect();
        }
        let nodes = &self.diagram.nodes;
        let mut ends = vec![false; (nodes.len() + self.diagram.ends.len()).max(1)];
        for (end, ways) in self.diagram.ends.iter().enumerate() {
            let rest = self.rest(chosen, (ways, &[0]), &|_| 0, 0);
            ends[nodes.len() + end] = rest.is_some();
        }
        for (place, node) in nodes.iter().enumerate().rev() {
            let mut edges = edges(node, chosen.used[as_index(node.name)]);
            ends[place] = edges.any(|(_, to)| ends[as_index(to)]);
        }
        let mut reached = vec![false; ends.len()];
        reached[0] = true;
        let mut able = vec![false; self.parts.len()];
        for (place, node) in nodes.iter().enumerate().filter(|(place, _)| ends[*place]) {
            if !reached[place] {
                continue;
            }
            let used = chosen.used[as_index(node.name)];
            for (part, to) in edges(node, used) {
                let leads = ends[as_index(to)];
                if let Some(part) = part.filter(|_| used == OPEN && leads) {
                    able[part] = true;
                }
                // A part that comes next leaves out the names in order before it.
                if part.is_none() || used != OPEN || node.name >= self.diagram.ordered {
                    reached[as_index(to)] = true;
                }
            }
        }
        for &part in &self.unnamed {
            able[part] = alone(part);
        }
        able
    }

    /// The least sum of prices of at least `needed` more parts with which the list may end. A shortest path
    /// through the diagram, in the order of its nodes.
    pub(super) fn cheapest(&self, chosen: &Chosen, price: &dyn Fn(usize) -> u64, needed: u64) -> Option<u64> {
        let nodes = &self.diagram.nodes;
        let most = saturating_usize(self.enough.saturating_sub(chosen.count).max(needed));
        let width = most + 1;
        let mut least = vec![u64::MAX; (nodes.len() + self.diagram.ends.len()) * width];
        *least.first_mut()? = 0;
        for (place, node) in nodes.iter().enumerate() {
            let used = chosen.used[as_index(node.name)];
            for more in 0..width {
                let sum = least[place * width + more];
                if sum == u64::MAX {
                    continue;
                }
                for (part, to) in edges(node, used) {
                    let (sum, more) = match part.filter(|_| used == OPEN) {
                        Some(part) => {
                            (sum.saturating_add(price(part)).min(u64::MAX - 1), (more + 1).min(most))
                        }
                        None => (sum, more),
                    };
                    let to = as_index(to) * width + more;
                    least[to] = least[to].min(sum);
                }
            }
        }
        let sums = least.get(nodes.len() * width..)?.chunks(width);
        let ways = self.diagram.ends.iter().zip(sums);
        ways.filter_map(|(ways, sums)| self.rest(chosen, (ways, sums), price, needed)).min()
    }

    /// The least sum of an end, where `sums` has the least ones by the number of parts that come before.
    /// Parts without a name fill up marks and numbers: rounds of relaxation (Bellman-Ford).
    fn rest(
        &self,
        chosen: &Chosen,
        (ways, sums): (&[ListEnd], &[u64]),
        price: &dyn Fn(usize) -> u64,
        needed: u64,
    ) -> Option<u64> {
        let width = sums.len();
        let mut least = vec![u64::MAX; 256 * width];
        least[usize::from(chosen.marks) * width..][..width].copy_from_slice(sums);
        loop {
            let mut changed = false;
            for at in 0..least.len() {
                let (marks, more) = (at / width, at % width);
                let sum = least[at];
                for &part in self.unnamed.iter().filter(|_| sum != u64::MAX) {
                    let marks = marks | usize::from(self.parts[part].1);
                    let to = marks * width + (more + 1).min(width - 1);
                    let sum = sum.saturating_add(price(part)).min(u64::MAX - 1);
                    if sum < least[to] {
                        (least[to], changed) = (sum, true);
                    }
                }
            }
            if !changed {
                break;
            }
        }
        let reach = |end: &ListEnd| {
            let sums = &least[usize::from(end.marks) * width..][..width];
            let fits = |&(more, &sum): &(usize, &u64)| {
                let count = chosen.count.saturating_add(as_u64(more)).min(self.enough);
                sum != u64::MAX && as_u64(more) >= needed && end.holds(end.marks, count)
            };
            sums.iter().enumerate().filter(fits).map(|(_, &sum)| sum).min()
        };
        ways.iter().filter_map(reach).min()
    }
}

impl ListEnd {
    fn holds(&self, marks: u8, count: u64) -> bool {
        marks == self.marks && count >= self.min && self.max.is_none_or(|max| count <= max)
    }
}

/// The edges of a node that a name's state leaves, each with the part that it takes.
fn edges(node: &DecisionNode, used: u64) -> impl Iterator<Item = (Option<usize>, u32)> + '_ {
    let absent = node.absent.filter(|_| used <= PASSED).map(|to| (None, to));
    let parts = node.parts.iter().filter(move |&&(part, _)| used == OPEN || used == FIRST + u64::from(part));
    absent.into_iter().chain(parts.map(|&(part, to)| (Some(as_index(part)), to)))
}

/// The place after the part that a name's state says.
fn to(node: &DecisionNode, used: u64) -> Option<u32> {
    edges(node, used).next().map(|(_, to)| to)
}
