//! NFAs over characters with assertions, and their subset construction.
//!
//! An assertion looks at the characters on both sides of a place. So a state of the DFA is a set of NFA
//! states *before* their silent moves, together with the kind of the last character; the silent moves (the
//! epsilon closure) are made once the kind of the next character is known.

use std::cell::Cell;

use super::{Alphabet, CharClass, CharDfa, DfaRow, ops::explore_up_to};
use crate::{grammar::json_schema::leaf::LeafError, ids::as_index};

/// Limit on the states of an NFA.
pub(in crate::grammar::json_schema) const MAX_NFA: usize = 300_000;

/// Limit on the states of a pattern's automaton before it is minimised.
const MAX_PATTERN_STATES: usize = 1 << 17;

/// Limit on the different sets of characters of an NFA; a table has a row and a column for each.
const MAX_SETS: usize = 2_000;

/// Limit on the NFA states visited in all subset constructions of one NFA. Each takes a few ns.
const MAX_VISITS: usize = 20_000_000;

/// The character before a place, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::grammar::json_schema) enum Prev {
    /// No character: the text starts here.
    Start,
    /// A word character.
    Word,
    /// A character that is not a word character.
    Other,
}

/// The character after a place, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    End,
    Word,
    Other,
}

/// A condition on a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::grammar::json_schema) enum Assertion {
    /// The text starts here.
    Start,
    /// The text ends here.
    End,
    /// `\b`, or with `false` `\B`.
    Boundary(bool),
    /// The character before is of this kind.
    After(Prev),
}

/// A state of an NFA. The states that it leads to are given by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::grammar::json_schema) enum NfaState {
    /// Reads one character of a set, which is given by its number.
    Set(u32, u32),
    /// Silent moves (epsilon edges).
    Split(Vec<u32>),
    /// A silent move where the assertion holds.
    Assert(Assertion, u32),
    /// A match has been found, whatever follows.
    Found,
}

/// A nondeterministic automaton with assertions.
#[derive(Debug, Default)]
pub(in crate::grammar::json_schema) struct Nfa {
    sets: Vec<CharClass>,
    known: hashbrown::HashMap<CharClass, u32>,
    states: Vec<NfaState>,
    /// States visited in all subset constructions so far.
    visits: Cell<usize>,
}

impl Nfa {
    /// A new state.
    pub(in crate::grammar::json_schema) fn push(&mut self, state: NfaState) -> Result<u32, LeafError> {
        let id = u32::try_from(self.states.len()).ok().filter(|_| self.states.len() < MAX_NFA);
        let id = id.ok_or(LeafError::Budget { what: "states of a pattern", limit: MAX_NFA })?;
        self.states.push(state);
        Ok(id)
    }

    /// Replaces a state that was pushed before; needed for loops.
    pub(in crate::grammar::json_schema) fn set(&mut self, id: u32, state: NfaState) {
        self.states[as_index(id)] = state;
    }

    /// A state that reads one character of `class`.
    pub(in crate::grammar::json_schema) fn class(
        &mut self,
        class: &CharClass,
        next: u32,
    ) -> Result<u32, LeafError> {
        let set = match self.known.get(class) {
            Some(&set) => set,
            None => {
                let too_many = LeafError::Budget { what: "different classes of a pattern", limit: MAX_SETS };
                let set = u32::try_from(self.sets.len()).ok().filter(|_| self.sets.len() < MAX_SETS);
                let set = set.ok_or(too_many)?;
                self.sets.push(class.clone());
                self.known.insert(class.clone(), set);
                set
            }
        };
        self.push(NfaState::Set(set, next))
    }

    /// Adds a copy of `dfa` and returns its start. Its strings must reach to the end of the text.
    pub(in crate::grammar::json_schema) fn embed(&mut self, dfa: &CharDfa) -> Result<u32, LeafError> {
        let found = self.push(NfaState::Found)?;
        let end = self.push(NfaState::Assert(Assertion::End, found))?;
        // An empty language still has a start.
        let first = self.push(NfaState::Split(Vec::new()))?;
        for _ in 1..dfa.len() {
            self.push(NfaState::Split(Vec::new()))?;
        }
        for state in dfa.states() {
            let by_target = dfa.ways(state);
            let mut out = Vec::with_capacity(by_target.len() + 1);
            for (target, class) in by_target {
                out.push(self.class(&class, first + target)?);
            }
            if dfa.accepts(state) {
                out.push(end);
            }
            self.set(first + state, NfaState::Split(out));
        }
        Ok(first)
    }

    /// True if an assertion asks what stands before it.
    pub(in crate::grammar::json_schema) fn looks_back(&self) -> bool {
        let looks = Looks::of(&self.states);
        looks.words || looks.start
    }

    /// The subset construction: the texts on which a run from `start` reaches [`NfaState::Found`], also by
    /// silent moves at the end of the text. `prev` stands before the text; with `search` a run may begin
    /// anywhere in the text.
    pub(in crate::grammar::json_schema) fn determinise(
        &self,
        start: u32,
        prev: Prev,
        search: bool,
        word: &CharClass,
    ) -> Result<CharDfa, LeafError> {
        let mut sets = self.sets.clone();
        sets.push(word.clone());
        let looks = Looks::of(&self.states);
        let (alphabet, members) = if looks.words { Alphabet::of(&sets) } else { Alphabet::of(&self.sets) };
        let width = alphabet.classes();
        let is_word = |class: usize| looks.words && members[self.sets.len()][class];
        let mut subset = Subset { nfa: self, mark: vec![0; self.states.len()], round: 0 };
        // `None` is the state in which a match has been found.
        let first = Some((vec![start], looks.blur(prev)));
        explore_up_to(MAX_PATTERN_STATES, alphabet, first, |state: &Option<(Vec<u32>, Prev)>| {
            let Some((core, prev)) = state else {
                return Ok(DfaRow { accepts: true, to: vec![Some(None); width] });
            };
            let accepts = subset.closure(core, *prev, Next::End)?.is_none();
            // The closure before a character that is no word character, and before one that is.
            let mut closures: [Option<Option<Vec<u32>>>; 2] = [None, None];
            let mut step = |class: usize| {
                let (next, read) =
                    if is_word(class) { (Next::Word, Prev::Word) } else { (Next::Other, Prev::Other) };
                let closure = match &mut closures[usize::from(next == Next::Word)] {
                    Some(closure) => closure,
                    empty => empty.insert(subset.closure(core, *prev, next)?),
                };
                let Some(closure) = closure else { return Ok(Some(None)) };
                subset.visit(closure.len())?;
                let reads = |&state: &u32| match self.states[as_index(state)] {
                    NfaState::Set(set, next) if members[as_index(set)][class] => Some(next),
                    _ => None,
                };
                let mut after: Vec<u32> = closure.iter().filter_map(reads).collect();
                after.extend(search.then_some(start));
                after.sort_unstable();
                after.dedup();
                Ok((!after.is_empty()).then(|| Some((after, looks.blur(read)))))
            };
            Ok(DfaRow { accepts, to: (0..width).map(&mut step).collect::<Result<_, LeafError>>()? })
        })
    }
}

/// The kinds of characters before a place that the assertions of an NFA ask for; others need not be
/// remembered.
#[derive(Debug, Clone, Copy)]
struct Looks {
    words: bool,
    start: bool,
}

impl Looks {
    fn of(states: &[NfaState]) -> Self {
        let mut looks = Self { words: false, start: false };
        for state in states {
            match state {
                NfaState::Assert(Assertion::Boundary(_), _) => looks.words = true,
                NfaState::Assert(Assertion::Start, _) => looks.start = true,
                NfaState::Assert(Assertion::After(_), _) => (looks.words, looks.start) = (true, true),
                _ => {}
            }
        }
        looks
    }

    fn blur(self, prev: Prev) -> Prev {
        match prev {
            Prev::Start if !self.start => Prev::Other,
            Prev::Word if !self.words => Prev::Other,
            prev => prev,
        }
    }
}

struct Subset<'a> {
    nfa: &'a Nfa,
    /// The round in which each state was last visited.
    mark: Vec<u32>,
    round: u32,
}

impl Subset<'_> {
    fn visit(&self, states: usize) -> Result<(), LeafError> {
        let visits = &self.nfa.visits;
        visits.set(visits.get() + states);
        if visits.get() > MAX_VISITS {
            return Err(LeafError::Budget {
                what: "steps of making a pattern's automaton",
                limit: MAX_VISITS,
            });
        }
        Ok(())
    }

    /// The reading states in the epsilon closure of `core`, or `None` if a match was found.
    fn closure(&mut self, core: &[u32], prev: Prev, next: Next) -> Result<Option<Vec<u32>>, LeafError> {
        self.round += 1;
        let (mut open, mut reading) = (core.to_vec(), Vec::new());
        while let Some(state) = open.pop() {
            if std::mem::replace(&mut self.mark[as_index(state)], self.round) == self.round {
                continue;
            }
            self.visit(1)?;
            match &self.nfa.states[as_index(state)] {
                NfaState::Set(..) => reading.push(state),
                NfaState::Split(to) => open.extend(to),
                NfaState::Assert(assertion, to) => {
                    if holds(*assertion, prev, next) {
                        open.push(*to);
                    }
                }
                NfaState::Found => return Ok(None),
            }
        }
        Ok(Some(reading))
    }
}

fn holds(assertion: Assertion, prev: Prev, next: Next) -> bool {
    match assertion {
        Assertion::Start => prev == Prev::Start,
        Assertion::End => next == Next::End,
        Assertion::Boundary(wanted) => ((prev == Prev::Word) != (next == Next::Word)) == wanted,
        Assertion::After(wanted) => prev == wanted,
    }
}
