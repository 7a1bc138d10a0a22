//! Liveness and distances of states with a count of characters: which can still reach an end, and in how many
//! bytes.
//!
//! From the least length on, a state is live if its shortest way to an end fits into the characters that are
//! left. Below it, a sweep from the least length downwards finds the live states, and stops when they no
//! longer change. So nothing is stored for each count up to the greatest length, however large that is.

use std::{cmp::Reverse, collections::BinaryHeap, ops::RangeInclusive};

use super::{lexer::CharacterLexer, numbers::NO_END};
use crate::{
    automata::{
        Grouped,
        minimize::{DfaTable, NONE, distances},
    },
    ids::as_index,
};

/// Limit on the transitions looked at below the least length, which take some 10 ms.
const MAX_LOOKS: usize = 1 << 22;
/// Limit on the distances that are kept, of four bytes each.
const MAX_DISTANCES: usize = 1 << 22;

/// Bounds on the number of characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// The least number of characters.
    pub min: u32,
    /// The greatest number, if there is a bound.
    pub max: Option<u32>,
}

impl Bounds {
    /// Any number of characters.
    pub const NONE: Self = Self { min: 0, max: None };

    /// The greatest count that is kept: beyond it all counts are alike, or no state is live.
    pub(super) fn last(self) -> u32 {
        self.max.unwrap_or(self.min)
    }
}

/// Values of the automaton's states for each count; neighbouring counts with the same values share a level.
#[derive(Debug)]
pub(in crate::grammar) struct CountLevels<V> {
    /// The level of each count, as an index of `firsts`.
    of: Box<[u32]>,
    /// The least count of each level.
    firsts: Vec<u32>,
    /// The values, at `level * states + state`.
    pub(in crate::grammar) values: Vec<V>,
    /// The greatest count.
    max: u32,
}

impl<V> Default for CountLevels<V> {
    fn default() -> Self {
        Self { of: Box::default(), firsts: Vec::new(), values: Vec::new(), max: 0 }
    }
}

impl<V: Copy> CountLevels<V> {
    /// Reverses levels that were made from the greatest count down.
    pub(in crate::grammar) fn turned(max: u32, mut firsts: Vec<u32>, values: &[V], states: usize) -> Self {
        firsts.reverse();
        let values = values.chunks_exact(states.max(1)).rev().flatten().copied().collect();
        let ends = firsts.iter().skip(1).copied().chain([max + 1]);
        let of = (0_u32..).zip(firsts.iter().zip(ends));
        let of = of.flat_map(|(level, (&first, end))| (first..end).map(move |_| level)).collect();
        Self { of, firsts, values, max }
    }

    /// The values at a count, by state.
    pub(in crate::grammar) fn of(&self, states: usize, count: u32) -> &[V] {
        let level = self.of[count as usize] as usize;
        &self.values[level * states..][..states]
    }

    /// The values at a count, if it has any.
    fn get(&self, states: usize, count: u32) -> Option<&[V]> {
        (as_index(count) < self.of.len()).then(|| self.of(states, count))
    }

    /// The least count of a level.
    pub(in crate::grammar) fn first(&self, level: usize) -> u32 {
        self.firsts[level]
    }

    /// The counts of the same level as this one.
    pub(in crate::grammar) fn around(&self, count: u32) -> RangeInclusive<u32> {
        let level = self.of[count as usize] as usize;
        let last = self.firsts.get(level + 1).map_or(self.max, |end| end - 1);
        self.firsts[level]..=last
    }

    pub(in crate::grammar) fn bytes(&self) -> usize {
        size_of_val(&*self.of) + size_of_val(&*self.firsts) + size_of_val(&*self.values)
    }
}

/// The live states at each count.
#[derive(Debug)]
pub(super) struct LiveCounts {
    bounds: Bounds,
    /// The fewest characters from each state to an end.
    shortest: Box<[u32]>,
    /// The greatest of these, over all states.
    farthest: u32,
    /// The states that are live at each count below the least length.
    levels: CountLevels<bool>,
    distances: Option<Distances>,
}

/// The fewest bytes to an end, if there are bounds.
#[derive(Debug)]
struct Distances {
    /// The fewest bytes without regard to bounds.
    free: Box<[u32]>,
    /// The fewest bytes when few characters are left: `left * states + state`.
    near: Box<[u32]>,
    /// The fewest bytes below the least length: `count * states + state`.
    below: Box<[u32]>,
}

/// The reversed table: the predecessors of each state, with the class of each edge.
struct Back {
    from: Grouped,
    width: u32,
}

impl Back {
    /// Reverses a table with `width` classes.
    fn new(table: &DfaTable, width: u32) -> Self {
        let cells = (0..).zip(&table.transitions).map(|(cell, &to)| (to, cell));
        let ways: Vec<(u32, u32)> = cells.filter(|(to, _)| *to != NONE).collect();
        Self { from: Grouped::new(table.accepting.len(), || ways.iter().copied()), width }
    }

    /// The predecessors of a state, each with the class of its edge.
    fn of(&self, state: u32) -> impl Iterator<Item = (u32, u32)> {
        self.from.of(state).iter().map(|cell| (cell / self.width, cell % self.width))
    }
}

/// The fewest bytes from each state to an end, quote included, and the fewest characters of a text with that
/// many bytes. Dijkstra's algorithm.
fn fewest_bytes(table: &DfaTable, lexer: &CharacterLexer, back: &Back) -> Vec<(u32, u32)> {
    let costs = class_costs(table.width, lexer);
    let mut found = vec![(NO_END, NO_END); table.accepting.len()];
    let mut open = BinaryHeap::new();
    for (state, _) in (0_u32..).zip(&table.accepting).filter(|(_, ends)| **ends) {
        found[state as usize] = (1, 0);
        open.push(Reverse(((1, 0), state)));
    }
    while let Some(Reverse((cost, state))) = open.pop() {
        if found[state as usize] != cost {
            continue;
        }
        for (from, class) in back.of(state) {
            let more = (cost.0.saturating_add(costs[class as usize]), cost.1 + 1);
            if more < found[from as usize] {
                found[from as usize] = more;
                open.push(Reverse((more, from)));
            }
        }
    }
    found
}

/// The fewest bytes of a character of each class.
fn class_costs(width: usize, lexer: &CharacterLexer) -> Vec<u32> {
    let mut costs = vec![NO_END; width];
    for &(class, bytes) in lexer.ends_of(0) {
        costs[class as usize] = u32::from(bytes);
    }
    costs
}

/// The fewest bytes from each state to an end, quote included, with any number of characters.
pub(super) fn free_distances(table: &DfaTable, lexer: &CharacterLexer) -> Box<[u32]> {
    fewest_bytes(table, lexer, &Back::new(table, lexer.classes()))
        .into_iter()
        .map(|(bytes, _)| bytes)
        .collect()
}

impl LiveCounts {
    /// Finds the live states of a table whose states all lead to an end. `None` if that would take too long,
    /// or too much memory.
    pub(super) fn new(table: &DfaTable, lexer: &CharacterLexer, bounds: Bounds) -> Option<Self> {
        let back = Back::new(table, lexer.classes());
        let ends = |state: u32| table.accepting[state as usize];
        let shortest = distances((table.width, &table.transitions), ends, |_| true).into_boxed_slice();
        let farthest = shortest.iter().copied().max().unwrap_or(0);
        let mut lengths =
            Self { bounds, shortest, farthest, levels: CountLevels::default(), distances: None };
        if bounds != Bounds::NONE {
            lengths.sweep(table)?;
            lengths.distances = Some(lengths.distances_of(table, lexer, &back)?);
        }
        Some(lengths)
    }

    /// Finds the live states below the least length. `None` without a look if that has more counts than
    /// distances are kept for.
    fn sweep(&mut self, table: &DfaTable) -> Option<()> {
        let (states, min) = (table.accepting.len(), self.bounds.min);
        usize::try_from(min).ok()?.checked_mul(states).filter(|&below| below <= MAX_DISTANCES)?;
        let mut last: Vec<bool> = (0..).take(states).map(|state| self.is_live(state, min)).collect();
        let (mut levels, mut firsts): (Vec<bool>, Vec<u32>) = (Vec::new(), Vec::new());
        let mut left = MAX_LOOKS;
        let mut count = min;
        while let Some(lower) = count.checked_sub(1) {
            count = lower;
            left = left.checked_sub(table.transitions.len())?;
            let row = |row: &[u32]| row.iter().any(|&to| to != NONE && last[to as usize]);
            let now: Vec<bool> = table.transitions.chunks_exact(table.width).map(row).collect();
            let same = !firsts.is_empty() && now == last;
            if !same {
                levels.extend_from_slice(&now);
                firsts.push(count);
            }
            if same {
                // Nothing will change for the counts below.
                count = 0;
            }
            if let Some(first) = firsts.last_mut() {
                *first = count;
            }
            last = now;
        }
        if let Some(last) = min.checked_sub(1) {
            self.levels = CountLevels::turned(last, firsts, &levels, states);
        }
        Some(())
    }

    fn distances_of(&self, table: &DfaTable, lexer: &CharacterLexer, back: &Back) -> Option<Distances> {
        let states = table.accepting.len();
        let found = fewest_bytes(table, lexer, back);
        let free: Box<[u32]> = found.iter().map(|&(bytes, _)| bytes).collect();
        // If a text with the fewest bytes has the fewest characters too, bounds make no difference to it.
        let differs =
            found.iter().zip(&self.shortest).any(|((_, characters), shortest)| characters > shortest);
        let most = found.iter().map(|&(_, characters)| characters).max().unwrap_or(0);
        let near_levels = if differs && self.bounds.max.is_some() { most as usize } else { 0 };
        let all = near_levels.saturating_add(self.bounds.min as usize).checked_mul(states)?;
        if all > MAX_DISTANCES || all.saturating_mul(table.width) > 4 * MAX_DISTANCES {
            return None;
        }
        let mut distances = Distances { free, near: Box::default(), below: Box::default() };
        let costs = class_costs(table.width, lexer);
        let step = |next: &dyn Fn(u32) -> u32, state: usize| {
            let row = table.transitions[state * table.width..][..table.width].iter().zip(&costs);
            let ways = row.filter(|(to, _)| **to != NONE);
            ways.map(|(&to, &cost)| next(to).saturating_add(cost)).min().unwrap_or(NO_END)
        };
        let ends = |state: usize| if table.accepting[state] { 1 } else { NO_END };
        let mut near: Vec<u32> = Vec::with_capacity(near_levels * states);
        for left in 0..near_levels {
            for state in 0..states {
                let before = left.checked_sub(1).map(|left| left * states);
                let go_on = before.map(|at| step(&|to| near[at + to as usize], state));
                near.push(ends(state).min(go_on.unwrap_or(NO_END)));
            }
        }
        distances.near = near.into();
        let min = self.bounds.min as usize;
        let mut below = vec![NO_END; min * states];
        for count in (0..min).rev() {
            for state in 0..states {
                let after = |to: u32| match count + 1 < min {
                    true => below[(count + 1) * states + to as usize],
                    false => self.above(&distances, to, self.bounds.min),
                };
                let fewest = step(&after, state);
                below[count * states + state] = fewest;
            }
        }
        distances.below = below.into();
        Some(distances)
    }

    /// The fewest bytes from a state to an end, for counts from the least length on; [`NO_END`] if there is
    /// none.
    fn above(&self, distances: &Distances, state: u32, count: u32) -> u32 {
        let free = distances.free[state as usize];
        let Some(max) = self.bounds.max else { return free };
        let Some(left) = max.checked_sub(count) else { return NO_END };
        let near = (left as usize).saturating_mul(self.shortest.len()).saturating_add(state as usize);
        match distances.near.get(near) {
            Some(&near) => near,
            None if self.shortest[state as usize] <= left => free,
            None => NO_END,
        }
    }

    /// The fewest bytes from a state to an end after a number of characters; `None` without bounds.
    pub(super) fn distance(&self, state: u32, count: u32) -> Option<u32> {
        let distances = self.distances.as_ref()?;
        Some(if count < self.bounds.min {
            distances.below[count as usize * self.shortest.len() + state as usize]
        } else {
            self.above(distances, state, count)
        })
    }

    pub(super) fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// True if a string that has reached a state after a number of characters can still end.
    pub(super) fn is_live(&self, state: u32, count: u32) -> bool {
        if let Some(live) = self.levels.get(self.shortest.len(), count) {
            return live[state as usize];
        }
        let left =
            |max: u32| max.checked_sub(count).is_some_and(|left| self.shortest[state as usize] <= left);
        self.bounds.max.is_none_or(left)
    }

    /// True if the bounds allow the string to end after this number of characters.
    pub(super) fn may_end(&self, count: u32) -> bool {
        count >= self.bounds.min && self.bounds.max.is_none_or(|max| count <= max)
    }

    /// The count after one more character.
    pub(super) fn next(&self, count: u32) -> u32 {
        match self.bounds.max {
            Some(_) => count.saturating_add(1),
            None => (count + 1).min(self.bounds.min),
        }
    }

    /// The number of characters that may come before bounds make a difference; `None` if they do at once.
    pub(super) fn room(&self, count: u32) -> Option<u32> {
        if count < self.bounds.min {
            return None;
        }
        let Some(max) = self.bounds.max else { return Some(u32::MAX) };
        max.checked_sub(count)?.checked_sub(self.farthest)
    }

    /// True if all states are live at a count, which is below the least length.
    pub(super) fn are_all_live(&self, count: u32) -> bool {
        let level = self.levels.get(self.shortest.len(), count);
        level.is_some_and(|level| level.iter().all(|live| *live))
    }

    /// The counts at which the same states are live as at this one, which is below the least length.
    pub(super) fn alike(&self, count: u32) -> Option<RangeInclusive<u32>> {
        (count < self.bounds.min).then(|| self.levels.around(count))
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let distances = self.distances.as_ref().map_or(0, |distances| {
            let Distances { free, near, below } = distances;
            [free, near, below].map(|list| size_of_val(&**list)).iter().sum()
        });
        distances + size_of_val(&*self.shortest) + self.levels.bytes()
    }
}
