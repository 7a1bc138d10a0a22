//! The trait of a proposer.

use super::site::Site;
use crate::ids::TokenId;

/// A token that may come next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Guess {
    /// The token.
    pub token: TokenId,
    /// Probability that the decoder draws this very token here, 0 to 1. It decides how long drafts are.
    pub acceptance: f64,
}

/// The token that came at a site.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Seen<'a> {
    /// The token that was drawn.
    pub token: TokenId,
    /// The likelier allowed tokens with their probabilities at temperature 1, if
    /// [requested](Propose::wants_likely): the model's distribution, of which the token is only one sample.
    pub likely: Option<&'a [(TokenId, f32)]>,
}

impl<'a> Seen<'a> {
    /// Records that `token` came; the model gave these probabilities.
    #[must_use]
    pub fn new(token: TokenId, likely: Option<&'a [(TokenId, f32)]>) -> Self {
        Self { token, likely }
    }
}

/// Guesses tokens. Guesses never change the generated text: one that is not drawn is dropped, and one that is
/// not allowed or not in the vocabulary ends its draft.
///
/// ```
/// use domino::{TokenId, proposer::{Guess, Propose, Site}};
///
/// /// Says what was said last.
/// #[derive(Debug)]
/// struct Parrot;
///
/// impl Propose for Parrot {
///     fn guess(&mut self, site: &mut Site<'_>) -> Option<Guess> {
///         site.tokens().last().map(|&token| Guess { token, acceptance: 0.5 })
///     }
/// }
/// ```
pub trait Propose: Send + std::fmt::Debug {
    /// Returns the token that probably comes next, or `None`. Called for each token of a draft, with the
    /// draft so far as part of the site.
    fn guess(&mut self, site: &mut Site<'_>) -> Option<Guess>;

    /// Reads `tokens`, the whole sequence so far, of which several are new, while nothing is guessed for the
    /// next pass: a prompt. So reading it does not count as the cost of the first guess.
    fn read(&mut self, _tokens: &[TokenId]) {}

    /// Learns that `seen` came at `site`. Called for each generated token, in order, drafted or not, unless
    /// the proposer [learns nothing](Self::learns); also not while drafting pauses, if it [may
    /// miss](Self::may_miss) tokens.
    fn observe(&mut self, _site: &mut Site<'_>, _seen: Seen<'_>) {}

    /// Does it want to [observe](Self::observe)?
    fn learns(&self) -> bool {
        false
    }

    /// Should [`Seen::likely`] be computed? That costs a mask and a pass over the logits for each token.
    fn wants_likely(&self) -> bool {
        false
    }

    /// May it miss tokens that come while drafting pauses? Not if what it learns is to be kept.
    fn may_miss(&self) -> bool {
        false
    }

    /// Does it hold locks or learn something that proposers of other texts share? Such proposers are asked
    /// one after the other, in the order of their texts; all others of a batch at once, by the threads that
    /// share the work of passes. A thread that waits there for others may take up any of their work, so a
    /// shared lock that is held meanwhile would never be free.
    fn is_shared(&self) -> bool {
        false
    }
}

impl<P: Propose + ?Sized> Propose for Box<P> {
    fn guess(&mut self, site: &mut Site<'_>) -> Option<Guess> {
        (**self).guess(site)
    }

    fn read(&mut self, tokens: &[TokenId]) {
        (**self).read(tokens);
    }

    fn observe(&mut self, site: &mut Site<'_>, seen: Seen<'_>) {
        (**self).observe(site, seen);
    }

    fn learns(&self) -> bool {
        (**self).learns()
    }

    fn wants_likely(&self) -> bool {
        (**self).wants_likely()
    }

    fn may_miss(&self) -> bool {
        (**self).may_miss()
    }

    fn is_shared(&self) -> bool {
        (**self).is_shared()
    }
}

/// A proposer that several drafters share, or that is taken back after its drafter has used it.
impl<P: Propose> Propose for std::sync::Arc<std::sync::Mutex<P>> {
    fn guess(&mut self, site: &mut Site<'_>) -> Option<Guess> {
        held(self).guess(site)
    }

    fn read(&mut self, tokens: &[TokenId]) {
        held(self).read(tokens);
    }

    fn observe(&mut self, site: &mut Site<'_>, seen: Seen<'_>) {
        held(self).observe(site, seen);
    }

    fn learns(&self) -> bool {
        held(self).learns()
    }

    fn wants_likely(&self) -> bool {
        held(self).wants_likely()
    }

    fn may_miss(&self) -> bool {
        held(self).may_miss()
    }

    fn is_shared(&self) -> bool {
        true
    }
}

/// Locks a shared proposer; one that panicked elsewhere can at worst guess badly.
fn held<P>(shared: &std::sync::Mutex<P>) -> std::sync::MutexGuard<'_, P> {
    shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
