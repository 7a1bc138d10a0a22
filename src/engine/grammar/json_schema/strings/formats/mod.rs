//! The named formats.
//!
//! Each is a regular expression of the RFC that JSON Schema names for it, so a format is a set like any
//! other. Where the RFC asks for more than a regular language can say, the set is wider (or, rarely,
//! narrower):
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
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use super::{StringSet, pattern};
use crate::grammar::json_schema::{
    automata::{AutomataCache, recipe},
    leaf::LeafError,
};

/// The name of a format's automaton: that of the format, and true if its parts have bounds on their lengths.
#[derive(PartialEq, Eq, Hash)]
struct Named(String, bool);
recipe!(Named, |named| named.0.len(), |_| true);

/// Limit on the characters of a host name: 255 octets on the wire (RFC 1035) are 253 as it is written.
const HOST_NAME: u64 = 253;
/// Limit on the characters of an address: a path of 256 octets has a `<` and a `>` (RFC 5321).
const ADDRESS: u64 = 254;

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
    if !restricts(name) {
        return Ok(None);
    }
    let made = automata.language(Named(name.to_owned(), is_bounded), || {
        let Some(expression) = expression(name, is_bounded) else { return regexes::language() };
        let made = pattern::language(&format!("^(?:{expression})$"))?;
        if name.ends_with("hostname") { made.minus(&pattern::language(ace_label())?) } else { Ok(made) }
    })?;
    Ok(Some(StringSet::regular(made)))
}

/// True if the name is that of a format that restricts strings.
pub(super) fn restricts(name: &str) -> bool {
    name == "regex" || expression(name, false).is_some()
}

/// The regular expression of a format, with bounds on the lengths of its parts or without; `None` for unknown
/// formats, and for `regex`, which has none.
fn expression(name: &str, is_bounded: bool) -> Option<String> {
    let ascii = IdentifierCharacters::Ascii;
    Some(match name {
        "date" => date(),
        "time" => time(),
        "date-time" => format!("(?:{})[Tt](?:{})", date(), time()),
        "duration" => duration(),
        "email" => mailbox(ascii, is_bounded),
        "idn-email" => mailbox(IdentifierCharacters::International, is_bounded),
        "hostname" => host_name(),
        "idn-hostname" => international_host_name(),
        "ipv4" => ipv4(),
        "ipv6" => ipv6(),
        "uuid" => "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}".to_owned(),
        "uri" => identifier(ascii),
        "uri-reference" => reference(ascii),
        "iri" => identifier(IdentifierCharacters::International),
        "iri-reference" => reference(IdentifierCharacters::International),
        "uri-template" => template(),
        "json-pointer" => pointer(),
        "relative-json-pointer" => format!("(?:0|[1-9][0-9]*)(?:#|{})", pointer()),
        _ => return None,
    })
}

// The regular expressions follow the grammars of the RFCs.

/// The characters that identifiers may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IdentifierCharacters {
    /// The characters of URIs and of plain mail addresses.
    Ascii,
    /// The characters of IRIs and of international mail addresses.
    International,
}

/// The expression of RFC 3339's `full-date`, with the days that months have.
fn date() -> String {
    let common = "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|\
                  02-(?:0[1-9]|1[0-9]|2[0-8])";
    // Leap years: multiples of 4, but of the centuries only multiples of 400.
    let leap = "[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00";
    format!("[0-9]{{4}}-(?:{common})|(?:{leap})-02-29")
}

/// The expression of RFC 3339's `full-time`. A leap second is the last second of a day in UTC; it is taken at
/// offsets of whole and half hours.
fn time() -> String {
    let offset = "[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9]";
    let fraction = r"(?:\.[0-9]+)?";
    let mut time =
        format!("(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]{fraction}(?:{offset})|23:59:60{fraction}[Zz]");
    for local in (29..24 * 60_u32).step_by(30) {
        // Local time is UTC's 23:59 plus the offset.
        let east = (local + 1) % (24 * 60);
        let west = (24 * 60 - east) % (24 * 60);
        let _ = write!(
            time,
            r"|{:02}:{:02}:60{fraction}(?:\+{:02}:{:02}|-{:02}:{:02})",
            local / 60,
            local % 60,
            east / 60,
            east % 60,
            west / 60,
            west % 60
        );
    }
    time
}

/// The expression of RFC 3339's appendix A.
fn duration() -> String {
    let time = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)";
    let date = "[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D";
    format!("P(?:(?:{date})(?:{time})?|{time}|[0-9]+W)")
}

/// The expression of RFC 2673's `dotted-quad`, with decimal octets.
fn ipv4() -> String {
    let octet = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
    format!(r"{octet}(?:\.{octet}){{3}}")
}

/// The expression of RFC 4291: eight groups, of which `::` stands for at least one; the last two may be
/// written as an IPv4 address.
fn ipv6() -> String {
    let group = "[0-9A-Fa-f]{1,4}";
    let last = format!("(?:{group}:{group}|{})", ipv4());
    let mut address = format!("(?:{group}:){{6}}{last}");
    for before in 0..=7 {
        let head = match before {
            0 => String::new(),
            1 => format!("(?:{group})?"),
            _ => format!("(?:(?:{group}:){{0,{}}}{group})?", before - 1),
        };
        let after = 7 - before;
        let tail = match after {
            0 => String::new(),
            1 => group.to_owned(),
            _ => format!("(?:{group}:){{{}}}{last}", after - 2),
        };
        let _ = write!(address, "|{head}::{tail}");
    }
    address
}

/// The greatest number of characters of a label (RFC 1035), and of the part of an address before the `@` (RFC
/// 5321).
const LABEL: usize = 63;
const LOCAL_PART: usize = 64;

/// The expression of a label: characters of the class `inner`, of which the first is of the class `first` and
/// the last no hyphen.
fn label(first: &str, inner: &str, is_bounded: bool) -> String {
    let more = if is_bounded { format!("{{0,{}}}", LABEL - 2) } else { "*".to_owned() };
    format!("[{first}](?:[{inner}-]{more}[{inner}])?")
}

/// The expression of RFC 1123, without the length of the whole: labels of letters, digits and inner hyphens.
fn host_name() -> String {
    let label = label("0-9A-Za-z", "0-9A-Za-z", true);
    format!(r"{label}(?:\.{label})*")
}

/// The expression of a label that claims to be punycode.
fn ace_label() -> &'static str {
    r"(?:^|\.)[Xx][Nn]--"
}

/// The expression of RFC 5890, without its rules about neighbours: labels of letters, marks, digits and inner
/// hyphens, with the full stops of RFC 3490. Characters that are only legal beside certain others are left
/// out.
fn international_host_name() -> String {
    let inner = r"\p{L}\p{M}\p{N}\u06fd\u06fe\u0f0b";
    let label = label(r"\p{L}\p{N}\u06fd\u06fe", inner, false);
    format!(r"{label}(?:[.\u3002\uff0e\uff61]{label})*")
}

/// The expression of `Mailbox` in RFC 5321 and 6531, without the length of the whole.
fn mailbox(characters: IdentifierCharacters, is_bounded: bool) -> String {
    let more = match characters {
        IdentifierCharacters::Ascii => "",
        IdentifierCharacters::International => r"\u0080-\u{10ffff}",
    };
    let atom = format!("[0-9A-Za-z!#$%&'*+/=?^_`{{|}}~{more}-]+");
    let plain = format!(r"[ !#-\[\]-~{more}]");
    let escaped = format!(r"(?:{plain}|\\[ -~])");
    let quoted = match is_bounded {
        // Pairs are not counted as two characters: half as many of them are surely short enough.
        true => format!(r#""(?:{plain}{{0,{}}}|{escaped}{{0,{}}})""#, LOCAL_PART - 2, LOCAL_PART / 2 - 1),
        false => format!(r#""{escaped}*""#),
    };
    let letters = format!("0-9A-Za-z{more}");
    let label = label(&letters, &letters, is_bounded);
    let literal = format!(r"\[(?:{}|IPv6:(?:{}))\]", ipv4(), ipv6());
    let short = if is_bounded { format!("(?=[^@]{{1,{LOCAL_PART}}}@)") } else { String::new() };
    format!(r"(?:{short}{atom}(?:\.{atom})*|{quoted})@(?:{label}(?:\.{label})*|{literal})")
}

/// The characters that stand for themselves everywhere in an identifier.
fn unreserved(characters: IdentifierCharacters) -> String {
    let mut set = "0-9A-Za-z._~".to_owned();
    if characters == IdentifierCharacters::International {
        set.push_str(r"\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef");
        // `ucschar` of planes 1 to 14: all but their last two characters, and in plane 14 from `E1000` on.
        for plane in 1..=14 {
            let first = if plane == 14 { 0x1000 } else { 0 };
            let _ = write!(set, r"\u{{{plane:x}{first:04x}}}-\u{{{plane:x}fffd}}");
        }
    }
    set
}

const ENCODED: &str = "%[0-9A-Fa-f]{2}";
const SUB_DELIMS: &str = "!$&'()*+,;=";

/// The authority with path, query and fragment of RFC 3986 and 3987. In the first segment of a path without a
/// slash in front, characters of the class `first` are allowed too.
fn after_scheme(characters: IdentifierCharacters, first: &str) -> String {
    let plain = unreserved(characters);
    let private = match characters {
        IdentifierCharacters::Ascii => "",
        IdentifierCharacters::International => r"\ue000-\uf8ff\u{f0000}-\u{ffffd}\u{100000}-\u{10fffd}",
    };
    let some = |extra: &str| format!("(?:[{plain}{SUB_DELIMS}{extra}-]|{ENCODED})");
    let pchar = some(":@");
    let user = some(":");
    let name = some("");
    let future = format!(r"[Vv][0-9A-Fa-f]+\.[0-9A-Za-z._~{SUB_DELIMS}:-]+");
    let host = format!(r"(?:\[(?:{}|{future})\]|{name}*)", ipv6());
    let authority = format!("(?:{user}*@)?{host}(?::[0-9]*)?");
    let segments = format!("(?:/{pchar}*)*");
    let rootless = format!("{}+{segments}", some(first));
    let absolute = format!("/(?:{pchar}+{segments})?");
    let query = format!(r"(?:\?(?:{pchar}|[/?{private}])*)?");
    let fragment = format!("(?:#(?:{pchar}|[/?])*)?");
    format!("(?://{authority}{segments}|{absolute}|{rootless}|){query}{fragment}")
}

/// The expression of `URI` or `IRI`.
fn identifier(characters: IdentifierCharacters) -> String {
    format!("[A-Za-z][0-9A-Za-z+.-]*:{}", after_scheme(characters, ":@"))
}

/// The expression of `URI-reference` or `IRI-reference`.
fn reference(characters: IdentifierCharacters) -> String {
    format!("(?:{})|(?:{})", identifier(characters), after_scheme(characters, "@"))
}

/// The expression of RFC 6570.
fn template() -> String {
    let ucs = unreserved(IdentifierCharacters::International);
    let ucs = ucs.trim_start_matches("0-9A-Za-z._~");
    let private = r"\ue000-\uf8ff\u{f0000}-\u{ffffd}\u{100000}-\u{10fffd}";
    let literal = format!(r"[!#$&-;=?-\[\]_a-z~{ucs}{private}]|{ENCODED}");
    let character = format!("(?:[0-9A-Z_a-z]|{ENCODED})");
    let name = format!(r"{character}(?:\.?{character})*");
    let variable = format!(r"{name}(?::[1-9][0-9]{{0,3}}|\*)?");
    format!(r"(?:{literal}|\{{[+#./;?&=,!@|]?{variable}(?:,{variable})*\}})*")
}

/// The expression of RFC 6901.
fn pointer() -> String {
    r"(?:/(?:[^~/]|~[01])*)*".to_owned()
}
