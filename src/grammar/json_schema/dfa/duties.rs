//! Look-ahead in the subset construction of a pattern, as in an alternating automaton.
//!
//! A run that passes look-ahead goes on with a duty: what follows must, or must not, be in the language of a
//! minimal automaton. The duty moves along that automaton with each character that the run reads, and ends
//! where the automaton accepts every rest or none. So look-ahead is exact anywhere in a pattern, also in
//! loops, where a run has one duty for each place of the automaton at most. Sets of duties are numbered.

use hashbrown::HashMap;

use crate::{
    automata::minimize::{DfaTable, NONE},
    ids::as_index,
};

/// The number of the set without duties.
pub(super) const NO_DUTIES: u32 = 0;

/// A duty: an automaton by its number, a state of it, and whether the rest must be accepted from there, or
/// must not.
type Duty = (u32, u32, bool);

/// The automaton of look-ahead.
struct AheadLook<'n> {
    table: &'n DfaTable,
    /// The class of its alphabet for each class of the whole one.
    classes: Vec<usize>,
    /// The state from which it accepts every rest.
    all: Option<u32>,
}

impl AheadLook<'_> {
    fn row(&self, state: u32) -> &[u32] {
        &self.table.transitions[as_index(state) * self.table.width..][..self.table.width]
    }

    fn accepts(&self, state: u32) -> bool {
        self.table.accepting[as_index(state)]
    }
}

/// The sets of duties that runs have.
pub(super) struct Duties<'n> {
    looks: Vec<AheadLook<'n>>,
    sets: Vec<Vec<Duty>>,
    known: HashMap<Vec<Duty>, u32>,
    /// The number of sets.
    count: u32,
    /// The sets after a character of a class; `None` if the run has failed.
    moves: HashMap<(u32, usize), Option<u32>>,
}

impl<'n> Duties<'n> {
    /// The duties of these minimal automata, each with its class for each class of the whole alphabet.
    pub(super) fn new(automata: Vec<(&'n DfaTable, Vec<usize>)>) -> Self {
        let look = |(table, classes): (&'n DfaTable, Vec<usize>)| {
            let mut look = AheadLook { table, classes, all: None };
            let states = (0_u32..).take(table.accepting.len());
            look.all = states
                .filter(|&state| look.accepts(state) && look.row(state).iter().all(|to| *to == state))
                .last();
            look
        };
        Self {
            looks: automata.into_iter().map(look).collect(),
            sets: vec![Vec::new()],
            known: HashMap::from([(Vec::new(), NO_DUTIES)]),
            count: 1,
            moves: HashMap::new(),
        }
    }

    /// The set with the duty at the start of one more automaton; `None` if that cannot be fulfilled.
    pub(super) fn with(&mut self, set: u32, look: u32, wanted: bool) -> Option<u32> {
        let start = if self.looks[as_index(look)].table.accepting.is_empty() { NONE } else { 0 };
        match self.at(look, start, wanted) {
            Ok(is_fulfilled) => is_fulfilled.then_some(set),
            Err(duty) => {
                let mut duties = self.sets[as_index(set)].clone();
                duties.push(duty);
                Some(self.number(duties))
            }
        }
    }

    /// The set after a character; `None` if a duty has failed.
    pub(super) fn after(&mut self, set: u32, class: usize) -> Option<u32> {
        if set == NO_DUTIES {
            return Some(set);
        }
        if let Some(&known) = self.moves.get(&(set, class)) {
            return known;
        }
        let mut duties = Vec::with_capacity(self.sets[as_index(set)].len());
        let mut failed = false;
        for &(look, state, wanted) in &self.sets[as_index(set)] {
            let automaton = &self.looks[as_index(look)];
            let to = automaton.row(state)[automaton.classes[class]];
            match self.at(look, to, wanted) {
                Ok(is_fulfilled) => failed |= !is_fulfilled,
                Err(duty) => duties.push(duty),
            }
        }
        let made = (!failed).then(|| self.number(duties));
        self.moves.insert((set, class), made);
        made
    }

    /// True if the duties are fulfilled where the text ends.
    pub(super) fn hold(&self, set: u32) -> bool {
        let holds = |&(look, state, wanted): &Duty| self.looks[as_index(look)].accepts(state) == wanted;
        self.sets[as_index(set)].iter().all(holds)
    }

    /// The number of duties in a set.
    pub(super) fn len(&self, set: u32) -> usize {
        self.sets[as_index(set)].len()
    }

    /// True if a run with the duties `set` does whatever one with the duties `other` does, and so makes it
    /// needless.
    pub(super) fn is_within(&self, set: u32, other: u32) -> bool {
        let other = &self.sets[as_index(other)];
        self.sets[as_index(set)].iter().all(|duty| other.binary_search(duty).is_ok())
    }

    /// The duty at a state of an automaton, [`NONE`] for none; or whether it is fulfilled, where that is
    /// known.
    fn at(&self, look: u32, state: u32, wanted: bool) -> Result<bool, Duty> {
        if state == NONE {
            return Ok(!wanted);
        }
        if self.looks[as_index(look)].all == Some(state) { Ok(wanted) } else { Err((look, state, wanted)) }
    }

    fn number(&mut self, mut duties: Vec<Duty>) -> u32 {
        duties.sort_unstable();
        duties.dedup();
        if let Some(&known) = self.known.get(&duties) {
            return known;
        }
        // Each set takes a visit of the budget, which is far below 2^32.
        let fresh = self.count;
        self.count += 1;
        self.known.insert(duties.clone(), fresh);
        self.sets.push(duties);
        fresh
    }
}
