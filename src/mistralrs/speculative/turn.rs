//! Whose turn it is: a speculative engine serves one request at a time.
//!
//! Upstream steps sequences of equal length one after the other on one cache, and from the second such step
//! on without putting each one's own cache back: with two of them in it at once, an engine with speculation
//! writes wrong texts (mistralrs-core 0.8.1, `SpeculativePipeline::step`: the fallback for several sequences
//! passes `CacheInstruction::Nothing` on to each). Its steps are for one sequence at a time anyway, so turns
//! cost no throughput.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The turns of one engine.
#[derive(Debug, Clone)]
pub(super) struct Turns {
    semaphore: Arc<Semaphore>,
    last: Arc<Mutex<Option<Instant>>>,
}

/// The right to be in the engine, until dropped.
#[derive(Debug)]
pub(super) struct Turn {
    last: Arc<Mutex<Option<Instant>>>,
    _permit: OwnedSemaphorePermit,
}

impl Turns {
    pub(super) fn new() -> Self {
        Self { semaphore: Arc::new(Semaphore::new(1)), last: Arc::default() }
    }

    /// The next turn, first come, first served.
    pub(super) async fn next(&self) -> Option<Turn> {
        // A semaphore that is never closed gives a permit in the end.
        let permit = Arc::clone(&self.semaphore).acquire_owned().await.ok()?;
        let turn = Turn { last: Arc::clone(&self.last), _permit: permit };
        turn.sign();
        Some(turn)
    }

    /// How long whoever has the turn has given no sign of life.
    pub(super) fn silence(&self) -> Option<Duration> {
        lock(&self.last).map(|last| last.elapsed())
    }
}

impl Turn {
    /// Gives a sign of life.
    pub(super) fn sign(&self) {
        *lock(&self.last) = Some(Instant::now());
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *lock(&self.last) = None;
    }
}

fn lock(last: &Mutex<Option<Instant>>) -> MutexGuard<'_, Option<Instant>> {
    last.lock().unwrap_or_else(PoisonError::into_inner)
}
