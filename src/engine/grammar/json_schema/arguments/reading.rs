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

    /// Drops what the reading says of values that are no strings.
    pub(super) fn of_strings(self) -> Self {
        Self { strings: self.strings, free: self.free, ..Self::default() }
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

// A text between tags that reads as JSON of an allowed type is that value, and no string. The set of these
// texts is not regular, as arrays nest. So a little more is excluded by a regular over-approximation: all
// texts that begin as JSON does with more than two levels, whatever follows. Strings among these are
// written in quotes.

// Patterns of JSON: white space, the inside of a string, numbers, and numbers that may be integers.

const SPACE: &str = r"[\t\n\r ]*";
const CHARACTERS: &str = r#"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"#;
const NUMBER: &str = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?";
const INTEGER: &str = r"-?(?:0|[1-9][0-9]*)(?:\.0+|(?:\.[0-9]+)?[eE][+-]?[0-9]+)?";

/// The pattern of texts that read as JSON of the types of a reading; with `cut` also of texts that end inside
/// of a string of such JSON, which the closing tag could continue. Where arrays and objects are nested three
/// deep, the texts are not told apart: any text goes on there.
pub(super) fn json(reading: &ArgumentTypes, cut: bool) -> String {
    let string = format!("\"{CHARACTERS}\"");
    let open = if cut { format!("|\"{CHARACTERS}") } else { String::new() };
    let whole = |begin: char, item: &str, end: char| {
        format!(r"\{begin}{SPACE}(?:{item}(?:{SPACE},{SPACE}{item})*{SPACE})?\{end}")
    };
    let begun =
        |begin: char, item: &str, rest: &str| format!(r"\{begin}{SPACE}(?:{item}{SPACE},{SPACE})*(?:{rest})");
    let member = |value: &str| format!("{string}{SPACE}:{SPACE}(?:{value})");
    // The arrays and objects of values, and the beginnings that go on with `rest` in a value.
    let arrays = |value: &str, rest: &str| [whole('[', value, ']'), begun('[', value, rest)];
    let objects = |value: &str, rest: &str| {
        let key = member(value);
        [whole('{', &key, '}'), begun('{', &key, &format!("{}{open}", member(rest)))]
    };
    let (mut value, mut rest) =
        (format!("(?:{string}|{NUMBER}|true|false|null)"), format!(r"[\[{{][\s\S]*{open}"));
    let ([array, in_array], [object, in_object]) = (arrays(&value, &rest), objects(&value, &rest));
    value = format!("(?:{value}|{array}|{object})");
    rest = format!("{in_array}|{in_object}{open}");
    let ([array, in_array], [object, in_object]) = (arrays(&value, &rest), objects(&value, &rest));
    let number = match reading.numbers {
        NumberTypes::Whole => INTEGER,
        _ => NUMBER,
    };
    let ways = [
        (true, format!("{string}{SPACE}{open}")),
        (reading.null, format!("null{SPACE}")),
        (reading.boolean, format!("(?:true|false){SPACE}")),
        (reading.numbers != NumberTypes::None, format!("{number}{SPACE}")),
        (reading.arrays, format!("{array}{SPACE}|{in_array}")),
        (reading.objects, format!("{object}{SPACE}|{in_object}")),
    ];
    let ways: Vec<String> = ways.into_iter().filter_map(|(is_read, way)| is_read.then_some(way)).collect();
    format!("^{SPACE}(?:{})$", ways.join("|"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::de::IgnoredAny;

    use super::*;

    const TEXTS: &str = r#"([\[\]{},:" \n]|null|true|false|"a"|-|0|1|\.5|e\+?1|\\[nux"]|00e9|a){0,9}"#;

    fn languages(reading: &ArgumentTypes) -> [StringSet; 2] {
        [false, true].map(|cut| StringSet::from_pattern(&json(reading, cut)).unwrap())
    }

    proptest! {
        /// Compares with a reader of JSON: all JSON is in the language, and what is in it and not deep is
        /// JSON.
        #[test]
        fn the_language_has_all_json_and_little_more(
            text in TEXTS, null: bool, boolean: bool, arrays: bool, objects: bool,
        ) {
            let numbers = NumberTypes::All;
            let reading =
                ArgumentTypes { null, boolean, arrays, objects, numbers, ..ArgumentTypes::default() };
            let [json, cut] = languages(&reading);
            // A value would be refused where a number is beyond 64-bit floats.
            let is_json = serde_json::from_str::<IgnoredAny>(&text).is_ok();
            let is_read = is_json && match text.trim_start().chars().next() {
                Some('n') => null,
                Some('t' | 'f') => boolean,
                Some('[') => arrays,
                Some('{') => objects,
                _ => true,
            };
            let depth = text.chars().filter(|c| "[{".contains(*c)).count();
            if is_read || depth <= 2 {
                prop_assert_eq!(json.contains(&text), is_read, "{}", text);
            }
            prop_assert!(cut.contains(&text) || !json.contains(&text));
        }
    }

    #[test]
    fn numbers_that_are_surely_no_integers_are_strings() {
        let reading = ArgumentTypes { numbers: NumberTypes::Whole, ..ArgumentTypes::default() };
        let [json, cut] = languages(&reading);
        for (text, is_read) in [
            ("1", true),
            (" -0 ", true),
            ("1.0", true),
            ("1.50e1", true),
            ("1.5", false),
            ("1.5 ", false),
            ("v1", false),
            ("01", false),
            ("1.2.3", false),
            ("null", false),
            ("\"a\"", true),
            ("\"a\" b", false),
        ] {
            assert_eq!(json.contains(text), is_read, "{text}");
        }
        assert!(cut.contains("\"a") && !json.contains("\"a") && !cut.contains("\"a\\"));
    }
}
