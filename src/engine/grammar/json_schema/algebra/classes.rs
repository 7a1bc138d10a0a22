//! Finds what values a set has: the classes of values that some sets tell apart, a list if they are few, and
//! a cheap test for none.

use std::rc::Rc;

use hashbrown::HashMap;

use super::{Algebra, ArrayShape, FormulaId, Formulas, ObjectShape, Shape, meet::StringTag};
use crate::{
    grammar::json_schema::{NumberSet, StringSet, error::Checked},
    ids::saturating_usize,
};

/// Limit on the classes of one member's values. Each is a part of the grammar.
const MOST_CLASSES: usize = 1_024;

/// Values that are in the same ones of some sets.
#[derive(Debug, Clone)]
pub(in super::super) struct ValueClass {
    pub(in super::super) value: FormulaId,
    /// A flag for each of the sets: true if the values are in it.
    pub(in super::super) inside: Vec<bool>,
}

impl Algebra<'_> {
    /// Splits all values by sets. Sets of strings, which mostly are tags, are split by their strings at once;
    /// any other set splits each class so far, unless it surely leaves it whole.
    pub(in super::super) fn classes(&mut self, sets: &[FormulaId]) -> Checked<Vec<ValueClass>> {
        let mut tags: Vec<(usize, StringTag)> = Vec::new();
        let mut others = Vec::new();
        for (at, &set) in sets.iter().enumerate() {
            match self.tag(set)? {
                Some(tag) => tags.push((at, tag)),
                None => others.push(at),
            }
        }
        let mut classes = self.classes_of_tags(&tags, sets.len())?;
        for at in others {
            let (set, not) = (sets[at], self.formulas.not(sets[at]));
            let mut split = Vec::with_capacity(classes.len() + 1);
            for class in classes {
                self.spend(10)?;
                let within = self.formulas.and([class.value, set]);
                let without = self.formulas.and([class.value, not]);
                if self.is_surely_empty(within, Depth::DISJOINT) {
                    split.push(class);
                    continue;
                }
                let mut inside = class.inside.clone();
                inside[at] = true;
                if self.is_surely_empty(without, Depth::DISJOINT) {
                    split.push(ValueClass { value: class.value, inside });
                } else {
                    split.push(ValueClass { value: within, inside });
                    split.push(ValueClass { value: without, inside: class.inside });
                }
            }
            if split.len() > MOST_CLASSES {
                return Err(self.too_large(&format!("more than {MOST_CLASSES} values tell schemas apart")));
            }
            classes = split;
        }
        Ok(classes)
    }

    /// The classes of tags: strings that are in the same tags, and all other values.
    fn classes_of_tags(&mut self, tags: &[(usize, StringTag)], sets: usize) -> Checked<Vec<ValueClass>> {
        let (mut places, mut strings) = (HashMap::<&str, usize>::new(), Vec::<(&str, Vec<bool>)>::new());
        let outside: Vec<bool> = {
            let mut outside = vec![false; sets];
            tags.iter().for_each(|(at, tag)| outside[*at] = !tag.inside);
            outside
        };
        for (at, tag) in tags {
            for string in tag.strings.iter() {
                let place = *places.entry(string).or_insert_with(|| {
                    strings.push((string, outside.clone()));
                    strings.len() - 1
                });
                strings[place].1[*at] = tag.inside;
            }
        }
        self.spend(strings.len() * tags.len().max(1))?;
        let (mut known, mut classes) = (HashMap::<Vec<bool>, usize>::new(), Vec::<(Vec<String>, _)>::new());
        for (string, inside) in &strings {
            let place = *known.entry(inside.clone()).or_insert_with(|| {
                classes.push((Vec::new(), inside.clone()));
                classes.len() - 1
            });
            classes[place].0.push((*string).to_owned());
        }
        if classes.len() > MOST_CLASSES {
            return Err(self.too_large(&format!("more than {MOST_CLASSES} values tell schemas apart")));
        }
        let all: Vec<String> = strings.iter().map(|(string, _)| (*string).to_owned()).collect();
        let mut made = Vec::with_capacity(classes.len() + 1);
        for (strings, inside) in classes {
            made.push(ValueClass { value: self.strings_alone(&strings)?, inside });
        }
        let rest = if all.is_empty() {
            Formulas::ANY
        } else {
            let listed = self.strings_alone(&all)?;
            self.formulas.not(listed)
        };
        made.push(ValueClass { value: rest, inside: outside });
        Ok(made)
    }
}

// The cheap test for sets without a value looks a few levels deep. It prunes combinations while they are
// multiplied out, and tells alternatives of `oneOf` apart. It has no false positives; a "no" means "not
// within this depth". Sets that are empty for deeper reasons are found when the grammar is reduced, which is
// exact.

/// The number of levels of members and items that are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) struct Depth(u8);

impl Depth {
    /// The depth for members of combinations.
    pub(in super::super) const ITEM: Self = Self(1);
    /// The depth for two alternatives of `oneOf`: tags may lie a level deeper.
    pub(in super::super) const DISJOINT: Self = Self(3);
}

impl Algebra<'_> {
    /// True if the set surely has no value, as far as `depth` shows.
    pub(in super::super) fn is_surely_empty(&mut self, id: FormulaId, depth: Depth) -> bool {
        match id {
            Formulas::ANY => return false,
            Formulas::NEVER => return true,
            _ if self.empty.contains(&id) => return true,
            _ if depth.0 == 0 || self.filled.get(&id).is_some_and(|&known| known >= depth) => return false,
            _ => {}
        }
        // Noted first, so that a set that is met again below itself counts as filled.
        let before = self.filled.insert(id, depth);
        let below = Depth(depth.0 - 1);
        // What cannot be expanded now, perhaps because it is being expanded, is not known to be empty.
        let Ok(shape) = self.expand(id) else {
            match before {
                Some(before) => self.filled.insert(id, before),
                None => self.filled.remove(&id),
            };
            return false;
        };
        let is_empty = !shape.null
            && shape.booleans == [false; 2]
            && shape.numbers.is_empty()
            && shape.strings.is_empty()
            && shape.arrays.iter().all(|array| self.has_no_array(array, below))
            && shape.objects.iter().all(|object| self.has_no_object(object, below));
        if is_empty {
            self.filled.remove(&id);
            self.empty.insert(id);
        }
        is_empty
    }

    fn has_no_array(&mut self, array: &ArrayShape, depth: Depth) -> bool {
        let places = saturating_usize(array.min).min(array.prefix.len() + 1);
        (0..places).any(|place| self.is_surely_empty(array.item(place), depth))
    }

    fn has_no_object(&mut self, object: &ObjectShape, depth: Depth) -> bool {
        self.required_values(object).into_iter().any(|value| self.is_surely_empty(value, depth))
    }
}

impl Algebra<'_> {
    /// Lists the values of a set, if they are at most `limit`, and none is an array or an object.
    pub(in super::super) fn few_values(
        &mut self,
        id: FormulaId,
        limit: usize,
    ) -> Checked<Option<Vec<FormulaId>>> {
        let shape = self.expand(id)?;
        if !shape.arrays.is_empty() || !shape.objects.is_empty() {
            return Ok(None);
        }
        let (Some(strings), Some(numbers)) = (shape.strings.as_finite(limit), shape.numbers.as_finite(limit))
        else {
            return Ok(None);
        };
        let mut values: Vec<Shape> = Vec::new();
        let never = (*self.ends.never).clone();
        if shape.null {
            values.push(Shape { null: true, ..never.clone() });
        }
        for value in [0, 1].into_iter().filter(|&value| shape.booleans[value]) {
            let mut one = never.clone();
            one.booleans[value] = true;
            values.push(one);
        }
        for text in &strings {
            let strings = Rc::new(self.fitting(StringSet::one(text))?);
            values.push(Shape { strings, ..never.clone() });
        }
        for number in numbers {
            values.push(Shape { numbers: Rc::new(NumberSet::of([number])), ..never.clone() });
        }
        if values.len() > limit {
            return Ok(None);
        }
        Ok(Some(values.into_iter().map(|value| self.leaf(value)).collect()))
    }
}
