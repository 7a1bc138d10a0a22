//! Strings whose states run out of numbers or of memory: they end in an error with a place, and masks are
//! right up to there.

use std::collections::HashSet;

use proptest::prelude::*;

use super::super::spelling::Style;
use super::tests::{PATTERNS, both, compiler, constraint, in_array, lengths, pattern_as_spelled};
use crate::{
    Compiler, Constraint, Limits, StepError, StepErrorKind, TokenId,
    grammar::Pattern,
    limits::{Budget, LimitExceeded},
};

fn tokens(session: &mut Constraint) -> Result<Vec<TokenId>, StepError> {
    session.mask().map(|mask| mask.iter().collect())
}

fn limit(error: &StepError) -> LimitExceeded {
    match error.kind() {
        StepErrorKind::Limit(limit) => limit.clone(),
        other => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Masks along texts drawn from the masks of the automaton with all states: each is equal, or an error
    /// that moves nothing.
    #[test]
    fn masks_are_right_until_state_numbers_run_out(
        pattern in prop::sample::select(&PATTERNS[..]),
        lengths in lengths(),
        most in 1..30_u32,
        words in prop::collection::vec(
            r#"[a-cA-C]{1,9}"?|["\[][a-cx_]{0,3}|\\u00(61|e9|2d)|\\(n|"|\\)|😀|é{1,3}|[0-9-]{1,4}|",1"#,
            1..40,
        ),
        draws in prop::collection::vec(any::<u16>(), 1..30),
    ) {
        let Some((spelled, listed)) = both(pattern, lengths, Style::All)
            else { return Ok(()) };
        let words: Vec<String> = words.into_iter().collect::<HashSet<_>>().into_iter().collect();
        let compiler = compiler(&words);
        let few = constraint(&compiler, &Pattern::spelled(spelled.with_few_numbers(most)));
        let (mut few, mut all) = (few, constraint(&compiler, &Pattern::automaton(listed)));
        for draw in draws {
            let expected = tokens(&mut all).unwrap();
            match tokens(&mut few) {
                Ok(found) => prop_assert_eq!(&found, &expected),
                Err(error) => prop_assert_eq!(limit(&error).budget(), Budget::Fixed),
            }
            let Some(&token) = expected.get(usize::from(draw) % expected.len().max(1)) else { break };
            let before = few.clone();
            all.advance(token).unwrap();
            if let Err(error) = few.advance(token) {
                prop_assert_eq!(limit(&error).budget(), Budget::Fixed);
                prop_assert_eq!(few.is_complete(), before.is_complete());
                // The mask allows the token, or is an error.
                prop_assert!(few.allows(token) != Ok(false));
                prop_assert!(tokens(&mut few).is_ok_and(|found| found == expected) || few.mask().is_err());
                break;
            }
        }
    }
}

/// A text that reaches more states than there are numbers ends in an error, and other texts go on.
#[test]
fn a_text_past_the_last_state_number_is_an_error() {
    for (pattern, text) in [
        (r"^x[^\n]{0,900}$", "x"),
        ("^(?:[^,]{1,64},){0,49}$", ""),
        (r"^\S.{0,500}\S$", "-"),
        ("^[a-z]+:[a-z]{1,900}$", "abc:"),
        (r"^[a-z]+(?:\.[a-z]{1,63})*$", "a"),
    ] {
        let spelled = pattern_as_spelled(pattern, (0, Some(1 << 31)));
        let grammar = in_array(&Pattern::spelled(spelled.with_few_numbers(40)));
        let compiled = compiler(&[]).compile(&grammar).unwrap();
        let mut session = compiled.constraint();
        session.advance_bytes(format!("[\"{text}").as_bytes()).unwrap();
        let bytes = |session: &mut Constraint| {
            (0..64).find_map(|_| session.advance_bytes(b"a").err()).expect("more states than numbers")
        };
        let error = bytes(&mut session);
        let limit = limit(&error);
        assert_eq!(limit.budget(), Budget::Fixed, "{pattern}");
        let place = error.place().expect("a place");
        assert!((20..60).contains(&place.bytes), "{pattern}: {error}");
        assert!(error.to_string().contains("states of one string with counts"), "{error}");
        // States keep their numbers: the same text can be written again up to there.
        let mut again = compiled.constraint();
        let met = format!("[\"{text}{}", "a".repeat(place.bytes - 2 - text.len()));
        assert_eq!(again.advance_bytes(met.as_bytes()).unwrap(), met.len());
        assert_eq!(again.advance_bytes(b"a").unwrap_err().kind(), error.kind());
    }
}

/// The least room for automata with which a grammar compiles.
fn least_room(compile: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0_usize, 1 << 24);
    while low < high {
        let middle = low.midpoint(high);
        if compile(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

/// States that texts reach count in the compiler's memory and against `terminal_bytes`. Going beyond it is an
/// error that names it; a grammar compiled later has room again.
#[test]
fn states_of_texts_count_against_the_terminal_budget() {
    for pattern in [r"^x[^\n]{0,900}$", "^x(?:[^,]{1,64},)*[^,]*$", r"^\S.{0,900}x?$"] {
        let spelled = pattern_as_spelled(pattern, (0, Some(1 << 31)));
        let grammar = in_array(&Pattern::spelled(spelled));
        // Jobs on another core would hold a grammar's states for a while longer.
        let limits = Limits { ahead: 0, ..Limits::default() };
        let with = |terminal_bytes| compiler(&[]).limits(Limits { terminal_bytes, ..limits.clone() });
        let room = least_room(|room| with(room).compile(&grammar).is_ok()) + 8_000;
        let compiler = with(room);
        let ended = |compiler: &Compiler| {
            let compiled = compiler.compile(&grammar).unwrap();
            let before = (compiled.memory().terminals, compiler.memory().terminals);
            let mut session = compiled.constraint();
            session.advance_bytes(b"[\"x").unwrap();
            let error = (0..900).find_map(|_| session.advance_bytes(b"a").err()).expect("a budget");
            let limit = limit(&error);
            assert_eq!((limit.budget(), limit.limit()), (Budget::TerminalBytes, room as u64), "{pattern}");
            assert!(limit.hint().contains("terminal_bytes"));
            let place = error.place().expect("a place").bytes;
            // A state takes some 20 to 60 bytes, where lists double.
            assert!((100..500).contains(&place), "{pattern}: {error}");
            for (memory, before) in
                [(compiled.memory().terminals, before.0), (compiler.memory().terminals, before.1)]
            {
                assert!(memory >= before + 16 * (place - 3), "{memory} and {before}");
            }
            // States that exist can still be used.
            session.rollback(1).unwrap();
            session.mask().unwrap();
            (compiled, place)
        };
        let (kept, place) = ended(&compiler);
        // The states of the first are still there, and the second has its own.
        let (other, same) = ended(&compiler);
        assert_eq!(place, same, "{pattern}");
        let all = compiler.memory().terminals;
        drop(kept);
        ended(&compiler);
        assert!(compiler.memory().terminals <= all, "{pattern}");
        drop(other);
    }
}
