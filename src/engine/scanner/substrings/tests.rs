//! Substrings of a text beside all of them written out.

use hashbrown::HashSet;
use proptest::prelude::*;

use super::*;

fn run(substrings: &Substrings, text: &[u8]) -> Option<u32> {
    text.iter().try_fold(0, |state, &byte| substrings.step(state, byte))
}

proptest! {
    /// Compares with a search for the text, whole characters alone, from states met in any order.
    #[test]
    fn substrings_are_those_of_whole_characters(
        text in "[abé漢]{1,40}|[ab]{70,200}",
        others in proptest::collection::vec("[abé漢]{0,5}", 1..20),
        cuts in proptest::collection::vec(0..3_usize, 20),
        with_empty: bool,
    ) {
        let substrings = Substrings::new(text.as_str().into(), with_empty).unwrap();
        for (other, cut) in others.iter().zip(cuts) {
            let state = run(&substrings, other.as_bytes());
            let expected = text.contains(other.as_str());
            prop_assert_eq!(state.is_some(), expected);
            let Some(state) = state else { continue };
            prop_assert_eq!(substrings.accepts(state), with_empty || !other.is_empty());
            prop_assert!((state as usize) < substrings.bound());
            // Inside of a character it goes on, and that is how far the end is.
            let bytes = &other.as_bytes()[..other.len().saturating_sub(cut)];
            let inside = run(&substrings, bytes).unwrap();
            let distance = substrings.distance(inside);
            let least = (0..5).find(|&more| ends(&substrings, inside, more)).unwrap();
            prop_assert_eq!(distance, least);
        }
    }

    /// States are as many as sets of places, and their names do not depend on what was met first.
    #[test]
    fn states_are_sets_of_places_with_stable_names(text in "[ab]{1,30}") {
        let all: Vec<&str> = (0..text.len())
            .flat_map(|from| (from + 1..=text.len()).map(move |to| (from, to)))
            .map(|(from, to)| &text[from..to])
            .collect();
        let places = |part: &str| -> Vec<usize> {
            (0..text.len()).filter(|&at| text[at..].starts_with(part)).map(|at| at + part.len()).collect()
        };
        let [forwards, backwards] =
            [(); 2].map(|()| Substrings::new(text.as_str().into(), true).unwrap());
        let name = |of: &Substrings, part: &str| of.name(run(of, part.as_bytes()).unwrap());
        let names: Vec<u64> = all.iter().map(|part| name(&forwards, part)).collect();
        let mut others: Vec<u64> = all.iter().rev().map(|part| name(&backwards, part)).collect();
        others.reverse();
        prop_assert_eq!(&names, &others);
        let sets: HashSet<Vec<usize>> = all.iter().map(|part| places(part)).collect();
        let pairs: HashSet<(Vec<usize>, u64)> =
            all.iter().zip(&names).map(|(part, name)| (places(part), *name)).collect();
        prop_assert_eq!(pairs.len(), sets.len());
        prop_assert_eq!(names.iter().collect::<HashSet<_>>().len(), sets.len());
    }
}

fn ends(substrings: &Substrings, state: u32, more: u32) -> bool {
    if more == 0 {
        return substrings.accepts(state);
    }
    (0..=u8::MAX).filter_map(|byte| substrings.step(state, byte)).any(|next| ends(substrings, next, more - 1))
}

#[test]
fn states_that_texts_reach_take_memory() {
    let substrings = Substrings::new("abcabdabe".repeat(30).into(), true).unwrap();
    let before = substrings.bytes();
    run(&substrings, b"abcab").unwrap();
    assert!(substrings.bytes() > before);
    assert_eq!(substrings.clone(), substrings);
    assert_ne!(substrings.without_empty(), substrings);
}
