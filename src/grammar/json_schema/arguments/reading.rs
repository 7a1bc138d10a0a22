//! What a text between tags is read as: a string as it stands there, or JSON.

use hashbrown::HashMap;

use crate::grammar::json_schema::{NumberSet, StringSet, algebra::Shape, numbers::Integers};

/// Strings of a set that is given as a list.
const MOST_LISTED: usize = 1_000;

/// Numbers that a value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub(in crate::grammar) enum Numbers {
    #[default]
    None,
    /// Integers alone. What is written with digits behind a point that are not all 0 is none of them.
    Whole,
    All,
}

/// The types of an argument's values, which say what a text between its tags is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(in crate::grammar) struct Reading {
    pub(in crate::grammar) null: bool,
    pub(in crate::grammar) boolean: bool,
    pub(in crate::grammar) numbers: Numbers,
    pub(in crate::grammar) arrays: bool,
    pub(in crate::grammar) objects: bool,
    pub(in crate::grammar) strings: bool,
    /// Strings that are more than a short list of words: white space around one is a part of it.
    pub(super) free: bool,
}

impl Reading {
    /// Of the values of a shape.
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

    /// Of values of either.
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

    /// The same without what it says of strings.
    pub(super) fn of_others(self) -> Self {
        Self { strings: false, free: false, ..self }
    }

    /// May it be anything but a string? Then a string in quotes is read too.
    pub(in crate::grammar) fn has_others(&self) -> bool {
        self.null || self.boolean || self.numbers != Numbers::None || self.arrays || self.objects
    }

    /// Are all strings words of a list? White space around such a word is none of it.
    pub(in crate::grammar) fn is_listed(&self) -> bool {
        !self.free
    }
}

/// How the arguments of a function are read, by their names.
#[derive(Debug, Clone, Default)]
pub(in crate::grammar) struct Readings {
    pub(super) named: HashMap<Box<str>, Reading>,
    /// Of all other names, where there are some.
    pub(super) others: Option<Reading>,
}

impl Readings {
    /// That of an argument; `None` if there is none of the name.
    pub(in crate::grammar) fn of(&self, name: &str) -> Option<Reading> {
        self.named.get(name).copied().or(self.others)
    }
}

fn numbers(set: &NumberSet) -> Numbers {
    let integers = NumberSet::integers(Integers::ByValue);
    if set.is_empty() {
        Numbers::None
    } else if set.subtract(&integers).is_ok_and(|others| others.is_empty()) {
        Numbers::Whole
    } else {
        Numbers::All
    }
}

/// White space of JSON.
pub(in crate::grammar) fn is_space(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' ')
}

/// Are there few strings, and none that begins or ends with white space? True of no string.
fn are_words(set: &StringSet) -> bool {
    let is_word =
        |word: &String| !word.is_empty() && !word.starts_with(is_space) && !word.ends_with(is_space);
    set.as_finite(MOST_LISTED).is_some_and(|words| words.iter().all(is_word))
}
