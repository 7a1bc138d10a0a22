//! Turns of requests: a speculative engine serves one request at a time.
//!
//! Upstream steps sequences of equal length one after the other on one cache, and from the second such step
//! on it does not put back each one's own cache. With two sequences at once, an engine with speculation
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
pub(super) struct EngineTurns {
    semaphore: Arc<Semaphore>,
    last: Arc<Mutex<Option<Instant>>>,
}

/// The right to be in the engine, until dropped.
#[derive(Debug)]
pub(super) struct EngineTurn {
    last: Arc<Mutex<Option<Instant>>>,
    _permit: OwnedSemaphorePermit,
}

impl EngineTurns {
    pub(super) fn new() -> Self {
        Self { semaphore: Arc::new(Semaphore::new(1)), last: Arc::default() }
    }

    /// Waits for the next turn, first come, first served.
    pub(super) async fn next(&self) -> Option<EngineTurn> {
        // The semaphore is never closed, so a permit comes in the end.
        let permit = Arc::clone(&self.semaphore).acquire_owned().await.ok()?;
        let turn = EngineTurn { last: Arc::clone(&self.last), _permit: permit };
        turn.sign();
        Some(turn)
    }

    /// Time since the last sign of life of the request that has the turn.
    pub(super) fn silence(&self) -> Option<Duration> {
        lock(&self.last).map(|last| last.elapsed())
    }
}

impl EngineTurn {
    /// Notes a sign of life.
    pub(super) fn sign(&self) {
        *lock(&self.last) = Some(Instant::now());
    }
}

impl Drop for EngineTurn {
    fn drop(&mut self) {
        *lock(&self.last) = None;
    }
}

fn lock(last: &Mutex<Option<Instant>>) -> MutexGuard<'_, Option<Instant>> {
    last.lock().unwrap_or_else(PoisonError::into_inner)
}
