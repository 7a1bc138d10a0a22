//! Constraint states: canonical sets of threads, with the boundary.
//!
//! A thread `(P, t, d)` says: terminal `t` was started in parser set `P`, and its scanner is at `d`. The
//! boundary is the parser set in which the next terminal starts, if one may have just ended. A state is
//! all that the text so far means for what may follow, so equal states have equal masks.

use crate::{
    automata::HashIndex,
    ids::{SetId, StateId, as_index},
    limits::{Budget, LimitExceeded, Limits},
    program::Thread,
};

/// A memoised transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Move {
    /// The move has not been computed yet.
    Unknown,
    /// No text goes on like this.
    Dead,
    /// The move leads to this state.
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

/// Stands for no byte class, no row of moves and no boundary. All of these are indices in memory, which stay
/// below.
const NONE: u32 = u32::MAX;

/// A state. Its threads end where the next one's start.
#[derive(Debug, Clone, Copy)]
struct StateData {
    threads: u32,
    boundary: u32,
    /// The first move that was asked for, by its class; texts that never come back here ask for one only.
    first_class: u32,
    first_move: PackedMove,
    /// Index of the row of moves by class, once a second move is asked for.
    moves: u32,
}

/// All states of an arena, hash-consed.
#[derive(Debug)]
pub(crate) struct States {
    states: Vec<StateData>,
    threads: Vec<Thread>,
    moves: Vec<PackedMove>,
    index: HashIndex,
    classes: usize,
    max_bytes: usize,
}

impl States {
    /// Creates an empty arena for texts whose bytes fall into `classes` classes.
    pub(super) fn new(classes: usize, limits: &Limits) -> Self {
        Self {
            states: Vec::new(),
            threads: Vec::new(),
            moves: Vec::new(),
            index: HashIndex::default(),
            classes,
            max_bytes: limits.state_bytes,
        }
    }

    pub(super) fn threads(&self, state: StateId) -> &[Thread] {
        let from = self.states[state.index()].threads as usize;
        let end = self.states.get(state.index() + 1).map_or(self.threads.len(), |next| next.threads as usize);
        &self.threads[from..end]
    }

    pub(super) fn boundary(&self, state: StateId) -> Option<SetId> {
        let boundary = self.states[state.index()].boundary;
        (boundary != NONE).then(|| SetId::new(boundary))
    }

    /// Number of states.
    pub(super) fn len(&self) -> usize {
        self.states.len()
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.states)
            + size_of_val(&*self.threads)
            + size_of_val(&*self.moves)
            + self.index.bytes()
    }

    /// Looks up a memoised move.
    pub(crate) fn memo(&self, state: StateId, class: usize) -> Move {
        let state = &self.states[state.index()];
        if state.first_class as usize == class {
            return state.first_move.unpack();
        }
        // Without moves the sum is past their end, also where it takes 32 bits.
        let at = (state.moves as usize).saturating_add(class);
        self.moves.get(at).map_or(Move::Unknown, |packed| packed.unpack())
    }

    /// Memoises a move.
    pub(super) fn set_memo(&mut self, state: StateId, class: usize, to: Move) -> Result<(), LimitExceeded> {
        let full = self.full();
        let StateData { first_class, first_move, moves, .. } = &mut self.states[state.index()];
        let packed = PackedMove::pack(to);
        if *first_class == NONE {
            (*first_class, *first_move) = (number(class, self.max_bytes)?, packed);
            return Ok(());
        }
        if *moves == NONE {
            full?;
            *moves = number(self.moves.len(), self.max_bytes)?;
            self.moves.resize(self.moves.len() + self.classes, PackedMove::UNKNOWN);
        }
        self.moves[as_index(*moves) + class] = packed;
        Ok(())
    }

    /// The state of these threads (sorted, without duplicates) and boundary.
    pub(super) fn intern(
        &mut self,
        threads: &[Thread],
        boundary: Option<SetId>,
    ) -> Result<StateId, LimitExceeded> {
        let hash = self.index.hash(&(threads, boundary));
        let found = self.index.find(hash, |id| {
            let id = StateId::new(id);
            self.boundary(id) == boundary && self.threads(id) == threads
        });
        if let Some(known) = found {
            return Ok(StateId::new(known));
        }
        self.full()?;
        let id = number(self.states.len(), self.max_bytes)?;
        self.states.push(StateData {
            threads: number(self.threads.len(), self.max_bytes)?,
            boundary: boundary.map_or(NONE, SetId::raw),
            first_class: NONE,
            first_move: PackedMove::UNKNOWN,
            moves: NONE,
        });
        self.threads.extend_from_slice(threads);
        self.index.insert(hash, id);
        Ok(StateId::new(id))
    }

    /// An error if the budget is used up.
    fn full(&self) -> Result<(), LimitExceeded> {
        if self.bytes() < self.max_bytes {
            return Ok(());
        }
        Err(LimitExceeded::new(Budget::StateBytes, "bytes of constraint states", self.max_bytes))
    }
}

/// An index in 32 bits, below [`NONE`], `PackedMove::DEAD` and any sum that adds a class to them.
fn number(index: usize, limit: usize) -> Result<u32, LimitExceeded> {
    let number = u32::try_from(index).ok().filter(|&number| number < NONE - 1);
    number.ok_or_else(|| LimitExceeded::new(Budget::StateBytes, "bytes of constraint states", limit))
}
