//! The caller's view of a request, whose processor the engine owns.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use super::error::RequestError;
use domino::{decode::DecodeStats, ids::TokenId};

/// A view of a request's processor that stays with the caller. Cloning shares it.
#[derive(Debug, Clone, Default)]
pub struct RequestWatch {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    cancelled: AtomicBool,
    seen: Mutex<RequestLog>,
}

#[derive(Debug, Default)]
struct RequestLog {
    error: Option<RequestError>,
    stats: DecodeStats,
    full: bool,
    tokens: Vec<TokenId>,
    ended: bool,
}

impl RequestWatch {
    /// The error that ended the text early, if any. The text is then only a prefix of a text of the grammar.
    #[must_use]
    pub fn error(&self) -> Option<RequestError> {
        self.seen().error.clone()
    }

    /// Costs of the request so far, as far as its processor can measure: tokens, masks and their time, and
    /// with speculation passes, drafted and accepted tokens and the time of drafting.
    #[must_use]
    pub fn stats(&self) -> DecodeStats {
        self.seen().stats
    }

    /// Ends the text at the next token, for callers that no longer wait for it.
    pub fn cancel(&self) {
        self.inner.cancelled.store(true, Ordering::Relaxed);
    }

    /// True after [`cancel`](Self::cancel).
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancelled.load(Ordering::Relaxed)
    }

    /// True if the text was ended because the model's context is full. Only engines with speculation end
    /// texts so.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.seen().full
    }

    /// Tokens that the processor has drawn, without end of text; none where the engine draws.
    #[must_use]
    pub fn tokens(&self) -> Vec<TokenId> {
        self.seen().tokens.clone()
    }

    /// True if the processor, where it draws itself, has drawn end of text. An error, a cancellation and a
    /// full context end the text as well, but are not drawn.
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

    /// Forgets the tokens after the first `kept`, and the end; returns true if there were any.
    pub(super) fn take_back(&self, kept: usize) -> bool {
        let mut seen = self.seen();
        let there = seen.ended || seen.tokens.len() > kept;
        seen.tokens.truncate(kept);
        seen.stats.tokens = seen.tokens.len();
        seen.ended = false;
        there
    }

    /// Notes that the model's context is full.
    pub(super) fn fill(&self) {
        self.seen().full = true;
    }

    /// Keeps the first error; the later ones follow from it.
    pub(super) fn fail(&self, error: RequestError) {
        tracing::warn!("a request is ended early: {error}");
        self.seen().error.get_or_insert(error);
    }

    /// True if the text is to be ended.
    pub(super) fn is_over(&self) -> bool {
        self.is_cancelled() || self.seen().error.is_some()
    }

    /// Updates the costs.
    pub(super) fn count(&self, count: impl FnOnce(&mut DecodeStats)) {
        count(&mut self.seen().stats);
    }

    fn seen(&self) -> MutexGuard<'_, RequestLog> {
        self.inner.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
