//! The trait of a proposer.

use super::site::Site;
use crate::ids::TokenId;

/// A token that may come next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Guess {
    /// The token.
    pub token: TokenId,
    /// How likely it is that the decoder draws this very token here, 0 to 1. Drafts go as far as this says that it
    /// pays.
    pub acceptance: f64,
}

/// What came at a site.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Seen<'a> {
    /// The token that was drawn.
    pub token: TokenId,
    /// The likelier allowed tokens with their probabilities at temperature 1, if
    /// [asked for](Propose::wants_likely): what the model thought, of which the token is only one sample.
    pub likely: Option<&'a [(TokenId, f32)]>,
}

impl<'a> Seen<'a> {
    /// `token` came; the model gave these probabilities.
    #[must_use]
    pub fn new(token: TokenId, likely: Option<&'a [(TokenId, f32)]>) -> Self {
        Self { token, likely }
    }
}

/// Guesses tokens. Whatever it says, the text generated is the same: a guess that is not what is drawn is dropped, and
/// one that is not allowed or not in the vocabulary ends its draft.
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
    /// The token that probably comes next, or nothing. Called for each token of a draft, with the draft so far as part
    /// of the site.
    fn guess(&mut self, site: &mut Site<'_>) -> Option<Guess>;

    /// Reads `tokens`, the whole sequence so far, where several are new and nothing is guessed for the next
    /// pass: a prompt. So a proposer that has to read can do so without its first guess being taken for a
    /// dear one.
    fn read(&mut self, _tokens: &[TokenId]) {}

    /// Learns that `seen` came at `site`. Called for each token that was generated, in order, whether it was drafted or
    /// not, unless it [learns nothing](Self::learns); also not while drafts do not pay, if it [may miss](Self::may_miss)
    /// tokens.
    fn observe(&mut self, _site: &mut Site<'_>, _seen: Seen<'_>) {}

    /// Does it want to [observe](Self::observe)?
    fn learns(&self) -> bool {
        false
    }

    /// Should [`Seen::likely`] be worked out? That costs a mask and a pass over the logits for each token.
    fn wants_likely(&self) -> bool {
        false
    }

    /// May tokens come that it does not see, while nothing is drafted since it does not pay? Not if what it learns is to be
    /// kept.
    fn may_miss(&self) -> bool {
        false
    }

    /// Does it hold locks or learn something that proposers of other texts share? Those that say so are asked one after the
    /// other, in the order of their texts; all others of a batch at once, by the threads that share the work of passes. A
    /// thread that waits there for others may take up any of their work, so a lock that is held meanwhile and
    /// shared would never be free.
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

/// A proposer that several drafters share, or that is to be had back after its drafter has used it.
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

/// A proposer that panicked elsewhere can at worst guess badly.
fn held<P>(shared: &std::sync::Mutex<P>) -> std::sync::MutexGuard<'_, P> {
    shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
