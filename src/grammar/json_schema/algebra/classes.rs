//! Classes of values: the coarsest partition that some sets of values tell apart (partition refinement).

use hashbrown::HashMap;

use super::{Algebra, Depth, FormulaId, Formulas, meet::StringTag};
use crate::grammar::json_schema::error::Checked;

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
