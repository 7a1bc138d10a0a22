//! Intersection and complement of the arrays of shapes.

use std::rc::Rc;

use super::{Algebra, ArrayShape, Depth, Formulas, ItemCount, combine::least};
use crate::ids::saturating_usize;

impl Algebra<'_> {
    pub(super) fn array_in_both(
        &mut self,
        one: &Rc<ArrayShape>,
        other: &Rc<ArrayShape>,
    ) -> Option<Rc<ArrayShape>> {
        if one == other {
            return Some(one.clone());
        }
        let places = one.prefix.len().max(other.prefix.len());
        let prefix =
            (0..places).map(|place| self.formulas.and([one.item(place), other.item(place)])).collect();
        let mut counts = one.counts.clone();
        counts.extend(other.counts.iter().filter(|count| !one.counts.contains(count)).cloned());
        let shape = ArrayShape {
            prefix,
            rest: self.formulas.and([one.rest, other.rest]),
            min: one.min.max(other.min),
            max: least(one.max, other.max),
            counts,
            unique: one.unique.or(other.unique),
            repeated: one.repeated.or(other.repeated),
        };
        self.settled_array(shape).map(Rc::new)
    }

    /// Normalises the bounds of an array; `None` if no array fits them.
    fn settled_array(&mut self, mut shape: ArrayShape) -> Option<ArrayShape> {
        // An item that cannot exist ends the array before it.
        let end = shape.prefix.iter().position(|&item| item == Formulas::NEVER);
        let end = end.or_else(|| (shape.rest == Formulas::NEVER).then_some(shape.prefix.len()));
        if let Some(end) = end {
            shape.max = least(shape.max, Some(end as u64));
            shape.prefix.truncate(end);
            shape.rest = Formulas::NEVER;
        }
        for count in &shape.counts {
            if count.min > 0 && count.of == Formulas::NEVER || count.max.is_some_and(|max| max < count.min) {
                return None;
            }
            if count.min > 0 {
                shape.min = shape.min.max(count.min.saturating_add(count.from as u64));
            }
        }
        shape.counts.retain(|count| count.min > 0 || count.max.is_some());
        if shape.max.is_some_and(|max| max < shape.min) {
            return None;
        }
        let places = saturating_usize(shape.min).min(shape.prefix.len() + 1);
        let surely = (0..places).any(|place| self.is_surely_empty(shape.item(place), Depth::ITEM));
        (!surely).then_some(shape)
    }

    pub(super) fn array_complement(&mut self, shape: &ArrayShape) -> Vec<Rc<ArrayShape>> {
        let mut broken = Vec::new();
        let any = ArrayShape::any;
        for (place, &item) in shape.prefix.iter().enumerate() {
            if item != Formulas::ANY {
                let mut prefix = vec![Formulas::ANY; place];
                prefix.push(self.formulas.not(item));
                broken.push(ArrayShape { prefix, min: place as u64 + 1, ..any() });
            }
        }
        if shape.rest != Formulas::ANY {
            let from = shape.prefix.len();
            if shape.rest == Formulas::NEVER {
                broken.push(ArrayShape { min: from as u64 + 1, ..any() });
            } else {
                let count = ItemCount { from, of: self.formulas.not(shape.rest), min: 1, max: None };
                broken.push(ArrayShape { min: from as u64 + 1, counts: vec![count], ..any() });
            }
        }
        if shape.min > 0 {
            broken.push(ArrayShape { max: Some(shape.min - 1), ..any() });
        }
        if let Some(max) = shape.max {
            broken.push(ArrayShape { min: max.saturating_add(1), ..any() });
        }
        for count in &shape.counts {
            if count.min > 0 {
                let few = ItemCount { min: 0, max: Some(count.min - 1), ..count.clone() };
                broken.push(ArrayShape { counts: vec![few], ..any() });
            }
            if let Some(max) = count.max {
                let many = ItemCount { min: max.saturating_add(1), max: None, ..count.clone() };
                broken.push(ArrayShape { counts: vec![many], ..any() });
            }
        }
        if shape.unique.is_some() {
            broken.push(ArrayShape { repeated: shape.unique, min: 2, ..any() });
        }
        if shape.repeated.is_some() {
            broken.push(ArrayShape { unique: shape.repeated, ..any() });
        }
        broken.into_iter().filter_map(|shape| self.settled_array(shape).map(Rc::new)).collect()
    }
}
