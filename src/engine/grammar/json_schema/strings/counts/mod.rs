//! Sets of strings whose automaton over bytes would be too large: the automaton over characters is spelled
//! lazily, state by state as texts reach them.

#[cfg(test)]
mod limit_tests;
#[cfg(test)]
pub(super) mod listed;
#[cfg(test)]
pub(crate) mod tests;

use hashbrown::{HashMap, HashSet};

use super::{
    emit::{LengthRange, MAX_STRINGS, StringEmitter},
    spelling::{CharacterPlan, MAX_SPELLED, RangeTo, Style, code_points, too_many},
};
use crate::{
    automata::minimize::{DfaTable, NONE},
    grammar::{
        json_schema::{dfa::CharDfa, leaf::LeafError},
        spelled::{Bounds, CharacterSpellings, Spelled},
    },
};

/// Memory of a grammar's automata, in bytes, from which on its large ones are spelled lazily. Those of twelve
/// published schemas of some 26 KB take at most 1 MB (`domino inspect`), and ten grammars with as much as
/// this are within the memory that one may take.
const CROWDED: usize = 8 << 20;
/// Number of states of an automaton over bytes above which it is spelled lazily in a crowded grammar: one of
/// a thousand takes some 140 KB.
const LARGE_IN_A_CROWD: usize = 800;

impl StringEmitter<'_> {
    /// Emits the strings of `dfa` spelled lazily, if their length is unbounded and their automaton over bytes
    /// is surely too large, so that it need not be tried; and in a grammar whose automata take much memory
    /// already, if it is large.
    pub(super) fn is_spelled(&mut self, dfa: &CharDfa, bounds: LengthRange) -> Result<bool, LeafError> {
        let crowded = self.builder.automata_bytes() > CROWDED;
        let most = if crowded { LARGE_IN_A_CROWD } else { MAX_SPELLED };
        if (bounds != (0, None) && !crowded)
            || !has_more_than(dfa, self.style, most)
            || dfa.one_class().is_some()
            || dfa.count(MAX_STRINGS) <= MAX_STRINGS
        {
            return Ok(false);
        }
        match self.lazily(dfa, bounds, too_many(self.style)) {
            Err(LeafError::Budget { .. }) => Ok(false),
            made => made.map(|()| true),
        }
    }
}

/// The strings of `dfa` with `min` to `max` characters. Strings of more than 4,294,967,295 characters are
/// left out. `None` if no string is left, or if the bounds are beyond what can be counted.
pub(super) fn spelled(dfa: &CharDfa, style: Style, (min, max): (u64, Option<u64>)) -> Option<Spelled> {
    let longest = dfa.longest();
    // If no string exceeds the upper bound there is nothing to count.
    let max = max.filter(|max| longest.is_none_or(|longest| longest > *max));
    let min = if dfa.shortest()? >= min { 0 } else { min };
    let max = max.map(|max| u32::try_from(max.min(u64::from(u32::MAX)))).transpose().ok()?;
    let bounds = Bounds { min: u32::try_from(min).ok()?, max };
    let (table, classes) = without_dead_classes(dfa.table());
    let intervals = dfa.alphabet().intervals();
    let ways: Vec<(u32, u32, u32)> =
        intervals.filter_map(|(first, last, class)| Some((first, last, classes[class]?))).collect();
    let CharacterPlan { between, first } =
        CharacterPlan::new(style, &code_points(&ways), table.width).ok()?;
    Spelled::new(table, CharacterSpellings { first, inside: between }, bounds)
}

/// Drops the classes of characters that lead on from no state; returns the new number of each class.
fn without_dead_classes(table: &DfaTable) -> (DfaTable, Vec<Option<u32>>) {
    let mut lives = vec![false; table.width];
    for row in table.transitions.chunks_exact(table.width) {
        lives.iter_mut().zip(row).for_each(|(lives, &to)| *lives |= to != NONE);
    }
    let mut next = 0;
    let numbers = lives.iter().map(|lives| {
        let number = next;
        next += u32::from(*lives);
        lives.then_some(number)
    });
    let numbers: Vec<Option<u32>> = numbers.collect();
    let rows = table.transitions.chunks_exact(table.width);
    let live = |row: &[u32]| {
        let cells = row.iter().zip(&lives).filter(|(_, lives)| **lives).map(|(&to, _)| to);
        cells.collect::<Vec<u32>>()
    };
    let transitions = rows.flat_map(live).collect();
    let width = lives.iter().filter(|lives| **lives).count();
    (DfaTable { width, transitions, accepting: table.accepting.clone() }, numbers)
}

// The states of an automaton over bytes are bounded from below without making it. A pattern with large counts
// has thousands of states, most of which treat characters in the same way: the same classes lead to the same
// number of states, but to other ones each time. The bytes of a character then go through the same nodes, and
// a node has as many copies as there are different sets of states behind it.

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
pub(super) fn is_too_large(dfa: &CharDfa, style: Style) -> bool {
    has_more_than(dfa, style, MAX_SPELLED)
}

/// True if the automaton over bytes surely has more states, even with the fewest escapes that it is tried
/// with.
fn has_more_than(dfa: &CharDfa, style: Style, most: usize) -> bool {
    let styles: &[Style] = if style == Style::All { &[Style::All, Style::Usual] } else { &[style] };
    dfa.len() > MAY_BE_LARGE.min(most / STATES_INSIDE)
        && styles.iter().all(|&style| is_above(dfa, style, most))
}

/// True if the automaton over bytes of `dfa` surely has more than `most` states. About linear in the states
/// that are looked at.
fn is_above(dfa: &CharDfa, style: Style, most: usize) -> bool {
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
mod size_tests {
    use super::*;
    use crate::grammar::json_schema::strings::{StringSet, spelling::quoted};

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
