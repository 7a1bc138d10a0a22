//! Guesses the tokens of text that the grammar forces but for its spelling, for grammars of which nothing was
//! learnt before.
//!
//! The text is forced, never its tokens: the same bytes can be split in many ways, and the choice is the
//! model's. So forced text is split as the tokenizer would, and proposed like anything else. It is split
//! together with the text before it, so that a token which begins there ends where it would; and its last
//! token is a weaker guess, since it may have grown into what comes after.

use std::collections::HashSet;

use super::{
    draft::{DraftLength, Drafter},
    propose::{Guess, Propose, Seen},
    rate::Rate,
    site::Site,
    template::Template,
};
use crate::{
    ids::TokenId,
    machine::Context,
    session::Constraint,
    special::{self, SpecialPiece},
    vocab::{Tokenizer, Vocabulary},
};

/// Greatest number of bytes of forced text looked ahead.
const AHEAD: usize = 128;
/// Number of bytes before the forced text that are split with it.
const BEFORE: usize = 24;
/// Number of bytes of the text before from which habits of spelling are taken.
const REMEMBERED: usize = 1024;
/// Number of places remembered that are known to force nothing.
const PLACES: usize = 10_000;

/// Proposes the canonical tokens of forced text. Text counts as forced also where it could be spelled
/// otherwise: with white space, which is guessed to be as it was before, and with escapes, which are guessed
/// not to come. Hardly a byte of JSON is forced otherwise. With the feature `tokenizers`.
#[derive(Debug, Clone)]
pub struct ForcedText {
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    /// The plan: the length of the sequence it is for, and the tokens that should follow.
    plan: ForcedPlan,
    /// Places that force nothing.
    free: HashSet<Context>,
    /// Rates of inner and of last tokens: of strictly forced text, and of text with other spellings.
    rates: [[Rate; 2]; 2],
}

#[derive(Debug, Clone, Default)]
struct ForcedPlan {
    start: usize,
    tokens: Vec<TokenId>,
    /// Could the text be spelled otherwise?
    loose: bool,
}

impl ForcedPlan {
    /// Returns the next token of the plan, and whether it is the last, if these tokens followed the plan.
    fn next(&self, tokens: &[TokenId]) -> Option<(TokenId, bool)> {
        let gone = tokens.get(self.start..)?;
        let rest = self.tokens.strip_prefix(gone)?;
        rest.first().map(|&token| (token, rest.len() == 1))
    }
}

impl Drafter {
    /// Drafts of [text that the grammar forces](ForcedText), as long as pays: for grammars of which nothing
    /// was learnt before. The tokenizer must be that of the vocabulary. With the feature `tokenizers`.
    #[must_use]
    pub fn of_forced_text(tokenizer: Tokenizer, vocabulary: Vocabulary) -> Self {
        Self::new(Box::new(ForcedText::new(tokenizer, vocabulary)), DraftLength::Auto)
    }
}

impl ForcedText {
    /// Creates a proposer that splits as `tokenizer` does, which must be that of the vocabulary.
    #[must_use]
    pub fn new(tokenizer: Tokenizer, vocabulary: Vocabulary) -> Self {
        let rates = [[0.95, 0.5], [0.8, 0.4]].map(|rates| rates.map(Rate::expecting));
        Self { tokenizer, vocabulary, plan: ForcedPlan::default(), free: HashSet::new(), rates }
    }

    /// Returns the text that must come at a site but for its spelling, up to 128 bytes. 256 lookups a byte.
    #[must_use]
    pub fn text(&self, site: &Site<'_>) -> Vec<u8> {
        self.forced(site).bytes
    }

    /// Counts the bytes of a text of this grammar that are forced but for their spelling. The constraint
    /// stands at the beginning of the text. 256 lookups a byte; `None` if the text leaves the language, or a
    /// budget is used up.
    #[must_use]
    pub fn count(constraint: &Constraint, text: &[u8]) -> Option<usize> {
        Template::count(constraint.fork(), text)
    }

    /// Returns the token that should come, and whether it is the last forced one.
    fn next(&mut self, site: &Site<'_>) -> Option<(TokenId, bool)> {
        if !site.is_constrained() {
            return None;
        }
        if let Some(next) = self.plan.next(site.tokens()) {
            return Some(next);
        }
        let place = site.context();
        if self.free.contains(&place) {
            return None;
        }
        let Template { bytes, strict } = self.forced(site);
        if bytes.is_empty() {
            if self.free.len() < PLACES {
                self.free.insert(place);
            }
            return None;
        }
        let tokens = self.split(site.tokens(), &bytes);
        self.plan = ForcedPlan { start: site.tokens().len(), tokens, loose: !strict };
        self.plan.next(site.tokens())
    }

    /// Reads the forced text at a site; none without a grammar.
    fn forced(&self, site: &Site<'_>) -> Template {
        let before = || self.last_bytes(site.tokens(), REMEMBERED);
        site.fork().map(|ahead| Template::read(ahead, &before(), AHEAD)).unwrap_or_default()
    }

    /// Returns the last bytes that these tokens spell, back to a token that spells nothing: at most `most`,
    /// whole tokens.
    fn last_bytes(&self, tokens: &[TokenId], most: usize) -> Vec<u8> {
        let mut first = tokens.len();
        let mut length = 0;
        for (index, &token) in tokens.iter().enumerate().rev() {
            let bytes = self.vocabulary.bytes(token).map_or(0, <[u8]>::len);
            if bytes == 0 || length + bytes > most {
                break;
            }
            (first, length) = (index, length + bytes);
        }
        self.vocabulary.concat(&tokens[first..])
    }

    /// Returns the tokens of `forced` after `tokens`, as the tokenizer splits them together; none if a token
    /// would begin before and end inside.
    fn split(&self, tokens: &[TokenId], forced: &[u8]) -> Vec<TokenId> {
        let forced = match special::pieces(forced).next() {
            Some(SpecialPiece::Text(text)) => text,
            Some(SpecialPiece::Special(name)) => {
                let special = self.vocabulary.special_tokens().find(|(_, one)| one.as_bytes() == name);
                let token = special.map(|(id, _)| id).or_else(|| self.vocabulary.token_of(name));
                return token.into_iter().collect();
            }
            Some(SpecialPiece::Cut) | None => return Vec::new(),
        };
        let before = self.last_bytes(tokens, BEFORE);
        let text = [&before[..], forced].concat();
        // What is forced may be cut in the middle of a character, and so may what is before.
        let text = String::from_utf8_lossy(&text);
        let Ok(split) = self.tokenizer.encode(&text, false) else { return Vec::new() };
        let spelt = |tokens: &[TokenId]| self.vocabulary.concat(tokens);
        let whole = spelt(&split);
        // Some tokenizers put a space before a text.
        let Some(extra) = whole.len().checked_sub(text.len()) else { return Vec::new() };
        let mut at = 0;
        let first = split.iter().position(|&token| {
            let here = at == extra + before.len();
            at += self.vocabulary.bytes(token).map_or(0, <[u8]>::len);
            here
        });
        let rest = first.map(|first| split[first..].to_vec()).unwrap_or_default();
        if forced.starts_with(&spelt(&rest)) { rest } else { Vec::new() }
    }
}

impl Propose for ForcedText {
    fn guess(&mut self, site: &mut Site<'_>) -> Option<Guess> {
        let (token, last) = self.next(site)?;
        let rate = self.rates[usize::from(self.plan.loose)][usize::from(last)];
        Some(Guess { token, acceptance: rate.value() })
    }

    fn observe(&mut self, site: &mut Site<'_>, seen: Seen<'_>) {
        let Some((token, last)) = self.plan.next(site.tokens()) else { return };
        self.rates[usize::from(self.plan.loose)][usize::from(last)].note(token == seen.token);
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

    #[test]
    fn bytes_before_a_forced_text_are_of_whole_tokens() {
        const JSON: &str = include_str!("../../tests/fixtures/byte_level.json");
        let tokenizer = Tokenizer::from_tokenizer_json(JSON).unwrap();
        let vocabulary = Vocabulary::from_tokenizer_json(JSON).unwrap();
        let name = "<|begin|>";
        let (begin, _) = vocabulary.special_tokens().find(|&(_, special)| special == name).unwrap();
        let mut tokens = tokenizer.encode("{", false).unwrap();
        tokens.push(begin);
        tokens.extend(tokenizer.encode("true null", false).unwrap());
        let forced = ForcedText::new(tokenizer, vocabulary);
        let last = |most: usize| String::from_utf8(forced.last_bytes(&tokens, most)).unwrap();
        // Not past what spells nothing, and not a part of a token.
        assert_eq!(last(100), "true null");
        assert_eq!(
            [last(9), last(8), last(5), last(4), last(3)],
            ["true null", " null", " null", "null", ""]
        );
    }
}
