//! Arrays: items by position, then all others; counts of items in sets; items that must differ.

use hashbrown::HashMap;

use super::{
    SchemaEmitter,
    states::{ListAutomaton, ListFrame, ListState, ListSteps},
};
use crate::{
    grammar::json_schema::{
        algebra::{ArrayShape, Depth, FormulaId, Formulas, ItemCount},
        error::{Checked, PendingError},
    },
    ids::{ExprId, saturating_usize},
};

/// Limit on the values of an array of distinct items whose used subsets are written out as states.
const MOST_DIFFERENT: usize = 10;
/// Bits that all counts of one array together may take in a state.
const COUNT_BITS: u32 = u64::BITS;

/// An array that is being written.
struct Items {
    shape: ArrayShape,
    /// The values that may come once each, if items must differ.
    values: Vec<FormulaId>,
    /// The expressions of sets of items, by formula.
    known: HashMap<FormulaId, ExprId>,
    /// The bits of each count in [`ListState::found`]: the lowest one, and the number of them.
    bits: Vec<(u32, u32)>,
    level: u32,
}

impl SchemaEmitter<'_, '_> {
    /// The arrays of a shape.
    pub(super) fn array(&mut self, shape: &ArrayShape, level: u32, name: &str) -> Checked<ExprId> {
        if shape.max.is_some_and(|max| max < shape.min) {
            return self.alternatives(Vec::new());
        }
        let mut shape = shape.clone();
        if let Some(node) = shape.repeated {
            if shape.unique.is_some() {
                return self.alternatives(Vec::new());
            }
            let problem = PendingError::unsupported(
                node,
                "uniqueItems",
                "arrays that do repeat an item are not supported",
            );
            self.algebra.relax(problem)?;
            shape.repeated = None;
        }
        // A single item has no equal.
        if shape.max.is_some_and(|max| max <= 1) {
            shape.unique = None;
        }
        let (mut values, mut distinct) = (Vec::new(), false);
        if let Some(node) = shape.unique {
            // The list's states hold which of few values came; other items are compared as they are read.
            let item = self.algebra.formulas.or(shape.prefix.iter().copied().chain([shape.rest]));
            match self.algebra.few_values(item, MOST_DIFFERENT)? {
                Some(few) => values = few,
                None => {
                    match self.why_not_distinct(&shape)? {
                        None => distinct = true,
                        Some(reason) => {
                            let problem = PendingError::unsupported(node, "uniqueItems", reason).with_hint(
                                "give the items an `enum`, or allow repeated ones with `--lenient`",
                            );
                            self.algebra.relax(problem)?;
                        }
                    }
                    shape.unique = None;
                }
            }
        }
        let Some(bits) = bits_of_counts(&shape) else {
            return Err(self.algebra.too_large("`contains` counts too much"));
        };
        if distinct {
            self.note_items(&shape)?;
        }
        let mut items = Items { shape, values, known: HashMap::new(), bits, level };
        self.list(&mut items, ListFrame::array(level, distinct), name)
    }
}

/// The bits of each count in a state; `None` if they do not fit.
fn bits_of_counts(shape: &ArrayShape) -> Option<Vec<(u32, u32)>> {
    let mut used = 0;
    let mut bits = Vec::with_capacity(shape.counts.len());
    for count in &shape.counts {
        let width = u64::BITS - enough(count).leading_zeros();
        bits.push((used, width));
        used += width;
        if used > COUNT_BITS {
            return None;
        }
    }
    Some(bits)
}

/// The count above which further items of the set make no difference.
fn enough(count: &ItemCount) -> u64 {
    count.max.map_or(count.min, |max| max.saturating_add(1))
}

impl Items {
    /// True if only positions and the length matter.
    fn is_plain(&self) -> bool {
        self.shape.counts.is_empty() && self.shape.unique.is_none()
    }

    fn expr(&mut self, emitter: &mut SchemaEmitter<'_, '_>, item: FormulaId) -> Checked<ExprId> {
        if let Some(&known) = self.known.get(&item) {
            return Ok(known);
        }
        let expr = emitter.value(item, self.level + 1)?;
        self.known.insert(item, expr);
        Ok(expr)
    }

    /// The number of items of a set so far, up to the point where it stops to matter.
    fn found(&self, state: ListState, index: usize) -> u64 {
        let (low, width) = self.bits[index];
        // A count of no bits has nothing to count, and may lie behind the last bit.
        state.found.checked_shr(low).unwrap_or(0) & u64::MAX.checked_shr(u64::BITS - width).unwrap_or(0)
    }

    /// The sets that the next item may be in, each with the state after it.
    fn ways(&self, emitter: &mut SchemaEmitter<'_, '_>, state: ListState) -> Vec<(FormulaId, ListState)> {
        // Behind the prefix all places are alike.
        let place = saturating_usize(state.count);
        let mut after = state;
        after.count = (state.count + 1).min(self.enough());
        let mut ways = vec![(self.shape.item(place), after)];
        // Items in two disjoint sets would make states that no array reaches.
        let apart = self.shape.counts.len() > 1;
        // Each `contains` splits the ways: items that it counts, and others.
        for (index, count) in self.shape.counts.iter().enumerate() {
            if place < count.from {
                continue;
            }
            let enough = enough(count);
            let mut split = Vec::new();
            for (item, after) in ways {
                let had = self.found(state, index);
                let inside = emitter.algebra.formulas.and([item, count.of]);
                let mut counted = after;
                if had < enough {
                    counted.found += 1 << self.bits[index].0;
                }
                let apart = apart && emitter.algebra.is_surely_empty(inside, Depth::ITEM);
                if count.max.is_none_or(|max| had < max) && counted != after && !apart {
                    split.push((inside, counted));
                }
                // Where there is only a lower bound, items inside need not be counted.
                let outside = match count.max {
                    None => item,
                    Some(_) => {
                        let not = emitter.algebra.formulas.not(count.of);
                        emitter.algebra.formulas.and([item, not])
                    }
                };
                split.push((outside, after));
            }
            ways = split;
        }
        // Each value of a small set that has not come yet is a way of its own.
        if self.shape.unique.is_some() {
            let mut split = Vec::new();
            for (item, after) in ways {
                for (index, &value) in self.values.iter().enumerate() {
                    if state.used >> index & 1 == 0 {
                        let one = emitter.algebra.formulas.and([item, value]);
                        split.push((one, ListState { used: after.used | 1 << index, ..after }));
                    }
                }
            }
            ways = split;
        }
        ways.retain(|&(item, _)| item != Formulas::NEVER);
        ways
    }

    /// The length above which further items make no difference.
    fn enough(&self) -> u64 {
        let places = self.shape.counts.iter().map(|count| count.from).chain([self.shape.prefix.len()]).max();
        let places = places.unwrap_or(0) as u64;
        match self.shape.max {
            Some(max) => max.max(places),
            None => self.shape.min.max(places),
        }
    }
}

impl ListAutomaton for Items {
    fn steps(&mut self, emitter: &mut SchemaEmitter<'_, '_>, state: ListState) -> Checked<ListSteps> {
        let enough = |index: usize| {
            let count = &self.shape.counts[index];
            let had = self.found(state, index);
            had >= count.min && count.max.is_none_or(|max| had <= max)
        };
        let counted = (0..self.shape.counts.len()).all(enough);
        let mut steps = ListSteps { end: counted && state.count >= self.shape.min, ..ListSteps::default() };
        if self.shape.max.is_some_and(|max| state.count >= max) {
            return Ok(steps);
        }
        let places = self.shape.prefix.len() as u64;
        if self.is_plain() && state.count >= places {
            if self.shape.rest == Formulas::NEVER {
                return Ok(steps);
            }
            let item = self.expr(emitter, self.shape.rest)?;
            let min = self.shape.min.saturating_sub(state.count);
            steps.tail = Some((item, min, self.shape.max.map(|max| max - state.count)));
            return Ok(steps);
        }
        for (item, after) in self.ways(emitter, state) {
            steps.parts.push((self.expr(emitter, item)?, after));
        }
        Ok(steps)
    }
}
