//! The leaves of a schema, strings and numbers: the spellings of their values, and their errors.

use crate::limits::LimitExceeded;

/// The escapes that a JSON string may be written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Escapes {
    /// Every escape of JSON: any character as `\uXXXX`, and `\/`. For texts that others wrote.
    All,
    /// The escapes that JSON requires, as `serde_json` and `JSON.stringify` write. For text that a model
    /// writes, since a model that may write `q\u0074y` for `qty` sometimes does.
    #[default]
    Minimal,
}

/// The spellings of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Numbers {
    /// Spellings that the parsers of typed languages read (`serde`, Go, strict pydantic).
    ///
    /// A set of whole numbers is written in digits alone, within what 64 bits hold: at most 19 digits, or 20
    /// in a set without negative numbers. Other sets are written within what an `f64` holds: with as many
    /// digits and a decimal fraction of at most 17, which may end in a 0 only within two digits (`19.90`,
    /// `2.0`), or with one digit other than 0, a fraction, and an exponent other than 0 with no zeros before
    /// it, which does not bring it into the set (no `2e-1` of at most 1). If the schema
    /// itself names a number beyond 64 bits, whole numbers are those that an `f64` holds, and if it names one
    /// beyond that, there is no bound. A number that stands alone, as those of `enum` and `const` do, has one
    /// text. There is no `-0`.
    #[default]
    Plain,
    /// Every spelling of JSON, such as `2.00e+0000`.
    Any,
}

/// The spellings of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ValueSpelling {
    /// The escapes in strings, keys included.
    pub escapes: Escapes,
    /// The spellings of numbers.
    pub numbers: Numbers,
    /// The style of all values.
    pub style: ValueStyle,
}

/// A style of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ValueStyle {
    /// JSON.
    #[default]
    Json,
    /// JSON but for strings, which stand as they are with this special token at both ends, and keys, which
    /// stand as they are without it.
    Delimited(&'static str),
    /// The arguments of a call in Python, `(city="Bern", exact=True)`: JSON but for the brackets and names of
    /// the outermost object, and for `None`, `True` and `False`.
    Python,
}

impl ValueStyle {
    /// The special token at both ends of strings.
    pub(super) fn delimiter(self) -> Option<&'static str> {
        if let Self::Delimited(token) = self { Some(token) } else { None }
    }
}

/// The reason why the language of a leaf cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeafError {
    /// A regular expression is not one of ECMA-262.
    #[error("the pattern is not a regular expression of ECMA-262: {message} (at character {at})")]
    Syntax {
        /// The mistake, in words.
        message: String,
        /// The place, in characters from 0.
        at: usize,
    },
    /// A regular expression has a construct that is not supported.
    #[error("{what} is not supported in a pattern (at character {at})")]
    Unsupported {
        /// The construct, by its name.
        what: &'static str,
        /// The place, in characters from 0.
        at: usize,
    },
    /// A number is not one of JSON, or is not a legal divisor.
    #[error("{0}")]
    Number(String),
    /// An automaton would become too large.
    #[error("the budget of {limit} {what} is used up")]
    Budget {
        /// The thing that there is too much of, with its unit.
        what: &'static str,
        /// The limit on it.
        limit: usize,
    },
    /// The grammar would become too large.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
}

impl LeafError {
    /// A hint for the author of the schema, in one line.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Syntax { .. } => "patterns are those of ECMA-262, as in JavaScript".to_owned(),
            Self::Unsupported { what, .. } => match *what {
                "a group with flags, `(?`" => {
                    "spell both cases out, as in `[Aa]` for `(?i)a`; `[^]` is any character"
                }
                "a group named as in Python, `(?P<`" => "ECMA-262 writes `(?<name>...)`",
                _ => "which strings match must be a regular language: say it without",
            }
            .to_owned(),
            Self::Number(_) => {
                "numbers are decimals of at most 5,000 digits; divisors are greater than 0".to_owned()
            }
            Self::Budget { .. } => {
                "bring counts and lengths down, or leave out one of the keywords that meet here".to_owned()
            }
            Self::Limit(limit) => limit.hint(),
        }
    }
}
