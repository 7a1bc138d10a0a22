//! Steps and masks where no key of an object and no item of an array may come twice.
//!
//! A mask is the grammar's, without the tokens that repeat a key ([`ObjectKeys::repeating`]) and without
//! those after which the key at hand can only become one that has come. Whether that is so is decided by a
//! depth-first search over the places of the grammar that earlier keys lead to, and only for keys that can
//! run out.

use std::sync::Arc;

use hashbrown::HashSet;

use super::constraint::{Constraint, STEP_BYTES};
use super::error::StepError;
use crate::ids::{StateId, TokenId};
use crate::json_readers::{ArrayItems, JsonReaders, KeyPrefix, ObjectKeys, SearchState};
use crate::machine::{Fingerprint, lock};
use crate::{masks::GrammarMask, program::Thread, vocab::TokenSet};

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
    fn repeating_keys(&mut self, raw: &GrammarMask) -> Result<Vec<TokenId>, StepError> {
        let Some(keys) = &self.readers.keys else { return Ok(Vec::new()) };
        let mut refused = keys.repeating(&self.program, &raw.tokens, raw.enclosed.as_deref())?;
        if self.program.keys_may_run_out() {
            let keys = keys.clone();
            self.running_out(&keys, &raw.tokens, &mut refused)?;
        }
        Ok(refused)
    }
}

// Where items must differ, a session asks the machine's search for dead ends from its own place, with its own
// readers. What it asks is one piece of
// work: if the session moves to another machine meanwhile, it is asked again there.

impl Constraint {
    /// Does every text that goes on from here repeat an item?
    fn items_run_out(
        &mut self,
        state: &mut StateId,
        items: &ArrayItems,
        keys: Option<&ObjectKeys>,
    ) -> Result<bool, StepError> {
        let Some(rule) = self.program.lowered.items else { return Ok(false) };
        if items.are_settled(rule.may_run_out()) {
            return Ok(false);
        }
        let keys = self.keys_that_run_out(keys);
        // All in one piece: a session that moves to another machine begins anew.
        self.run(state, |machine, program, state, work| {
            let at = SearchState { state, items: ArrayItems::clone(items), keys: keys.clone() };
            machine.is_dead_end(program, at, rule, work)
        })
    }

    /// The reader of keys, if dead ends depend on it.
    fn keys_that_run_out(&self, keys: Option<&ObjectKeys>) -> Option<ObjectKeys> {
        keys.filter(|_| self.program.keys_may_run_out()).cloned()
    }

    /// Adds the tokens of a mask with which an item would come again that must not.
    fn repeating_items(&mut self, mask: &TokenSet, refused: &mut Vec<TokenId>) -> Result<(), StepError> {
        let (Some(items), Some(rule)) = (self.readers.items.clone(), self.program.lowered.items) else {
            return Ok(());
        };
        let mut state = self.here.state();
        let keys = self.keys_that_run_out(self.readers.keys.as_ref());
        let ahead = self.run(&mut state, |machine, program, state, work| {
            machine.ahead(program, (state, &items, keys.as_ref()), rule, work)
        })?;
        let suspects = items.suspects(&self.program, mask, rule, &ahead);
        if !suspects.is_empty() {
            refused.extend(self.run(&mut state, |machine, program, state, work| {
                machine.repeating(program, (state, &items, keys.as_ref()), &suspects, rule, work)
            })?);
        }
        Ok(())
    }
}

// A memo has the tokens that the readers of keys and items refuse, which masks lose. The refused tokens
// depend on the state and on all that the readers know. The memo's key is the state and a hash of the
// readers, so a text that comes to a similar place costs a look-up instead of a search for dead ends.

impl JsonReaders {
    /// The memo's key, or `None` where computing the refused tokens is as cheap as the look-up.
    fn fingerprint(&self) -> Option<Fingerprint> {
        match (&self.keys, &self.items) {
            (Some(keys), Some(items)) => Some(items.fingerprint(keys.fingerprint([1, 2]))),
            (None, Some(items)) => Some(items.fingerprint([3, 4])),
            (Some(keys), None) if keys.are_scarce() => Some(keys.fingerprint([5, 6])),
            (_, None) => None,
        }
    }
}

impl Constraint {
    /// Removes from a mask the tokens with which a key or an item would come again that must not.
    pub(super) fn narrowed(&mut self, raw: GrammarMask) -> Result<Arc<TokenSet>, StepError> {
        if self.readers.are_none() {
            return Ok(raw.tokens);
        }
        let Some(fingerprint) = self.readers.fingerprint() else {
            let refused = self.repeating_keys(&raw)?;
            return Ok(without(raw.tokens, &refused));
        };
        let known = lock(&self.machine).refusals.get(self.here.state(), fingerprint);
        if let Some(refused) = known {
            return Ok(without(raw.tokens, refused.as_deref().unwrap_or_default()));
        }
        let mut refused = self.repeating_keys(&raw)?;
        self.repeating_items(&raw.tokens, &mut refused)?;
        lock(&self.machine).refusals.keep(self.here.state(), fingerprint, &refused);
        Ok(without(raw.tokens, &refused))
    }
}

fn without(mask: Arc<TokenSet>, refused: &[TokenId]) -> Arc<TokenSet> {
    if refused.is_empty() {
        return mask;
    }
    let mut rest = TokenSet::clone(&mask);
    refused.iter().for_each(|&token| rest.remove(token));
    Arc::new(rest)
}

// In a step of a text with its readers the machine and the readers move, or, on an error, neither.

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
        readers.read_thought(&bytes[..taken]);
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
