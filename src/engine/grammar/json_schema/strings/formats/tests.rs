//! Formats against strings that the RFCs allow and forbid.

use std::io::Write as _;

use super::*;
use crate::grammar::{
    Span,
    json_schema::{
        leaf::ValueSpelling,
        probe::{accepts, grammar},
    },
};

/// The relation of a format's set to the set that its RFC defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FormatPrecision {
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
struct StringFormat {
    /// The name of the format in schemas.
    name: &'static str,
    /// The precision of the check, and the reason why it is not exact.
    precision: FormatPrecision,
}

const LEAP: &str = "a leap second is only taken in an offset of whole or half hours";
const LENGTHS: &str = "limits of length (64 characters before the `@`) hold in what is written alone";

/// All formats that restrict strings.
const FORMATS: &[StringFormat] = &[
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

/// Valid and invalid strings by format.
const FIXTURES: &[(&str, &[&str], &[&str])] = &[
    (
        "date",
        &["2024-02-29", "2000-02-29", "1999-12-31", "2023-11-30"],
        &[
            "2023-02-29",
            "1900-02-29",
            "2023-11-31",
            "2023-13-01",
            "2023-00-10",
            "2023-01-00",
            "23-01-01",
            "2023-1-1",
        ],
    ),
    (
        "time",
        &["23:59:59Z", "00:00:00.123+05:45", "23:59:60Z", "15:59:60-08:00", "05:29:60.5+05:30", "12:00:00z"],
        &[
            "24:00:00Z",
            "12:60:00Z",
            "22:59:60Z",
            "23:59:60+01:00",
            "12:00:00",
            "12:00:00+24:00",
            "12:00:00,5Z",
        ],
    ),
    (
        "date-time",
        &["1990-12-31T23:59:60Z", "2024-02-29t00:00:00.0-00:00"],
        &["2023-02-29T00:00:00Z", "2024-02-29 00:00:00Z", "2024-02-29T00:00Z"],
    ),
    (
        "duration",
        &["P4DT12H30M5S", "P2W", "PT36H", "P1Y2M"],
        &["P", "PT", "P1Y2W", "P1Y2D", "PT1H2S", "P0.5D"],
    ),
    (
        "email",
        &["a.b@c.de", "\"a b\"@c", "a@[127.0.0.1]", "a@[IPv6:::1]", "te~st@x-y.z"],
        &["a", ".a@b", "a.@b", "a..b@c", "a b@c", "a@-b", "a@b=c", "a@[300.0.0.1]", "é@a.b"],
    ),
    ("idn-email", &["실례@실례.테스트", "é@a.b"], &["a", "@a", "a@"]),
    ("hostname", &["a", "a-b.c1", "1a"], &["", "-a", "a-", "a..b", "a_b", "a.", "xn--x", "a.XN--b"]),
    ("idn-hostname", &["실례.테스트", "a。b"], &["-ä", "ä-", "a b", "l·"]),
    ("ipv4", &["0.0.0.0", "255.249.199.9"], &["256.0.0.0", "01.2.3.4", "1.2.3", "1.2.3.4.5", "1.2.3.4 "]),
    (
        "ipv6",
        &[
            "::",
            "::1",
            "1::",
            "1:2:3:4:5:6:7:8",
            "1:2:3:4:5:6:7::",
            "::2:3:4:5:6:7:8",
            "::ffff:1.2.3.4",
            "1::3:4",
        ],
        &[
            "",
            ":",
            "1",
            "1:2:3:4:5:6:7",
            "1:2:3:4:5:6:7:8:9",
            "1::2::3",
            "12345::",
            "::1.2.3.400",
            "::1%eth0",
            "1:2:3:4:5:6:7:8::",
            "1:2:3:4:5:6:7:1.2.3.4",
        ],
    ),
    (
        "uuid",
        &["2EB8AA08-aa98-11ea-B4Aa-73B441D16380"],
        &["2eb8aa08aa9811eab4aa73b441d16380", "2eb8aa08-aa98-11ea-b4aa-73b441d1638"],
    ),
    (
        "uri",
        &[
            "http://a.b/c?d=e#f",
            "urn:isbn:1",
            "mailto:a@b",
            "http://[::1]:80/",
            "ldap://[2001:db8::7]/c=GB?o?o",
            "a:",
        ],
        &[
            "//a/b",
            "/a",
            "a b:c",
            "http:// a",
            "http://a/<b>",
            ":a",
            "http://a/%zz",
            "http://[::1",
            "http://a:b",
            "hé:x",
        ],
    ),
    (
        "uri-reference",
        &["", "/a", "//a/b", "a/b:c", "#f", "?q", "http://a"],
        &["\\\\a", "a b", "#f\\g", "1:b:c"],
    ),
    (
        "iri",
        &["http://ƒøø.ßår/?∂éœ=π", "http://a/\u{1f600}"],
        &["/abc", "http://a b", "âππ", "http://\u{fffe}"],
    ),
    ("iri-reference", &["âππ", "/ä"], &["\\\\W\\x", "#ƒräg\\mênt"]),
    (
        "uri-template",
        &["a/{b:1}/{+c*,d}", "", "a%41", "{x.y}"],
        &["{", "}", "{}", "{a", "{a:0}", "a b", "%4", "{a:10000}"],
    ),
    ("json-pointer", &["", "/", "/a~0~1/b", "/ "], &["a", "/~", "/~2", "#"]),
    ("relative-json-pointer", &["0", "1/a", "10#"], &["", "01", "-1", "/a", "0##", "1 "]),
    ("regex", &["a", "(?=[a-z]+)\\d*", "((((((((("], &["(", "a**", "[z-a]"]),
];

#[test]
fn formats_have_the_listed_strings_and_no_others() {
    for (name, inside, outside) in FIXTURES {
        let set = StringSet::from_format(name).unwrap().unwrap();
        inside.iter().for_each(|text| assert!(set.contains(text), "{name}: {text:?}"));
        outside.iter().for_each(|text| assert!(!set.contains(text), "{name}: {text:?}"));
        let grammar =
            grammar(|builder| set.emit(builder, ValueSpelling::default(), Span::default()).unwrap());
        for (texts, expected) in [(inside, true), (outside, false)] {
            for text in *texts {
                let quoted = serde_json::to_string(text).unwrap();
                assert_eq!(accepts(&grammar, quoted.as_bytes()), expected, "{name}: {quoted}");
            }
        }
    }
    let names: Vec<&str> = FIXTURES.iter().map(|(name, ..)| *name).collect();
    assert_eq!(names, FORMATS.iter().map(|format| format.name).collect::<Vec<_>>());
    assert_eq!(StringSet::from_format("phone").unwrap(), None);
}

/// A name of labels of these lengths.
fn name(labels: &[usize]) -> String {
    labels.iter().map(|length| "a".repeat(*length)).collect::<Vec<_>>().join(".")
}

#[test]
fn host_names_have_the_lengths_of_their_rfc() {
    let host = StringSet::from_format("hostname").unwrap().unwrap();
    for (labels, fits) in [
        (&[63, 63][..], true),
        (&[64, 1], false),
        (&[63, 63, 63, 61], true),
        (&[63, 63, 63, 62], false),
        (&[1; 127], true),
        (&[1; 128], false),
        (&[40; 6], true),
    ] {
        assert_eq!(host.contains(&name(labels)), fits, "{labels:?}");
        let written = written("idn-hostname", &AutomataCache::new()).unwrap().unwrap();
        assert_eq!(written.contains(&name(labels)), name(labels).len() <= 253, "{labels:?}");
    }
    assert!(host.complement().unwrap().contains(&name(&[64])));
}

/// Addresses are written within their lengths, whatever is valid: also where strings are counted, and not in
/// a complement.
#[test]
fn addresses_are_written_within_the_lengths_of_their_rfc() {
    let quoted = |length: usize| format!("\"@{}\"", "a".repeat(length - 3));
    for (local, labels, fits) in [
        ("a".repeat(64), &[63, 63, 61][..], true),
        ("a".repeat(64), &[63, 63, 62], false),
        ("a".repeat(65), &[1], false),
        (quoted(64), &[2], true),
        (quoted(65), &[2], false),
        ("a".to_owned(), &[63, 63, 63, 60], true),
        ("a".to_owned(), &[63, 63, 63, 61], false),
        ("a.b".to_owned(), &[64, 2], false),
    ] {
        let text = format!("{local}@{}", name(labels));
        for format in ["email", "idn-email"] {
            let set = StringSet::from_format_with(&AutomataCache::new(), format, true).unwrap().unwrap();
            assert!(set.contains(&text) && !set.complement().unwrap().contains(&text), "{format}: {text}");
            let long = set.with_length(0, Some(250)).unwrap();
            let shown = |set: &StringSet| {
                let spelling = ValueSpelling::default();
                let grammar = grammar(|builder| set.emit(builder, spelling, Span::default()).unwrap());
                accepts(&grammar, serde_json::to_string(&text).unwrap().as_bytes())
            };
            assert_eq!(shown(&set), fits, "{format}: {text}");
            assert_eq!(shown(&long), fits && text.len() <= 250, "{format}: {text}");
            // All strings but some: those that are no address, whatever its length.
            assert!(!shown(&set.complement().unwrap()), "{format}: {text}");
            // A set without a shorter string is written as it is.
            let only = set.intersect(&StringSet::one(&text).unwrap()).unwrap();
            assert!(shown(&only), "{format}: {text}");
        }
    }
}

/// The official test suite, where it is available: a format that is exact decides all of its cases right, a
/// wider one refuses nothing valid, and a narrower one takes nothing invalid.
#[test]
fn formats_agree_with_the_official_suite() {
    let root = std::env::var_os("DOMINO_SHARED").map_or_else(
        || std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        std::path::PathBuf::from,
    );
    let file = root.join("data/jsonschema/official_suite.jsonl");
    let Ok(text) = std::fs::read_to_string(&file) else {
        let message = format!("SKIPPED: {} is not there (set DOMINO_SHARED)\n", file.display());
        std::io::stderr().write_all(message.as_bytes()).unwrap();
        return;
    };
    let mut decided = 0;
    for row in text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()) {
        // Formats are annotations outside of the optional part.
        let format = row["schema"]["format"].as_str().filter(|_| row["optional"] == true);
        let Some(format) = format.and_then(|name| FORMATS.iter().find(|format| format.name == name)) else {
            continue;
        };
        let set = StringSet::from_format(format.name).unwrap().unwrap();
        for test in row["tests"].as_array().unwrap() {
            let (Some(string), valid) = (test["data"].as_str(), test["valid"] == true) else { continue };
            let excused = match format.precision {
                FormatPrecision::Exact => false,
                FormatPrecision::Wider(_) => !valid,
                FormatPrecision::Narrower(_) => valid,
                FormatPrecision::Near(_) => true,
            };
            decided += usize::from(!excused);
            assert!(excused || set.contains(string) == valid, "{}: {test}", format.name);
        }
    }
    assert!(decided > 400, "{decided}");
}
