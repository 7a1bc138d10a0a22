//! Token healing: rewrites the end of a prompt, so that tokens may cross it (paper, 3.5).
//!
//! A prompt that ends inside what would be one token, as `http:` before `//`, is split unlike any text that
//! the model has seen. So the last tokens are taken back, and the text begins with their bytes, in whichever
//! tokens the model likes.

use crate::{ids::TokenId, vocab::Vocabulary};

/// Greatest number of tokens taken back.
const MOST: usize = 4;

/// The healing of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Healing {
    /// Number of tokens of the prompt that stay; at least one.
    pub kept: usize,
    /// The bytes of the others, with which the text begins; see [`Grammar::after`](crate::Grammar::after).
    pub bytes: Vec<u8>,
}

impl Healing {
    /// Takes back as many of the last four tokens as some longer token may begin with; none that is special,
    /// and not all. A walk down the trie for each.
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
    fn healing_takes_back_a_token_that_begins_a_longer_one() {
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
