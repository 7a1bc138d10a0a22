//! The meaning of a text between tags: a string as it stands there, or JSON.

use hashbrown::HashMap;

use crate::grammar::json_schema::{
    NumberSet, StringSet,
    algebra::Shape,
    dfa::{Alphabet, CharClass, CharDfa, DfaRow, char_at, explore},
    leaf::LeafError,
    numbers::Integers,
};

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
// texts that begin as JSON does with more than `MOST_DEPTH` levels, whatever follows. Strings among these are
// written in quotes.

/// Nesting of arrays and objects up to which texts that are no JSON are told apart.
const MOST_DEPTH: usize = 2;

/// The characters that JSON tells apart. Other letters and signs are one class, control characters another.
const SIGNS: &str = "\t\n\r \"\\/{}[]:,-+.0nultrefasbE";

/// The state of a reader of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct At {
    /// The arrays (`false`) and objects (`true`) that are open, outermost first.
    open: Vec<bool>,
    place: PrefixState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum PrefixState {
    /// A value comes; if it would be the first, the array may also end.
    Value {
        first: bool,
    },
    /// A key comes; if it would be the first, the object may also end.
    Key {
        first: bool,
    },
    /// A key has ended, and its colon comes.
    Colon,
    /// A value has ended, and a comma or an end comes.
    After,
    /// In `null`, `true` or `false`, with the letters that are still to come.
    Word(&'static str),
    Text {
        key: bool,
    },
    Escape {
        key: bool,
    },
    /// In a `\u` escape, with the number of hex digits that are still to come.
    Unit {
        key: bool,
        left: u8,
    },
    Minus,
    Zero,
    Digits,
    Point,
    /// Digits of a fraction; true if one of them is not 0.
    Fraction {
        some: bool,
    },
    Exponent,
    Sign,
    Power,
    /// Nested too deep to be followed: anything may come.
    Deep,
}

impl At {
    fn is_whole(&self) -> bool {
        self.open.is_empty()
    }

    fn with(&self, place: PrefixState) -> Option<Self> {
        Some(Self { open: self.open.clone(), place })
    }

    fn opened(&self, object: bool) -> Option<Self> {
        if self.open.len() == MOST_DEPTH {
            return self.with(PrefixState::Deep);
        }
        let place =
            if object { PrefixState::Key { first: true } } else { PrefixState::Value { first: true } };
        let open = self.open.iter().copied().chain([object]).collect();
        Some(Self { open, place })
    }

    fn closed(&self, object: bool) -> Option<Self> {
        let (last, rest) = self.open.split_last()?;
        (*last == object).then(|| Self { open: rest.to_vec(), place: PrefixState::After })
    }

    /// The state after a character; `None` if no JSON of an allowed type goes on with it.
    fn step(&self, c: char, reading: &ArgumentTypes) -> Option<Self> {
        let is_space = matches!(c, '\t' | '\n' | '\r' | ' ');
        match self.place {
            PrefixState::Deep => Some(self.clone()),
            PrefixState::Value { .. } | PrefixState::Key { .. } | PrefixState::Colon | PrefixState::After
                if is_space =>
            {
                Some(self.clone())
            }
            PrefixState::Value { first: true } if c == ']' => self.closed(false),
            PrefixState::Value { .. } => self.value(c, reading),
            PrefixState::Key { first: true } if c == '}' => self.closed(true),
            PrefixState::Key { .. } if c == '"' => self.with(PrefixState::Text { key: true }),
            PrefixState::Key { .. } => None,
            PrefixState::Colon if c == ':' => self.with(PrefixState::Value { first: false }),
            PrefixState::Colon => None,
            PrefixState::After => match c {
                ']' | '}' => self.closed(c == '}'),
                ',' if *self.open.last()? => self.with(PrefixState::Key { first: false }),
                ',' => self.with(PrefixState::Value { first: false }),
                _ => None,
            },
            PrefixState::Word(rest) => match rest.strip_prefix(c)? {
                "" => self.with(PrefixState::After),
                rest => self.with(PrefixState::Word(rest)),
            },
            PrefixState::Text { key } => match c {
                '"' if key => self.with(PrefixState::Colon),
                '"' => self.with(PrefixState::After),
                '\\' => self.with(PrefixState::Escape { key }),
                '\0'..='\x1f' => None,
                _ => Some(self.clone()),
            },
            PrefixState::Escape { key } => match c {
                'u' => self.with(PrefixState::Unit { key, left: 4 }),
                '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' => self.with(PrefixState::Text { key }),
                _ => None,
            },
            PrefixState::Unit { .. } if !c.is_ascii_hexdigit() => None,
            PrefixState::Unit { key, left: 1 } => self.with(PrefixState::Text { key }),
            PrefixState::Unit { key, left } => self.with(PrefixState::Unit { key, left: left - 1 }),
            _ => self.number(c, reading),
        }
    }

    /// The state after the first character of a value. Inside of other values all types are allowed.
    fn value(&self, c: char, reading: &ArgumentTypes) -> Option<Self> {
        let nested = !self.is_whole();
        match c {
            'n' if nested || reading.null => self.with(PrefixState::Word("ull")),
            't' if nested || reading.boolean => self.with(PrefixState::Word("rue")),
            'f' if nested || reading.boolean => self.with(PrefixState::Word("alse")),
            '"' => self.with(PrefixState::Text { key: false }),
            '[' if nested || reading.arrays => self.opened(false),
            '{' if nested || reading.objects => self.opened(true),
            '-' | '0'..='9' if !nested && reading.numbers == NumberTypes::None => None,
            '-' => self.with(PrefixState::Minus),
            '0' => self.with(PrefixState::Zero),
            '1'..='9' => self.with(PrefixState::Digits),
            _ => None,
        }
    }

    /// The state after a further character of a number.
    fn number(&self, c: char, reading: &ArgumentTypes) -> Option<Self> {
        let place = match (self.place, c) {
            (PrefixState::Minus, '0') => PrefixState::Zero,
            (PrefixState::Minus, '1'..='9') | (PrefixState::Digits, '0'..='9') => PrefixState::Digits,
            (PrefixState::Zero | PrefixState::Digits, '.') => PrefixState::Point,
            (PrefixState::Point, '0'..='9') => PrefixState::Fraction { some: c != '0' },
            (PrefixState::Fraction { some }, '0'..='9') => PrefixState::Fraction { some: some || c != '0' },
            (PrefixState::Zero | PrefixState::Digits | PrefixState::Fraction { .. }, 'e' | 'E') => {
                PrefixState::Exponent
            }
            (PrefixState::Exponent, '+' | '-') => PrefixState::Sign,
            (PrefixState::Exponent | PrefixState::Sign | PrefixState::Power, '0'..='9') => PrefixState::Power,
            _ if self.ends_number(reading) => return self.with(PrefixState::After)?.step(c, reading),
            _ => return None,
        };
        self.with(place)
    }

    /// True if a number may end here and is of an allowed type.
    fn ends_number(&self, reading: &ArgumentTypes) -> bool {
        match self.place {
            PrefixState::Zero
            | PrefixState::Digits
            | PrefixState::Power
            | PrefixState::Fraction { some: false } => true,
            PrefixState::Fraction { some: true } => !self.is_whole() || reading.numbers == NumberTypes::All,
            _ => false,
        }
    }

    /// True if the text reads as JSON of an allowed type, or is nested too deep to tell.
    fn is_json(&self, reading: &ArgumentTypes) -> bool {
        match self.place {
            PrefixState::Deep => true,
            PrefixState::After => self.is_whole(),
            _ => self.is_whole() && self.ends_number(reading),
        }
    }
}

/// Two languages: texts that read as JSON of the types of a reading; and those together with texts that end
/// inside of a string of such JSON, which the closing tag could continue. Both are empty if only strings are
/// allowed.
pub(super) fn json(reading: &ArgumentTypes) -> Result<[CharDfa; 2], LeafError> {
    if !reading.has_others() {
        return Ok([CharDfa::none(), CharDfa::none()]);
    }
    let ranges = [('1', '9'), ('a', 'f'), ('A', 'F'), ('\0', '\x1f')];
    let mut classes: Vec<CharClass> = SIGNS.chars().map(CharClass::one).collect();
    classes.extend(ranges.map(|range| CharClass::new([range])));
    let (alphabet, _) = Alphabet::of(&classes);
    let mut members = vec!['\0'; alphabet.classes()];
    for (first, _, class) in alphabet.intervals() {
        members[class] = char_at(first);
    }
    let start = At { open: Vec::new(), place: PrefixState::Value { first: false } };
    let of = |cut: bool| {
        explore(alphabet.clone(), start.clone(), |at| {
            let accepts = at.is_json(reading) || cut && matches!(at.place, PrefixState::Text { .. });
            Ok(DfaRow { accepts, to: members.iter().map(|&c| at.step(c, reading)).collect() })
        })
    };
    Ok([of(false)?, of(true)?])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::de::IgnoredAny;

    use super::*;

    const TEXTS: &str = r#"([\[\]{},:" \n]|null|true|false|"a"|-|0|1|\.5|e\+?1|\\[nux"]|00e9|a){0,9}"#;

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
            let [json, cut] = json(&reading).unwrap();
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
            if is_read || depth <= MOST_DEPTH {
                prop_assert_eq!(json.contains(&text), is_read, "{}", text);
            }
            prop_assert!(cut.contains(&text) || !json.contains(&text));
        }
    }

    #[test]
    fn numbers_that_are_surely_no_integers_are_strings() {
        let reading = ArgumentTypes { numbers: NumberTypes::Whole, ..ArgumentTypes::default() };
        let [json, cut] = json(&reading).unwrap();
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
