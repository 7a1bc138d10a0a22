//! The session that users hold: one text, the tokens that may follow, and the way back.

use std::{collections::VecDeque, sync::Arc};

use super::error::{StepError, StepErrorKind, TextPlace};
use super::patience::{Patience, SpentWork, StepMeter};
use crate::ids::{StateId, TokenId, saturating_u32};
use crate::json_readers::{JsonReaders, KeyChange, Undo, UndoLog};
use crate::limits::{Budget, LimitExceeded, Work};
use crate::machine::{Context, MachinePool, Move, SharedMachine, StateAutomaton, lock};
use crate::vocab::{TokenSet, Vocabulary};
use crate::{masks::GrammarMask, program::Program, subterminal::Lookahead};

/// A text in the making, and the tokens that may follow.
///
/// Cloning copies the history (eight bytes for each step that can be undone, see
/// [`Limits::history`](crate::Limits::history)). Everything else is shared, behind a lock. It is `Send`.
#[derive(Debug, Clone)]
pub struct Constraint {
    pub(crate) program: Arc<Program>,
    host: MachinePool,
    pub(crate) machine: SharedMachine,
    pub(crate) here: TextPosition,
    /// Bytes of text so far; saturates.
    bytes: u32,
    history: History,
    /// State of the readers of keys and items that must be distinct, and an undo log of it.
    pub(crate) readers: JsonReaders,
    readers_before: UndoLog,
    pub(super) mask: Option<Arc<TokenSet>>,
    /// The mask before the readers of keys and items take from it, once it is known.
    raw_mask: Option<GrammarMask>,
    patience: Option<Patience>,
    pub(super) trailing: TrailingSpace,
    /// Steps after which a thought must be closed.
    pub(super) reasoning_tokens: Option<usize>,
    spent: SpentWork,
    /// Pieces of work in a row that brought the step no further. Each makes the next twice as large.
    stuck: u32,
}

/// Threads that are looked at to say where a step ended, and rules that are named.
const PLACE_THREADS: usize = 64;
const PLACE_RULES: usize = 4;

/// Bytes of [`Constraint::advance_bytes`] that make a step of [`Limits::step_work`](crate::Limits::step_work)
pub(super) const STEP_BYTES: usize = 64;

/// A text's position: a state, or its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextPosition {
    In(StateId),
    /// End-of-text was advanced in this state.
    Ended(StateId),
}

impl TextPosition {
    pub(crate) fn state(self) -> StateId {
        match self {
            Self::In(state) | Self::Ended(state) => state,
        }
    }

    fn renamed(self, state: StateId) -> Self {
        match self {
            Self::In(_) => Self::In(state),
            Self::Ended(_) => Self::Ended(state),
        }
    }
}

impl Constraint {
    /// A session at the start of a text.
    pub(crate) fn new(program: Arc<Program>, host: MachinePool) -> Self {
        let machine = host.machine(&program);
        let start = lock(&machine).start();
        let history = History::new(program.limits.history);
        let (here, spent) = (TextPosition::In(start), SpentWork::default());
        let (readers, readers_before) = (JsonReaders::new(&program), UndoLog::default());
        let (mask, raw_mask, patience) = (None, None, None);
        Self {
            program,
            host,
            machine,
            here,
            bytes: 0,
            history,
            readers,
            readers_before,
            mask,
            raw_mask,
            patience,
            trailing: TrailingSpace::default(),
            reasoning_tokens: None,
            spent,
            stuck: 0,
        }
    }

    /// Sets how long the session stays with a step and its text. By default a call does one piece of a step.
    #[must_use]
    pub fn patient(mut self, patience: Patience) -> Self {
        self.patience = Some(patience);
        self
    }

    /// Sets the [`patient`](Self::patient) bounds unless the user has set some.
    #[doc(hidden)]
    pub fn patient_unless_told(mut self, patience: Patience) -> Self {
        self.patience.get_or_insert(patience);
        self
    }

    /// The tokens that may follow, with end-of-text ids when the text is complete; none after end of text.
    ///
    /// With unbounded lookahead a token is in the set if and only if some text of the language goes on
    /// like this. Costs a lookup where the same place in the grammar was met before.
    ///
    /// # Errors
    /// When a budget is used up.
    pub fn mask(&mut self) -> Result<&TokenSet, StepError> {
        let mask = match self.mask.take() {
            Some(mask) => mask,
            None => match self.here {
                TextPosition::In(state) => {
                    let raw = match self.raw_mask.take() {
                        Some(raw) => raw,
                        None => self.make_raw_mask(state)?,
                    };
                    let mask = self.narrowed(raw)?;
                    self.only_closing(mask)
                }
                TextPosition::Ended(_) => Arc::new(TokenSet::empty(self.program.asked.vocabulary.size())),
            },
        };
        Ok(self.mask.insert(mask))
    }

    fn make_raw_mask(&mut self, mut state: StateId) -> Result<GrammarMask, StepError> {
        let with_enclosed = self.readers.keys.is_some();
        self.run(&mut state, |machine, program, state, work| {
            let tokens = machine.asked_mask(program, state, work)?;
            let enclosed = if with_enclosed { machine.enclosed(program, state, &tokens) } else { None };
            Ok(GrammarMask { tokens, enclosed })
        })
    }

    /// Is `token` in the [`mask`](Self::mask)? Makes no mask (opportunistic masking; paper, 3.5): with
    /// unbounded lookahead it costs a lookup per byte of the token, otherwise a step of each way to read it.
    ///
    /// # Errors
    /// When a budget is used up.
    pub fn allows(&mut self, token: TokenId) -> Result<bool, StepError> {
        if let Some(mask) = &self.mask {
            return Ok(mask.contains(token));
        }
        if !self.program.classes.is_empty() {
            return self.allows_by_class(token);
        }
        let program = Arc::clone(&self.program);
        match (program.lookahead, program.vocabulary.bytes(token), self.here) {
            (Lookahead::Terminals(most), Some(bytes), TextPosition::In(mut state)) if !bytes.is_empty() => {
                let reached = self.run(&mut state, |machine, program, state, work| {
                    machine.reaches(program, state, bytes, most, work)
                })?;
                Ok(reached && (self.readers.are_none() || self.after(token)?.is_some()))
            }
            _ => self.after(token).map(|place| place.is_some()),
        }
    }

    /// The one token that may follow, if there is exactly one: it needs no model. Costs a mask.
    ///
    /// # Errors
    /// When a budget is used up.
    pub fn forced(&mut self) -> Result<Option<TokenId>, StepError> {
        let mut tokens = self.mask()?.iter();
        let first = tokens.next();
        Ok(if tokens.next().is_some() { None } else { first })
    }

    /// Advances by `token`; after an end-of-text token nothing may follow. Any token with which a text of the
    /// language goes on is taken, whatever the lookahead. On error nothing has moved.
    ///
    /// # Errors
    /// If the token cannot follow, or a budget is used up.
    pub fn advance(&mut self, token: TokenId) -> Result<(), StepError> {
        if self.advance_if_known(token) {
            return Ok(());
        }
        let (place, readers) =
            self.after(token)?.ok_or_else(|| StepError::new(StepErrorKind::Refused(token)))?;
        let bytes = self.program.vocabulary.bytes(token).map_or(0, <[u8]>::len);
        self.go(place, bytes, readers);
        Ok(())
    }

    /// Advances by text. Returns how many of `bytes` can follow; all of them count as one step for
    /// [`rollback`](Self::rollback), otherwise nothing has moved. A lookup per byte.
    ///
    /// # Errors
    /// When a budget is used up.
    pub fn advance_bytes(&mut self, bytes: &[u8]) -> Result<usize, StepError> {
        if self.is_ended() {
            return Ok(0);
        }
        if !self.program.classes.is_empty() {
            return self.advance_bytes_by_class(bytes);
        }
        Ok(match self.along(bytes)? {
            Ok((state, readers)) => {
                self.go(TextPosition::In(state), bytes.len(), readers);
                bytes.len()
            }
            Err(taken) => taken,
        })
    }

    /// Undoes the last `steps` steps exactly. Constant time.
    ///
    /// # Errors
    /// If fewer steps were taken, or one of them is further back than the session remembers (see
    /// [`Limits::history`](crate::Limits::history)); nothing has moved then.
    pub fn rollback(&mut self, steps: usize) -> Result<(), StepError> {
        if steps > 0 {
            let (state, bytes) = self.history.back(steps).map_err(StepError::new)?;
            self.here = TextPosition::In(state);
            self.stuck = 0;
            self.bytes = bytes;
            (self.mask, self.raw_mask) = (None, None);
            self.readers_before.back(self.history.kept(), &mut self.readers);
        }
        Ok(())
    }

    /// Number of steps taken and not rolled back, forgotten ones included.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.history.len()
    }

    /// Memory of the session's history, in bytes. What it shares with the grammar's other sessions is in
    /// [`CompiledGrammar::memory`](crate::CompiledGrammar::memory).
    #[must_use]
    pub fn history_bytes(&self) -> usize {
        self.history.bytes() + self.readers_before.own_bytes()
    }

    /// Is the text so far in the language, so that it may end here or has ended?
    #[must_use]
    pub fn is_complete(&self) -> bool {
        match self.here {
            TextPosition::In(state) => lock(&self.machine).is_complete(state),
            TextPosition::Ended(_) => true,
        }
    }

    /// Has end of text been advanced?
    #[must_use]
    pub fn is_ended(&self) -> bool {
        matches!(self.here, TextPosition::Ended(_))
    }

    /// The place in the grammar with the stack forgotten; the same in every run. Default after end of text. A
    /// lookup where the same place was met before.
    #[must_use]
    pub fn context(&self) -> Context {
        match self.here {
            TextPosition::In(state) => lock(&self.machine).context(&self.program, state),
            TextPosition::Ended(_) => Context::default(),
        }
    }

    /// Returns a session at the same place with an empty history. Constant time.
    #[must_use]
    pub fn fork(&self) -> Self {
        let history = History::new(self.program.limits.history);
        Self {
            program: Arc::clone(&self.program),
            host: self.host.clone(),
            machine: Arc::clone(&self.machine),
            here: self.here,
            bytes: self.bytes,
            history,
            readers: self.readers.clone(),
            readers_before: UndoLog::default(),
            mask: self.mask.clone(),
            raw_mask: self.raw_mask.clone(),
            patience: self.patience,
            trailing: self.trailing,
            reasoning_tokens: self.reasoning_tokens,
            spent: self.spent,
            stuck: self.stuck,
        }
    }

    /// The vocabulary it was compiled for.
    #[doc(hidden)]
    #[must_use]
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.program.asked.vocabulary
    }

    /// Gives a view of the machine, and of the present state if the text goes on.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Program, &StateAutomaton, Option<StateId>) -> T) -> T {
        let state = match self.here {
            TextPosition::In(state) => Some(state),
            TextPosition::Ended(_) => None,
        };
        look(&self.program, &lock(&self.machine), state)
    }

    /// Parser sets and constraint states of the machine.
    #[cfg(test)]
    pub(crate) fn machine_sizes(&self) -> (usize, usize) {
        lock(&self.machine).sizes()
    }

    /// Returns the place after `token`, if it can follow.
    pub(super) fn after(&mut self, token: TokenId) -> Result<Option<(TextPosition, JsonReaders)>, StepError> {
        let TextPosition::In(state) = self.here else { return Ok(None) };
        if self.thinks_too_long(token) {
            return Ok(None);
        }
        let program = Arc::clone(&self.program);
        if program.vocabulary.end_of_text().contains(&token) {
            let complete = lock(&self.machine).is_complete(state);
            return Ok(complete.then(|| (TextPosition::Ended(state), self.readers.clone())));
        }
        if !program.classes.is_empty() {
            return Ok(self
                .after_by_class(token)?
                .map(|to| (TextPosition::In(to), self.readers_after(token))));
        }
        let Some(bytes) = program.vocabulary.bytes(token).filter(|bytes| !bytes.is_empty()) else {
            return Ok(None);
        };
        let led = self.leads(bytes)?;
        Ok(led.ok().map(|(to, readers)| (TextPosition::In(to), readers)))
    }

    /// Runs `step` in `state`. If the machine's memory is used up, the session moves to another machine
    /// first, and `state` gets its new id.
    pub(crate) fn run<T>(
        &mut self,
        state: &mut StateId,
        step: impl Fn(&mut StateAutomaton, &Program, StateId, &mut Work) -> Result<T, LimitExceeded>,
    ) -> Result<T, StepError> {
        self.run_over(state, 1, step)
    }

    /// Does the same as [`run`](Self::run) with the totals of `steps` steps: text is charged by the byte.
    pub(crate) fn run_over<T>(
        &mut self,
        state: &mut StateId,
        steps: usize,
        step: impl Fn(&mut StateAutomaton, &Program, StateId, &mut Work) -> Result<T, LimitExceeded>,
    ) -> Result<T, StepError> {
        let nodes = self.program.vocabulary.trie().len();
        let patience = self.patience.unwrap_or(Patience::one_piece());
        let mut pieces = StepMeter::new(patience, &self.program.limits, nodes, steps);
        let mut moved = false;
        loop {
            let work = &mut Work::new(pieces.next(&self.program.limits, self.stuck));
            let done = step(&mut lock(&self.machine), &self.program, *state, work);
            let out_of_work = |limit: &LimitExceeded| limit.budget() == Budget::StepWork;
            if done.as_ref().is_err_and(|limit| !out_of_work(limit)) && !moved && self.move_on(state, work) {
                moved = true;
                pieces.note(work.spent(), &mut self.spent);
                continue;
            }
            pieces.note(work.spent(), &mut self.spent);
            match done {
                Ok(found) => {
                    pieces.finish(&mut self.spent);
                    return Ok(found);
                }
                Err(limit) if out_of_work(&limit) => {
                    self.stuck = if work.has_kept() { 0 } else { self.stuck + 1 };
                    if let Err(limit) = pieces.go_on(limit, &mut self.spent, &self.program.limits, nodes) {
                        pieces.finish(&mut self.spent);
                        return Err(StepError::limit(limit, self.place(*state)));
                    }
                }
                Err(limit) => return Err(StepError::limit(limit, self.place(*state))),
            }
        }
    }

    /// Returns the place in the text, for messages.
    fn place(&self, state: StateId) -> TextPlace {
        let machine = lock(&self.machine);
        let lowered = &self.program.lowered;
        let inside =
            machine.threads(state).iter().map(|thread| (thread.set, lowered.scanner.terminal(thread.scan)));
        let starting = machine
            .boundary(state)
            .into_iter()
            .flat_map(|set| machine.parser().accepts(set).iter().map(move |&terminal| (set, terminal)));
        let mut rules: Vec<String> = Vec::new();
        for (set, terminal) in inside.chain(starting).take(PLACE_THREADS) {
            for dot in machine.parser().waiting(&lowered.cfg, set, terminal).take(PLACE_RULES) {
                let rule = &lowered.rule(lowered.cfg.lhs(dot)).name;
                if rules.len() < PLACE_RULES && !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
        TextPlace { bytes: self.bytes as usize, rules }
    }

    /// Moves to another machine if this one is worn, with all that `state` and the present state need and as
    /// much of the history as possible. Returns whether it did.
    fn move_on(&mut self, state: &mut StateId, work: &mut Work) -> bool {
        if !lock(&self.machine).is_worn(&self.program) {
            return false;
        }
        let machine = self.host.machine(&self.program);
        if Arc::ptr_eq(&machine, &self.machine) {
            return false;
        }
        let needed = [*state, self.here.state()];
        // Both locks at once, and always the older machine's first.
        let old = lock(&self.machine);
        let wanted = self.history.latest_first();
        let Some(adopted) = lock(&machine).adopt(&self.program, &old, needed, wanted, work) else {
            return false;
        };
        drop(old);
        let new = |state: StateId| adopted.get(&state).copied();
        *state = new(*state).unwrap_or(*state);
        self.here = self.here.renamed(new(self.here.state()).unwrap_or(self.here.state()));
        self.history.rename(new);
        self.readers_before.forget(self.history.kept());
        self.machine = machine;
        true
    }

    pub(super) fn go(&mut self, to: TextPosition, bytes: usize, readers: JsonReaders) {
        let before = std::mem::replace(&mut self.readers, readers);
        self.note(to, bytes, Undo::Other(before));
    }

    /// Records a step of `bytes` bytes with the readers' undo record.
    pub(super) fn note(&mut self, to: TextPosition, bytes: usize, before: Undo) {
        self.history.push(self.here.state(), self.bytes);
        if self.readers.are_logged() {
            self.readers_before.push(before, self.history.kept());
        }
        self.here = to;
        self.stuck = 0;
        self.bytes = self.bytes.saturating_add(saturating_u32(bytes));
        (self.mask, self.raw_mask) = (None, None);
    }
}

// The fast path of [`Constraint::advance`] is a step along moves that are memoised already. Nearly all steps
// are such in a text that resembles one before it. They do no work, so they need no budget, and they fetch
// the next mask under the same lock.

impl StateAutomaton {
    /// Returns the state after these bytes and its mask, as far as they are memoised. `None` if a move is
    /// not, or leads nowhere.
    fn known(
        &mut self,
        program: &Program,
        mut state: StateId,
        bytes: &[u8],
        held: &mut Option<Arc<TokenSet>>,
    ) -> Option<(StateId, Option<GrammarMask>)> {
        for &byte in bytes {
            let Move::To(to) = self.states.memo(state, program.lowered.scanner.byte_class(byte)) else {
                return None;
            };
            state = to;
        }
        Some((state, self.masks.following(state, held, program.lowered.keys.is_some())))
    }
}

impl Constraint {
    /// Tells whether the next [`mask`](Self::mask) is a lookup. False also where nobody has looked yet, as at
    /// the start of a text. For callers that hand long work to another thread.
    #[must_use]
    pub fn is_mask_known(&self) -> bool {
        self.mask.is_some() || self.raw_mask.is_some() || self.is_ended()
    }

    /// Advances by a token if that is a lookup: if all its moves are memoised and it can follow. Returns
    /// whether it did; if not, nothing has moved, and [`advance`](Self::advance) decides.
    ///
    /// ```
    /// use domino::{Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build()?;
    /// let grammar = Grammar::parse(Syntax::Regex, "[a-f]+", &Limits::default())?;
    /// let mut constraint = Compiler::new(vocabulary).compile(&grammar)?.constraint();
    /// let letter = TokenId::new(u32::from(b'a'));
    /// let mut another = constraint.fork();
    /// constraint.advance(letter)?; // makes the moves
    /// assert!(another.advance_if_known(letter));
    /// assert!(!another.advance_if_known(TokenId::new(u32::from(b'z'))));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn advance_if_known(&mut self, token: TokenId) -> bool {
        let (TextPosition::In(here), None) = (self.here, &self.readers.items) else { return false };
        let program = &*self.program;
        let Some(bytes) = program.vocabulary.bytes(token) else { return false };
        if bytes.is_empty() || !program.classes.is_empty() || self.readers.are_in_thought() {
            return false;
        }
        if program.vocabulary.end_of_text().contains(&token) {
            return false;
        }
        let held = &mut self.mask;
        let Some((state, mask)) = lock(&self.machine).known(program, here, bytes, held) else { return false };
        let length = bytes.len();
        let mut before = Undo::Same;
        if let Some(keys) = &mut self.readers.keys {
            before = match keys.change(bytes) {
                KeyChange::Nothing => Undo::Same,
                KeyChange::Spelling => Undo::Shorter(length),
                KeyChange::Any => {
                    let thought = self.readers.thought.clone();
                    Undo::Other(JsonReaders { thought, keys: Some(keys.clone()), items: None })
                }
            };
            let is_read = before.is_same() || keys.read(bytes).is_ok_and(|read| read == length);
            keys.settle();
            if !is_read || keys.may_run_out() {
                before.put_back(&mut self.readers);
                return false;
            }
        }
        self.note(TextPosition::In(state), length, before);
        self.raw_mask = mask;
        true
    }
}

/// The states before the last steps, oldest first, and the number of forgotten ones.
///
/// Nothing follows end of text, so every step started in a state.
#[derive(Debug, Clone)]
struct History {
    /// States, each with the number of bytes of text before it.
    states: VecDeque<(StateId, u32)>,
    forgotten: usize,
    window: usize,
}

impl History {
    /// Creates an empty history that can undo the last `window` steps.
    pub(super) fn new(window: usize) -> Self {
        Self { states: VecDeque::new(), forgotten: 0, window }
    }

    /// Records a step from `state`, before which the text has `bytes` bytes. Past the window the oldest step
    /// is forgotten.
    pub(super) fn push(&mut self, state: StateId, bytes: u32) {
        if self.states.len() >= self.window {
            self.forgotten += 1;
            if self.states.pop_front().is_none() {
                return;
            }
        }
        self.states.push_back((state, bytes));
    }

    /// Undoes the last `steps` steps, at least one. Returns the state where they started, and the bytes
    /// before it.
    pub(super) fn back(&mut self, steps: usize) -> Result<(StateId, u32), StepErrorKind> {
        let kept = self.states.len();
        match kept.checked_sub(steps).and_then(|at| Some((at, *self.states.get(at)?))) {
            Some((at, start)) => {
                self.states.truncate(at);
                Ok(start)
            }
            None if steps <= self.len() => Err(StepErrorKind::HistoryForgotten(kept)),
            None => Err(StepErrorKind::HistoryTooShort(self.len())),
        }
    }

    /// Number of steps taken and not undone, forgotten ones included.
    pub(super) fn len(&self) -> usize {
        self.forgotten + self.states.len()
    }

    /// Number of steps that can be undone.
    pub(super) fn kept(&self) -> usize {
        self.states.len()
    }

    /// The states, the latest first.
    fn latest_first(&self) -> impl Iterator<Item = StateId> + '_ {
        self.states.iter().rev().map(|&(state, _)| state)
    }

    /// Puts each state's new name in its place; the steps before the last state that has none are forgotten.
    pub(super) fn rename(&mut self, name: impl Fn(StateId) -> Option<StateId>) {
        let unknown = self.states.iter().rposition(|&(state, _)| name(state).is_none());
        let lost = unknown.map_or(0, |at| at + 1);
        self.states.drain(..lost);
        self.forgotten += lost;
        for (state, _) in &mut self.states {
            *state = name(*state).unwrap_or(*state);
        }
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.states.capacity() * size_of::<(StateId, u32)>()
    }
}

/// Says where a text ends that is complete and that nothing but white space can follow.
///
/// Many grammars allow white space at their end, so there a model would be asked whether it goes on, and some
/// models write blank lines until they are cut. By default they are not asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TrailingSpace {
    /// The text ends there. What ends it is `Finish::OnlySpace`.
    #[default]
    Stop,
    /// The model goes on, and ends the text when it likes, as in the DOMINO paper.
    Keep,
}

/// Reason for which a text must end where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextEnd {
    /// Nothing can follow.
    Nothing,
    /// Only white space can, and that is not wanted.
    OnlySpace,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares with a plain list of all steps.
        #[test]
        fn the_last_steps_are_kept(window in 0..6_usize, calls in prop::collection::vec(0..12_usize, 0..60)) {
            let mut history = History::new(window);
            let mut all: Vec<StateId> = Vec::new();
            // What was forgotten stays so, however far one goes back.
            let mut forgotten = 0;
            for (time, call) in calls.into_iter().enumerate() {
                let state = StateId::from_index(time).unwrap();
                match call {
                    0 => history.rename(|state| (state.raw() % 7 > 0).then_some(state)),
                    1..5 => {
                        let found = history.back(call);
                        if call > all.len() {
                            prop_assert_eq!(found, Err(StepErrorKind::HistoryTooShort(all.len())));
                        } else if call > all.len() - forgotten {
                            let known = all.len() - forgotten;
                            prop_assert_eq!(found, Err(StepErrorKind::HistoryForgotten(known)));
                        } else {
                            let start = all.len() - call;
                            prop_assert_eq!(found, Ok((all[start], u32::try_from(start).unwrap())));
                            all.truncate(all.len() - call);
                        }
                    }
                    _ => {
                        history.push(state, u32::try_from(all.len()).unwrap());
                        all.push(state);
                        forgotten = forgotten.max(all.len().saturating_sub(window));
                    }
                }
                if call == 0 {
                    let unknown = (forgotten..all.len()).rev().find(|&at| all[at].raw().is_multiple_of(7));
                    forgotten = unknown.map_or(forgotten, |at| at + 1);
                }
                prop_assert_eq!(history.len(), all.len());
                prop_assert!(history.latest_first().eq(all[forgotten..].iter().rev().copied()));
                // A deque doubles.
                prop_assert!(history.bytes() <= 8 * (2 * window).max(4));
                prop_assert!(history.bytes() >= 8 * (all.len() - forgotten));
            }
        }
    }
}
