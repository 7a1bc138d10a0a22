//! Decides whether arrays whose items must differ can be left to sessions: is there always another value?
//!
//! Sessions compare items by value and refuse one that repeats another. That is exact only if every array
//! that has begun with different items can be finished. It suffices that each required position has more
//! values than there are positions before it. Sessions find out about positions that are not required.

use super::SchemaEmitter;
use crate::{
    grammar::json_schema::{
        NumberSet,
        algebra::{ArrayShape, Depth, FormulaId, Formulas, ItemCount, ObjectShape},
        error::Checked,
        leaf::Numbers,
        options::DuplicateKeys,
    },
    ids::saturating_usize,
};

/// Values are counted up to this number; larger sets count as infinite.
const ENOUGH: u64 = 1_000;
/// Limit on the levels of arrays and objects that are looked at.
const MOST_LEVELS: u32 = 4;

impl SchemaEmitter<'_, '_> {
    /// The reason why masks would not be exact if sessions compared the items; `None` if they can.
    pub(super) fn why_not_distinct(&mut self, shape: &ArrayShape) -> Checked<Option<String>> {
        if self.algebra.options.part {
            let reason = "items that must differ are supported in a schema that is a grammar by itself";
            return Ok(Some(reason.to_owned()));
        }
        // Sessions compare keys of objects too, so these must not repeat.
        for item in places(shape) {
            let values = self.algebra.expand(item)?;
            let nested = !values.arrays.is_empty() || !values.objects.is_empty();
            if nested && self.algebra.options.duplicate_keys == DuplicateKeys::Allow {
                let reason = "objects that must differ are not supported where keys may come twice";
                return Ok(Some(reason.to_owned()));
            }
        }
        if !self.counts_leave_values(shape)? {
            let reason = "items that must differ are not supported beside a `contains`, or the negation of \
                          an array's schema, that may leave too few values for them";
            return Ok(Some(reason.to_owned()));
        }
        if shape.min > ENOUGH {
            let reason = format!("more than {ENOUGH} items that must differ and be there are not supported");
            return Ok(Some(reason));
        }
        // Each required position needs more values than there are positions before it.
        let listed = shape.prefix.len() as u64;
        for (place, item) in (0..shape.min).zip(places(shape).chain(std::iter::repeat(shape.rest))) {
            // Positions behind the listed ones are alike, so the last of them decides.
            let wanted = if place < listed { place + 1 } else { shape.min };
            if wanted > 1 && self.least_values(item, MOST_LEVELS)? < wanted {
                return Ok(Some(format!(
                    "items that must differ are not supported where place {place} may have fewer than \
                     {wanted} values"
                )));
            }
            if place >= listed {
                break;
            }
        }
        Ok(None)
    }

    /// True if `contains` and its bounds leave another value for each item that they ask for.
    fn counts_leave_values(&mut self, shape: &ArrayShape) -> Checked<bool> {
        // Where nothing bounds the items from above, all that is asked for can come behind the others. As
        // many values of a set as must come are enough: those that have come count. One count may even be
        // asked of the last items that there is room for.
        let unbounded = |count: &ItemCount| count.max.is_none() && count.from == 0;
        let plain = shape.counts.iter().all(unbounded)
            && (shape.max.is_none() || shape.counts.len() == 1 && shape.prefix.is_empty());
        for count in &shape.counts {
            let inside_rest = self.algebra.formulas.and([shape.rest, count.of]);
            // Nothing is such an item, so that no array of the shape is written.
            if count.min > 0 && places(shape).all(|item| self.has_no_item_of(item, count.of)) {
                return Ok(true);
            }
            if plain && self.least_values(inside_rest, MOST_LEVELS)? >= count.min {
                continue;
            }
            if shape.counts.len() > 1 {
                return Ok(false);
            }
            for item in places(shape) {
                let not = self.algebra.formulas.not(count.of);
                let inside = self.algebra.formulas.and([item, count.of]);
                let outside = self.algebra.formulas.and([item, not]);
                for part in [inside, outside] {
                    if part != Formulas::NEVER && self.least_values(part, MOST_LEVELS)? < ENOUGH {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    /// True if no item at this place is in a set, as far as that is seen at once.
    fn has_no_item_of(&mut self, item: FormulaId, set: FormulaId) -> bool {
        let inside = self.algebra.formulas.and([item, set]);
        self.algebra.is_surely_empty(inside, Depth::ITEM)
    }

    /// Notes in the grammar that sessions compare the items.
    pub(super) fn note_items(&mut self, shape: &ArrayShape) -> Checked<()> {
        let mut rule = self.distinct_items.unwrap_or_default();
        // A `contains` asks for items of a part of the values.
        let mut sets: Vec<FormulaId> = places(shape).collect();
        for count in &shape.counts {
            let inside = places(shape).map(|item| self.algebra.formulas.and([item, count.of]));
            sets.extend(inside.collect::<Vec<_>>());
        }
        for item in sets {
            let values = self.algebra.expand(item)?;
            let (mut nested, mut endless) = (false, false);
            for array in &values.arrays {
                let goes_on = self.array_goes_on(array)?;
                (nested, endless) = (nested || !goes_on, endless || goes_on);
            }
            for object in &values.objects {
                let goes_on = self.object_goes_on(object)?;
                (nested, endless) = (nested || !goes_on, endless || goes_on);
            }
            let words = values.strings.is_empty() && values.numbers.is_empty() && !endless;
            rule.strings_may_run_out |= nested || words || values.strings.may_run_out();
            let plain = self.spelling.numbers == Numbers::Plain && !values.numbers.is_empty();
            rule.numbers_may_run_out |= nested || plain || digits_may_run_out(&values.numbers);
        }
        self.distinct_items = Some(rule);
        Ok(())
    }

    /// True if every such array, whatever it has, can have one more item.
    fn array_goes_on(&mut self, array: &ArrayShape) -> Checked<bool> {
        let plain = array.counts.is_empty() && array.unique.is_none() && array.repeated.is_none();
        if !plain || array.max.is_some() || self.levels.is_some() {
            return Ok(false);
        }
        for &item in array.prefix.iter().chain([&array.rest]) {
            if !self.has_values(item, MOST_LEVELS)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// True if every such object, whatever it has, can have more members under infinitely many names.
    fn object_goes_on(&mut self, object: &ObjectShape) -> Checked<bool> {
        let closed = self.algebra.options.is_closed() && object.is_closed();
        let bound = object.max.is_some() || !object.some.is_empty() || object.condition.is_some();
        if closed || bound || self.levels.is_some() {
            return Ok(false);
        }
        Ok(match object.every[..] {
            [] => true,
            // Only few names are restricted; all others are free.
            [(_, value)] => self.has_values(value, MOST_LEVELS)?,
            _ => false,
        })
    }

    /// Sufficient test for a value in the set. Looks at required parts only, and at a few levels of them.
    fn has_values(&mut self, id: FormulaId, levels: u32) -> Checked<bool> {
        let shape = self.algebra.expand(id)?;
        let scalars = shape.null || shape.booleans.contains(&true);
        if scalars || !shape.strings.is_empty() || !shape.numbers.is_empty() {
            return Ok(true);
        }
        // The empty array will do.
        let mut arrays = shape.arrays.iter().filter(|array| array.min == 0 && array.repeated.is_none());
        if arrays.any(|array| array.counts.iter().all(|count| count.min == 0)) {
            return Ok(true);
        }
        for object in &shape.objects {
            let least = object.required.len() as u64;
            let fits = object.min <= least && object.max.is_none_or(|max| max >= least);
            let asks = !object.some.is_empty() || object.condition.is_some();
            if !fits || asks || levels == 0 && least > 0 {
                continue;
            }
            let mut has_all = true;
            for value in self.algebra.required_values(object) {
                has_all = has_all && self.has_values(value, levels.saturating_sub(1))?;
            }
            if has_all {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A lower bound on the number of values in the set, at most [`ENOUGH`].
    fn least_values(&mut self, id: FormulaId, levels: u32) -> Checked<u64> {
        let shape = self.algebra.expand(id)?;
        let limit = saturating_usize(ENOUGH);
        let mut count = [shape.null, shape.booleans[0], shape.booleans[1]].map(u64::from).iter().sum::<u64>();
        let strings = shape.strings.as_finite(limit).map_or(ENOUGH, |strings| strings.len() as u64);
        let numbers = self.algebra.fitting(shape.numbers.written(self.spelling.numbers))?;
        let numbers = numbers.as_finite(limit).map_or(ENOUGH, |numbers| numbers.len() as u64);
        count = (count + strings + numbers).min(ENOUGH);
        if levels == 0 || self.levels.is_some() {
            return Ok(count);
        }
        for array in &shape.arrays {
            if count < ENOUGH {
                count = count.max(self.least_arrays(array, levels - 1)?);
            }
        }
        for object in &shape.objects {
            if count < ENOUGH {
                count = count.max(self.least_objects(object, levels - 1)?);
            }
        }
        Ok(count)
    }

    fn least_arrays(&mut self, array: &ArrayShape, levels: u32) -> Checked<u64> {
        let plain = array.counts.is_empty() && array.unique.is_none() && array.repeated.is_none();
        if !plain || array.max.is_some_and(|max| max < array.min.max(1)) {
            return Ok(0);
        }
        let mut most: u64 = 1;
        for place in 0..saturating_usize(array.min.max(1)) {
            let values = self.least_values(array.item(place), levels)?;
            if values == 0 {
                // Only the empty array is left.
                return Ok(u64::from(array.min == 0));
            }
            most = most.max(values);
            if place > array.prefix.len() {
                break;
            }
        }
        let endless = array.max.is_none() && array.prefix.is_empty();
        Ok(if endless { ENOUGH } else { most })
    }

    fn least_objects(&mut self, object: &ObjectShape, levels: u32) -> Checked<u64> {
        let asks = !object.some.is_empty() || object.condition.is_some();
        if asks || object.min > object.required.len() as u64 {
            return Ok(0);
        }
        let (mut most, required) = (1, self.algebra.required_values(object));
        for value in required {
            let values = self.least_values(value, levels)?;
            if values == 0 {
                return Ok(0);
            }
            most = values.max(most);
        }
        if object.max.is_some_and(|max| max <= object.required.len() as u64) {
            return Ok(most);
        }
        if object.every.is_empty() && !(self.algebra.options.is_closed() && object.is_closed()) {
            return Ok(ENOUGH);
        }
        for (name, value) in object.properties.clone() {
            let value = self.algebra.narrowed_by_keys(object, &name, value);
            most = most.max(self.least_values(value, levels)?);
        }
        Ok(most)
    }
}

/// The sets of the items at the positions of an array, that of all further ones last.
fn places(shape: &ArrayShape) -> impl Iterator<Item = FormulaId> {
    shape.prefix.iter().copied().chain((shape.rest != Formulas::NEVER).then_some(shape.rest))
}

/// True if digits may be written that only finitely many of these numbers begin with, but for 0 and digits
/// behind a point. Not so where numbers have no bound on the side to which digits lead.
fn digits_may_run_out(numbers: &NumberSet) -> bool {
    let numbers = numbers.part();
    if numbers.is_empty() || numbers.is_all() {
        return false;
    }
    let (least, most) = numbers.bounds();
    let grows = most.is_none() && least.is_none_or(|least| !least.is_negative());
    let shrinks = least.is_none() && most.is_none_or(|most| most.is_negative() || most.is_zero());
    numbers.depends_on_spelling() || !(grows || shrinks)
}
