//! Sets of strings whose automaton over bytes would be too large: the automaton over characters is spelled
//! lazily, state by state as texts reach them.

#[cfg(test)]
mod limit_tests;
#[cfg(test)]
pub(super) mod listed;
pub(super) mod size;
#[cfg(test)]
pub(crate) mod tests;

use size::has_more_than;

use super::{
    emit::{MAX_STRINGS, StringEmitter},
    spelling::{CharacterPlan, MAX_SPELLED, Style, code_points},
};
use crate::{
    automata::minimize::{DfaTable, NONE},
    grammar::{
        Pattern,
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
    /// Emits the strings of `dfa` as last loops or spelled lazily, if their length is unbounded and their
    /// automaton over bytes is surely too large, so that it need not be tried; and in a grammar whose
    /// automata take much memory already, if it is large.
    pub(super) fn is_spelled(
        &mut self,
        dfa: &CharDfa,
        bounds: (u64, Option<u64>),
    ) -> Result<bool, LeafError> {
        let crowded = self.builder.automata_bytes() > CROWDED;
        let most = if crowded { LARGE_IN_A_CROWD } else { MAX_SPELLED };
        if (bounds != (0, None) && !crowded)
            || !has_more_than(dfa, self.style, most)
            || dfa.one_class().is_some()
            || dfa.count(MAX_STRINGS) <= MAX_STRINGS
        {
            return Ok(false);
        }
        let error =
            LeafError::Budget { what: "states of the automaton of a JSON string", limit: MAX_SPELLED };
        match self.or_spelled(dfa, bounds, |one| one.last_loops(dfa, bounds, error)) {
            Ok(()) => Ok(true),
            Err(LeafError::Budget { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Emits what `other` does; if that exceeds its budget, the strings of `dfa` within the bounds, spelled
    /// lazily.
    pub(super) fn or_spelled(
        &mut self,
        dfa: &CharDfa,
        bounds: (u64, Option<u64>),
        other: impl FnOnce(&mut Self) -> Result<(), LeafError>,
    ) -> Result<(), LeafError> {
        let parts = self.parts.len();
        let Err(error) = other(self) else { return Ok(()) };
        self.parts.truncate(parts);
        let spelled =
            if matches!(error, LeafError::Budget { .. }) { spelled(dfa, self.style, bounds) } else { None };
        let Some(spelled) = spelled else { return Err(error) };
        let part = self.builder.pattern(Pattern::spelled(spelled), self.span)?;
        self.parts.push(part);
        Ok(())
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
