//! Steps and masks where no key of an object may come twice.
//!
//! A mask is the grammar's, without the tokens that repeat a key ([`ObjectKeys::repeating`]) and without
//! those after which the key at hand can only become one that has come. Whether that is so is decided by a
//! depth-first search over the places of the grammar that earlier keys lead to, and only for keys that can
//! run out.

use std::sync::Arc;

use hashbrown::HashSet;

use super::{constraint::Constraint, error::StepError};
use crate::{
    ids::{StateId, TokenId},
    json_readers::{KeyPrefix, ObjectKeys},
    masks::GrammarMask,
    program::Thread,
    vocab::TokenSet,
};

impl Constraint {
    /// Adds the tokens of a mask after which the key at hand can only become one that has come before. Tokens
    /// that lead to the same place are decided once.
    fn running_out(
        &mut self,
        keys: &ObjectKeys,
        mask: &TokenSet,
        refused: &mut Vec<TokenId>,
    ) -> Result<(), StepError> {
        let program = Arc::clone(&self.program);
        let mut known: Vec<(StateId, ObjectKeys, bool)> = Vec::new();
        let mut machine = Arc::clone(&self.machine);
        for token in keys.running_out(&program, mask) {
            let bytes = program.vocabulary.bytes(token).unwrap_or_default();
            let mut state = self.here.state();
            // Walk along the token; most tokens are let go here, since a new key is certain.
            let led = self.run_over(&mut state, bytes.len(), |machine, program, state, work| {
                let (to, _) = machine.walk(program, state, bytes, work)?;
                // Many keys are more than those that have come.
                let are_many = |thread: &Thread| program.strings(thread.scan).are_many();
                if machine.threads(to).iter().any(are_many) {
                    return Ok(None);
                }
                let mut after = keys.clone();
                // A key that has come twice is refused already, and one that is new so far cannot run out.
                if after.read(bytes)? < bytes.len() || !after.may_run_out() {
                    return Ok(None);
                }
                let are_left = |thread: &Thread| after.leaves_some(program, thread.scan);
                Ok((!machine.threads(to).iter().any(are_left)).then_some((to, after)))
            })?;
            let Some((mut to, after)) = led else { continue };
            if !Arc::ptr_eq(&machine, &self.machine) {
                // Another machine has other numbers for states.
                known.clear();
                machine = Arc::clone(&self.machine);
            }
            // Tokens that lead to the same place with the same key share one search.
            let here = |(at, keys, _): &&(StateId, ObjectKeys, bool)| *at == to && keys.is_where(&after);
            let runs_out = match known.iter().find(here) {
                Some(&(.., runs_out)) => runs_out,
                None => {
                    let runs_out = self.runs_out(&mut to, &after)?;
                    known.push((to, after, runs_out));
                    runs_out
                }
            };
            if runs_out {
                refused.push(token);
            }
        }
        Ok(())
    }

    /// Can the key at hand only become one that has come before? A depth-first search over the places of the
    /// grammar that those keys lead to.
    pub(super) fn runs_out(&mut self, state: &mut StateId, keys: &ObjectKeys) -> Result<bool, StepError> {
        // All in one piece: a session that moves to another machine begins anew.
        self.run(state, |machine, program, state, work| {
            if !keys.may_run_out() {
                return Ok(false);
            }
            let mut open = vec![(state, keys.clone())];
            // Keys are mostly new without escapes, of which there are many.
            let mut escaped = Vec::new();
            let mut seen = HashSet::new();
            while let Some((state, keys)) = open.pop().or_else(|| escaped.pop()) {
                if !seen.insert((state, keys.spelt().into_owned())) {
                    continue;
                }
                // Inside of an escape nothing is known yet.
                let begun = keys.begun();
                for byte in b' '..=u8::MAX {
                    work.spend(1)?;
                    let Some(to) = machine.step(program, state, byte, work)? else { continue };
                    let is_new = |begun: &KeyPrefix<'_>| match byte {
                        b'"' => !begun.is_whole(),
                        _ => begun.is_left_by(byte),
                    };
                    if begun.as_ref().is_some_and(is_new) {
                        return Ok(false);
                    }
                    let mut after = keys.clone();
                    let goes_on = after.read(&[byte])? == 1;
                    if goes_on && (begun.is_none() || byte != b'"') {
                        if !after.may_run_out() {
                            return Ok(false);
                        }
                        let list = if byte == b'\\' { &mut escaped } else { &mut open };
                        list.push((to, after));
                    }
                }
            }
            Ok(true)
        })
    }

    /// Returns the tokens of a mask with which a key would come twice.
    pub(super) fn repeating_keys(&mut self, raw: &GrammarMask) -> Result<Vec<TokenId>, StepError> {
        let Some(keys) = &self.readers.keys else { return Ok(Vec::new()) };
        let mut refused = keys.repeating(&self.program, &raw.tokens, raw.enclosed.as_deref())?;
        if self.program.keys_may_run_out() {
            let keys = keys.clone();
            self.running_out(&keys, &raw.tokens, &mut refused)?;
        }
        Ok(refused)
    }
}
