//! Steps whose moves are known: of texts like those before them nearly all.
//!
//! Such a step does no work, so it needs no budget, and it finds the mask that comes next while it holds the
//! machine.

use std::sync::Arc;

use super::{
    constraint::{Constraint, Place},
    enclosed::SharedEnclosed,
    host::lock,
    machine::Machine,
    program::Program,
    readers::Readers,
};
use crate::{
    ids::{StateId, TokenId},
    vocab::TokenSet,
};

/// A mask before the readers of keys and items have taken from it.
#[derive(Debug, Clone)]
pub(super) struct RawMask {
    pub(super) tokens: Arc<TokenSet>,
    /// Where there is a reader of keys.
    pub(super) enclosed: SharedEnclosed,
}

/// A place that a known step leads to.
struct Known {
    state: StateId,
    mask: Option<RawMask>,
}

impl Machine {
    /// Where bytes lead, and the mask there, if all of that was asked before.
    fn known(&mut self, program: &Program, mut state: StateId, bytes: &[u8]) -> Option<Known> {
        for &byte in bytes {
            state = self.known_step(program, state, byte)?;
        }
        let mask = program.classes.is_empty().then(|| self.known_mask(state, program.lowered.keys.is_some()));
        Some(Known { state, mask: mask.flatten() })
    }
}

impl Constraint {
    /// Goes on by a token, if it can follow and that takes no more than look-ups of what was asked before.
    pub(super) fn advance_if_known(&mut self, token: TokenId) -> bool {
        let (Place::In(here), None) = (self.here, &self.readers.items) else { return false };
        let program = &*self.program;
        let Some(bytes) = program.vocabulary.bytes(token) else { return false };
        if bytes.is_empty() || !program.classes.is_empty() {
            return false;
        }
        if program.vocabulary.end_of_text().contains(&token) {
            return false;
        }
        let Some(Known { state, mask }) = lock(&self.machine).known(program, here, bytes) else {
            return false;
        };
        let mut before = None;
        if let Some(keys) = &mut self.readers.keys
            && keys.is_moved_by(bytes)
        {
            let kept = keys.clone();
            let may_run_out = program.lowered.keys.is_some_and(|rule| rule.may_run_out);
            let is_read = keys.read(bytes).is_ok_and(|read| read == bytes.len());
            keys.settle();
            if !is_read || may_run_out && keys.may_come_again() {
                *keys = kept;
                return false;
            }
            before = Some(Readers { keys: Some(kept), items: None });
        }
        let length = bytes.len();
        self.note(Place::In(state), length, before);
        self.raw_mask = mask;
        true
    }
}
