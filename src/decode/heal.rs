//! Token healing: the end of a prompt is written again, so that tokens may cross it (paper, 3.5).
//!
//! A prompt that ends in the middle of what would be one token, as `http:` before `//`, is split as no text
//! that the model has seen. So the last tokens are taken back, and the text begins with their bytes: by
//! whichever tokens the model likes.

use crate::{ids::TokenId, vocab::Vocabulary};

/// Most tokens that are taken back.
const MOST: usize = 4;

/// How a prompt is healed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Healing {
    /// Tokens of the prompt that stay; one at least.
    pub kept: usize,
    /// The bytes of the others, with which the text begins; see [`Grammar::after`](crate::Grammar::after).
    pub bytes: Vec<u8>,
}

impl Healing {
    /// Takes back as many of the last four tokens as a token may begin with that goes on; none that is
    /// special, and not all. A walk down the trie for each.
    #[must_use]
    pub fn of(vocabulary: &Vocabulary, prompt: &[TokenId]) -> Self {
        let mut healing = Self { kept: prompt.len(), bytes: Vec::new() };
        let mut bytes = Vec::new();
        for (kept, &token) in prompt.iter().enumerate().skip(1).rev().take(MOST) {
            let Some(before) = vocabulary.bytes(token) else { break };
            bytes.splice(..0, before.iter().copied());
            if vocabulary.goes_on(&bytes) {
                healing = Self { kept, bytes: bytes.clone() };
            }
        }
        healing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_longer_token_begins_with_is_taken_back() {
        let id = TokenId::new;
        let words = ["http", ":", "://", " ", " a", "x"];
        let builder = words
            .iter()
            .zip(0..)
            .fold(Vocabulary::builder(), |builder, (word, raw)| builder.token(id(raw), word));
        let vocabulary = builder.special(id(6), "<s>").end_of_text(id(7)).build().unwrap();
        let healed = |prompt: &[u32]| {
            let prompt: Vec<TokenId> = prompt.iter().map(|&raw| id(raw)).collect();
            let Healing { kept, bytes } = Healing::of(&vocabulary, &prompt);
            (kept, String::from_utf8(bytes).unwrap())
        };
        assert_eq!(healed(&[6, 0, 1]), (2, ":".to_owned()));
        assert_eq!(healed(&[6, 5, 3]), (2, " ".to_owned()));
        // Nothing goes on from these.
        assert_eq!(healed(&[6, 0, 2]), (3, String::new()));
        assert_eq!(healed(&[6, 5]), (2, String::new()));
        // One token stays, and a special one.
        assert_eq!(healed(&[1]), (1, String::new()));
        assert_eq!(healed(&[0, 6]), (2, String::new()));
        assert_eq!(healed(&[]), (0, String::new()));
    }
}
