//! `fill_batch`: the masks of many texts, on all cores and without the interpreter's lock.

use std::sync::Arc;

use domino::{StepErrorKind, TokenId};
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::{
    constraint::{Held, PyConstraint},
    engine::{guarded, unlocked},
    failure::{Failure, Outcome},
    parts::Parts,
    rows::{Row, Rows},
    steps::{PyCancel, Watch},
    vocabulary::token_ids,
};

/// Constraints that are worth another core; the calling thread fills fewer by itself.
const FEW: usize = 4;

/// A text, its draft, and its rows: one more than drafted tokens.
struct Job {
    constraint: Py<PyConstraint>,
    draft: Vec<TokenId>,
    rows: Vec<Row>,
}

/// Fills the rows of many constraints, on all cores (as many threads as RAYON_NUM_THREADS says).
///
/// `rows[i]` is the first row of constraint `i`; without it rows follow each other. With `drafts`, lists of
/// tokens, constraint `i` has `len(drafts[i]) + 1` rows: what may follow before each drafted token and after
/// the last. Rows behind a drafted token that may not follow, or that ends the text, allow everything, since
/// nobody may use them.
///
/// Returns for each constraint how many of its drafted tokens may follow. Constraints do not move.
#[pyfunction]
#[pyo3(signature = (constraints, mask, rows=None, *, drafts=None, cancel=None))]
pub(crate) fn fill_batch(
    constraints: Vec<Bound<'_, PyConstraint>>,
    mask: &Bound<'_, PyAny>,
    rows: Option<Vec<i64>>,
    drafts: Option<Vec<Vec<i64>>>,
    cancel: Option<PyRef<'_, PyCancel>>,
) -> Outcome<Vec<usize>> {
    let cancel = cancel.map(|cancel| cancel.clone());
    let jobs = jobs(&constraints, mask, rows, drafts)?;
    drop(constraints);
    unlocked(mask.py(), || {
        if jobs.len() <= FEW {
            return jobs.into_iter().map(|job| done(job, cancel.as_ref())).collect();
        }
        // Results are collected one by one, so that the error of the first wrong row is raised.
        let all: Vec<Outcome<usize>> = jobs
            .into_par_iter()
            .with_min_len(FEW)
            .map(|job| guarded(|| done(job, cancel.as_ref())))
            .collect();
        all.into_iter().collect()
    })
}

/// Checks the arguments, and makes a job of each constraint.
fn jobs(
    constraints: &[Bound<'_, PyConstraint>],
    mask: &Bound<'_, PyAny>,
    rows: Option<Vec<i64>>,
    drafts: Option<Vec<Vec<i64>>>,
) -> Outcome<Vec<Job>> {
    let count = constraints.len();
    let as_many = |what: &str, given: usize| match given == count {
        true => Ok(()),
        false => Err(Failure::Value(format!("{given} {what} were given for {count} constraints"))),
    };
    as_many("drafts", drafts.as_ref().map_or(count, Vec::len))?;
    as_many("rows", rows.as_ref().map_or(count, Vec::len))?;
    let size = |constraint: &Bound<'_, PyConstraint>| constraint.get().parts.compiled.vocabulary().size();
    let memory = Rows::of(mask, constraints.iter().map(size).max().unwrap_or_default().div_ceil(32))?;
    if has_double(constraints.iter().map(|constraint| constraint.as_ptr().addr()).collect()) {
        return Err(Failure::Value("a constraint comes twice: fork() it".to_owned()));
    }
    let (mut jobs, mut taken, mut next) = (Vec::with_capacity(count), Vec::with_capacity(count), 0);
    for (index, constraint) in constraints.iter().enumerate() {
        let draft = drafts.as_ref().map_or(Ok(Vec::new()), |drafts| token_ids(&drafts[index]))?;
        let first = rows.as_ref().map_or(next, |rows| rows[index]);
        let mut own = Vec::with_capacity(draft.len() + 1);
        for row in (first..).take(draft.len() + 1) {
            own.push(memory.row(row)?);
            taken.push(row);
            next = row.saturating_add(1);
        }
        jobs.push(Job { constraint: constraint.clone().unbind(), draft, rows: own });
    }
    if has_double(taken) {
        return Err(Failure::Value("a row is that of two constraints".to_owned()));
    }
    Ok(jobs)
}

/// Does anything come twice?
fn has_double<T: Ord>(mut all: Vec<T>) -> bool {
    all.sort_unstable();
    all.windows(2).any(|pair| pair[0] == pair[1])
}

/// Fills the rows of a text. Returns how many drafted tokens may follow.
fn done(job: Job, cancel: Option<&PyCancel>) -> Outcome<usize> {
    let Job { constraint, draft, mut rows } = job;
    let constraint = constraint.get();
    let parts = Arc::clone(&constraint.parts);
    let watch = Watch { cancel: &constraint.cancel, more: cancel, signals: false };
    watch.look()?;
    constraint.with(|held| {
        let (first, rest) = rows.split_first_mut().ok_or(Failure::Ended)?;
        held.fill(first, &parts, &watch)?;
        if draft.is_empty() {
            return Ok(0);
        }
        let mut ahead = held.fork();
        for (count, (&token, row)) in draft.iter().zip(&mut *rest).enumerate() {
            if !follows(&mut ahead, token, &parts, &watch)? {
                rest[count..].iter_mut().for_each(Row::allow_all);
                return Ok(count);
            }
            if ahead.session.is_ended() {
                rest[count..].iter_mut().for_each(Row::allow_all);
                return Ok(count + 1);
            }
            ahead.fill(row, &parts, &watch)?;
        }
        Ok(draft.len())
    })
}

/// Goes on by a drafted token, if it may follow.
fn follows(held: &mut Held, token: TokenId, parts: &Parts, watch: &Watch<'_>) -> Outcome<bool> {
    match held.advance(token, parts, watch) {
        Ok(()) => Ok(true),
        Err(Failure::Step(error)) if matches!(error.kind(), StepErrorKind::Refused(_)) => Ok(false),
        Err(failure) => Err(failure),
    }
}
