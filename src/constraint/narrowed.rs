//! Masks without what the readers of keys and items refuse, and what they refused where a text was before.

use std::sync::Arc;

use hashbrown::HashMap;

use super::{
    constraint::Constraint, context::mixed, error::StepError, host::lock, known::RawMask, readers::Readers,
};
use crate::{
    ids::{StateId, TokenId},
    vocab::TokenSet,
};

/// Places of which is kept what is refused there, and the most tokens of all of them: 80 bytes and 4 each.
const PLACES: usize = 1 << 13;
const TOKENS: usize = 1 << 18;

/// A hash of all that readers know, of 128 bits: texts that only meet in it are not to be feared.
pub(super) type Print = [u64; 2];

/// Goes on with a hash. The two halves see different numbers.
pub(super) fn printed([one, other]: Print, value: u64) -> Print {
    [mixed(one, value), mixed(other, value ^ 0x5555_5555_5555_5555)]
}

/// Goes on with bytes.
pub(super) fn printed_bytes(print: Print, bytes: &[u8]) -> Print {
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    words.fold(printed(print, bytes.len() as u64), printed)
}

/// The tokens that readers refused, by state and what they knew. `None` stands for none.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    known: HashMap<(StateId, Print), Option<Arc<[TokenId]>>>,
    tokens: usize,
}

impl Refusals {
    fn get(&self, state: StateId, print: Print) -> Option<Option<Arc<[TokenId]>>> {
        self.known.get(&(state, print)).cloned()
    }

    /// Keeps them. Past the bounds those before are forgotten and worked out anew.
    fn keep(&mut self, state: StateId, print: Print, refused: &[TokenId]) {
        if self.known.len() >= PLACES || self.tokens + refused.len() > TOKENS {
            (self.known, self.tokens) = (HashMap::new(), 0);
        }
        if refused.len() <= TOKENS {
            self.tokens += refused.len();
            self.known.insert((state, print), (!refused.is_empty()).then(|| refused.into()));
        }
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.known.allocation_size() + self.tokens * size_of::<TokenId>()
    }
}

impl Readers {
    /// What tells places apart of which it pays to know what is refused; `None` elsewhere.
    fn print(&self, keys_may_run_out: bool) -> Option<Print> {
        match (&self.keys, &self.items) {
            (Some(keys), Some(items)) => Some(items.print(keys.print([1, 2]))),
            (None, Some(items)) => Some(items.print([3, 4])),
            (Some(keys), None) if keys_may_run_out && keys.is_any() => Some(keys.print([5, 6])),
            (_, None) => None,
        }
    }
}

impl Constraint {
    /// A mask without the tokens with which a key or an item would come again that may not.
    pub(super) fn narrowed(&mut self, raw: RawMask) -> Result<Arc<TokenSet>, StepError> {
        if self.readers.are_none() {
            return Ok(raw.tokens);
        }
        let Some(print) = self.readers.print(self.program.keys_may_run_out()) else {
            let refused = self.repeating_keys(&raw)?;
            return Ok(without(raw.tokens, &refused));
        };
        let known = lock(&self.machine).refusals().get(self.here.state(), print);
        if let Some(refused) = known {
            return Ok(without(raw.tokens, refused.as_deref().unwrap_or_default()));
        }
        let mut refused = self.repeating_keys(&raw)?;
        self.repeating_items(&raw.tokens, &mut refused)?;
        lock(&self.machine).refusals().keep(self.here.state(), print, &refused);
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
