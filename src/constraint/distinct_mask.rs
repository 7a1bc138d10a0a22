//! Removes from masks the tokens that the readers of keys and items refuse, with a memo.
//!
//! The refused tokens depend on the state and on all that the readers know. The memo's key is the state and a
//! hash of the readers, so a text that comes to a similar place costs a look-up instead of a search for dead
//! ends.

use std::sync::Arc;

use hashbrown::HashMap;

use super::{
    constraint::Constraint, error::StepError, fast_advance::GrammarMask, machine_pool::lock,
    readers::JsonReaders,
};
use crate::{
    ids::{StateId, TokenId},
    split_mix::mixed,
    vocab::TokenSet,
};

/// Bounds of the memo: number of entries, at 80 bytes each, and of refused tokens in all, at 4 bytes each.
const PLACES: usize = 1 << 13;
const TOKENS: usize = 1 << 18;

/// A hash of 128 bits. Collisions are neglected: at 2^13 entries the chance of one is below 2^-100.
pub(super) type Fingerprint = [u64; 2];

/// Adds a number to a hash: two chains of SplitMix64 over different inputs.
pub(super) fn with_number([one, other]: Fingerprint, value: u64) -> Fingerprint {
    [mixed(one, value), mixed(other, value ^ 0x5555_5555_5555_5555)]
}

/// Adds bytes and their length to a hash.
pub(super) fn with_bytes(fingerprint: Fingerprint, bytes: &[u8]) -> Fingerprint {
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    words.fold(with_number(fingerprint, bytes.len() as u64), with_number)
}

/// Memo of the tokens that readers refused, by state and fingerprint of the readers. `None` means no token.
#[derive(Debug, Default)]
pub(super) struct RefusalCache {
    known: HashMap<(StateId, Fingerprint), Option<Arc<[TokenId]>>>,
    tokens: usize,
}

impl RefusalCache {
    fn get(&self, state: StateId, fingerprint: Fingerprint) -> Option<Option<Arc<[TokenId]>>> {
        self.known.get(&(state, fingerprint)).cloned()
    }

    /// Files refused tokens. Clears the memo when it is full.
    fn keep(&mut self, state: StateId, fingerprint: Fingerprint, refused: &[TokenId]) {
        if self.known.len() >= PLACES || self.tokens + refused.len() > TOKENS {
            (self.known, self.tokens) = (HashMap::new(), 0);
        }
        if refused.len() <= TOKENS {
            self.tokens += refused.len();
            self.known.insert((state, fingerprint), (!refused.is_empty()).then(|| refused.into()));
        }
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.known.allocation_size() + self.tokens * size_of::<TokenId>()
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(place: u64) -> Vec<TokenId> {
        (0..place % 3).map(|token| TokenId::new(u32::try_from(place + token).unwrap())).collect()
    }

    #[test]
    fn what_was_refused_is_known_until_there_is_too_much() {
        let (mut refusals, state) = (RefusalCache::default(), StateId::new(7));
        let places = PLACES as u64;
        for place in 0..places {
            refusals.keep(state, [place, 0], &refused(place));
        }
        for place in 0..places {
            let known = refusals.get(state, [place, 0]).unwrap();
            assert_eq!(known.as_deref().unwrap_or_default(), refused(place));
        }
        assert!(refusals.get(StateId::new(8), [1, 0]).is_none() && refusals.get(state, [1, 1]).is_none());
        assert!(refusals.bytes() < 2_000_000);
        refusals.keep(state, [places, 0], &refused(places));
        assert!(refusals.get(state, [0, 0]).is_none() && refusals.get(state, [places, 0]).is_some());
        refusals.keep(state, [1, 0], &vec![TokenId::new(1); TOKENS]);
        assert_eq!(refusals.known.len(), 1);
        refusals.keep(state, [2, 0], &vec![TokenId::new(1); TOKENS + 1]);
        assert!(refusals.bytes() < 2_000_000);
    }

    /// A length is part of the hash, so that bytes cannot be moved from one text to the next.
    #[test]
    fn texts_are_told_apart() {
        let fingerprint = |texts: [&str; 2]| {
            texts.iter().fold([0, 0], |fingerprint, text| with_bytes(fingerprint, text.as_bytes()))
        };
        let all =
            [["", "ab"], ["a", "b"], ["ab", ""], ["ab", "\0"], ["ab\0", ""], ["b", "a"], ["abcdefgh", "i"]];
        let fingerprints: std::collections::BTreeSet<Fingerprint> =
            all.into_iter().map(fingerprint).collect();
        assert_eq!(fingerprints.len(), all.len());
    }
}
