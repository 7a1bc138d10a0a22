//! Steps of a text with its readers: the machine and the readers move, or, on an error, neither.

use std::sync::Arc;

use super::{
    constraint::{Constraint, STEP_BYTES},
    error::StepError,
};
use crate::{
    ids::StateId,
    json_readers::{ArrayItems, JsonReaders},
};

/// The place after some bytes, or how many of them can follow.
type WalkedTo = Result<(StateId, JsonReaders), usize>;

impl Constraint {
    /// Returns the place after `bytes`, or how many of the bytes can follow.
    pub(crate) fn along(&mut self, bytes: &[u8]) -> Result<WalkedTo, StepError> {
        let most = match self.leads(bytes)? {
            Err(most) if !self.readers.are_none() => most,
            led => return Ok(led),
        };
        // Every continuation of a dead end is a dead end, so the longest live beginning is looked for.
        for end in (1..=most).rev() {
            if self.leads(&bytes[..end])?.is_ok() {
                return Ok(Err(end));
            }
        }
        Ok(Err(0))
    }

    /// Does the same as [`along`](Self::along), but the number on failure is only an upper bound.
    pub(crate) fn leads(&mut self, bytes: &[u8]) -> Result<WalkedTo, StepError> {
        let (mut state, readers) = match self.walk_with_readers(bytes)? {
            Ok(led) => led,
            Err(taken) => return Ok(Err(taken)),
        };
        if self.is_dead_end(&mut state, &readers)? {
            return Ok(Err(bytes.len().saturating_sub(1)));
        }
        Ok(Ok((state, readers)))
    }

    /// Returns the place after `bytes`, even if it is a dead end.
    fn walk_with_readers(&mut self, bytes: &[u8]) -> Result<WalkedTo, StepError> {
        let (mut state, mut taken) = (self.here.state(), 0);
        let mut readers = self.readers.clone();
        for chunk in bytes.chunks(STEP_BYTES) {
            let items = readers.items.as_ref();
            let (to, more, after) =
                self.run_over(&mut state, chunk.len(), |machine, program, state, work| {
                    let Some(items) = items else {
                        let (to, more) = machine.walk(program, state, chunk, work)?;
                        return Ok((to, more, None));
                    };
                    Ok(match machine.walk_items(program, (state, ArrayItems::clone(items)), chunk, work)? {
                        Ok((to, after)) => (to, chunk.len(), Some(Arc::new(after))),
                        Err(more) => (state, more, None),
                    })
                })?;
            (state, readers.items) = (to, after);
            taken += more;
            if more < chunk.len() {
                break;
            }
        }
        if let Some(keys) = &mut readers.keys {
            taken = keys.read(&bytes[..taken])?;
        }
        Ok(if taken < bytes.len() { Err(taken) } else { Ok((state, readers)) })
    }

    /// Does every text that goes on from here have a key or an item twice?
    fn is_dead_end(&mut self, state: &mut StateId, readers: &JsonReaders) -> Result<bool, StepError> {
        if let Some(keys) = &readers.keys
            && self.runs_out(state, keys)?
        {
            return Ok(true);
        }
        match &readers.items {
            Some(items) => self.items_run_out(state, items, readers.keys.as_ref()),
            None => Ok(false),
        }
    }
}
