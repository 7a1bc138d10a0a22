//! The meaning of a text between tags: a string as it stands there, or JSON.

use hashbrown::HashMap;

use crate::grammar::json_schema::{NumberSet, StringSet, algebra::Shape, numbers::Integers};

/// Limit on the strings of a set that counts as a list.
const MOST_LISTED: usize = 1_000;

/// The numbers that a value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub(in crate::grammar) enum NumberTypes {
    #[default]
    None,
    /// Integers only. A number with a digit other than 0 behind its point is not one.
    Whole,
    All,
}

/// The types of an argument's values, which say what a text between its tags is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(in crate::grammar) struct ArgumentTypes {
    pub(in crate::grammar) null: bool,
    pub(in crate::grammar) boolean: bool,
    pub(in crate::grammar) numbers: NumberTypes,
    pub(in crate::grammar) arrays: bool,
    pub(in crate::grammar) objects: bool,
    pub(in crate::grammar) strings: bool,
    /// True if the strings are more than a short list of words; white space around one is then part of it.
    pub(super) free: bool,
}

impl ArgumentTypes {
    /// The reading of the values of a shape.
    pub(super) fn of(shape: &Shape) -> Self {
        Self {
            null: shape.null,
            boolean: shape.booleans != [false; 2],
            numbers: numbers(&shape.numbers),
            arrays: !shape.arrays.is_empty(),
            objects: !shape.objects.is_empty(),
            strings: !shape.strings.is_empty(),
            free: !are_words(&shape.strings),
        }
    }

    /// The reading of the values of either.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            null: self.null || other.null,
            boolean: self.boolean || other.boolean,
            numbers: self.numbers.max(other.numbers),
            arrays: self.arrays || other.arrays,
            objects: self.objects || other.objects,
            strings: self.strings || other.strings,
            free: self.free || other.free,
        }
    }

    /// Drops what the reading says of strings.
    pub(super) fn of_others(self) -> Self {
        Self { strings: false, free: false, ..self }
    }

    /// True if the value may be something else than a string. Then a string in quotes is read too.
    pub(in crate::grammar) fn has_others(&self) -> bool {
        self.null || self.boolean || self.numbers != NumberTypes::None || self.arrays || self.objects
    }

    /// True if all strings are words of a list. White space around such a word is not part of it.
    pub(in crate::grammar) fn is_listed(&self) -> bool {
        !self.free
    }
}

/// The readings of a function's arguments, by their names.
#[derive(Debug, Clone, Default)]
pub(in crate::grammar) struct Readings {
    pub(super) named: HashMap<Box<str>, ArgumentTypes>,
    /// The reading of arguments of any other name, if such are allowed.
    pub(super) others: Option<ArgumentTypes>,
}

impl Readings {
    /// The reading of an argument; `None` if there is no argument of that name.
    pub(in crate::grammar) fn of(&self, name: &str) -> Option<ArgumentTypes> {
        self.named.get(name).copied().or(self.others)
    }
}

fn numbers(set: &NumberSet) -> NumberTypes {
    let integers = NumberSet::integers(Integers::ByValue);
    if set.is_empty() {
        NumberTypes::None
    } else if set.subtract(&integers).is_ok_and(|others| others.is_empty()) {
        NumberTypes::Whole
    } else {
        NumberTypes::All
    }
}

/// White space of JSON.
pub(in crate::grammar) fn is_space(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' ')
}

/// True if the strings are few, and none begins or ends with white space. Also true of the empty set.
fn are_words(set: &StringSet) -> bool {
    let is_word =
        |word: &String| !word.is_empty() && !word.starts_with(is_space) && !word.ends_with(is_space);
    set.as_finite(MOST_LISTED).is_some_and(|words| words.iter().all(is_word))
}
