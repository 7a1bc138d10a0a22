//! Tokens that the readers of keys and items have refused.

use std::sync::Arc;

use hashbrown::HashMap;

use super::fingerprint::Fingerprint;
use crate::ids::{StateId, TokenId};

/// Bounds of the memo: number of entries, at 80 bytes each, and of refused tokens in all, at 4 bytes each.
const PLACES: usize = 1 << 13;
const TOKENS: usize = 1 << 18;

/// Memo of the tokens that readers refused, by state and fingerprint of the readers. `None` means no token.
#[derive(Debug, Default)]
pub(crate) struct RefusalCache {
    known: HashMap<(StateId, Fingerprint), Option<Arc<[TokenId]>>>,
    tokens: usize,
}

impl RefusalCache {
    pub(crate) fn get(&self, state: StateId, fingerprint: Fingerprint) -> Option<Option<Arc<[TokenId]>>> {
        self.known.get(&(state, fingerprint)).cloned()
    }

    /// Files refused tokens. Clears the memo when it is full.
    pub(crate) fn keep(&mut self, state: StateId, fingerprint: Fingerprint, refused: &[TokenId]) {
        if self.known.len() >= PLACES || self.tokens + refused.len() > TOKENS {
            (self.known, self.tokens) = (HashMap::new(), 0);
        }
        if refused.len() <= TOKENS {
            self.tokens += refused.len();
            self.known.insert((state, fingerprint), (!refused.is_empty()).then(|| refused.into()));
        }
    }

    /// Memory, in bytes.
    pub(in crate::machine) fn bytes(&self) -> usize {
        self.known.allocation_size() + self.tokens * size_of::<TokenId>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(place: u64) -> Vec<TokenId> {
        (0..place % 3).map(|token| TokenId::new(u32::try_from(place + token).unwrap())).collect()
    }

    #[test]
    fn refused_tokens_are_kept_until_the_memory_limit() {
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
}
