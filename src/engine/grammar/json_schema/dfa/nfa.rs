//! NFAs over characters with assertions and look-around, and their subset construction.
//!
//! An assertion looks at the characters on both sides of a place. So a state of the DFA is a set of NFA
//! states *before* their silent moves, together with the kind of the last character; the silent moves (the
//! epsilon closure) are made once the kind of the next character is known.
//!
//! Look-behind is part of the same NFA: its runs begin at every place, and a place knows which of them end
//! there. Look-ahead has an automaton of its own, and gives the run that passes it a duty ([`Duties`]).

use std::cell::Cell;

use hashbrown::{HashMap, HashSet};

use super::{Alphabet, CharClass, CharDfa, DfaRow, ops::explore_up_to};
use crate::{
    automata::minimize::{DfaTable, NONE},
    grammar::json_schema::leaf::LeafError,
    ids::as_index,
};

/// Limit on the states of an NFA.
const MAX_NFA: usize = 300_000;

/// Limit on the states of a pattern's automaton before it is minimised.
const MAX_PATTERN_STATES: usize = 1 << 17;

/// Limit on the different sets of characters of an NFA, and on its different look-aheads and look-behinds; a
/// table has a row and a column for each set.
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

impl Prev {
    /// The place of the kind in a [`LookAhead`].
    fn place(self) -> usize {
        match self {
            Self::Start => 0,
            Self::Word => 1,
            Self::Other => 2,
        }
    }
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
    /// A silent move where the text before ends with a match of this look-behind, or with `false` does not.
    Behind(u32, bool, u32),
    /// A match of this look-behind ends here.
    Seen(u32),
    /// A silent move, after which the rest must be in this language, or with `false` must not.
    Ahead(LookAhead, bool, u32),
    /// A match has been found, whatever follows.
    Found,
}

/// The automata of look-ahead, by number: one for each kind of the character before.
pub(in crate::grammar::json_schema) type LookAhead = [u32; 3];

/// A run of an NFA: its state, and the number of its set of duties.
type NfaRun = (u32, u32);

/// A nondeterministic automaton with assertions.
#[derive(Debug, Default)]
pub(in crate::grammar::json_schema) struct Nfa {
    sets: Vec<CharClass>,
    known: hashbrown::HashMap<CharClass, u32>,
    states: Vec<NfaState>,
    /// The languages of rests that look-ahead asks for.
    aheads: Vec<CharDfa>,
    /// The start of each look-behind. One that stands inside of another comes before it.
    behinds: Vec<u32>,
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

    /// Look-ahead by an NFA of its own, of which `start` begins a match and [`NfaState::Found`] ends it.
    pub(in crate::grammar::json_schema) fn ahead(
        &mut self,
        inside: &Self,
        start: u32,
        word: &CharClass,
    ) -> Result<LookAhead, LeafError> {
        inside.visits.set(self.visits.get());
        let mut look = [0; 3];
        for prev in [Prev::Start, Prev::Word, Prev::Other] {
            look[prev.place()] = match prev {
                Prev::Word | Prev::Other if !inside.looks_back() => look[0],
                _ => {
                    let language = inside.determinise(start, prev, false, word)?;
                    self.language(language)?
                }
            };
        }
        self.visits.set(inside.visits.get());
        Ok(look)
    }

    /// The number of a language that look-ahead asks for.
    fn language(&mut self, language: CharDfa) -> Result<u32, LeafError> {
        let known = (0..).zip(&self.aheads).find(|(_, known)| **known == language);
        if let Some((known, _)) = known {
            return Ok(known);
        }
        let fresh = u32::try_from(self.aheads.len()).ok().filter(|_| self.aheads.len() < MAX_SETS);
        let fresh = fresh.ok_or(LeafError::Budget { what: "look-aheads of a pattern", limit: MAX_SETS })?;
        self.aheads.push(language);
        Ok(fresh)
    }

    /// Look-behind whose matches begin at `start` and end at `end`.
    pub(in crate::grammar::json_schema) fn behind(&mut self, start: u32, end: u32) -> Result<u32, LeafError> {
        let fresh = u32::try_from(self.behinds.len()).ok().filter(|_| self.behinds.len() < MAX_SETS);
        let fresh = fresh.ok_or(LeafError::Budget { what: "look-behinds of a pattern", limit: MAX_SETS })?;
        self.behinds.push(start);
        self.set(end, NfaState::Seen(fresh));
        Ok(fresh)
    }

    /// True if an assertion asks what stands before it.
    fn looks_back(&self) -> bool {
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
        let (plain, members) = if looks.words { Alphabet::of(&sets) } else { Alphabet::of(&self.sets) };
        let alphabet = self.aheads.iter().fold(plain.clone(), |all, look| all.joined(look.alphabet()).0);
        let (width, plain) = (alphabet.classes(), alphabet.classes_in(&plain));
        let is_word = |class: usize| looks.words && members[self.sets.len()][plain[class]];
        let looks_ahead = self.aheads.iter().map(|dfa| (dfa.table(), alphabet.classes_in(dfa.alphabet())));
        let duties = Duties::new(looks_ahead.collect());
        let mut subset = Subset { nfa: self, duties, mark: vec![0; self.states.len()], round: 0 };
        // `None` is the state in which a match has been found.
        let begin = |start: &u32| vec![(*start, NO_DUTIES)];
        let behinds = self.behinds.iter().map(begin).collect();
        let first = Some(SubsetPlace { runs: begin(&start), behinds, prev: looks.blur(prev) });
        explore_up_to(MAX_PATTERN_STATES, alphabet, first, |place: &Option<SubsetPlace>| {
            let Some(place) = place else {
                return Ok(DfaRow { accepts: true, to: vec![Some(None); width] });
            };
            let accepts = match subset.closure(place, Next::End)? {
                None => true,
                Some(closed) => closed.runs.iter().any(|&run| subset.is_found(run)),
            };
            // The closure before a character that is no word character, and before one that is.
            let mut closures: [Option<Option<SubsetPlace>>; 2] = [None, None];
            let mut step = |class: usize| {
                let (next, read) =
                    if is_word(class) { (Next::Word, Prev::Word) } else { (Next::Other, Prev::Other) };
                let closure = match &mut closures[usize::from(next == Next::Word)] {
                    Some(closure) => closure,
                    empty => empty.insert(subset.closure(place, next)?),
                };
                let Some(closed) = closure else { return Ok(Some(None)) };
                let is_in = |set: u32| members[as_index(set)][plain[class]];
                let runs = subset.step(&closed.runs, class, search.then_some(start), is_in)?;
                if runs.is_empty() {
                    return Ok(None);
                }
                let behinds = closed.behinds.iter().zip(&self.behinds);
                let behinds = behinds.map(|(runs, start)| subset.step(runs, class, Some(*start), is_in));
                Ok(Some(Some(SubsetPlace {
                    runs,
                    behinds: behinds.collect::<Result<_, _>>()?,
                    prev: looks.blur(read),
                })))
            };
            Ok(DfaRow { accepts, to: (0..width).map(&mut step).collect::<Result<_, LeafError>>()? })
        })
    }
}

/// A state of the DFA: the runs of an NFA at a place, and those of its look-behinds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SubsetPlace {
    runs: Vec<NfaRun>,
    behinds: Vec<Vec<NfaRun>>,
    prev: Prev,
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
                NfaState::Ahead([start, word, other], ..) if start != word || word != other => {
                    (looks.words, looks.start) = (true, true);
                }
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
    duties: Duties<'a>,
    /// The round in which each state was last visited by a run without duties.
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

    /// The place after its silent moves: runs in states that read a character, or that have found a match but
    /// still have duties. `None` if a match was found.
    fn closure(&mut self, place: &SubsetPlace, next: Next) -> Result<Option<SubsetPlace>, LeafError> {
        let mut seen = vec![false; place.behinds.len()];
        let mut behinds = Vec::with_capacity(place.behinds.len());
        for core in &place.behinds {
            behinds.extend(self.silent(core, (place.prev, next), &mut seen)?);
        }
        let runs = self.silent(&place.runs, (place.prev, next), &mut seen)?;
        Ok(runs.map(|runs| SubsetPlace { runs, behinds, prev: place.prev }))
    }

    /// The epsilon closure of some runs. `seen` has the look-behinds that end here, to which it adds.
    fn silent(
        &mut self,
        core: &[NfaRun],
        (prev, next): (Prev, Next),
        seen: &mut [bool],
    ) -> Result<Option<Vec<NfaRun>>, LeafError> {
        self.round += 1;
        let (mut open, mut reading) = (core.to_vec(), Vec::new());
        let mut with_duties: HashSet<NfaRun> = HashSet::new();
        while let Some(run) = open.pop() {
            let (state, duties) = run;
            let is_known = if duties == NO_DUTIES {
                std::mem::replace(&mut self.mark[as_index(state)], self.round) == self.round
            } else {
                self.mark[as_index(state)] == self.round || !with_duties.insert(run)
            };
            if is_known {
                continue;
            }
            self.visit(1 + self.duties.len(duties))?;
            match self.nfa.states[as_index(state)] {
                NfaState::Set(..) => reading.push(run),
                NfaState::Split(ref to) => open.extend(to.iter().map(|&to| (to, duties))),
                NfaState::Assert(assertion, to) => {
                    open.extend(holds(assertion, prev, next).then_some((to, duties)))
                }
                NfaState::Behind(look, wanted, to) => {
                    open.extend((seen[as_index(look)] == wanted).then_some((to, duties)));
                }
                NfaState::Seen(look) => seen[as_index(look)] = true,
                NfaState::Ahead(look, wanted, to) => {
                    let duties = self.duties.with(duties, look[prev.place()], wanted);
                    open.extend(duties.map(|duties| (to, duties)));
                }
                NfaState::Found if duties == NO_DUTIES => return Ok(None),
                NfaState::Found => reading.push(run),
            }
        }
        Ok(Some(reading))
    }

    /// The runs after a character of a class, and one more from `start`. Of runs in one state, those whose
    /// duties include another's are left out.
    fn step(
        &mut self,
        runs: &[NfaRun],
        class: usize,
        start: Option<u32>,
        is_in: impl Fn(u32) -> bool,
    ) -> Result<Vec<NfaRun>, LeafError> {
        self.visit(runs.len())?;
        let mut after = Vec::new();
        for &(state, duties) in runs {
            let to = match self.nfa.states[as_index(state)] {
                NfaState::Set(set, to) if is_in(set) => to,
                NfaState::Found => state,
                _ => continue,
            };
            after.extend(self.duties.after(duties, class).map(|duties| (to, duties)));
        }
        after.extend(start.map(|start| (start, NO_DUTIES)));
        after.sort_unstable();
        after.dedup();
        let mut kept: Vec<NfaRun> = Vec::with_capacity(after.len());
        for alike in after.chunk_by(|one, other| one.0 == other.0) {
            for &(state, duties) in alike {
                self.visit(if alike.len() > 1 { alike.len() * self.duties.len(duties) } else { 0 })?;
                let is_needless =
                    |other: &NfaRun| other.1 != duties && self.duties.is_within(other.1, duties);
                kept.extend((!alike.iter().any(is_needless)).then_some((state, duties)));
            }
        }
        Ok(kept)
    }

    /// True if a run has found a match, and its duties are fulfilled at the end of the text.
    fn is_found(&self, (state, duties): NfaRun) -> bool {
        matches!(self.nfa.states[as_index(state)], NfaState::Found) && self.duties.hold(duties)
    }
}

fn holds(assertion: Assertion, prev: Prev, next: Next) -> bool {
    match assertion {
        Assertion::Start => prev == Prev::Start,
        Assertion::End => next == Next::End,
        Assertion::Boundary(wanted) => ((prev == Prev::Word) != (next == Next::Word)) == wanted,
    }
}

// Look-ahead is followed in the subset construction as in an alternating automaton. A run that passes
// look-ahead goes on with a duty: what follows must, or must not, be in the language of a minimal automaton.
// The duty moves along that automaton with each character that the run reads, and ends where the automaton
// accepts every rest or none. So look-ahead is exact anywhere in a pattern, also in loops, where a run has
// one duty for each place of the automaton at most. Sets of duties are numbered.

/// The number of the set without duties.
const NO_DUTIES: u32 = 0;

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
    fn accepts(&self, state: u32) -> bool {
        self.table.accepting[as_index(state)]
    }
}

/// The sets of duties that runs have.
struct Duties<'n> {
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
                .filter(|&state| look.accepts(state) && look.table.row(state).iter().all(|to| *to == state))
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
            let to = automaton.table.row(state)[automaton.classes[class]];
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
