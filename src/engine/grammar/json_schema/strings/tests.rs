//! Comparisons with slow, obvious deciders: regular expressions with `regress`, which follows ECMA-262; sets
//! with their definition; spellings with `serde_json`.

use proptest::prelude::*;

use super::*;
use crate::grammar::{
    Grammar, Span,
    json_schema::{
        leaf::{Escapes, Numbers, ValueSpelling, ValueStyle},
        probe::{accepts, grammar},
    },
};

const ALL: ValueSpelling =
    ValueSpelling { escapes: Escapes::All, numbers: Numbers::Any, style: ValueStyle::Json };
const MINIMAL: ValueSpelling =
    ValueSpelling { escapes: Escapes::Minimal, numbers: Numbers::Any, style: ValueStyle::Json };

fn emitted(set: &StringSet, spelling: ValueSpelling) -> Grammar {
    grammar(|builder| set.emit(builder, spelling, Span::default()).unwrap())
}

fn is_match(pattern: &str, text: &str) -> bool {
    regress::Regex::with_flags(pattern, "u").unwrap().find(text).is_some()
}

/// Patterns of ECMA-262 in Unicode mode.
fn patterns() -> impl Strategy<Value = String> {
    let atom = prop_oneof![
        4 => prop::sample::select(vec![
            "a", "b", "1", "_", "é", "😀", "-", ".", r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\.",
            r"\/", r"\n", r"\u0061", r"\u{1F600}", r"\uD83D\uDE00", r"\x62", r"\cJ", r"\p{L}", r"\P{L}",
            r"\p{Script=Latin}", "[ab]", "[^ab]", r"[a-b1_]", r"[^\w]", r"[\s\S]", "[]", "[^]", r"[a\-1]",
            "[&&a]", "[+--b]", "[~~a]",
            r"[\u{1F600}-\u{1F64F}é]", r"[\b]", "[.]", "[$^]",
        ]).prop_map(str::to_owned),
        1 => prop::sample::select(vec!["^", "$", r"\b", r"\B"]).prop_map(str::to_owned),
    ];
    atom.prop_recursive(4, 16, 4, |inner| {
        let quantifier = prop::sample::select(vec!["*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "+?", "??"]);
        prop_oneof![
            3 => prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            1 => prop::collection::vec(inner.clone(), 2..4)
                .prop_map(|parts| format!("(?:{})", parts.join("|"))),
            1 => prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| parts.join("|")),
            2 => (inner.clone(), quantifier).prop_map(|(part, quantifier)| format!("({part}){quantifier}")),
            1 => inner.clone().prop_map(|part| format!("(?={part})")),
            1 => inner.clone().prop_map(|part| format!("(?!{part})")),
            1 => inner.clone().prop_map(|part| format!("(?<={part})")),
            1 => inner.clone().prop_map(|part| format!("(?<!{part})")),
            1 => (inner.clone(), inner).prop_map(|(no, yes)| format!("^(?!{no}){yes}$")),
        ]
    })
}

fn texts() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop::sample::select(vec![
            'a', 'b', '1', '_', '-', ' ', '\n', '\u{2028}', 'é', '😀', '/', '&', '\u{8}',
        ]),
        0..6,
    )
    .prop_map(String::from_iter)
}

/// An expression for a set.
#[derive(Debug, Clone)]
enum Tree {
    Pattern(&'static str),
    Of(Vec<String>),
    Length(u64, Option<u64>),
    Not(Box<Tree>),
    And(Box<Tree>, Box<Tree>),
    Or(Box<Tree>, Box<Tree>),
    Minus(Box<Tree>, Box<Tree>),
}

impl Tree {
    fn set(&self) -> StringSet {
        match self {
            Self::Pattern(pattern) => StringSet::from_pattern(pattern).unwrap(),
            Self::Of(strings) => StringSet::of(strings).unwrap(),
            Self::Length(min, max) => StringSet::all().with_length(*min, *max).unwrap(),
            Self::Not(of) => of.set().complement().unwrap(),
            Self::And(left, right) => left.set().intersect(&right.set()).unwrap(),
            Self::Or(left, right) => left.set().union(&right.set()).unwrap(),
            Self::Minus(left, right) => left.set().subtract(&right.set()).unwrap(),
        }
    }

    fn has(&self, text: &str) -> bool {
        match self {
            Self::Pattern(pattern) => is_match(pattern, text),
            Self::Of(strings) => strings.iter().any(|string| string == text),
            Self::Length(min, max) => {
                let length = text.chars().count() as u64;
                length >= *min && max.is_none_or(|max| length <= max)
            }
            Self::Not(of) => !of.has(text),
            Self::And(left, right) => left.has(text) && right.has(text),
            Self::Or(left, right) => left.has(text) || right.has(text),
            Self::Minus(left, right) => left.has(text) && !right.has(text),
        }
    }
}

fn trees() -> impl Strategy<Value = Tree> {
    let patterns =
        prop::sample::select(vec!["^a", "b$", "^[ab]*$", r"\d", "^(?!a)", "é|😀", "^.{2}$", "", "^$"]);
    let leaf = prop_oneof![
        patterns.prop_map(Tree::Pattern),
        prop::collection::vec(texts(), 0..4).prop_map(Tree::Of),
        (0..5_u64, prop::option::of(0..6_u64)).prop_map(|(min, max)| Tree::Length(min, max)),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            inner.prop_map(|of| Tree::Not(Box::new(of))),
            pair.clone().prop_map(|(left, right)| Tree::And(left.into(), right.into())),
            pair.clone().prop_map(|(left, right)| Tree::Or(left.into(), right.into())),
            pair.prop_map(|(left, right)| Tree::Minus(left.into(), right.into())),
        ]
    })
}

/// All ways to write one character of a JSON string; the first is that of `serde_json`.
fn spellings(character: char) -> Vec<String> {
    let quoted = serde_json::to_string(&character).unwrap();
    let mut found = vec![quoted[1..quoted.len() - 1].to_owned()];
    let units = character.encode_utf16(&mut [0; 2]).to_vec();
    found.push(units.iter().map(|unit| format!("\\u{unit:04x}")).collect());
    found.push(units.iter().map(|unit| format!("\\u{unit:04X}")).collect());
    if character == '/' {
        found.push("\\/".to_owned());
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn patterns_match_as_in_ecma_262(pattern in patterns(), texts in prop::collection::vec(texts(), 12)) {
        match StringSet::from_pattern(&pattern) {
            Ok(set) => for text in texts {
                prop_assert_eq!(set.contains(&text), is_match(&pattern, &text), "{} in {:?}", pattern, text);
            },
            Err(LeafError::Unsupported { what: "look-ahead inside look-behind", .. }) => {
                prop_assert!(pattern.contains("(?<"), "{}", pattern);
            }
            Err(LeafError::Unsupported { what: "look-behind inside look-ahead", .. }) => {
                prop_assert!(pattern.contains("(?<"), "{}", pattern);
            }
            Err(error) => prop_assert!(false, "{} {}", pattern, error),
        }
    }

    #[test]
    fn sets_of_strings_agree_with_their_definition(
        tree in trees(), texts in prop::collection::vec(texts(), 20),
    ) {
        let set = tree.set();
        for text in &texts {
            prop_assert_eq!(set.contains(text), tree.has(text), "{:?} in {:?}", text, set);
        }
        let complement = set.complement().unwrap();
        prop_assert!(set.intersect(&complement).unwrap().is_empty());
        prop_assert!(set.union(&complement).unwrap().is_all());
        prop_assert!(set.same(&complement.complement().unwrap()).unwrap());
        prop_assert!(!set.same(&complement).unwrap());
        if let Some(strings) = set.as_finite(50) {
            prop_assert!(set.same(&StringSet::of(&strings).unwrap()).unwrap());
            prop_assert!(strings.is_sorted());
        }
    }

    #[test]
    fn every_spelling_of_a_member_is_accepted(
        tree in trees(),
        cases in prop::collection::vec((texts(), prop::collection::vec(0..4_usize, 6)), 8),
    ) {
        let set = tree.set();
        let (all, minimal) = (emitted(&set, ALL), emitted(&set, MINIMAL));
        for (text, choices) in cases {
            let written = |choose: &dyn Fn(usize, &[String]) -> String| -> String {
                let ways = text.chars().map(spellings).enumerate();
                let inside: String = ways.map(|(at, ways)| choose(at, &ways)).collect();
                format!("\"{inside}\"")
            };
            let any = written(&|at, ways| ways[choices[at] % ways.len()].clone());
            prop_assert_eq!(accepts(&all, any.as_bytes()), tree.has(&text), "{}", any);
            let plain = written(&|_, ways| ways[0].clone());
            prop_assert_eq!(accepts(&minimal, plain.as_bytes()), tree.has(&text), "{}", plain);
            if any != plain && !text.chars().any(|character| character.is_control()) {
                prop_assert!(!accepts(&minimal, any.as_bytes()), "{}", any);
            }
        }
    }

    #[test]
    fn accepted_texts_are_json_strings_of_the_set(
        tree in trees(),
        inside in concat!(
            r#"([ab1é😀/&"\\ ]|\\["\\/bfnrtux]|\\u00[0-9a-fA-F]{2}"#,
            r"|\\u[dD][89a-fA-F][0-9]{2}|\\u[0-9a-f]{1,4}){0,6}",
        ),
    ) {
        let text = format!("\"{inside}\"");
        let accepted = accepts(&emitted(&tree.set(), ALL), text.as_bytes());
        let meaning = serde_json::from_str::<String>(&text);
        prop_assert_eq!(accepted, meaning.is_ok_and(|string| tree.has(&string)), "{}", text);
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn counted_patterns_keep_their_bounds(
        min in 0..40_u64,
        max in 150..400_u64,
        length in 0..500_usize,
        kind in 0..8_usize,
    ) {
        let (pattern, text) = [
            ("^[a-z]+$", "a".repeat(length)),
            (
                r"^(?=.*\d)(?=.*[a-z])[a-z\d]*(-[a-z\d]+)*(x{9}|y{8}|z{7})?$",
                format!("1{}-a", "a".repeat(length)),
            ),
            (r"\S", format!(" {}b", " ".repeat(length))),
            ("^[^a]{3,300}$", "é".repeat(length)),
            (r"^\p{L}[\p{L}\p{N}_]*(\.\p{L}[\p{L}\p{N}_]*)*$", format!("é{}.a_", "b".repeat(length))),
            (
                "^(x|data|da(=?)),[a-z]+={0,2}$",
                format!("data,{}{}", "a".repeat(length), "=".repeat(length % 4)),
            ),
            ("^(ab)?c*(d[ab]{0,70})?$", format!("ab{}d{}", "c".repeat(length / 2), "b".repeat(length / 3))),
            ("^a*b$", format!("{}b", "a".repeat(length))),
        ][kind].clone();
        let set = StringSet::from_pattern(pattern).unwrap().with_length(min, Some(max)).unwrap();
        let quoted = format!("\"{text}\"");
        let characters = text.chars().count() as u64;
        let expected = is_match(pattern, &text) && (min..=max).contains(&characters);
        prop_assert_eq!(set.contains(&text), expected);
        prop_assert_eq!(accepts(&emitted(&set, ALL), quoted.as_bytes()), expected);
        if kind > 4 {
            let others = emitted(&set.complement().unwrap(), ALL);
            prop_assert_eq!(accepts(&others, quoted.as_bytes()), !expected);
        }
    }
}

#[test]
fn wrong_patterns_are_refused_by_name() {
    for (pattern, what) in [
        ("(?<=a(?=b))b", "look-ahead inside look-behind"),
        ("(?!(?<!a)b)b", "look-behind inside look-ahead"),
        (r"(a)\1", "a back-reference"),
        (r"(?<x>a)\k<x>", "a back-reference"),
        ("(?i)a", "a group with flags, `(?`"),
        ("(?P<x>a)", "a group named as in Python, `(?P<`"),
    ] {
        match StringSet::from_pattern(pattern) {
            Err(LeafError::Unsupported { what: found, .. }) => assert_eq!(found, what, "{pattern}"),
            other => panic!("{pattern}: {other:?}"),
        }
    }
    for pattern in [
        "(",
        ")",
        "[a",
        "a**",
        "*",
        "a{2,1}",
        r"\Z",
        r"\a",
        r"\",
        r"\x1",
        r"\u{110000}",
        r"\p{Nope}",
        "[b-a]",
    ] {
        assert!(matches!(StringSet::from_pattern(pattern), Err(LeafError::Syntax { .. })), "{pattern}");
    }
}

/// Look-around in loops and counts, at both ends, around assertions, and one inside of the other.
#[test]
fn look_around_holds_anywhere_in_a_pattern() {
    for (pattern, inside, outside) in [
        (r"^[a-z\d](?:[a-z\d]|-(?=[a-z\d])){0,38}$", "a-b-1", "a-"),
        (r"^[a-z\d](?:[a-z\d]|-(?=[a-z\d])){0,38}$", "ab", "a--b"),
        (r"^((\.(?!\.)\/)?\w+\/?)+$", "a/./b", "../a"),
        (r"^(?:(?![:*$])[ -~]){1,255}$", "ab", "a:b"),
        (r"^(?:(?!ab)[abc])*$", "bac", "cab"),
        (r"^(?:a(?!.*a.*a.*a)|b)*$", "abaab", "aabaa"),
        (r"^.*(?<!\.)$", "a.b", "a."),
        (r"^.*(?<=\.json)$", "a.json", "a.jso"),
        (r"^[a-z](?:[a-z-](?<!--))*(?<!-)$", "a-b", "a--b"),
        (r"^(?:(?<=a|^)b|a)+$", "bab", "abb"),
        (r"(?<!\w)key(?!\w)", "a key!", "monkey"),
        (r"(?<=\bon) (?=\w+$)", "on top", "upon top"),
        (r"^(?<!a)b", "b", "ab"),
        (r"^(?:(?=a(?!b)).|(?=b).c|b)+$", "bcb", "bab"),
    ] {
        let set = StringSet::from_pattern(pattern).unwrap();
        for (text, expected) in [(inside, true), (outside, false)] {
            assert_eq!(
                (set.contains(text), is_match(pattern, text)),
                (expected, expected),
                "{pattern} {text}"
            );
        }
    }
}

/// Zod's pattern of host names: a bound on the length of the whole, with an ending that may be left out.
#[test]
fn a_bound_on_the_whole_may_have_an_ending() {
    let label = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?";
    let pattern = &format!(r"^(?=.{{1,253}}\.?$){label}(?:\.{label})*\.?$");
    let set = StringSet::from_pattern(pattern).unwrap();
    let label = "a".repeat(63);
    for length in [1, 62, 63, 64, 100, 252, 253, 254, 255] {
        let all: String = format!("{label}.").chars().cycle().take(length).collect();
        for text in [all.clone(), format!("{all}."), format!("{all}b")] {
            assert_eq!(set.contains(&text), is_match(pattern, &text), "{length} {text}");
        }
    }
    assert!(accepts(&emitted(&set, ALL), b"\"example.org.\""));
}

#[test]
fn liberties_outside_of_unicode_mode_are_taken() {
    for (pattern, inside, outside) in [
        ("^{}$", "{}", "a"),
        ("^a{,2}$", "a{,2}", "aa"),
        (r"^[\w-.]$", "-", "+"),
        (r"^\-\@\_$", "-@_", "a"),
        ("^]$", "]", "["),
        ("^[[]$", "[", "]"),
    ] {
        let set = StringSet::from_pattern(pattern).unwrap();
        assert!(set.contains(inside) && !set.contains(outside), "{pattern}");
    }
}

#[test]
fn the_usual_password_and_number_patterns_work() {
    let password = StringSet::from_pattern(r"^(?=.*[A-Z])(?=.*\d)(?!.*\s)[^\n]{8,}$").unwrap();
    assert!(
        password.contains("Passw0rd") && !password.contains("password1") && !password.contains("Pass w0rd1")
    );
    let number = StringSet::from_pattern(r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$").unwrap();
    for (text, expected) in
        [("1.5", true), ("-", false), (".", false), ("", false), ("+.5", true), ("1.5.", false)]
    {
        assert_eq!(number.contains(text), expected, "{text}");
    }
}

#[test]
fn hostile_patterns_end_quickly() {
    let deep = "(".repeat(5_000);
    let nested = "(?:(?:(?:a{1000}){1000}){1000}){1000}";
    let exponential = "^[ab]*a[ab]{30}$";
    let empty = "(?:){4294967295}";
    let looks = "(?=.*a)".repeat(400);
    let many = (0..3_000).map(|at| format!("(?=.*{at}x)")).collect::<String>();
    for pattern in [&*deep, nested, exponential, empty, &looks, &many] {
        // Both are right, as long as it terminates.
        let made = StringSet::from_pattern(pattern);
        assert!(matches!(made, Ok(_) | Err(LeafError::Budget { .. } | LeafError::Syntax { .. })), "{made:?}");
    }
    assert!(matches!(StringSet::from_pattern(exponential), Err(LeafError::Budget { .. })));
}

#[test]
fn bounds_on_length_take_no_states() {
    let long = StringSet::all().with_length(1_000_000_000, None).unwrap();
    assert!(!long.contains("a") && !long.is_empty() && long.as_finite(100).is_none());
    assert!(long.intersect(&StringSet::of(["a", "b"]).unwrap()).unwrap().is_empty());
    assert!(emitted(&long, ALL).exprs().len() < 10);
    let exact = StringSet::from_pattern("^[ab]*$").unwrap().with_length(100_000, Some(100_000)).unwrap();
    assert!(emitted(&exact, ALL).exprs().len() < 10);
    assert!(StringSet::all().with_length(3, Some(2)).unwrap().is_empty());
    let u64s = StringSet::all().with_length(u64::MAX, Some(u64::MAX)).unwrap();
    assert!(!u64s.is_empty());
}

#[test]
fn data_of_a_megabyte_takes_few_states() {
    let pattern = r"^data:image/(jpeg|png);base64,[A-Za-z0-9+/]+={0,2}$";
    let set = StringSet::from_pattern(pattern).unwrap().with_length(0, Some(1_400_000)).unwrap();
    assert!(emitted(&set, ALL).exprs().len() < 60);
    assert!(emitted(&set.complement().unwrap(), ALL).exprs().len() < 60);
}

#[test]
fn large_sets_become_several_automata() {
    let strings: Vec<String> = (0..6_000).map(|at| format!("value-{:x}-{at}", at * 7_919)).collect();
    let set = StringSet::of(&strings).unwrap();
    let grammar = emitted(&set, ALL);
    for at in (0..6_000).step_by(199) {
        assert!(accepts(&grammar, format!("\"{}\"", strings[at]).as_bytes()));
        assert!(!accepts(&grammar, format!("\"{}0\"", strings[at]).as_bytes()));
    }
    assert_eq!(set.as_finite(6_000).map(|found| found.len()), Some(6_000));
    let long = "lorem ipsum ".repeat(2_000);
    let grammar = emitted(&StringSet::one(&long).unwrap(), ALL);
    assert!(accepts(&grammar, format!("\"{long}\"").as_bytes()));
    assert!(!accepts(&grammar, format!("\"{long}.\"").as_bytes()));
}

#[test]
fn addresses_have_at_most_the_characters_asked_for() {
    let set = StringSet::from_format("email").unwrap().unwrap().with_length(3, Some(255)).unwrap();
    let grammar = emitted(&set, ALL);
    for (length, expected) in [(1, true), (248, true), (249, true), (250, false)] {
        let text = format!("\"{}@ab.cd\"", "x".repeat(length));
        assert_eq!(accepts(&grammar, text.as_bytes()), expected, "{length}");
    }
    assert!(accepts(&grammar, b"\"a@[IPv6:::1]\""));
}

#[test]
fn the_set_of_all_strings_is_one_automaton() {
    let set = StringSet::from_pattern("").unwrap();
    assert!(set.is_all());
    let shown = |grammar: &Grammar| format!("{:?}", grammar.exprs().collect::<Vec<_>>());
    assert_eq!(shown(&emitted(&set, ALL)), shown(&emitted(&StringSet::all(), ALL)));
    assert_eq!(emitted(&set, ALL).exprs().len(), 1);
}
