//! Comparisons of automata with lists of all short strings.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// All strings over `ab` of up to five letters, and what else is of interest.
fn short() -> Vec<String> {
    let mut all = vec![String::new()];
    let mut first = 0;
    for _ in 0..5 {
        let last = all.len();
        for at in first..last {
            for letter in ["a", "b"] {
                all.push(format!("{}{letter}", all[at]));
            }
        }
        first = last;
    }
    all.extend(["c", "é", "\u{10ffff}a"].map(str::to_owned));
    all
}

/// A random automaton over `ab` and other characters, as its table.
fn automata() -> impl Strategy<Value = CharDfa> {
    (1..6_usize).prop_flat_map(|count| {
        let state = prop_oneof![2 => 0..u32::try_from(count).unwrap(), 1 => Just(NONE)];
        let table = (prop::collection::vec(state, count * 3), prop::collection::vec(any::<bool>(), count));
        table.prop_map(|(transitions, accepting)| {
            let (alphabet, _) = Alphabet::of(&[CharClass::one('a'), CharClass::one('b')]);
            CharDfa::from_table(alphabet, DfaTable { width: 3, transitions, accepting })
        })
    })
}

fn inside(dfa: &CharDfa) -> BTreeSet<String> {
    short().into_iter().filter(|string| dfa.contains(string)).collect()
}

proptest! {
    #[test]
    fn operations_on_automata_agree_with_sets_of_strings(left in automata(), right in automata()) {
        let (in_left, in_right) = (inside(&left), inside(&right));
        prop_assert_eq!(inside(&left.and(&right).unwrap()), &in_left & &in_right);
        prop_assert_eq!(inside(&left.or(&right).unwrap()), &in_left | &in_right);
        prop_assert_eq!(inside(&left.minus(&right).unwrap()), &in_left - &in_right);
        prop_assert_eq!(inside(&left.not()), &short().into_iter().collect::<BTreeSet<_>>() - &in_left);
    }

    /// Equal languages are equal values, however they came about.
    #[test]
    fn automata_are_canonical(left in automata(), right in automata()) {
        prop_assert_eq!(left.not().not(), left.clone());
        let apart = left.and(&right).unwrap().or(&left.minus(&right).unwrap()).unwrap();
        prop_assert_eq!(&apart, &left);
        let nothing = left.minus(&left).unwrap();
        prop_assert!(nothing.is_empty());
        prop_assert!(left.or(&left.not()).unwrap().is_all());
    }

    #[test]
    fn bounds_on_length_agree_with_sets_of_strings(dfa in automata(), min in 0..5_u64, more in 0..4_u64) {
        let length = |string: &String| string.chars().count() as u64;
        let max = min + more;
        let within = dfa.within(min, Some(max)).unwrap();
        let expected: BTreeSet<String> =
            inside(&dfa).into_iter().filter(|string| (min..=max).contains(&length(string))).collect();
        prop_assert_eq!(inside(&within), expected);
        prop_assert_eq!(dfa.has_length(min, Some(max)).unwrap(), !within.is_empty());
        prop_assert_eq!(dfa.has_length(min, None).unwrap(), !dfa.within(min, None).unwrap().is_empty());
        prop_assert_eq!(dfa.shortest().is_none(), dfa.is_empty());
        if let Some(longest) = within.longest() {
            prop_assert!(dfa.has_length(longest, Some(longest)).unwrap());
            prop_assert!(longest == max || !dfa.has_length(longest + 1, Some(max)).unwrap());
        }
    }

    #[test]
    fn an_automaton_of_strings_lists_them_again(
        strings in prop::collection::btree_set("[abcé]{0,4}", 0..12),
    ) {
        let dfa = CharDfa::of(&strings).unwrap();
        let mut sorted: Vec<String> = strings.iter().cloned().collect();
        sorted.sort();
        prop_assert_eq!(dfa.strings(12), Some(sorted));
        prop_assert_eq!(dfa.count(3), strings.len().min(4));
        let add = |sum: CharDfa, string: &String| sum.or(&CharDfa::of([string])?);
        let one_by_one = strings.iter().try_fold(CharDfa::none(), add);
        prop_assert_eq!(&one_by_one.unwrap(), &dfa);
        prop_assert_eq!(CharDfa::all_but(&strings).unwrap(), dfa.not());
    }
}

#[test]
fn lengths_far_out_are_found_or_refused() {
    let three = CharDfa::of(["aaa"]).unwrap();
    assert_eq!(three.has_length(2, Some(u64::MAX)), Ok(true));
    assert_eq!(three.has_length(4, None), Ok(false));
    assert_eq!(CharDfa::all().has_length(1_000_000_000, Some(1_000_000_000)), Ok(true));
    assert_eq!(CharDfa::all().one_class(), None);
}
