//! Removes from masks the tokens that the readers of keys and items refuse, with a memo.
//!
//! The refused tokens depend on the state and on all that the readers know. The memo's key is the state and a
//! hash of the readers, so a text that comes to a similar place costs a look-up instead of a search for dead
//! ends.

use std::sync::Arc;

use super::{constraint::Constraint, error::StepError};
use crate::{
    ids::TokenId,
    json_readers::JsonReaders,
    machine::{Fingerprint, lock},
    masks::GrammarMask,
    vocab::TokenSet,
};

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
