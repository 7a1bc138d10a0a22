//! What the leaves of a schema, strings and numbers, have in common: how values are spelled, and what can go
//! wrong.

use crate::limits::LimitExceeded;

/// Which escapes a JSON string may be written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Escapes {
    /// All that JSON allows: any character as `\uXXXX`, and `\/`: for texts that others wrote.
    All,
    /// Only where JSON requires one, as `serde_json` and `JSON.stringify` write: for text that a model
    /// writes, since a model that may write `q\u0074y` for `qty` sometimes does.
    #[default]
    Minimal,
}

/// How numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Numbers {
    /// As the parsers of typed languages read them (`serde`, Go, strict pydantic).
    ///
    /// A set of whole numbers is written in digits alone, of what 64 bits hold, signed or not. Other sets
    /// have decimal fractions, which end in a 0 within two digits alone (`19.90`, `2.0`), and one digit other
    /// than 0, a fraction and an exponent other than 0 and without zeros before it, of what an `f64` holds.
    /// Where the schema itself names a number past 64 bits, whole numbers are those that an `f64` holds, and
    /// where it names one past that, there is no bound. A number that stands alone, as those of `enum` and
    /// `const` do, has one text. There is no `-0`.
    #[default]
    Plain,
    /// In all ways that JSON has, such as `2.00e+0000`.
    Any,
}

/// How values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Spelling {
    /// Escapes in strings, keys included.
    pub escapes: Escapes,
    /// Numbers.
    pub numbers: Numbers,
}

/// Why the language of a leaf cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeafError {
    /// A regular expression is not one of ECMA-262.
    #[error("the pattern is not a regular expression of ECMA-262: {message} (at character {at})")]
    Syntax {
        /// What is wrong.
        message: String,
        /// Where, in characters from 0.
        at: usize,
    },
    /// A regular expression asks for what is not supported.
    #[error("{what} is not supported in a pattern (at character {at})")]
    Unsupported {
        /// The construct, by name.
        what: &'static str,
        /// Where, in characters from 0.
        at: usize,
    },
    /// A number is not one of JSON, or not a legal divisor.
    #[error("{0}")]
    Number(String),
    /// An automaton would become too large.
    #[error("the budget of {limit} {what} is used up")]
    Budget {
        /// What there is too much of, with its unit.
        what: &'static str,
        /// How much there may be.
        limit: usize,
    },
    /// The grammar would become too large.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
}

impl LeafError {
    /// What the author of the schema can do about it, in one line.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Syntax { .. } => "patterns are those of ECMA-262, as in JavaScript".to_owned(),
            Self::Unsupported { .. } => {
                "which strings match must be a regular language: say it without, or with look-ahead outside \
                 of repetitions"
                    .to_owned()
            }
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
