//! Items that must differ, in a session: dead ends, and the tokens that a mask loses.
//!
//! A session asks the machine's search for its own place, with its own readers. What it asks is one piece of
//! work: if the session moves to another machine meanwhile, it is asked again there.

use super::{constraint::Constraint, error::StepError};
use crate::{
    ids::{StateId, TokenId},
    json_readers::{ArrayItems, ObjectKeys, SearchState},
    vocab::TokenSet,
};

impl Constraint {
    /// Does every text that goes on from here repeat an item?
    pub(super) fn items_run_out(
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
    pub(super) fn repeating_items(
        &mut self,
        mask: &TokenSet,
        refused: &mut Vec<TokenId>,
    ) -> Result<(), StepError> {
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
