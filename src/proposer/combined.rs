//! Several proposers as one, of which for each token the most promising guess wins, and the recipe of those
//! that guess for a text, the most trusted first, for all front ends. One of them has its place here: prompt
//! lookup, which guesses that the text repeats itself or the prompt.

use super::calibration::Rate;
#[cfg(feature = "tokenizers")]
use super::draft::{DraftLength, Drafter};
#[cfg(feature = "tokenizers")]
use super::forced::ForcedText;
use super::propose::{Guess, Propose, Seen, Site};
use crate::ids::TokenId;
#[cfg(feature = "tokenizers")]
use crate::vocab::{Tokenizer, Vocabulary};

/// Asks all of its proposers for each token and takes the guess most likely to be accepted. An earlier
/// proposer's guess wins over a later one's that is only a little more confident, since the larger of two
/// estimates is more often too large.
#[derive(Debug)]
pub struct BestOf {
    proposers: Vec<Box<dyn Propose>>,
    expensive: Option<Box<dyn Propose>>,
}

impl BestOf {
    /// Acceptance at which no other proposer is asked.
    const SURE: f64 = 0.97;
    /// Margin by which a less trusted proposer must be more confident.
    const SURER: f64 = 0.2;

    /// Combines these proposers, the most trusted first.
    #[must_use]
    pub fn new(proposers: Vec<Box<dyn Propose>>) -> Self {
        Self { proposers, expensive: None }
    }

    /// Adds an expensive proposer, which is trusted most and asked only where none of the others is sure. Its
    /// guess is worth only what it [adds](Site::worth) to theirs.
    #[must_use]
    pub fn with_expensive(self, expensive: Box<dyn Propose>) -> Self {
        Self { expensive: Some(expensive), ..self }
    }

    fn all(&self) -> impl Iterator<Item = &Box<dyn Propose>> {
        self.proposers.iter().chain(&self.expensive)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Box<dyn Propose>> {
        self.proposers.iter_mut().chain(&mut self.expensive)
    }

    /// Returns the best guess of all but the expensive proposer.
    fn cheap(&mut self, site: &mut Site<'_>) -> Option<Guess> {
        let mut best: Option<Guess> = None;
        for proposer in &mut self.proposers {
            let Some(guess) = proposer.guess(site) else { continue };
            if best.is_none_or(|best| guess.acceptance > best.acceptance + Self::SURER) {
                best = Some(guess);
            }
            if guess.acceptance >= Self::SURE {
                break;
            }
        }
        best
    }
}

impl Propose for BestOf {
    fn guess(&mut self, site: &mut Site<'_>) -> Option<Guess> {
        let cheap = self.cheap(site);
        let acceptance = cheap.map_or(0.0, |guess| guess.acceptance);
        let Some(expensive) = self.expensive.as_mut().filter(|_| acceptance < Self::SURE) else {
            return cheap;
        };
        let worth = site.worth();
        site.set_worth(worth.map(|seconds| seconds * (1.0 - acceptance)));
        let guess = expensive.guess(site);
        site.set_worth(worth);
        guess.filter(|guess| acceptance <= guess.acceptance + Self::SURER).or(cheap)
    }

    fn read(&mut self, tokens: &[TokenId]) {
        self.all_mut().for_each(|proposer| proposer.read(tokens));
    }

    fn observe(&mut self, site: &mut Site<'_>, seen: Seen<'_>) {
        for proposer in self.all_mut().filter(|proposer| proposer.learns()) {
            proposer.observe(site, seen);
        }
    }

    fn learns(&self) -> bool {
        self.all().any(|proposer| proposer.learns())
    }

    fn wants_likely(&self) -> bool {
        self.all().any(|proposer| proposer.wants_likely())
    }

    fn may_miss(&self) -> bool {
        self.all().filter(|proposer| proposer.learns()).all(|proposer| proposer.may_miss())
    }

    fn is_shared(&self) -> bool {
        self.all().any(|proposer| proposer.is_shared())
    }
}

/// The recipe of drafters for the texts of a grammar: the proposers beside the counts of the grammar.
///
/// A drafter trusts its counts most, then what the grammar forces, if nothing was learnt before, then what
/// came before in the same text; [`BestOf`] says when a less trusted one is heard. Cloning is cheap. With the
/// feature `tokenizers`.
///
/// ```
/// use domino::{
///     Vocabulary,
///     proposer::{CountProposer, DraftLength, DraftRecipe, Drafter, Learning, Prior},
///     vocab::Tokenizer,
/// };
///
/// # fn make(grammar: &domino::CompiledGrammar, tokenizer: &Tokenizer) -> Drafter {
/// // Nothing was learnt of the grammar before.
/// let recipe = DraftRecipe::standard(tokenizer, grammar.vocabulary(), false);
/// let counts = CountProposer::new(Prior::new(grammar), Learning::PerText);
/// recipe.drafter(Box::new(counts), None, DraftLength::Auto)
/// # }
/// ```
#[cfg(feature = "tokenizers")]
#[derive(Debug, Clone)]
pub struct DraftRecipe {
    forced: Option<ForcedText>,
    /// Does a lookup of earlier text guess?
    lookup: bool,
}

#[cfg(feature = "tokenizers")]
impl DraftRecipe {
    /// Drafts by counts and by a lookup of earlier text, and by [text that the grammar forces](ForcedText)
    /// unless counts begin with something that was learnt before, as `known` says: then they know it.
    ///
    /// The vocabulary is the grammar's, which has the special tokens that the grammar spells out; the
    /// tokenizer must be its own.
    #[must_use]
    pub fn standard(tokenizer: &Tokenizer, vocabulary: &Vocabulary, known: bool) -> Self {
        let forced = (!known).then(|| ForcedText::new(tokenizer.clone(), vocabulary.clone()));
        Self { forced, lookup: true }
    }

    /// Drafts by counts alone, as the DOMINO paper (3.6) does.
    #[must_use]
    pub fn counts_alone() -> Self {
        Self { forced: None, lookup: false }
    }

    /// Leaves out the lookup of earlier text.
    #[must_use]
    pub fn without_lookup(self) -> Self {
        Self { lookup: false, ..self }
    }

    /// Makes the drafter of one text. The counts are the text's own, or shared (`Arc<Mutex<_>>`) by texts
    /// that learn from one another. `second` is an expensive proposer, such as a draft model: it is trusted
    /// most, and asked only where no other is sure.
    #[must_use]
    pub fn drafter(
        &self,
        counts: Box<dyn Propose>,
        second: Option<Box<dyn Propose>>,
        length: DraftLength,
    ) -> Drafter {
        let mut proposers = vec![counts];
        if let Some(forced) = &self.forced {
            proposers.push(Box::new(forced.clone()));
        }
        if self.lookup {
            proposers.push(Box::new(Lookup::default()));
        }
        Drafter::new(Box::new(BestOf { proposers, expensive: second }), length)
    }
}

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
#[cfg(feature = "tokenizers")]
mod tests;

#[cfg(test)]
mod lookup_tests {
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
