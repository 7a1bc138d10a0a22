//! Bounds on all requests alike: on the size, time and rate of bodies and on the memory of all of them
//! together, on the texts at once ([`Gate`]), and on how long they wait for an engine that stands still
//! ([`Pulse`]).
//!
//! Memory is counted as bytes come, not as they are announced: an announcement costs nothing.

use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, atomic::AtomicBool, atomic::AtomicU64,
    atomic::AtomicUsize, atomic::Ordering,
};
use std::{collections::HashMap, future::poll_fn, pin::Pin, time::Duration, time::Instant};

use axum::body::{Body, Bytes, HttpBody};
use tokio::sync::watch;

use super::{access::Caller, observe::metrics::Metrics, problem::Problem};

/// Bytes a second that a body must bring, on average, once its slow start is over.
const LEAST_RATE: u64 = 1024;

/// Time for which a body may come more slowly than [`LEAST_RATE`].
pub(crate) const SLOW_START: Duration = Duration::from_secs(5);

/// Divisor of the memory for all bodies that gives the share of one client.
const CLIENT_SHARE: usize = 2;

/// Bounds of one body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyBounds {
    /// Largest size, in bytes.
    pub(crate) most: usize,
    /// Longest time for the whole body, counted from the end of the head.
    pub(crate) time: Duration,
    /// Time for which it may bring fewer bytes than [`LEAST_RATE`] asks for.
    pub(crate) slow_start: Duration,
}

/// The memory of all bodies that are being read.
#[derive(Debug)]
pub(crate) struct BodyMemory {
    most: usize,
    most_of_client: usize,
    held: Mutex<HashMap<Caller, usize>>,
}

/// The memory of one body; dropping it gives that back.
#[derive(Debug)]
pub(crate) struct HeldMemory {
    memory: Arc<BodyMemory>,
    client: Caller,
    bytes: usize,
}

impl BodyMemory {
    /// Room for `most` bytes, of which a client gets a half, or one body of `most_body` bytes if that is
    /// more.
    pub(crate) fn new(most: usize, most_body: usize) -> Arc<Self> {
        let most_of_client = (most / CLIENT_SHARE).max(most_body);
        Arc::new(Self { most: most.max(most_body), most_of_client, held: Mutex::default() })
    }

    /// Opens the account of a body of `client`; it holds nothing yet.
    pub(crate) fn hold(self: &Arc<Self>, client: Caller) -> HeldMemory {
        HeldMemory { memory: Arc::clone(self), client, bytes: 0 }
    }

    /// Bytes that all bodies hold.
    pub(crate) fn taken(&self) -> usize {
        self.lock().values().sum()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Caller, usize>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldMemory {
    /// Takes room for more bytes, if there is some.
    fn grow(&mut self, more: usize) -> Result<(), Problem> {
        let memory = &self.memory;
        let mut held = memory.lock();
        let all = held.values().sum::<usize>().saturating_add(more);
        let own = held.get(&self.client).copied().unwrap_or_default().saturating_add(more);
        if all > memory.most || own > memory.most_of_client {
            return Err(Problem::bodies_full(memory.most));
        }
        held.insert(self.client.clone(), own);
        self.bytes += more;
        Ok(())
    }
}

impl Drop for HeldMemory {
    fn drop(&mut self) {
        let mut held = self.memory.lock();
        if let Some(own) = held.get_mut(&self.client) {
            *own = own.saturating_sub(self.bytes);
            if *own == 0 {
                held.remove(&self.client);
            }
        }
    }
}

/// Reads a body to its end, up to the bounds, or until `closing` says that the server ends: what has not come
/// by then is not waited for. A body without a length (`Transfer-Encoding: chunked`) is read up to the
/// bounds.
pub(crate) async fn read_body(
    body: Body,
    bounds: BodyBounds,
    held: &mut HeldMemory,
    mut closing: watch::Receiver<bool>,
) -> Result<Vec<u8>, Problem> {
    let closed = async {
        if closing.wait_for(|closing| *closing).await.is_err() {
            // Nobody can say it any more.
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        // What is there is read first: a request that has come as a whole is answered.
        biased;
        whole = tokio::time::timeout(bounds.time, collect(body, bounds, held)) => {
            whole.unwrap_or_else(|_| Err(Problem::too_slow(bounds.time)))
        }
        () = closed => Err(Problem::unavailable("shutting_down", "the server is ending")),
    }
}

async fn collect(mut body: Body, bounds: BodyBounds, held: &mut HeldMemory) -> Result<Vec<u8>, Problem> {
    let begun = Instant::now();
    let mut whole = Vec::new();
    loop {
        // The time at which the bytes so far become too few.
        let enough = u64::try_from(whole.len()).unwrap_or_default().saturating_mul(1000) / LEAST_RATE;
        let deadline = begun + bounds.slow_start + Duration::from_millis(enough);
        let frame = match next(&mut body, deadline).await? {
            None => return Ok(whole),
            Some(frame) => frame,
        };
        if frame.len() > bounds.most - whole.len() {
            return Err(Problem::too_large(bounds.most));
        }
        held.grow(frame.len())?;
        whole.extend_from_slice(&frame);
    }
}

/// The next bytes of a body, which must come before `deadline`.
async fn next(body: &mut Body, deadline: Instant) -> Result<Option<Bytes>, Problem> {
    let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context));
    let Ok(frame) = tokio::time::timeout_at(deadline.into(), frame).await else {
        return Err(Problem::too_slow_rate(LEAST_RATE));
    };
    match frame {
        None => Ok(None),
        // Trailers have no data.
        Some(Ok(frame)) => Ok(Some(frame.into_data().unwrap_or_default())),
        Some(Err(error)) => {
            Err(Problem::bad_request("unreadable", format!("the body cannot be read: {error}")))
        }
    }
}

/// Places for texts, those that wait included.
#[derive(Debug)]
pub(crate) struct Gate {
    taken: AtomicUsize,
    places: usize,
}

/// Places that were taken; dropping it gives them back.
#[derive(Debug)]
pub(crate) struct Places {
    gate: Arc<Gate>,
    count: usize,
}

impl Gate {
    pub(crate) fn new(places: usize) -> Arc<Self> {
        Arc::new(Self { taken: AtomicUsize::new(0), places })
    }

    /// Takes `count` places, if that many are free.
    ///
    /// # Errors
    /// If more texts are asked for than there are places in all, which waiting cannot cure, or than are free.
    pub(crate) fn enter(self: &Arc<Self>, count: usize) -> Result<Places, Problem> {
        if count > self.places {
            return Err(Problem::too_many_texts(count, self.places));
        }
        let more = |taken: usize| taken.checked_add(count).filter(|&taken| taken <= self.places);
        match self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, more) {
            Ok(_) => Ok(Places { gate: Arc::clone(self), count }),
            Err(_) => Err(Problem::queue_full(self.places)),
        }
    }

    /// Number of places that are taken.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }

    /// Number of places, taken or free.
    pub(crate) fn places(&self) -> usize {
        self.places
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        self.gate.taken.fetch_sub(self.count, Ordering::AcqRel);
    }
}

/// Watch over the engine: when it last made progress, and whether it has stalled.
#[derive(Debug)]
pub struct Pulse {
    start: Instant,
    /// Milliseconds from the start to the last progress; 0: there was none yet.
    last: AtomicU64,
    patience: Duration,
    stalled: AtomicBool,
    /// Number of texts that gave up waiting.
    gave_up: AtomicU64,
    /// Metrics that count passes; empty until there are some.
    metrics: OnceLock<Arc<Metrics>>,
}

impl Pulse {
    /// A watch over an engine, which has stalled once it makes no token for `patience` while a text waits for
    /// one.
    #[must_use]
    pub fn new(patience: Duration) -> Self {
        Self {
            start: Instant::now(),
            last: AtomicU64::new(0),
            patience,
            stalled: AtomicBool::new(false),
            gave_up: AtomicU64::new(0),
            metrics: OnceLock::new(),
        }
    }

    /// Starts counting passes in `metrics`.
    pub(crate) fn count_in(&self, metrics: Arc<Metrics>) {
        // A second call changes nothing: there is one server.
        let _ = self.metrics.set(metrics);
    }

    /// Notes a pass of the engine that carried on `texts` texts; `prefix_bytes` are kept of prompts.
    pub(crate) fn pass(&self, texts: usize, prefix_bytes: usize) {
        if let Some(metrics) = self.metrics.get() {
            // Some passes read prompts alone.
            if texts > 0 {
                metrics.batch_sizes.add_size(texts);
            }
            metrics.prefix_bytes.set(prefix_bytes);
        }
        self.beat();
    }

    /// Time after which an engine that makes no token has stalled.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.patience
    }

    /// Notes that the engine made progress.
    pub fn beat(&self) {
        let elapsed = self.start.elapsed();
        let now = elapsed.as_secs().saturating_mul(1000).saturating_add(elapsed.subsec_millis().into());
        self.last.fetch_max(now.max(1), Ordering::Relaxed);
        self.stalled.store(false, Ordering::Relaxed);
    }

    /// Did the engine make progress in the last `time`?
    pub(crate) fn beat_within(&self, time: Duration) -> bool {
        let last = self.last.load(Ordering::Relaxed);
        last > 0 && (self.start + Duration::from_millis(last)).elapsed() <= time
    }

    /// Has a text given up waiting, and has the engine made no progress since?
    pub(crate) fn is_stalled(&self) -> bool {
        self.stalled.load(Ordering::Relaxed)
    }

    /// Number of texts that gave up waiting.
    pub(crate) fn gave_up(&self) -> u64 {
        self.gave_up.load(Ordering::Relaxed)
    }

    /// Notes that a text gave up waiting, and returns the error for its client.
    pub(crate) fn stalled(&self) -> Problem {
        self.stalled.store(true, Ordering::Relaxed);
        self.gave_up.fetch_add(1, Ordering::Relaxed);
        let message = format!("the engine has made no token for {} s", self.patience.as_secs_f64());
        Problem::unavailable("engine_stalled", message)
    }

    /// The time at which a text that waits since `since` gives up. While the engine makes progress for others
    /// it is well and the queue is long, so each beat moves the deadline.
    pub(crate) fn deadline(&self, since: Instant) -> Instant {
        let last = self.start + Duration::from_millis(self.last.load(Ordering::Relaxed));
        last.max(since) + self.patience
    }
}

#[cfg(test)]
mod tests;
