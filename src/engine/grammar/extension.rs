//! Languages with a name: quoted and unquoted text, text up to a stop, substrings, delimited lists and
//! subsequences, tokens of the model.
//!
//! They are the extensions of regular expressions of Koo, Liu and He, "Automata-based constraints for
//! language model decoding" (2024, arXiv 2407.08103). Here is their meaning, once for all notations:
//! `regex::extensions` reads them in regular expressions, `gbnf::extensions` in GBNF. The first two and the
//! tokens of the model are expressions; the others are automata.

use std::fmt;

use regex_automata::nfa::thompson::Builder;

use super::{
    regular::{Fragment, Language, NoRoom},
    suggest,
};
use crate::{
    limits::{LimitExceeded, Limits},
    special::TokenClass,
};

/// A language with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extension {
    /// A text in double quotes, on one line, with escapes by backslashes.
    QuotedText,
    /// A plain scalar of YAML on one line, as YAML reads it in every context.
    UnquotedText,
    /// Any text up to and including the first occurrence of a stop.
    TextUntil,
    /// Any part of a text, also the empty one.
    SubstringOf,
    /// One or more elements with a delimiter between neighbours.
    DelimitedList,
    /// One or more distinct elements in their order, with a delimiter between neighbours.
    DelimitedSubsequenceOf,
    /// One token of the model.
    Token(TokenClass),
}

/// All extensions.
const ALL: [Extension; 9] = [
    Extension::QuotedText,
    Extension::UnquotedText,
    Extension::TextUntil,
    Extension::SubstringOf,
    Extension::DelimitedList,
    Extension::DelimitedSubsequenceOf,
    Extension::Token(TokenClass::Text),
    Extension::Token(TokenClass::Paragraph),
    Extension::Token(TokenClass::Image),
];

impl fmt::Display for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Extension {
    /// The name of the extension in grammars.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::QuotedText => "QUOTED_TEXT",
            Self::UnquotedText => "UNQUOTED_TEXT",
            Self::TextUntil => "TEXT_UNTIL",
            Self::SubstringOf => "SUBSTRING_OF",
            Self::DelimitedList => "DELIMITED_LIST",
            Self::DelimitedSubsequenceOf => "DELIMITED_SUBSEQUENCE_OF",
            Self::Token(class) => class.name(),
        }
    }

    /// The extension of this name, if there is one.
    pub(super) fn named(name: &str) -> Option<Self> {
        ALL.into_iter().find(|extension| extension.name() == name)
    }

    /// The extension with the nearest name, if one is near.
    pub(super) fn nearest(name: &str) -> Option<Self> {
        let meant = suggest::nearest(name, ALL.into_iter().map(Self::name))?;
        ALL.into_iter().find(|extension| extension.name() == meant)
    }

    /// True if it has a delimiter, and elements.
    pub(super) fn is_delimited(self) -> bool {
        matches!(self, Self::DelimitedList | Self::DelimitedSubsequenceOf)
    }

    /// The regular expression that it is short for, if it is. No flags are on but `u`.
    pub(super) fn expression(self) -> Option<String> {
        match self {
            Self::QuotedText => {
                const CONTROLS: &str = r"\x00-\x1F\x7F-\x9F";
                Some(format!(r#""(?:[^"\\{CONTROLS}]|\\[^{CONTROLS}])*""#))
            }
            Self::UnquotedText => Some(unquoted_text()),
            Self::Token(class) => Some(class.expression()),
            _ => None,
        }
    }
}

/// The expression of plain scalars of YAML 1.2 (`ns-plain-one-line` within flow collections), without tabs
/// and the line ends of YAML 1.1: words with spaces between. A word does not begin with `#` nor end with `:`;
/// the text does not begin with an indicator, except for `-`, `?` and `:` with more of the word behind.
fn unquoted_text() -> String {
    const OTHERS: &str =
        r"\xA0-\x{2027}\x{202A}-\x{D7FF}\x{E000}-\x{FEFE}\x{FF00}-\x{FFFD}\x{10000}-\x{10FFFF}";
    // Classes in ASCII: all but `,[]{}`; these without `:`; without `:` and `#`; without any indicator.
    let any = format!(r"[!-+\x2D-Z\\^-z\x7C\x7E{OTHERS}]");
    let last = format!(r"[!-+\x2D-9;-Z\\^-z\x7C\x7E{OTHERS}]");
    let first = format!(r#"[!"$-+\x2D-9;-Z\\^-z\x7C\x7E{OTHERS}]"#);
    let start = format!(r"[$()+./0-9;<=A-Z\\\^_a-z\x7E{OTHERS}]");
    let word = |first: &str, marks: &str| format!("(?:{first}(?:{any}*{last})?|[{marks}]{any}*{last})");
    format!("{}(?: +{})*", word(&start, r"\x2D?:"), word(&first, ":"))
}

/// Any text up to and including the first match of a stop: no proper prefix of it ends with one. The stop
/// must not match the empty text.
///
/// # Errors
/// As all functions here: if automata would be larger than the limits allow.
pub(super) fn text_until(stop: &Language, limits: &Limits) -> Result<Language, LimitExceeded> {
    let ending = Language::sequence(&[Language::texts(limits)?, stop.clone()], limits)?;
    Ok(ending.shortest())
}

/// One or more of the elements with a delimiter between neighbours; for
/// [`DelimitedSubsequenceOf`](Extension::DelimitedSubsequenceOf), some of them in their order.
pub(super) fn delimited(
    extension: Extension,
    elements: &[Language],
    delimiter: &Language,
    limits: &Limits,
) -> Result<Language, LimitExceeded> {
    if extension == Extension::DelimitedSubsequenceOf {
        return Language::by_nfa(limits, |builder| subsequence(builder, elements, delimiter));
    }
    let element = Language::union(elements, limits)?;
    let more = Language::sequence(&[delimiter.clone(), element.clone()], limits)?;
    Language::sequence(&[element, more.repeat(0, None, limits)?], limits)
}

/// An NFA that has each element, with the delimiter before it, once. It is made from its end: at `element`
/// one of the elements from here on must come, at `more` the text may end too.
fn subsequence(
    builder: &mut Builder,
    elements: &[Language],
    delimiter: &Language,
) -> Result<Fragment, NoRoom> {
    let end = builder.add_empty()?;
    let (mut element, mut more) = (builder.add_fail()?, end);
    for language in elements.iter().rev() {
        let (from, to) = language.piece(builder)?;
        builder.patch(to, more)?;
        element = builder.add_union(vec![from, element])?;
        let (from, to) = delimiter.piece(builder)?;
        builder.patch(to, element)?;
        more = builder.add_union(vec![end, from])?;
    }
    Ok((element, end))
}
