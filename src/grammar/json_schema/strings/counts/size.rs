//! A lower bound on the states of the automaton over bytes of a set of strings, without making it.
//!
//! A pattern with large counts has thousands of states, most of which treat characters in the same way: the
//! same classes lead to the same number of states, but to other ones each time. The bytes of a character then
//! go through the same nodes, and a node has as many copies as there are different sets of states behind it.

use hashbrown::{HashMap, HashSet};

use super::super::spelling::{CharacterPlan, MAX_SPELLED, Style, changed::RangeTo, code_points};
use crate::grammar::json_schema::dfa::CharDfa;

/// Limit on the states that are looked at. If their automaton is too large, so is the whole.
const MOST_STATES: usize = 4_000;
/// Limit on the plans (ways to treat characters) that are looked at.
const MOST_PLANS: usize = 8;

/// Number of states of a character automaton above which its byte automaton may be too large, for the largest
/// that is listed, and byte states for each above which a smaller one may be.
const MAY_BE_LARGE: usize = 64;
const STATES_INSIDE: usize = 16;

/// The states that characters lead to, in order.
type Targets = Vec<u32>;

/// True if the automaton over bytes is surely too large to be spelled, even with the fewest escapes that it
/// is tried with.
pub(in super::super) fn is_too_large(dfa: &CharDfa, style: Style) -> bool {
    has_more_than(dfa, style, MAX_SPELLED)
}

/// True if the automaton over bytes surely has more states, even with the fewest escapes that it is tried
/// with.
pub(super) fn has_more_than(dfa: &CharDfa, style: Style, most: usize) -> bool {
    let styles: &[Style] = if style == Style::All { &[Style::All, Style::Usual] } else { &[style] };
    dfa.len() > MAY_BE_LARGE.min(most / STATES_INSIDE)
        && styles.iter().all(|&style| is_above(dfa, style, most))
}

/// True if the automaton over bytes of `dfa` surely has more than `most` states. About linear in the states
/// that are looked at.
pub(super) fn is_above(dfa: &CharDfa, style: Style, most: usize) -> bool {
    // An upper bound first: at most, each state has all nodes of all classes behind it.
    let intervals = dfa.alphabet().intervals();
    // There are no more classes than characters.
    let classes =
        intervals.filter_map(|(first, last, class)| Some((first, last, u32::try_from(class).ok()?)));
    let all = code_points(&classes.collect::<Vec<_>>());
    let nodes = CharacterPlan::new(style, &all, dfa.alphabet().classes()).map(|plan| plan.between.len() + 1);
    if nodes.is_ok_and(|nodes| nodes.saturating_mul(dfa.len()) <= most) {
        return false;
    }
    let mut plans: HashMap<Vec<RangeTo>, HashSet<Targets>> = HashMap::new();
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
    // Two plans may share states, so their counts must not be added.
    plans.truncate(MOST_PLANS);
    plans.iter().any(|(ways, targets)| copies(ways, targets, style) > most)
}

/// The number of states between and inside of characters, for all states that treat characters in one way.
fn copies(ways: &[RangeTo], targets: &HashSet<Targets>, style: Style) -> usize {
    let count = targets.iter().next().map_or(0, Vec::len);
    let Ok(plan) = CharacterPlan::new(style, ways, count) else { return 0 };
    // The number of nodes by the targets that they lead to; the node between characters leads to all.
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

    /// The number is never above the number of states that there are, and with one large count it is most of
    /// them; with two counts of different classes it is that of the larger one.
    #[test]
    fn the_size_is_a_near_lower_bound_of_the_states() {
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
