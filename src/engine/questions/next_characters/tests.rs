//! Characters that may follow, held to a try of every character.

use proptest::prelude::*;

use super::*;
use crate::{Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary};

const PLENTY: usize = 1 << 20;

fn constraint(syntax: Syntax, grammar: &str) -> Constraint {
    let end = TokenId::new(256);
    let vocabulary =
        Vocabulary::builder().all_bytes().special(end, "<end>").end_of_text(end).build().unwrap();
    let grammar = Grammar::parse(syntax, grammar, &Limits::default()).unwrap();
    Compiler::new(vocabulary).compile(&grammar).unwrap().constraint()
}

fn follows(constraint: &mut Constraint, character: char) -> bool {
    let bytes = character.encode_utf8(&mut [0; 4]).as_bytes().to_vec();
    let follows = constraint.advance_bytes(&bytes).unwrap() == bytes.len();
    if follows {
        constraint.rollback(1).unwrap();
    }
    follows
}

#[test]
fn surrogates_are_cut_off_from_ranges() {
    for (start, end, expected) in [
        (0xD7F0, 0xD900, '\u{D7F0}'..='\u{D7FF}'),
        (0xD900, 0xE010, '\u{E000}'..='\u{E010}'),
        (0xD7F0, 0xE010, '\u{D7F0}'..='\u{E010}'),
    ] {
        let mut found = CodePoints { ranges: Vec::new() };
        found.add_chars(start, end);
        assert_eq!(found.into_chars(true).ranges, [expected]);
    }
}

/// The oracle: every character is tried.
fn all_that_follow(constraint: &mut Constraint) -> Vec<RangeInclusive<char>> {
    let mut ranges: Vec<RangeInclusive<char>> = Vec::new();
    let mut open = false;
    for character in '\0'..=char::MAX {
        let follows = follows(constraint, character);
        match ranges.last_mut() {
            Some(last) if open && follows => *last = *last.start()..=character,
            _ if follows => ranges.push(character..=character),
            _ => {}
        }
        open = follows;
    }
    ranges
}

fn next(constraint: &mut Constraint) -> Vec<RangeInclusive<char>> {
    let next = constraint.next_chars(PLENTY).unwrap();
    assert!(next.complete);
    next.ranges
}

#[test]
fn next_characters_are_those_found_by_trying_all() {
    let gbnf =
        "root ::= \"(\" root \")\" | [^ -~\\n] \"x\" | \"\u{65e5}\u{672c}\" | [\\U0001F600-\\U0001F64F]";
    for (syntax, grammar, text) in [
        (Syntax::Gbnf, gbnf, ""),
        (Syntax::Gbnf, gbnf, "(("),
        (Syntax::Gbnf, gbnf, "(\u{65e5}"),
        (Syntax::Regex, "a(?-u:\\xE6\\x97|\\xED[\\x80-\\xBF]{2}|\\xE0[\\x80-\\xBF]{2})|\\w", ""),
        (Syntax::Regex, "a(?-u:\\xE6\\x97|\\xED[\\x80-\\xBF]{2}|\\xE0[\\x80-\\xBF]{2})|\\w", "a"),
    ] {
        let mut constraint = constraint(syntax, grammar);
        assert_eq!(constraint.advance_bytes(text.as_bytes()).unwrap(), text.len());
        assert_eq!(next(&mut constraint), all_that_follow(&mut constraint), "{grammar} after {text}");
    }
}

#[test]
fn few_places_are_enough_for_classes_and_the_bound_holds() {
    let mut any = constraint(Syntax::Regex, "[^\"]*");
    let except = vec!['\0'..='!', '#'..=char::MAX];
    assert_eq!(any.next_chars(16).unwrap(), NextChars { ranges: except, complete: true });
    assert_eq!(any.next_chars(0).unwrap(), NextChars { ranges: Vec::new(), complete: false });
    let some = any.next_chars(3).unwrap();
    assert!(!some.complete && some.ranges[0] == ('\0'..='!'), "{some:?}");
    // Inside a character, and after the end, no character can follow.
    assert_eq!(any.advance_bytes(b"\xE6").unwrap(), 1);
    assert_eq!(next(&mut any), []);
    let mut ended = constraint(Syntax::Regex, "a*");
    ended.advance(TokenId::new(256)).unwrap();
    assert_eq!(next(&mut ended), []);
}

/// Characters at the borders of lengths, of surrogates, and anywhere.
fn character() -> impl Strategy<Value = char> {
    prop_oneof![
        proptest::char::range('a', 'f'),
        proptest::sample::select(vec![
            '\0',
            '\u{7f}',
            '\u{80}',
            '\u{7ff}',
            '\u{800}',
            '\u{d7ff}',
            '\u{e000}',
            '\u{ffff}',
            '\u{10000}',
            char::MAX,
        ]),
        any::<char>(),
    ]
}

/// A class, and whether more has to follow it.
fn class() -> impl Strategy<Value = (Vec<(char, char)>, bool)> {
    (proptest::collection::vec((character(), character()), 1..4), any::<bool>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn next_characters_are_the_members_of_the_classes(
        classes in proptest::collection::vec(class(), 1..4),
        tried in proptest::collection::vec(character(), 64),
    ) {
        let mut members = Vec::new();
        let mut branches = Vec::new();
        for (class, more) in classes {
            let mut branch = String::from("[");
            for (a, b) in class {
                let (a, b) = (a.min(b), a.max(b));
                members.push(a..=b);
                branch += &format!("\\u{{{:x}}}-\\u{{{:x}}}", u32::from(a), u32::from(b));
            }
            branches.push(branch + if more { "]z" } else { "]" });
        }
        let found = next(&mut constraint(Syntax::Regex, &branches.join("|")));
        let neighbours = |&c: &char| {
            [char::from_u32(u32::from(c).saturating_sub(1)), Some(c), char::from_u32(u32::from(c) + 1)]
        };
        let borders = members.iter().flat_map(|range| [*range.start(), *range.end()]).collect::<Vec<_>>();
        for character in borders.iter().chain(&tried).flat_map(neighbours).flatten() {
            let [is_found, is_member] =
                [&found, &members].map(|ranges| ranges.iter().any(|range| range.contains(&character)));
            prop_assert_eq!(is_found, is_member, "{:?}", character);
        }
    }
}
