//! The named formats.
//!
//! Each is a regular expression of the RFC that JSON Schema names for it, so a format is a set like any
//! other. Where the RFC asks for more than a regular language can say, the set is wider (or, rarely,
//! narrower). The same is said in [`FORMATS`]:
//!
//! | format | here |
//! |---|---|
//! | `date` | exact (RFC 3339): days of months, leap years |
//! | `time`, `date-time` | exact, but leap seconds in offsets of whole and half hours only |
//! | `duration` | exact (RFC 3339, appendix A) |
//! | `email`, `idn-email` | RFC 5321 and 6531; no address literals of other networks |
//! | `hostname` | RFC 1123; no punycode (`xn--`) |
//! | `idn-hostname` | letters, marks, digits, inner hyphens; no rules of RFC 5892, no punycode |
//! | `ipv4`, `ipv6`, `uuid` | exact |
//! | `uri`, `uri-reference`, `iri`, `iri-reference` | exact (RFC 3986, 3987) |
//! | `uri-template` | exact (RFC 6570) |
//! | `json-pointer`, `relative-json-pointer` | exact (RFC 6901, and the draft without index manipulation) |
//! | `regex` | all strings but those that surely are none (`regexes`): brackets nest |
//!
//! Limits on lengths are those of host names alone. Those of addresses and of international names hold in
//! what is written ([`written`]).

mod regexes;
mod rfc;
#[cfg(test)]
mod tests;

use super::{StringSet, pattern};
use crate::grammar::json_schema::{
    automata::{AutomataCache, recipe},
    leaf::LeafError,
};
use rfc::IdentifierCharacters;

/// The name of a format's automaton: its position in [`FORMATS`], and true if its parts have bounds on their
/// lengths.
#[derive(PartialEq, Eq, Hash)]
struct Named(usize, bool);
recipe!(Named, |_| 0, |_| true);

/// Limit on the characters of a host name: 255 octets on the wire (RFC 1035) are 253 as it is written.
const HOST_NAME: u64 = 253;
/// Limit on the characters of an address: a path of 256 octets has a `<` and a `>` (RFC 5321).
const ADDRESS: u64 = 254;

/// The relation of a format's set to the set that its RFC defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatPrecision {
    /// The set has just the strings of the format.
    Exact,
    /// The set has all strings of the format, and more.
    Wider(&'static str),
    /// The set lacks some strings of the format, and has no others.
    Narrower(&'static str),
    /// The set lacks some strings of the format, and has some others.
    Near(&'static str),
}

/// A format, and the precision with which it is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StringFormat {
    /// The name of the format in schemas.
    pub name: &'static str,
    /// The precision of the check, and the reason why it is not exact.
    pub precision: FormatPrecision,
}

const LEAP: &str = "a leap second is only taken in an offset of whole or half hours";
const LENGTHS: &str = "limits of length (64 characters before the `@`) hold in what is written alone";

/// All formats that restrict strings.
pub const FORMATS: &[StringFormat] = &[
    StringFormat { name: "date", precision: FormatPrecision::Exact },
    StringFormat { name: "time", precision: FormatPrecision::Narrower(LEAP) },
    StringFormat { name: "date-time", precision: FormatPrecision::Narrower(LEAP) },
    StringFormat { name: "duration", precision: FormatPrecision::Exact },
    StringFormat { name: "email", precision: FormatPrecision::Wider(LENGTHS) },
    StringFormat { name: "idn-email", precision: FormatPrecision::Wider(LENGTHS) },
    StringFormat { name: "hostname", precision: FormatPrecision::Narrower("no punycode (`xn--`)") },
    StringFormat {
        name: "idn-hostname",
        precision: FormatPrecision::Near(
            "the rules of RFC 5892 about characters and their neighbours are not looked at, and lengths only \
             in what is written",
        ),
    },
    StringFormat { name: "ipv4", precision: FormatPrecision::Exact },
    StringFormat { name: "ipv6", precision: FormatPrecision::Exact },
    StringFormat { name: "uuid", precision: FormatPrecision::Exact },
    StringFormat { name: "uri", precision: FormatPrecision::Exact },
    StringFormat { name: "uri-reference", precision: FormatPrecision::Exact },
    StringFormat { name: "iri", precision: FormatPrecision::Exact },
    StringFormat { name: "iri-reference", precision: FormatPrecision::Exact },
    StringFormat { name: "uri-template", precision: FormatPrecision::Exact },
    StringFormat { name: "json-pointer", precision: FormatPrecision::Exact },
    StringFormat {
        name: "relative-json-pointer",
        precision: FormatPrecision::Narrower("no index manipulation (`0+1`), which only some drafts have"),
    },
    StringFormat {
        name: "regex",
        precision: FormatPrecision::Wider(
            "brackets nest: groups past 8 levels, counts in braces, names and references are not looked at",
        ),
    },
];

/// The strings of a format, or `None` if it is unknown. Each is made once.
pub(super) fn language(name: &str, automata: &AutomataCache) -> Result<Option<StringSet>, LeafError> {
    match name {
        "hostname" => bounded(name, HOST_NAME, automata),
        _ => named(name, false, automata),
    }
}

/// The strings of a format within the lengths of RFC 1035 and 5321; `None` of formats without such lengths
/// beyond those of the format itself. An international name has at most as many characters as its ASCII form.
pub(super) fn written(name: &str, automata: &AutomataCache) -> Result<Option<StringSet>, LeafError> {
    match name {
        "email" | "idn-email" => bounded(name, ADDRESS, automata),
        // The lengths of labels would make a large automaton of so many kinds of characters.
        "idn-hostname" => {
            named(name, false, automata)?.map(|set| set.with_length(0, Some(HOST_NAME))).transpose()
        }
        _ => Ok(None),
    }
}

/// The strings of a format whose parts have bounds on their lengths, of at most `most` characters.
fn bounded(name: &str, most: u64, automata: &AutomataCache) -> Result<Option<StringSet>, LeafError> {
    named(name, true, automata)?.map(|set| set.with_length(0, Some(most))).transpose()
}

fn named(name: &str, is_bounded: bool, automata: &AutomataCache) -> Result<Option<StringSet>, LeafError> {
    let Some(place) = FORMATS.iter().position(|format| format.name == name) else { return Ok(None) };
    let made = automata.language(Named(place, is_bounded), || {
        let Some(expression) = expression(name, is_bounded) else { return regexes::language() };
        let made = pattern::language(&format!("^(?:{expression})$"))?;
        if name.ends_with("hostname") { made.minus(&pattern::language(rfc::ace_label())?) } else { Ok(made) }
    })?;
    Ok(Some(StringSet::regular(made)))
}

/// True if the name is that of a format that restricts strings.
pub(super) fn restricts(name: &str) -> bool {
    FORMATS.iter().any(|format| format.name == name) && (name == "regex" || expression(name, false).is_some())
}

/// The regular expression of a format, with bounds on the lengths of its parts or without; `None` for unknown
/// formats, and for `regex`, which has none.
fn expression(name: &str, is_bounded: bool) -> Option<String> {
    let ascii = IdentifierCharacters::Ascii;
    Some(match name {
        "date" => rfc::date(),
        "time" => rfc::time(),
        "date-time" => format!("(?:{})[Tt](?:{})", rfc::date(), rfc::time()),
        "duration" => rfc::duration(),
        "email" => rfc::mailbox(ascii, is_bounded),
        "idn-email" => rfc::mailbox(IdentifierCharacters::International, is_bounded),
        "hostname" => rfc::host_name(),
        "idn-hostname" => rfc::international_host_name(),
        "ipv4" => rfc::ipv4(),
        "ipv6" => rfc::ipv6(),
        "uuid" => "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}".to_owned(),
        "uri" => rfc::identifier(ascii),
        "uri-reference" => rfc::reference(ascii),
        "iri" => rfc::identifier(IdentifierCharacters::International),
        "iri-reference" => rfc::reference(IdentifierCharacters::International),
        "uri-template" => rfc::template(),
        "json-pointer" => rfc::pointer(),
        "relative-json-pointer" => format!("(?:0|[1-9][0-9]*)(?:#|{})", rfc::pointer()),
        _ => return None,
    })
}
