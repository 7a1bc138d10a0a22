//! Comparisons of strings that are spelled lazily with automata that have all of their states.

use std::collections::HashSet;

use proptest::prelude::*;

use super::{
    super::{
        StringSet,
        emit::LengthRange,
        spelling::{Style, quoted},
    },
    listed::{distances, index, step},
    spelled,
};
use crate::{
    Compiler, Constraint, Grammar, TokenId, Vocabulary,
    grammar::{
        Automaton, Pattern, Span, Spelled,
        json_schema::{dfa::CharDfa, probe::grammar},
        spelled::{MayNumber, Unfolded},
    },
};

/// Patterns with counts that stand alone, overlap, nest, and meet look-ahead.
pub(super) const PATTERNS: [&str; 16] = [
    r"^x[^\n]{0,9}$",
    r"^\p{L}{1,4} \p{L}{1,3}$",
    "^a{1,5}a{1,5}$",
    r"^\p{L}{1,4}[a-z]{2,5}$",
    "^(?:[^,]{1,3},){0,4}$",
    r"^\S.{0,6}\S$",
    "^(?!__)[^_😀]{1,5}$",
    "^(?!__.*__$)[^é]{1,6}$",
    r"^(?=.{2,7}$)(?:[a-c]\.)+[a-c]{1,3}$",
    r"^(?=.*[A-Z])(?=.*\d).{3,6}$",
    "^a*(?:bc|😀){0,3}$",
    r"^(?:.{1,3}\n){1,3}$",
    "^[a-c]+-[0-9]{3,}$",
    "é{2}",
    "^(aa)*$",
    "^$|^\"{1,4}\\\\$",
];

fn dfa(pattern: &str) -> CharDfa {
    let set = StringSet::from_pattern(pattern).unwrap();
    let (.., dfa) = set.windows().last().unwrap();
    dfa.clone()
}

/// The strings that match a pattern and have a number of characters within the bounds.
pub(crate) fn pattern_as_spelled(pattern: &str, lengths: LengthRange) -> Spelled {
    spelled(&dfa(pattern), Style::All, lengths).unwrap()
}

pub(super) fn lengths() -> impl Strategy<Value = LengthRange> {
    prop_oneof![
        Just((0, None)),
        (0..4_u64, prop::option::of(0..6_u64)).prop_map(|(min, more)| (min, more.map(|more| min + more))),
        (0..12_u64, 0..12_u64).prop_map(|(min, more)| (min, Some(min + more))),
        // A bound beyond what states can be numbered by.
        (0..3_u64).prop_map(|min| (min, Some(1 << 31))),
    ]
}

/// The strings of a pattern in both forms; `None` if there are none.
pub(super) fn both(pattern: &str, lengths: LengthRange, style: Style) -> Option<(Spelled, Automaton)> {
    let dfa = dfa(pattern);
    // Upper bounds that the strings of these tests never reach make no difference to them.
    let within = dfa.within(lengths.0, lengths.1.filter(|max| *max < 1 << 20)).unwrap();
    let made = spelled(&dfa, style, lengths);
    assert_eq!(made.is_some(), !within.is_empty(), "{pattern} {lengths:?}");
    Some((made?, quoted(&within, style).unwrap()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn lazy_states_agree_with_the_listed_automaton(
        pattern in prop::sample::select(&PATTERNS[..]), lengths in lengths(), minimal: bool,
    ) {
        let style = if minimal { Style::Minimal } else { Style::All };
        let Some((spelled, listed)) = both(pattern, lengths, style) else { return Ok(()) };
        let distances = distances(&listed);
        let (mut met, mut open) = (HashSet::from([(0, 0)]), vec![(0, 0)]);
        let mut states = HashSet::new();
        while let Some((one, other)) = open.pop() {
            states.insert(one);
            prop_assert_eq!(spelled.accepts(one), listed.states()[index(other)].accepts);
            prop_assert_eq!(spelled.distance(one), distances[index(other)], "{:?}", spelled.place(one));
            prop_assert!((one as usize) < spelled.bound());
            let ways = spelled.ways(spelled.at(one));
            for byte in 0..=u8::MAX {
                let to = spelled.step(one, byte, MayNumber::Yes).unwrap();
                let to = (to, step(&listed, other, byte));
                prop_assert_eq!(to.0.is_some(), to.1.is_some(), "{:?} {}", spelled.place(one), byte);
                let mut way = ways.iter().filter(|(first, last, _)| (*first..=*last).contains(&byte));
                prop_assert_eq!(way.next().map(|way| way.2), to.0.map(|to| spelled.at(to)));
                prop_assert!(way.next().is_none());
                // Without an upper bound within reach there is no end of states.
                let is_near = |(one, _): &(u32, u32)| {
                    spelled.place(*one).is_none_or(|place| lengths.1 < Some(1 << 20) || place.count < 20)
                };
                if let (Some(one), Some(other)) = to
                    && Some((one, other)).filter(is_near).is_some_and(|pair| met.insert(pair))
                {
                    open.push((one, other));
                }
            }
        }
        prop_assert_eq!(Some(spelled.shortest()), listed.shortest());
        if lengths.1.is_none_or(|max| max < 1 << 20) {
            let reached = spelled.reached(1 << 20).unwrap();
            let states = states.into_iter().map(|state| spelled.at(state));
            prop_assert_eq!(reached.into_iter().collect::<HashSet<_>>(), states.collect());
            prop_assert_eq!(
                Pattern::automaton(spelled.product(1 << 20).unwrap()).as_literal().is_some(), false);
            prop_assert!(spelled.product(1).is_err());
        }
        let names: HashSet<u64> = met.iter().map(|(one, _)| spelled.name(*one)).collect();
        let numbers: HashSet<u32> = met.iter().map(|(one, _)| *one).collect();
        prop_assert_eq!(names.len(), numbers.len());
    }
}

pub(super) fn compiler(words: &[String]) -> Compiler {
    let mut vocabulary = Vocabulary::builder();
    for byte in 0..=u8::MAX {
        vocabulary = vocabulary.token(TokenId::new(u32::from(byte)), [byte]);
    }
    for (token, word) in (256..).zip(words) {
        vocabulary = vocabulary.token(TokenId::new(token), word);
    }
    Compiler::new(vocabulary.end_of_text(TokenId::new(999)).build().unwrap())
}

/// A string in an array beside a number, so that tokens go on behind it.
pub(super) fn in_array(pattern: &Pattern) -> Grammar {
    grammar(|builder| {
        let [open, close] = [&b"["[..], b",1]"].map(Pattern::literal);
        let parts =
            [open, pattern.clone(), close].map(|part| builder.pattern(part, Span::default()).unwrap());
        builder.sequence(parts.to_vec(), Span::default()).unwrap()
    })
}

pub(super) fn constraint(compiler: &Compiler, pattern: &Pattern) -> Constraint {
    compiler.compile(&in_array(pattern)).unwrap().constraint()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Masks are equal along texts that are drawn from the masks themselves.
    #[test]
    fn masks_agree_with_those_of_the_listed_automaton(
        pattern in prop::sample::select(&PATTERNS[..]),
        lengths in lengths(),
        words in prop::collection::vec(
            concat!(
                r#"[a-cA-C]{1,9}"?|["\[][a-cx_]{0,3}|\\u00(61|e9|2d)|\\(n|"|\\)|😀|é{1,3}|"#,
                r#"[0-9-]{1,4}|",1|[a, .]{2,40}|\\ud83d"#,
            ),
            1..60,
        ),
        draws in prop::collection::vec(any::<u16>(), 1..30),
    ) {
        let Some((spelled, listed)) = both(pattern, lengths, Style::All) else { return Ok(()) };
        let words: Vec<String> = words.into_iter().collect::<HashSet<_>>().into_iter().collect();
        let compiler = compiler(&words);
        let patterns = [Pattern::spelled(spelled), Pattern::automaton(listed)];
        let mut sessions = patterns.map(|pattern| constraint(&compiler, &pattern));
        for draw in draws {
            let masks = sessions.each_mut().map(|session| session.mask().unwrap().iter().collect::<Vec<_>>());
            prop_assert_eq!(&masks[0], &masks[1]);
            let finish = sessions.each_mut().map(|session| {
                session.shortest_completion().unwrap().bytes.len()
            });
            prop_assert_eq!(finish[0], finish[1]);
            let Some(&token) = masks[0].get(usize::from(draw) % masks[0].len().max(1)) else { break };
            for session in &mut sessions {
                session.advance(token).unwrap();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    /// The number of states that is known without making them is never above the number that there are.
    #[test]
    fn estimated_sizes_are_lower_bounds(
        pattern in prop::sample::select(&PATTERNS[..]), lengths in lengths(),
    ) {
        let set = StringSet::from_pattern(pattern).unwrap();
        let (.., dfa) = set.windows().last().unwrap();
        let (min, max) = lengths;
        let within = dfa.within(min, max.filter(|max| *max < 1 << 20)).unwrap();
        for style in [Style::All, Style::Usual, Style::Minimal] {
            let states = quoted(&within, style).unwrap().states().len();
            prop_assert!(!super::is_above(&within, style, states), "{:?}: {}", style, states);
        }
    }
}
