//! Constraint states: canonical sets of threads, with the boundary.
//!
//! A thread `(P, t, d)` says: terminal `t` was started in parser set `P`, and its scanner is at `d`. The
//! boundary is the parser set in which the next terminal starts, if one may have just ended. A state is
//! all that the text so far means for what may follow, so equal states have equal masks.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::{
    ids::{ScanStateId, SetId, StateId},
    limits::{LimitExceeded, Limits},
};

/// One way to read the text so far. `d` names `t`, so `t` is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Thread {
    pub(crate) set: SetId,
    pub(crate) scan: ScanStateId,
}

/// A memoised transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Move {
    /// Not asked yet.
    Unknown,
    /// No text goes on like this.
    Dead,
    /// To a state.
    To(StateId),
}

/// A [`Move`] in four bytes; [`States`] never hands out the two highest ids.
#[derive(Debug, Clone, Copy)]
struct PackedMove(u32);

impl PackedMove {
    const UNKNOWN: Self = Self(u32::MAX);
    const DEAD: Self = Self(u32::MAX - 1);

    fn pack(to: Move) -> Self {
        match to {
            Move::Unknown => Self::UNKNOWN,
            Move::Dead => Self::DEAD,
            Move::To(state) => Self(state.raw()),
        }
    }

    fn unpack(self) -> Move {
        match self.0 {
            raw if raw == Self::UNKNOWN.0 => Move::Unknown,
            raw if raw == Self::DEAD.0 => Move::Dead,
            raw => Move::To(StateId::new(raw)),
        }
    }
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) threads: Box<[Thread]>,
    pub(super) boundary: Option<SetId>,
    /// By joint byte class; empty until the state is first left.
    moves: Box<[PackedMove]>,
}

/// All states of an arena, hash-consed.
#[derive(Debug)]
pub(super) struct States {
    states: Vec<State>,
    index: HashTable<StateId>,
    hasher: DefaultHashBuilder,
    classes: usize,
    max: usize,
}

impl States {
    pub(super) fn new(classes: usize, limits: &Limits) -> Self {
        Self {
            states: Vec::new(),
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            classes,
            max: limits.states.min(u32::MAX as usize - 2),
        }
    }

    pub(super) fn get(&self, state: StateId) -> &State {
        &self.states[state.index()]
    }

    pub(super) fn len(&self) -> usize {
        self.states.len()
    }

    pub(super) fn memo(&self, state: StateId, class: usize) -> Move {
        self.get(state).moves.get(class).map_or(Move::Unknown, |packed| packed.unpack())
    }

    pub(super) fn set_memo(&mut self, state: StateId, class: usize, to: Move) {
        let moves = &mut self.states[state.index()].moves;
        if moves.is_empty() {
            *moves = vec![PackedMove::UNKNOWN; self.classes].into();
        }
        moves[class] = PackedMove::pack(to);
    }

    /// The state of these threads (sorted, without duplicates) and boundary.
    pub(super) fn intern(
        &mut self,
        threads: &[Thread],
        boundary: Option<SetId>,
    ) -> Result<StateId, LimitExceeded> {
        let hash = self.hasher.hash_one((threads, boundary));
        let found = self.index.find(hash, |id| {
            let state = &self.states[id.index()];
            state.boundary == boundary && *state.threads == *threads
        });
        if let Some(&id) = found {
            return Ok(id);
        }
        let exceeded = || LimitExceeded::new("constraint states", self.max);
        if self.states.len() >= self.max {
            return Err(exceeded());
        }
        let id = StateId::from_index(self.states.len()).ok_or_else(exceeded)?;
        self.states.push(State { threads: threads.into(), boundary, moves: Box::default() });
        let (states, hasher) = (&self.states, &self.hasher);
        self.index.insert_unique(hash, id, |id| {
            let state = &states[id.index()];
            hasher.hash_one((&*state.threads, state.boundary))
        });
        Ok(id)
    }
}
