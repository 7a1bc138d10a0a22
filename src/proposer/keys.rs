//! Contexts of a token, from coarse to rich: the place in the grammar, then with more and more earlier tokens
//! (n-grams).
//!
//! Invariant: keys are the same in every run for the same grammar and vocabulary; they are in files of users.

use super::site::Site;
use crate::{ids::as_u64, split_mix::mixed};

/// Number of earlier tokens that count at each level, besides the place in the grammar. The first level is
/// the scanner's states alone.
const TOKENS: [usize; LEVELS] = [0, 0, 1, 2, 3, 4, 6];
/// Number of levels.
pub(super) const LEVELS: usize = 7;

/// The levels as they are written to files.
const LEVEL_NUMBERS: [u8; LEVELS] = [0, 1, 2, 3, 4, 5, 6];

/// The contexts of one token, coarse to rich. Richer ones may be missing at the start of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct ContextKeys {
    keys: [u64; LEVELS],
    /// The coarsest level that counts.
    first: usize,
    len: usize,
}

impl ContextKeys {
    /// Computes the contexts of the next token.
    pub(super) fn at(site: &Site<'_>) -> Self {
        let context = site.context();
        let tokens = site.tokens();
        let mut keys = [mixed(0, context.alpha()); LEVELS];
        let (mut hash, mut counted, mut len) = (mixed(context.alpha(), context.beta()), 0, 1);
        let mut before = tokens.iter().rev();
        for (level, &count) in TOKENS.iter().enumerate().skip(1) {
            while counted < count
                && let Some(token) = before.next()
            {
                hash = mixed(hash, u64::from(token.raw()));
                counted += 1;
            }
            if counted < count {
                break;
            }
            keys[level] = mixed(hash, as_u64(level));
            len = level + 1;
        }
        Self { keys, first: 0, len }
    }

    /// Keeps the place in the grammar alone (the paper's alpha and beta): no earlier tokens, no back-off.
    pub(super) fn of_place(self) -> Self {
        Self { first: 1, len: 2, ..self }
    }

    /// Is there only one context, with nothing to back off to?
    pub(super) fn is_single(&self) -> bool {
        self.len - self.first == 1
    }

    /// Iterates over the keys with their levels, rich to coarse.
    pub(super) fn rich_first(&self) -> impl Iterator<Item = (u8, u64)> + '_ {
        let (levels, keys) = (&LEVEL_NUMBERS[..self.len], &self.keys[..self.len]);
        levels.iter().copied().zip(keys.iter().copied()).skip(self.first).rev()
    }
}
