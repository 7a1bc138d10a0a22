//! The trait of a proposer, and the place of a guess: the text so far, the tokens that may follow, and the
//! noise of the draw.
//!
//! Invariant: a site only looks. Its constraint is a fork, so nothing that a proposer asks can change the
//! text.

use super::planner::Pass;
use crate::{Constraint, Patience, grammar::ThoughtPlace};
use crate::{Context, ids::TokenId, vocab::TokenSet};

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

/// The noise that a draw adds to the logits over the temperature, by position in the whole sequence and
/// token.
pub type Noise<'a> = &'a dyn Fn(usize, TokenId) -> f64;

/// The token that would be drawn from a row of logits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drawn {
    /// The token.
    pub token: TokenId,
    /// Margin of its score, the logit over the temperature plus the noise, over that of the token which would
    /// be drawn if this one were not allowed, in nats; infinite if none is left.
    pub margin: f64,
}

/// A function that draws as the decoder does from a row of logits after these tokens (prompt, text and
/// draft), among the tokens of the set or, without a set, all that can be generated.
pub type Draw<'a> = &'a dyn Fn(&[f32], &[TokenId], Option<&TokenSet>) -> Option<Drawn>;

/// A place in a text at which a token is to be guessed.
pub struct Site<'a> {
    constraint: Option<Constraint>,
    context: Context,
    tokens: &'a mut Vec<TokenId>,
    start: usize,
    temperature: f64,
    noise: Noise<'a>,
    draw: Option<Draw<'a>>,
    ahead: bool,
    worth: Option<f64>,
}

impl<'a> Site<'a> {
    /// Creates the place after `tokens` (prompt and text), where `constraint` is. A temperature of 0 stands
    /// for greedy draws, which have no noise. The tokens of a draft are pushed to `tokens` and removed when
    /// the site is dropped.
    pub fn new(
        constraint: Option<&Constraint>,
        tokens: &'a mut Vec<TokenId>,
        temperature: f64,
        noise: Noise<'a>,
    ) -> Self {
        // A guess that takes a long step is not worth it.
        let constraint = constraint.map(|constraint| constraint.fork().patient(Patience::one_piece()));
        let context = constraint.as_ref().map(Constraint::context).unwrap_or_default();
        let start = tokens.len();
        let (draw, ahead, worth) = (None, false, None);
        Self { constraint, context, tokens, start, temperature, noise, draw, ahead, worth }
    }

    /// Sets whether masks are known before passes, so that the model need not compute whole rows.
    #[must_use]
    pub fn ahead(mut self, ahead: bool) -> Self {
        self.ahead = ahead;
        self
    }

    /// Sets how tokens are drawn from rows of logits, for proposers that have some.
    #[must_use]
    pub fn drawing(mut self, draw: Draw<'a>) -> Self {
        self.draw = Some(draw);
        self
    }

    /// The tokens of prompt, text, and the draft so far.
    #[must_use]
    pub fn tokens(&self) -> &[TokenId] {
        self.tokens
    }

    /// Number of tokens of the draft so far.
    #[must_use]
    pub fn drafted(&self) -> usize {
        self.tokens.len() - self.start
    }

    /// The place in the grammar, the draft included; the same everywhere without a grammar.
    #[must_use]
    pub fn context(&self) -> Context {
        self.context
    }

    /// Is there a grammar?
    #[must_use]
    pub fn is_constrained(&self) -> bool {
        self.constraint.is_some()
    }

    /// May the text still be in its [thought](crate::Grammar::after_thought)? There the grammar says nothing,
    /// and what was learnt of its texts is none of the thought's.
    #[must_use]
    pub fn is_thinking(&self) -> bool {
        let place = self.constraint.as_ref().and_then(Constraint::thought);
        place.is_some_and(|place| place != ThoughtPlace::Behind)
    }

    /// Are draws greedy?
    #[must_use]
    pub fn is_greedy(&self) -> bool {
        self.temperature == 0.0
    }

    /// Gumbel score of a token with this probability: ln(p)/temperature + noise(token). A draw takes the
    /// token with the greatest score.
    #[must_use]
    pub fn score(&self, token: TokenId, probability: f64) -> f64 {
        if self.is_greedy() {
            probability.ln()
        } else {
            probability.ln() / self.temperature + (self.noise)(self.tokens.len(), token)
        }
    }

    /// May the token follow? False also if that cannot be found out within the budgets.
    pub fn allows(&mut self, token: TokenId) -> bool {
        self.constraint.as_mut().is_none_or(|constraint| constraint.allows(token).unwrap_or(false))
    }

    /// Returns the tokens that may follow; `None` without a grammar, and if a budget is used up. A mask.
    pub fn mask(&mut self) -> Option<&TokenSet> {
        self.constraint.as_mut()?.mask().ok()
    }

    /// Draws as the decoder would here from a row of logits, whose entry `i` is about token `i`, by the same
    /// noise and among the tokens that may follow. `None` if [drawing is not set](Self::drawing), a budget is
    /// used up, or the row cannot be drawn from. Costs a mask and two draws.
    pub fn draw(&mut self, row: &[f32]) -> Option<Drawn> {
        let allowed = match &mut self.constraint {
            Some(constraint) => Some(constraint.mask().ok()?),
            None => None,
        };
        (self.draw?)(row, self.tokens, allowed)
    }

    /// Draws as if there were no grammar.
    #[must_use]
    pub fn draw_freely(&self, row: &[f32]) -> Option<Drawn> {
        (self.draw?)(row, self.tokens, None)
    }

    /// Returns the seconds that a surely right guess would be worth here, beyond the guesses of others;
    /// `None` if time does not count, as for drafts of a fixed length.
    #[must_use]
    pub fn worth(&self) -> Option<f64> {
        self.worth
    }

    /// Sets [`worth`](Self::worth).
    pub(crate) fn set_worth(&mut self, seconds: Option<f64>) {
        self.worth = seconds;
    }

    /// Will the row about the next token be needed [whole](Pass::whole)? A mask.
    pub fn is_wide(&mut self) -> bool {
        let mask = self.constraint.as_mut().filter(|_| self.ahead).and_then(|ahead| ahead.mask().ok());
        mask.is_none_or(Pass::is_wide)
    }

    /// Returns the text that must follow, up to `most` bytes: as long as a single byte can follow and the
    /// text cannot end. 256 lookups a byte.
    pub fn forced_bytes(&self, most: usize) -> Vec<u8> {
        let Some(mut ahead) = self.fork() else { return Vec::new() };
        let mut bytes = Vec::new();
        while bytes.len() < most && !ahead.is_complete() {
            match ahead.next_bytes().as_deref() {
                Ok(&[byte]) if ahead.advance_bytes(&[byte]) == Ok(1) => bytes.push(byte),
                _ => break,
            }
        }
        bytes
    }

    /// Returns a copy of the constraint, at the end of the draft.
    pub(super) fn fork(&self) -> Option<Constraint> {
        self.constraint.as_ref().map(Constraint::fork)
    }

    /// Advances by a token of the draft, if it may follow and the text ends neither before nor with it.
    /// Returns whether it did; `false` also if a budget of the constraint is used up.
    pub fn push(&mut self, token: TokenId) -> bool {
        if let Some(constraint) = &mut self.constraint {
            // At the place itself the decoder has looked.
            if self.tokens.len() > self.start && constraint.end().is_some() {
                return false;
            }
            if constraint.advance(token).is_err() {
                return false;
            }
            if constraint.is_ended() {
                // What was advanced can be undone; if not, the draft is over anyway.
                let _ = constraint.rollback(1);
                return false;
            }
            self.context = constraint.context();
        }
        self.tokens.push(token);
        true
    }
}

impl Drop for Site<'_> {
    fn drop(&mut self) {
        self.tokens.truncate(self.start);
    }
}

impl std::fmt::Debug for Site<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Site")
            .field("tokens", &self.tokens.len())
            .field("drafted", &self.drafted())
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}
