//! What the caller of a request sees of its processor, which the engine owns.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use super::error::RequestError;
use crate::{decode::DecodeStats, ids::TokenId};

/// A view of a request's processor that stays with the caller. Cloning shares it.
#[derive(Debug, Clone, Default)]
pub struct RequestWatch {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    cancelled: AtomicBool,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    error: Option<RequestError>,
    stats: DecodeStats,
    full: bool,
    tokens: Vec<TokenId>,
    ended: bool,
}

impl RequestWatch {
    /// What went wrong, if anything: the text was ended then, and is a beginning of a text of the grammar, no
    /// more.
    #[must_use]
    pub fn error(&self) -> Option<RequestError> {
        self.seen().error.clone()
    }

    /// What the request cost so far, as far as its processor can tell: tokens, masks and their time, and with
    /// speculation passes, drafted and accepted tokens and the time of drafting.
    #[must_use]
    pub fn stats(&self) -> DecodeStats {
        self.seen().stats
    }

    /// Ends the text at the next token, for when nobody waits for it any more.
    pub fn cancel(&self) {
        self.inner.cancelled.store(true, Ordering::Relaxed);
    }

    /// Was it cancelled?
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancelled.load(Ordering::Relaxed)
    }

    /// Was the text ended since the model can hold no more? Only engines with speculation end texts by this.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.seen().full
    }

    /// The tokens that the processor has drawn, end of text apart; none where the draws are the engine's.
    #[must_use]
    pub fn tokens(&self) -> Vec<TokenId> {
        self.seen().tokens.clone()
    }

    /// Has the processor drawn end of text? Only where it draws itself. An error, a cancellation and a full
    /// context end the text as well, but are not drawn.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.seen().ended
    }

    /// Notes a token that was drawn, and whether it ends the text.
    pub(super) fn drawn(&self, token: TokenId, ends: bool) {
        let mut seen = self.seen();
        if ends {
            seen.ended = true;
        } else {
            seen.tokens.push(token);
            seen.stats.tokens = seen.tokens.len();
        }
    }

    /// Forgets the tokens after the first `kept`, and the end. Returns whether there were any.
    pub(super) fn take_back(&self, kept: usize) -> bool {
        let mut seen = self.seen();
        let there = seen.ended || seen.tokens.len() > kept;
        seen.tokens.truncate(kept);
        seen.stats.tokens = seen.tokens.len();
        seen.ended = false;
        there
    }

    /// Notes that the model can hold no more.
    pub(super) fn fill(&self) {
        self.seen().full = true;
    }

    /// Keeps the first error; the later ones follow from it.
    pub(super) fn fail(&self, error: RequestError) {
        tracing::warn!("a request is ended early: {error}");
        self.seen().error.get_or_insert(error);
    }

    /// Is the text to be ended?
    pub(super) fn is_over(&self) -> bool {
        self.is_cancelled() || self.seen().error.is_some()
    }

    /// Counts.
    pub(super) fn count(&self, count: impl FnOnce(&mut DecodeStats)) {
        count(&mut self.seen().stats);
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.inner.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
