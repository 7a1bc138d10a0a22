//! `Constraint`: a text in the making, and what may follow.

use std::sync::{Arc, Mutex, TryLockError};

use domino::{Captures, Constraint, StepErrorKind, TokenId};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyString},
};

use crate::{
    engine::{guarded, unlocked},
    failure::{Failure, Outcome},
    parts::Parts,
    rows::{Row, Rows},
    steps::{PyCancel, Watch, patiently},
    vocabulary::{token_id, token_ids},
};

/// A text in the making, and what may follow. One thread at a time may use it; the others get `BusyError`.
/// Calls that take long let other threads run. On an exception nothing has moved.
#[pyclass(name = "Constraint", module = "domino_decoding", frozen)]
#[derive(Debug)]
pub(crate) struct PyConstraint {
    pub(crate) parts: Arc<Parts>,
    /// The `Compiled` that it was made of.
    compiled: Py<PyAny>,
    held: Mutex<Held>,
    pub(crate) cancel: PyCancel,
}

/// State of a constraint behind its lock.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) session: Constraint,
    steps: Vec<Step>,
    pub(crate) spent: usize,
}

/// A step of a text.
#[derive(Debug, Clone)]
enum Step {
    Token(TokenId),
    Text(Box<[u8]>),
}

/// A part of a text by its name: name, first byte, one past the last byte, and the bytes.
type Captured<'py> = (String, usize, usize, Bound<'py, PyBytes>);

impl Held {
    /// Goes on by a token.
    ///
    /// # Errors
    /// If it cannot follow, or a bound is reached.
    pub(crate) fn advance(&mut self, token: TokenId, parts: &Parts, watch: &Watch<'_>) -> Outcome<()> {
        if self.session.is_ended() {
            return Err(Failure::Ended);
        }
        patiently(&mut self.session, &mut self.spent, &parts.bounds, watch, |session| {
            session.advance(token)
        })?;
        self.steps.push(Step::Token(token));
        Ok(())
    }

    /// Writes the mask into a row.
    ///
    /// # Errors
    /// If the text has ended, or a bound is reached.
    pub(crate) fn fill(&mut self, row: &mut Row, parts: &Parts, watch: &Watch<'_>) -> Outcome<()> {
        if self.session.is_ended() {
            return Err(Failure::Ended);
        }
        let Self { session, spent, .. } = self;
        patiently(session, spent, &parts.bounds, watch, |session| session.mask().map(|mask| row.write(mask)))
    }

    /// Branches to the same place, without the way to it.
    pub(crate) fn fork(&self) -> Self {
        Self { session: self.session.fork(), steps: Vec::new(), spent: self.spent }
    }

    /// The tokens of the text, without those of steps by text.
    pub(crate) fn tokens(&self) -> Vec<TokenId> {
        let tokens =
            self.steps.iter().map(|step| if let Step::Token(token) = step { Some(*token) } else { None });
        tokens.flatten().collect()
    }

    fn text(&self, parts: &Parts) -> Vec<u8> {
        let mut text = Vec::new();
        for step in &self.steps {
            match step {
                Step::Token(token) if parts.compiled.vocabulary().is_end_of_text(*token) => {}
                Step::Token(token) => text.extend_from_slice(parts.compiled.text_of(*token)),
                Step::Text(bytes) => text.extend_from_slice(bytes),
            }
        }
        text
    }
}

impl PyConstraint {
    /// A text at its start.
    pub(crate) fn new(parts: Arc<Parts>, compiled: Py<PyAny>, reasoning_tokens: Option<usize>) -> Self {
        let session = parts.compiled.constraint().reasoning_tokens(reasoning_tokens);
        let held = Held { session, steps: Vec::new(), spent: 0 };
        Self { parts, compiled, held: Mutex::new(held), cancel: PyCancel::default() }
    }

    /// Runs `work` on the constraint, under its lock.
    ///
    /// # Errors
    /// If `work` fails, another thread uses the constraint, or an earlier call has panicked.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Held) -> Outcome<T>) -> Outcome<T> {
        match self.held.try_lock() {
            Ok(mut held) => guarded(|| work(&mut held)),
            Err(TryLockError::WouldBlock) => Err(Failure::Busy("constraint")),
            Err(TryLockError::Poisoned(_)) => Err(Failure::Panic("an earlier call has failed".to_owned())),
        }
    }

    /// The watch of the thread that called.
    fn watch(&self) -> Watch<'_> {
        Watch { cancel: &self.cancel, more: None, signals: true }
    }

    fn look(&self) -> Outcome<()> {
        if self.cancel.is_set() { Err(Failure::Cancelled) } else { Ok(()) }
    }

    /// Does a step that may take long.
    fn step<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Held) -> Outcome<T> + Send) -> Outcome<T> {
        self.look()?;
        unlocked(py, || self.with(work))
    }
}

#[pymethods]
impl PyConstraint {
    /// Writes which tokens may follow into a row of `mask`: an array of int32 of numpy or torch, of shape
    /// (words,) or (rows, words) with `words >= vocabulary.words`, a `Mask` or a `RawMask`. Token `t` is bit
    /// `t % 32` of word `t // 32`; what lies behind the vocabulary is cleared. Raises `EndedError` after end
    /// of text.
    #[pyo3(signature = (mask, row=0, /))]
    fn fill(&self, mask: &Bound<'_, PyAny>, row: i64) -> Outcome<()> {
        let needed = self.parts.compiled.vocabulary().size().div_ceil(32);
        let mut row = Rows::of(mask, needed)?.row(row)?;
        self.look()?;
        let done = self.with(|held| match held.session.is_mask_known() && !held.session.is_ended() {
            true => Ok(held.session.mask().map(|mask| row.write(mask)).is_ok()),
            false => Ok(false),
        })?;
        if done {
            return Ok(());
        }
        unlocked(mask.py(), || self.with(|held| held.fill(&mut row, &self.parts, &self.watch())))
    }

    /// Goes on by a token. Raises `RefusedError` if it cannot follow, `EndedError` after end of text.
    #[pyo3(signature = (token, /))]
    fn advance(&self, py: Python<'_>, token: i64) -> Outcome<()> {
        let token = token_id(token)?;
        self.look()?;
        let done = self.with(|held| {
            let done = held.session.advance_if_known(token);
            if done {
                held.steps.push(Step::Token(token));
            }
            Ok(done)
        })?;
        if done {
            return Ok(());
        }
        unlocked(py, || self.with(|held| held.advance(token, &self.parts, &self.watch())))
    }

    /// Goes on by text: `bytes` or a `str`. Returns how many bytes can follow; only if that is all of them
    /// has the text moved, by one step.
    #[pyo3(signature = (text, /))]
    fn advance_text(&self, text: &Bound<'_, PyAny>) -> Outcome<usize> {
        let bytes: Vec<u8> = match text.cast::<PyString>() {
            Ok(text) => text.to_cow()?.as_bytes().to_vec(),
            Err(_) => {
                let bytes = text.cast::<PyBytes>();
                bytes.map_err(|_| Failure::Type("text must be bytes or str".to_owned()))?.as_bytes().to_vec()
            }
        };
        self.step(text.py(), |held| {
            let bounds = &self.parts.bounds;
            let step = |session: &mut Constraint| session.advance_bytes(&bytes);
            let taken = patiently(&mut held.session, &mut held.spent, bounds, &self.watch(), step)?;
            if taken == bytes.len() && !held.session.is_ended() {
                held.steps.push(Step::Text(bytes.into()));
            }
            Ok(taken)
        })
    }

    /// May the token follow? Makes no mask.
    #[pyo3(signature = (token, /))]
    fn allows(&self, py: Python<'_>, token: i64) -> Outcome<bool> {
        let Ok(token) = token_id(token) else { return Ok(false) };
        self.step(py, |held| {
            let Held { session, spent, .. } = held;
            patiently(session, spent, &self.parts.bounds, &self.watch(), |session| session.allows(token))
        })
    }

    /// How many of the tokens, from the first on, may follow. Nothing moves.
    #[pyo3(signature = (tokens, /))]
    fn validate(&self, py: Python<'_>, tokens: Vec<i64>) -> Outcome<usize> {
        let tokens: Vec<TokenId> = tokens.into_iter().map_while(|token| token_id(token).ok()).collect();
        self.step(py, |held| {
            let mut ahead = held.fork();
            for (count, &token) in tokens.iter().enumerate() {
                match ahead.advance(token, &self.parts, &self.watch()) {
                    Ok(()) => {}
                    Err(Failure::Ended) => return Ok(count),
                    Err(Failure::Step(error)) if matches!(error.kind(), StepErrorKind::Refused(_)) => {
                        return Ok(count);
                    }
                    Err(failure) => return Err(failure),
                }
            }
            Ok(tokens.len())
        })
    }

    /// Undoes the last steps, end of text included. Raises `RollbackError` if there were fewer, or they are
    /// further back than the limit `history`.
    #[pyo3(signature = (steps=1, /))]
    fn rollback(&self, steps: usize) -> Outcome<()> {
        self.with(|held| {
            held.session.rollback(steps)?;
            let left = held.steps.len().saturating_sub(steps);
            held.steps.truncate(left);
            Ok(())
        })
    }

    /// Another constraint at the same place, with the same way to it. It has a cancel handle of its own.
    fn fork(&self, py: Python<'_>) -> Outcome<Self> {
        let held = self.with(|held| Ok(Mutex::new(held.clone())))?;
        let (parts, compiled) = (Arc::clone(&self.parts), self.compiled.clone_ref(py));
        Ok(Self { parts, compiled, held, cancel: PyCancel::default() })
    }

    fn __copy__(&self, py: Python<'_>) -> Outcome<Self> {
        self.fork(py)
    }

    /// The only token that may follow, if there is exactly one: it needs no model.
    fn forced(&self, py: Python<'_>) -> Outcome<Option<u32>> {
        self.step(py, |held| {
            let Held { session, spent, .. } = held;
            let forced = patiently(session, spent, &self.parts.bounds, &self.watch(), Constraint::forced)?;
            Ok(forced.map(TokenId::raw))
        })
    }

    /// Tokens of a shortest text that completes this one, without end of text: none if it is complete.
    /// Nothing moves. Raises `ValueError` where no tokens spell it; `finish_text` has its bytes then.
    fn finish(&self, py: Python<'_>) -> Outcome<Vec<u32>> {
        let found = self.step(py, |held| {
            let Held { session, spent, .. } = held;
            patiently(session, spent, &self.parts.bounds, &self.watch(), Constraint::shortest_completion)
        })?;
        let tokens = found.tokens.ok_or_else(|| {
            Failure::Value(
                "no tokens of the vocabulary spell the shortest completion; see finish_text".to_owned(),
            )
        })?;
        Ok(tokens.into_iter().map(TokenId::raw).collect())
    }

    /// The bytes of a shortest text that completes this one. Nothing moves.
    fn finish_text<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyBytes>> {
        let found = self.step(py, |held| {
            let Held { session, spent, .. } = held;
            patiently(session, spent, &self.parts.bounds, &self.watch(), Constraint::shortest_completion)
        })?;
        Ok(PyBytes::new(py, &found.bytes))
    }

    /// Is the text so far one of the grammar, so that it may end here or has ended?
    fn is_complete(&self) -> Outcome<bool> {
        self.with(|held| Ok(held.session.is_complete()))
    }

    /// Has end of text come?
    fn is_ended(&self) -> Outcome<bool> {
        self.with(|held| Ok(held.session.is_ended()))
    }

    /// The bytes that may follow, in order; for messages.
    fn next_bytes<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyBytes>> {
        let found = self.step(py, |held| {
            let Held { session, spent, .. } = held;
            patiently(session, spent, &self.parts.bounds, &self.watch(), Constraint::next_bytes)
        })?;
        Ok(PyBytes::new(py, &found))
    }

    /// Finds what named groups and rules have matched, and the rules of `names`: tuples of name, first byte,
    /// one past the last byte, and bytes, by where they begin. Of a text that is not complete, what is
    /// decided already; with `whole` such a text is a mistake of the caller and has none. Behind a thought
    /// they are of `answer`, and bytes count from its beginning.
    #[pyo3(signature = (names=Vec::new(), /, *, whole=false))]
    fn captures<'py>(&self, py: Python<'py>, names: Vec<String>, whole: bool) -> Outcome<Vec<Captured<'py>>> {
        let (found, text) = self.step(py, |held| {
            let grammar = &self.parts.read.grammar;
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let captures = Captures::new(grammar, &names, &self.parts.limits)?;
            let whole_text = held.text(&self.parts);
            // Parts are those of the text behind its thought.
            let text = held.session.split_thought(&whole_text).1.to_vec();
            let spelled = grammar.spell(&text);
            let found = match (whole, held.session.is_complete()) {
                (_, true) => captures.of(&spelled)?.unwrap_or_default(),
                (true, false) => Vec::new(),
                (false, false) => captures.so_far(&spelled)?,
            };
            let found: Vec<_> = found.into_iter().map(|found| (found.name.to_owned(), found.span)).collect();
            Ok((found, text))
        })?;
        let shown = |(name, span): (String, std::ops::Range<usize>)| {
            let bytes = PyBytes::new(py, text.get(span.clone()).unwrap_or_default());
            (name, span.start, span.end, bytes)
        };
        Ok(found.into_iter().map(shown).collect())
    }

    /// The tokens of the text so far, without those of steps by text.
    #[getter]
    fn tokens(&self) -> Outcome<Vec<u32>> {
        self.with(|held| Ok(held.tokens().into_iter().map(TokenId::raw).collect()))
    }

    /// The text so far: the bytes of its tokens.
    #[getter]
    fn text<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyBytes>> {
        self.with(|held| Ok(PyBytes::new(py, &held.text(&self.parts))))
    }

    /// The thought before the text so far, without its marks; empty without one.
    #[getter]
    fn reasoning<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyBytes>> {
        self.with(|held| Ok(PyBytes::new(py, held.session.split_thought(&held.text(&self.parts)).0)))
    }

    /// The text so far without its thought; empty inside of one.
    #[getter]
    fn answer<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyBytes>> {
        self.with(|held| Ok(PyBytes::new(py, held.session.split_thought(&held.text(&self.parts)).1)))
    }

    /// Steps taken and not undone.
    #[getter]
    fn steps(&self) -> Outcome<usize> {
        self.with(|held| Ok(held.session.steps()))
    }

    /// A handle by which another thread cancels its steps.
    #[getter]
    fn handle(&self) -> PyCancel {
        self.cancel.clone()
    }

    /// The `Compiled` that it was made of.
    #[getter]
    fn compiled(&self, py: Python<'_>) -> Py<PyAny> {
        self.compiled.clone_ref(py)
    }

    fn __reduce__(&self) -> Outcome<()> {
        let text = "a Constraint cannot be pickled: pickle its Compiled and its tokens, and advance by them";
        Err(Failure::Type(text.to_owned()))
    }

    fn __repr__(&self) -> String {
        self.with(|held| Ok(format!("<Constraint after {} steps>", held.session.steps())))
            .unwrap_or_else(|_| "<Constraint in use>".to_owned())
    }
}

/// Token ids that a caller gives, for others.
///
/// # Errors
/// As [`token_ids`].
pub(crate) fn given(tokens: Option<Vec<i64>>) -> Outcome<Option<Vec<TokenId>>> {
    tokens.map(|tokens| token_ids(&tokens)).transpose()
}
