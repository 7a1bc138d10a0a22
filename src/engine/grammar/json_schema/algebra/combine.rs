//! Intersection, union and complement of shapes, and of the arrays in them.

use std::rc::Rc;

use hashbrown::HashMap;

use super::{
    Algebra, ArrayShape, ConditionId, Depth, FormulaId, Formulas, ItemCount, Keys, MOST_SHAPES, ObjectShape,
    Shape,
};
use crate::{
    grammar::json_schema::{NumberSet, StringSet, error::Checked},
    ids::saturating_usize,
};

impl Algebra<'_> {
    /// Intersects two shapes, type by type; arrays and objects as the product of their alternatives.
    pub(super) fn intersection(&mut self, left: &Shape, right: &Shape) -> Checked<Shape> {
        let numbers = self.numbers_in_both(&left.numbers, &right.numbers)?;
        let strings = self.strings_in_both(&left.strings, &right.strings)?;
        let arrays = if self.is_any_array(&left.arrays) {
            right.arrays.clone()
        } else if self.is_any_array(&right.arrays) {
            left.arrays.clone()
        } else {
            let mut both = Vec::new();
            for one in &left.arrays {
                for other in &right.arrays {
                    self.spend(2 + one.prefix.len() + other.prefix.len())?;
                    let shape = self.array_in_both(one, other);
                    self.add(&mut both, shape)?;
                }
            }
            both
        };
        let objects = if self.is_any_object(&left.objects) {
            right.objects.clone()
        } else if self.is_any_object(&right.objects) {
            left.objects.clone()
        } else {
            self.objects_in_both(&left.objects, &right.objects)?
        };
        Ok(Shape {
            null: left.null && right.null,
            booleans: [0, 1].map(|index| left.booleans[index] && right.booleans[index]),
            numbers,
            strings,
            arrays,
            objects,
        })
    }

    /// Unites shapes; equal alternatives are kept once.
    pub(super) fn union(&mut self, shapes: &[Rc<Shape>]) -> Checked<Shape> {
        let mut whole = (*self.ends.never).clone();
        for shape in shapes {
            whole.null |= shape.null;
            whole.booleans = [0, 1].map(|index| whole.booleans[index] || shape.booleans[index]);
            whole.numbers = self.numbers_in_either(&whole.numbers, &shape.numbers)?;
            whole.strings = self.strings_in_either(&whole.strings, &shape.strings)?;
            for array in &shape.arrays {
                self.add(&mut whole.arrays, Some(array.clone()))?;
            }
            for object in &shape.objects {
                self.add(&mut whole.objects, Some(object.clone()))?;
            }
        }
        // An alternative that allows every array makes the others redundant.
        if let Some(any) = whole.arrays.iter().find(|array| ***array == ArrayShape::any()).cloned() {
            whole.arrays = vec![any];
        }
        if let Some(any) = whole.objects.iter().find(|object| ***object == ObjectShape::default()).cloned() {
            whole.objects = vec![any];
        }
        Ok(whole)
    }

    /// Complements a shape: for each alternative of it one of its constraints is broken (De Morgan).
    pub(super) fn complement(&mut self, shape: &Shape) -> Checked<Shape> {
        let any = self.ends.any.clone();
        let mut whole = Shape {
            null: !shape.null,
            booleans: shape.booleans.map(|inside| !inside),
            numbers: Rc::new(self.fitting(shape.numbers.complement())?),
            strings: Rc::new(self.fitting_strings(shape.strings.complement())?),
            arrays: any.arrays.clone(),
            objects: any.objects.clone(),
        };
        for array in &shape.arrays {
            let broken = self.array_complement(array);
            let mut both = Vec::new();
            for one in &whole.arrays {
                for other in &broken {
                    self.spend(2 + one.prefix.len() + other.prefix.len())?;
                    let shape = self.array_in_both(one, other);
                    self.add(&mut both, shape)?;
                }
            }
            whole.arrays = both;
        }
        for object in &shape.objects {
            let broken = self.object_complement(object)?;
            whole.objects = self.objects_in_both(&whole.objects, &broken)?;
        }
        Ok(whole)
    }

    /// The product of two unions. An alternative within one of the other side is kept as it is.
    fn objects_in_both(
        &mut self,
        left: &[Rc<ObjectShape>],
        right: &[Rc<ObjectShape>],
    ) -> Checked<Vec<Rc<ObjectShape>>> {
        let (mut both, most) = (Vec::new(), left.len().max(right.len()));
        for one in left {
            let mut holds = false;
            for other in right.iter().take(if right.len() > 1 { right.len() } else { 0 }) {
                self.spend(2 + other.properties.len())?;
                if self.implies(one, other)? {
                    holds = true;
                    break;
                }
            }
            if holds {
                self.add_product(&mut both, Some(one.clone()), most)?;
                continue;
            }
            for other in right {
                self.spend(2 + one.properties.len() + other.properties.len())?;
                let shape = self.object_in_both(one, other)?;
                self.add_product(&mut both, shape, most)?;
            }
        }
        Ok(both)
    }

    /// Sufficient test that every object of `one` is in `other`. Meant for the small shapes of complements.
    pub(super) fn implies(&mut self, one: &ObjectShape, other: &ObjectShape) -> Checked<bool> {
        let plain = other.required.iter().all(|name| one.required.contains(name))
            && other.some.iter().all(|some| one.some.contains(some))
            && other.every.iter().all(|every| one.every.contains(every))
            && other.min <= one.min.max(one.required.len() as u64)
            && other.max.is_none_or(|max| one.max.is_some_and(|least| least <= max))
            && other.condition.is_none_or(|condition| one.condition == Some(condition));
        if !plain {
            return Ok(false);
        }
        for (name, value) in &other.properties {
            let declared = one.properties.iter().find(|(known, _)| known == name).map(|&(_, value)| value);
            let inside = self.narrowed_by_keys(one, name, declared.unwrap_or(Formulas::ANY));
            let not = self.formulas.not(*value);
            let outside = self.formulas.and([inside, not]);
            if !self.is_surely_empty(outside, Depth::ITEM) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds a shape to a product of unions, of which the largest has `most` alternatives; see
    /// [`add`](Self::add). A trial ends where it makes many more.
    pub(super) fn add_product<T: PartialEq>(
        &mut self,
        product: &mut Vec<Rc<T>>,
        shape: Option<Rc<T>>,
        most: usize,
    ) -> Checked<()> {
        self.look_at_trial(product.len(), most)?;
        self.add(product, shape)
    }

    /// Adds a shape to a union, unless an equal one is there already.
    pub(super) fn add<T: PartialEq>(&mut self, union: &mut Vec<Rc<T>>, shape: Option<Rc<T>>) -> Checked<()> {
        let Some(shape) = shape else { return Ok(()) };
        // Comparing all pairs of a long union would cost more than what equal ones cost later.
        const COMPARED: usize = 64;
        if union.len() <= COMPARED && union.contains(&shape) {
            return Ok(());
        }
        if union.len() >= MOST_SHAPES {
            return Err(self.too_large(&format!("more than {MOST_SHAPES} combinations of alternatives")));
        }
        union.push(shape);
        Ok(())
    }

    fn is_any_array(&self, arrays: &[Rc<ArrayShape>]) -> bool {
        matches!((arrays, &self.ends.any.arrays[..]), ([one], [any]) if Rc::ptr_eq(one, any))
    }

    fn is_any_object(&self, objects: &[Rc<ObjectShape>]) -> bool {
        matches!((objects, &self.ends.any.objects[..]), ([one], [any]) if Rc::ptr_eq(one, any))
    }

    pub(super) fn object_in_both(
        &mut self,
        one: &Rc<ObjectShape>,
        other: &Rc<ObjectShape>,
    ) -> Checked<Option<Rc<ObjectShape>>> {
        if one == other {
            return Ok(Some(one.clone()));
        }
        let mut shape = (**one).clone();
        let places: HashMap<Rc<str>, usize> =
            one.properties.iter().enumerate().map(|(place, (name, _))| (name.clone(), place)).collect();
        for (name, value) in &other.properties {
            match places.get(name) {
                Some(&place) => {
                    let both = self.formulas.and([shape.properties[place].1, *value]);
                    shape.properties[place].1 = both;
                }
                None => shape.properties.push((name.clone(), *value)),
            }
        }
        let new = other.required.iter().filter(|name| !one.required.contains(name));
        shape.required.extend(new.cloned());
        shape.every.extend(other.every.iter().filter(|every| !one.every.contains(every)));
        shape.some.extend(other.some.iter().filter(|some| !one.some.contains(some)));
        shape.min = one.min.max(other.min);
        shape.max = least(one.max, other.max);
        shape.condition = match (one.condition, other.condition) {
            (Some(one), Some(other)) => Some(self.conditions.all([one, other])),
            (condition, None) | (None, condition) => condition,
        };
        self.look_at_wanted(shape.some.len())?;
        (shape.listed, shape.open) = (one.listed || other.listed, one.open || other.open);
        Ok(self.settled_object(shape).map(Rc::new))
    }

    /// Normalises the bounds of an object; `None` if no object fits them.
    pub(super) fn settled_object(&mut self, mut shape: ObjectShape) -> Option<ObjectShape> {
        if !shape.some.is_empty() && !self.settle_some(&mut shape) {
            return None;
        }
        shape.min = shape.min.max(u64::from(!shape.some.is_empty()));
        let least = shape.min.max(shape.required.len() as u64);
        if shape.max.is_some_and(|max| max < least)
            || shape.condition == Some(ConditionId::NEVER)
            || shape.some.iter().any(|&(_, value)| value == Formulas::NEVER)
        {
            return None;
        }
        let values = self.required_values(&shape);
        let surely = values.into_iter().any(|value| self.is_surely_empty(value, Depth::ITEM));
        (!surely).then_some(shape)
    }

    /// Makes a member required where only a closed list of names is allowed and just one of them can be the
    /// wanted member. False if none can.
    fn settle_some(&mut self, shape: &mut ObjectShape) -> bool {
        let closed = shape.every.iter().find_map(|&(keys, value)| match self.keys.get(keys) {
            Keys::Rest { names, sets } if value == Formulas::NEVER && sets.is_empty() => Some(names.clone()),
            _ => None,
        });
        let Some(names) = closed else { return true };
        for (keys, wanted) in std::mem::take(&mut shape.some) {
            let mut candidates = Vec::new();
            for name in &*names {
                if !self.keys.contains(keys, name) {
                    continue;
                }
                let declared = shape.properties.iter().find(|(known, _)| known == name);
                let declared = declared.map_or(Formulas::ANY, |&(_, value)| value);
                let value = self.narrowed_by_keys(shape, name, declared);
                if self.formulas.and([value, wanted]) != Formulas::NEVER {
                    candidates.push(name.clone());
                }
            }
            match &candidates[..] {
                [] => return false,
                [only] => {
                    match shape.properties.iter().position(|(known, _)| known == only) {
                        Some(at) => {
                            shape.properties[at].1 = self.formulas.and([shape.properties[at].1, wanted])
                        }
                        None => shape.properties.push((only.clone(), wanted)),
                    }
                    if !shape.required.contains(only) {
                        shape.required.push(only.clone());
                    }
                }
                _ => shape.some.push((keys, wanted)),
            }
        }
        true
    }

    /// The formulas of the values of all required members.
    pub(in super::super) fn required_values(&mut self, shape: &ObjectShape) -> Vec<FormulaId> {
        let places: HashMap<&str, FormulaId> =
            shape.properties.iter().map(|(name, value)| (&**name, *value)).collect();
        let declared = |name: &str| places.get(name).copied().unwrap_or(Formulas::ANY);
        shape.required.iter().map(|name| self.narrowed_by_keys(shape, name, declared(name))).collect()
    }

    /// The formula of the value of member `name`, where `declared` is what `properties` say of it.
    pub(in super::super) fn narrowed_by_keys(
        &mut self,
        shape: &ObjectShape,
        name: &str,
        declared: FormulaId,
    ) -> FormulaId {
        let mut parts = vec![declared];
        for &(keys, value) in &shape.every {
            if !parts.contains(&value) && self.keys.contains(keys, name) {
                parts.push(value);
            }
        }
        self.formulas.and(parts)
    }

    /// Complements an object shape: a union of objects that break one constraint each.
    ///
    /// Tags (required members with one of few values) are broken first, and all later alternatives keep them.
    /// So the complements of many tagged shapes intersect in few alternatives.
    fn object_complement(&mut self, shape: &ObjectShape) -> Checked<Vec<Rc<ObjectShape>>> {
        let any = ObjectShape::default;
        let (mut tags, mut broken) = (ObjectShape::default(), Vec::new());
        let mut free = Vec::new();
        for (name, value) in &shape.properties {
            let required = shape.required.contains(name);
            let other = self.formulas.not(*value);
            let mut alternative = ObjectShape { properties: vec![(name.clone(), other)], ..any() };
            if required && self.is_tag(*value) {
                let held = Rc::new(tags.clone());
                broken.extend(self.object_in_both(&held, &Rc::new(alternative))?);
                tags.properties.push((name.clone(), *value));
                tags.required.push(name.clone());
            } else if required {
                // It is absent, or has another value.
                free.push(alternative);
            } else if *value != Formulas::ANY {
                alternative.required.push(name.clone());
                free.push(alternative);
            }
        }
        let declared = |name: &Rc<str>| shape.properties.iter().any(|(known, _)| known == name);
        for name in shape.required.iter().filter(|name| !declared(name)) {
            free.push(ObjectShape { properties: vec![(name.clone(), Formulas::NEVER)], ..any() });
        }
        for &(keys, value) in &shape.every {
            if value != Formulas::ANY {
                free.push(ObjectShape { some: vec![(keys, self.formulas.not(value))], ..any() });
            }
        }
        for &(keys, value) in &shape.some {
            free.push(ObjectShape { every: vec![(keys, self.formulas.not(value))], ..any() });
        }
        if shape.min > 0 {
            free.push(ObjectShape { max: Some(shape.min - 1), ..any() });
        }
        if let Some(max) = shape.max {
            free.push(ObjectShape { min: max.saturating_add(1), ..any() });
        }
        if let Some(condition) = shape.condition {
            free.push(ObjectShape { condition: Some(condition.not()), ..any() });
        }
        let held = Rc::new(tags);
        for alternative in free {
            let settled = self.settled_object(alternative).map(Rc::new);
            if let Some(alternative) = settled {
                broken.extend(self.object_in_both(&held, &alternative)?);
            }
        }
        Ok(broken)
    }

    /// True if the formula has only few scalar values, such as strings and numbers.
    fn is_tag(&mut self, value: FormulaId) -> bool {
        const FEW: usize = 64;
        self.expand(value).is_ok_and(|shape| {
            shape.arrays.is_empty()
                && shape.objects.is_empty()
                && shape.strings.as_finite(FEW).is_some()
                && shape.numbers.as_finite(FEW).is_some()
        })
    }

    fn strings_in_both(&self, left: &Rc<StringSet>, right: &Rc<StringSet>) -> Checked<Rc<StringSet>> {
        of_ends(left, right, &self.ends.any.strings, &self.ends.never.strings)
            .map_or_else(|| self.fitting_strings(left.intersect(right)).map(Rc::new), Ok)
    }

    fn strings_in_either(&self, left: &Rc<StringSet>, right: &Rc<StringSet>) -> Checked<Rc<StringSet>> {
        of_ends(left, right, &self.ends.never.strings, &self.ends.any.strings)
            .map_or_else(|| self.fitting_strings(left.union(right)).map(Rc::new), Ok)
    }

    fn numbers_in_both(&self, left: &Rc<NumberSet>, right: &Rc<NumberSet>) -> Checked<Rc<NumberSet>> {
        of_ends(left, right, &self.ends.any.numbers, &self.ends.never.numbers)
            .map_or_else(|| self.fitting(left.intersect(right)).map(Rc::new), Ok)
    }

    fn numbers_in_either(&self, left: &Rc<NumberSet>, right: &Rc<NumberSet>) -> Checked<Rc<NumberSet>> {
        of_ends(left, right, &self.ends.never.numbers, &self.ends.any.numbers)
            .map_or_else(|| self.fitting(left.union(right)).map(Rc::new), Ok)
    }
}

/// Answers a join without work where one side is neutral or absorbing, or both are the same set.
fn of_ends<T>(left: &Rc<T>, right: &Rc<T>, neutral: &Rc<T>, absorbing: &Rc<T>) -> Option<Rc<T>> {
    if Rc::ptr_eq(left, neutral) || Rc::ptr_eq(right, absorbing) || Rc::ptr_eq(left, right) {
        return Some(right.clone());
    }
    if Rc::ptr_eq(right, neutral) || Rc::ptr_eq(left, absorbing) {
        return Some(left.clone());
    }
    None
}

/// The smaller of two bounds.
pub(super) fn least(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (bound, None) | (None, bound) => bound,
    }
}

impl Algebra<'_> {
    fn array_in_both(&mut self, one: &Rc<ArrayShape>, other: &Rc<ArrayShape>) -> Option<Rc<ArrayShape>> {
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

    fn array_complement(&mut self, shape: &ArrayShape) -> Vec<Rc<ArrayShape>> {
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
