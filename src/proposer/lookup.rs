//! Prompt lookup: guesses that the text repeats itself or the prompt.

use super::{
    propose::{Guess, Propose, Seen},
    rate::Rate,
    site::Site,
};
use crate::ids::TokenId;

/// Number of equal tokens that make the surest guess.
const MOST: usize = 6;
/// Number of tokens looked back on.
const WINDOW: usize = 2048;

/// Finds the latest place where the most of the last few tokens occurred before, and guesses the token that
/// followed there. For free text and programs, where the place in the grammar says little.
#[derive(Debug, Clone)]
pub struct Lookup {
    /// Rates by number of equal tokens.
    rates: [Rate; MOST + 1],
}

impl Default for Lookup {
    fn default() -> Self {
        Self { rates: [0.0, 0.1, 0.25, 0.4, 0.5, 0.6, 0.7].map(Rate::expecting) }
    }
}

impl Lookup {
    /// Returns the token that followed the longest match, and the match's length. Linear in the window.
    fn find(tokens: &[TokenId]) -> Option<(TokenId, usize)> {
        let window = &tokens[tokens.len().saturating_sub(WINDOW)..];
        let last = window.last()?;
        let mut best: Option<(TokenId, usize)> = None;
        for end in (1..window.len()).rev().filter(|&end| window[end - 1] == *last) {
            let alike = window[..end].iter().rev().zip(window.iter().rev()).take(MOST);
            let length = alike.take_while(|(one, other)| one == other).count();
            if best.is_none_or(|(_, longest)| length > longest) {
                best = Some((window[end], length));
            }
            if length == MOST {
                break;
            }
        }
        best
    }
}

impl Propose for Lookup {
    fn guess(&mut self, site: &mut Site<'_>) -> Option<Guess> {
        let (token, length) = Self::find(site.tokens())?;
        site.allows(token).then(|| Guess { token, acceptance: self.rates[length].value() })
    }

    fn observe(&mut self, site: &mut Site<'_>, seen: Seen<'_>) {
        let Some((token, length)) = Self::find(site.tokens()).filter(|(token, _)| site.allows(*token)) else {
            return;
        };
        self.rates[length].note(token == seen.token);
    }

    fn learns(&self) -> bool {
        true
    }

    fn may_miss(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(tokens: &[u32]) -> Option<(u32, usize)> {
        let tokens: Vec<TokenId> = tokens.iter().copied().map(TokenId::new).collect();
        Lookup::find(&tokens).map(|(token, length)| (token.raw(), length))
    }

    #[test]
    fn lookup_takes_the_longest_match_then_the_latest() {
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[1]), None);
        assert_eq!(found(&[1, 2, 3]), None);
        assert_eq!(found(&[1, 2, 1]), Some((2, 1)));
        assert_eq!(found(&[7, 1, 2, 8, 1, 3, 7, 1]), Some((2, 2)));
        assert_eq!(found(&[1, 2, 8, 1, 3, 9, 1]), Some((3, 1)));
        assert_eq!(found(&[5; 20]), Some((5, 6)));
    }
}
