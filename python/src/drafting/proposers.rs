//! Proposes the text that must follow (jump-forward decoding), for grammars of which nothing was learnt.

use domino::{
    TokenId, Vocabulary,
    proposer::{Guess, Propose, Site},
};

/// Bytes of text that it looks ahead.
const AHEAD: usize = 24;

/// Guesses the longest token of the text that must follow (jump-forward decoding). Where a single token may
/// follow it is right for sure; where the text could be spelled by several, most tokenizers take the longest.
#[derive(Debug)]
pub(crate) struct Forced {
    vocabulary: Vocabulary,
}

impl Forced {
    /// Approximate share of longest tokens that are right.
    const LONGEST: f64 = 0.9;

    /// A proposer for texts of this vocabulary.
    pub(crate) fn new(vocabulary: Vocabulary) -> Self {
        Self { vocabulary }
    }

    /// The longest token that `text` begins with.
    fn longest(&self, text: &[u8]) -> Option<TokenId> {
        let found = self.vocabulary.prefixes_of(text);
        let length = |token: &TokenId| self.vocabulary.bytes(*token).map_or(0, <[u8]>::len);
        found.iter().max_by_key(length)
    }
}

impl Propose for Forced {
    fn guess(&mut self, site: &mut Site<'_>) -> Option<Guess> {
        let forced = site.forced_bytes(AHEAD);
        if forced.is_empty() {
            return None;
        }
        let token = self.longest(&forced)?;
        let is_only = site.mask().is_some_and(|mask| mask.iter().nth(1).is_none());
        Some(Guess { token, acceptance: if is_only { 1.0 } else { Self::LONGEST } })
    }
}
