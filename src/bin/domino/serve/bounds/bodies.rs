//! Reads bodies with bounds on their size, time and rate, and on the memory of all of them together.
//!
//! Memory is counted as bytes come, not as they are announced: an announcement costs nothing.

use std::{
    collections::HashMap,
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use axum::body::{Body, Bytes, HttpBody};
use tokio::sync::watch;

use super::super::{access::caller::Caller, problem::Problem};

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
pub(crate) async fn read(
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

#[cfg(test)]
mod tests;
