//! A description of the sets of values of a schema in words, for people.

use std::collections::{HashSet, VecDeque};

use super::super::{
    NumberSet, StringSet,
    algebra::{Algebra, ArrayShape, FormulaId, Formulas, Keys, ObjectShape, Shape},
    error::{Checked, shortened},
    numbers::Integers,
};

/// Limits on the values of an enumeration, the members, and the shapes of one kind that are named.
const MOST_VALUES: usize = 6;
const MOST_MEMBERS: usize = 12;
const MOST_SHAPES: usize = 4;

/// A set of values that a schema speaks of.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outline {
    /// The JSON pointer of the first schema of the set, as a URI fragment.
    pub pointer: String,
    /// The values of each type, in words; other sets are named by their pointers. At most a few lines.
    pub shapes: Vec<String>,
}

/// Describes up to `most` sets of values from `root` on, outer ones first; true if these are all.
pub(in super::super) fn outline(
    algebra: &mut Algebra<'_>,
    root: FormulaId,
    most: usize,
) -> Checked<(Vec<Outline>, bool)> {
    let mut seen = HashSet::new();
    let mut waiting = VecDeque::from([root]);
    let mut found = Vec::new();
    while let Some(id) = waiting.pop_front() {
        let id = algebra.without_aliases(id)?;
        if id == Formulas::ANY || id == Formulas::NEVER || !seen.insert(id) {
            continue;
        }
        if found.len() == most {
            return Ok((found, false));
        }
        let shape = algebra.expand(id)?;
        found.push(Outline { pointer: algebra.called(id), shapes: algebra.in_words(&shape)? });
        for array in &shape.arrays {
            waiting.extend(array.prefix.iter().copied().chain([array.rest]));
        }
        for object in &shape.objects {
            waiting.extend(object.properties.iter().map(|&(_, value)| value));
            waiting.extend(object.every.iter().map(|&(_, value)| value));
        }
    }
    Ok((found, true))
}

impl Algebra<'_> {
    fn called(&self, id: FormulaId) -> String {
        match id {
            Formulas::NEVER => "nothing".to_owned(),
            _ => shortened(&self.label(id)).into_owned(),
        }
    }

    fn value_called(&mut self, id: FormulaId) -> Checked<String> {
        let id = self.without_aliases(id)?;
        Ok(self.called(id))
    }

    fn in_words(&mut self, shape: &Shape) -> Checked<Vec<String>> {
        let mut words = Vec::new();
        words.extend(shape.null.then(|| "null".to_owned()));
        match shape.booleans {
            [true, true] => words.push("a boolean".to_owned()),
            [true, false] => words.push("false".to_owned()),
            [false, true] => words.push("true".to_owned()),
            [false, false] => {}
        }
        words.extend(numbers(&shape.numbers));
        words.extend(strings(&shape.strings));
        for array in shape.arrays.iter().take(MOST_SHAPES) {
            words.push(self.array_in_words(array)?);
        }
        for object in shape.objects.iter().take(MOST_SHAPES) {
            words.push(self.object_in_words(object)?);
        }
        for (count, what) in [(shape.arrays.len(), "arrays"), (shape.objects.len(), "objects")] {
            if count > MOST_SHAPES {
                words.push(format!("{} more kinds of {what}", count - MOST_SHAPES));
            }
        }
        Ok(words)
    }

    fn array_in_words(&mut self, array: &ArrayShape) -> Checked<String> {
        let mut parts = Vec::new();
        for &item in array.prefix.iter().take(MOST_MEMBERS) {
            parts.push(self.value_called(item)?);
        }
        if array.prefix.len() > MOST_MEMBERS {
            parts.push(format!("{} more", array.prefix.len() - MOST_MEMBERS));
        }
        if array.rest != Formulas::NEVER {
            parts.push(format!("then {}", self.value_called(array.rest)?));
        }
        let mut text = format!("an array [{}]", parts.join(", "));
        text += &counted(array.min, array.max, "items");
        if array.unique.is_some() {
            text += ", no two of them equal";
        }
        if !array.counts.is_empty() {
            text += &format!(", {} conditions on what it contains", array.counts.len());
        }
        Ok(text)
    }

    fn object_in_words(&mut self, object: &ObjectShape) -> Checked<String> {
        let mut parts = Vec::new();
        for (key, value) in object.properties.iter().take(MOST_MEMBERS) {
            let mark = if object.required.contains(key) { "" } else { "?" };
            parts.push(format!("{}{mark}: {}", shortened(key), self.value_called(*value)?));
        }
        if object.properties.len() > MOST_MEMBERS {
            parts.push(format!("{} more", object.properties.len() - MOST_MEMBERS));
        }
        let undeclared =
            object.required.iter().filter(|name| object.properties.iter().all(|(key, _)| key != *name));
        parts.extend(undeclared.take(MOST_MEMBERS).map(|name| format!("{}: any", shortened(name))));
        let mut open = !(self.options.is_closed() && object.is_closed());
        for &(keys, value) in object.every.iter().take(MOST_MEMBERS) {
            let which = match self.keys.get(keys) {
                Keys::Strings(_) => "keys of a pattern",
                Keys::Rest { .. } => "other keys",
            };
            match value {
                Formulas::NEVER => open &= which != "other keys",
                value => parts.push(format!("{which}: {}", self.value_called(value)?)),
            }
        }
        let mut text = format!("an object {{{}}}", parts.join(", "));
        text += if open { ", open" } else { ", closed" };
        text += &counted(object.min, object.max, "members");
        if !object.some.is_empty() {
            text += &format!(", {} conditions on some member", object.some.len());
        }
        if let Some(condition) = object.condition {
            text += &format!(", {} conditions on members together", self.conditions.parts(condition).len());
        }
        Ok(text)
    }
}

/// The bounds on a number of things, in words; empty if there are none.
fn counted(min: u64, max: Option<u64>, what: &str) -> String {
    match (min, max) {
        (0, None) => String::new(),
        (min, None) => format!(", at least {min} {what}"),
        (0, Some(max)) => format!(", at most {max} {what}"),
        (min, Some(max)) => format!(", {min} to {max} {what}"),
    }
}

fn numbers(set: &NumberSet) -> Option<String> {
    if set.is_empty() {
        return None;
    }
    if let Some(values) = set.as_finite(MOST_VALUES) {
        let values: Vec<String> = values.iter().map(ToString::to_string).collect();
        return Some(format!("one of {}", values.join(", ")));
    }
    let whole = set.subtract(&NumberSet::integers(Integers::ByValue)).is_ok_and(|rest| rest.is_empty());
    let mut text = if whole { "an integer" } else { "a number" }.to_owned();
    let (least, most) = set.bounds();
    if let Some(least) = least {
        text += &format!(" from {least}");
    }
    if let Some(most) = most {
        text += &format!(" up to {most}");
    }
    Some(text)
}

fn strings(set: &StringSet) -> Option<String> {
    if set.is_empty() {
        return None;
    }
    if set.is_all() {
        return Some("a string".to_owned());
    }
    match set.as_finite(MOST_VALUES) {
        Some(values) => {
            let values: Vec<String> =
                values.iter().map(|value| format!("{:?}", shortened(value).as_ref())).collect();
            Some(format!("one of {}", values.join(", ")))
        }
        None => Some("a string of a language".to_owned()),
    }
}
