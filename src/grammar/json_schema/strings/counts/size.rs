//! A lower bound on the states of the automaton over bytes of a set of strings, without making it.
//!
//! A pattern with large counts has thousands of states, most of which send characters on in the same way:
//! the same classes lead to as many states, which are others each time. The bytes of a character go through
//! the same nodes there, and a node has as many copies as there are different states behind it.

use hashbrown::{HashMap, HashSet};

use super::super::spelling::{MAX_SPELLED, Plan, Style, Way, code_points};
use crate::grammar::json_schema::dfa::CharDfa;

/// States that are looked at: where those are too many, so are all.
const MOST_STATES: usize = 4_000;
/// Ways of sending characters on that are looked at.
const MOST_PLANS: usize = 8;

/// States of an automaton over characters from which on that over bytes may be too large, whatever it is.
const MAY_BE_LARGE: usize = 64;

/// The states that characters lead to, in their order.
type Targets = Vec<u32>;

/// Is the automaton over bytes surely too large, also with the fewest escapes that it is tried with?
pub(in super::super) fn is_too_large(dfa: &CharDfa, style: Style) -> bool {
    let styles: &[Style] = if style == Style::All { &[Style::All, Style::Usual] } else { &[style] };
    dfa.len() > MAY_BE_LARGE && styles.iter().all(|&style| is_above(dfa, style, MAX_SPELLED))
}

/// Has the automaton over bytes of `dfa` more than `most` states for sure? About linear in the states that
/// are looked at.
pub(super) fn is_above(dfa: &CharDfa, style: Style, most: usize) -> bool {
    // Each state has as many states behind it as there are nodes for all classes, at most.
    let intervals = dfa.alphabet().intervals();
    // There are no more classes than characters.
    let classes =
        intervals.filter_map(|(first, last, class)| Some((first, last, u32::try_from(class).ok()?)));
    let all = code_points(&classes.collect::<Vec<_>>());
    let nodes = Plan::new(style, &all, dfa.alphabet().classes()).map(|plan| plan.between.len() + 1);
    if nodes.is_ok_and(|nodes| nodes.saturating_mul(dfa.len()) <= most) {
        return false;
    }
    let mut plans: HashMap<Vec<Way>, HashSet<Targets>> = HashMap::new();
    for state in (0..).take(dfa.len().min(MOST_STATES)) {
        let (mut ways, mut targets) = (code_points(&dfa.edges(state)), Targets::new());
        let mut next = 0;
        for way in &mut ways {
            let known = (0..).zip(&targets).find(|(_, to)| **to == way.2);
            let number = known.map_or(next, |(number, _)| number);
            if number == next {
                targets.push(way.2);
                next += 1;
            }
            way.2 = number;
        }
        plans.entry(ways).or_default().insert(targets);
    }
    let mut plans: Vec<_> = plans.into_iter().collect();
    plans.sort_unstable_by_key(|(_, targets)| std::cmp::Reverse(targets.len()));
    // Two plans may have states in common, so each counts for itself.
    plans.truncate(MOST_PLANS);
    plans.iter().any(|(ways, targets)| copies(ways, targets, style) > most)
}

/// The states between characters and inside of one, of all states that send characters on in one way.
fn copies(ways: &[Way], targets: &HashSet<Targets>, style: Style) -> usize {
    let count = targets.iter().next().map_or(0, Vec::len);
    let Ok(plan) = Plan::new(style, ways, count) else { return 0 };
    // By what they lead to, how many nodes there are; the one between characters leads to all.
    let mut sets: Vec<Vec<bool>> = Vec::with_capacity(plan.between.len());
    let mut nodes: HashMap<Vec<bool>, usize> = HashMap::from([(vec![true; count], 1)]);
    let index = |state: u32| state as usize;
    for state in &*plan.between {
        let mut set = vec![false; count];
        for edge in &state.edges {
            match sets.get(index(edge.to).wrapping_sub(count)) {
                Some(further) => set.iter_mut().zip(further).for_each(|(one, other)| *one |= other),
                None => set[index(edge.to)] = true,
            }
        }
        *nodes.entry(set.clone()).or_default() += 1;
        sets.push(set);
    }
    let different = |set: &[bool]| {
        let kept = |targets: &Targets| {
            let kept = targets.iter().zip(set).filter(|(_, kept)| **kept);
            kept.map(|(&to, _)| to).collect::<Targets>()
        };
        targets.iter().map(kept).collect::<HashSet<Targets>>().len()
    };
    nodes.iter().map(|(set, nodes)| nodes * different(set)).sum()
}

#[cfg(test)]
mod tests {
    use super::{
        super::super::{StringSet, spelling::quoted},
        *,
    };

    /// The number found is never above that of the states there are, and where one count is large most of
    /// these; of two counts of different classes it is that of the larger one.
    #[test]
    fn a_lower_bound() {
        for (pattern, percent) in [
            (r"^x[^\n]{0,400}$", 75),
            (r"^\p{L}{1,9} \p{L}{1,9}$", 0),
            (r"^\S.{0,300}\S$", 75),
            ("^(?:[^,]{1,30},){0,9}$", 75),
            ("^[a-z]{1,200}-[0-9a-f]{1,200}$", 45),
            ("^[a-z]{1,300}-[0-9a-f]{1,100}$", 70),
            ("^(abc|é|[^a]b)*$", 0),
            (r#"^["\\/]{3}x?$"#, 0),
            ("^a$", 0),
        ] {
            for style in [Style::All, Style::Usual, Style::Minimal] {
                let set = StringSet::from_pattern(pattern).unwrap();
                let (.., dfa) = set.windows().last().unwrap();
                let states = quoted(dfa, style).unwrap().states().len();
                assert!(!is_above(dfa, style, states), "{pattern} {style:?}: {states}");
                let least = states * percent / 100;
                assert!(percent == 0 || is_above(dfa, style, least), "{pattern} {style:?}: {states}");
            }
        }
    }
}
