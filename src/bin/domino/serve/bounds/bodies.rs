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
mod tests {
    use std::{
        convert::Infallible,
        task::{Context, Poll},
    };

    use futures_core::Stream;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// Pieces of a body, which ends after them or never.
    struct Pieces {
        left: usize,
        size: usize,
        ends: bool,
    }

    impl Stream for Pieces {
        type Item = Result<Vec<u8>, Infallible>;

        fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            if self.left > 0 {
                self.left -= 1;
                return Poll::Ready(Some(Ok(vec![b'a'; self.size])));
            }
            if self.ends { Poll::Ready(None) } else { Poll::Pending }
        }
    }

    fn body(left: usize, size: usize, ends: bool) -> Body {
        Body::from_stream(Pieces { left, size, ends })
    }

    fn client(last: u8) -> Caller {
        Caller::at([10, 0, 0, last].into())
    }

    fn code<T>(outcome: Result<T, Problem>) -> String {
        outcome.err().unwrap().to_json()["error"]["code"].as_str().unwrap().to_owned()
    }

    fn never() -> watch::Receiver<bool> {
        watch::channel(false).1
    }

    #[tokio::test]
    async fn a_body_past_its_size_limit_is_refused() {
        let memory = BodyMemory::new(1000, 100);
        let bounds = BodyBounds { most: 100, time: LONG, slow_start: LONG };
        for (pieces, size, length) in [(0, 1, 0), (1, 100, 100), (100, 1, 100), (10, 10, 100)] {
            let mut held = memory.hold(client(1));
            let whole = read(body(pieces, size, true), bounds, &mut held, never()).await.unwrap();
            assert_eq!((whole.len(), memory.taken()), (length, length));
        }
        for (pieces, size) in [(1, 101), (101, 1), (1000, 1000)] {
            let mut held = memory.hold(client(1));
            // Reading stops at the first byte past the bound.
            let outcome = read(body(pieces, size, false), bounds, &mut held, never()).await;
            assert_eq!(code(outcome), "body_too_large");
        }
        assert_eq!(memory.taken(), 0);
    }

    #[tokio::test]
    async fn bodies_that_do_not_end_take_no_more_than_their_share() {
        let memory = BodyMemory::new(1000, 100);
        let mut held: Vec<HeldMemory> = (0..20).map(|_| memory.hold(client(1))).collect();
        let taken = held.iter_mut().filter_map(|held| held.grow(100).ok()).count();
        assert_eq!((taken, memory.taken()), (5, 500));
        // Another client has room.
        let mut other = memory.hold(client(2));
        other.grow(100).unwrap();
        let mut third = memory.hold(client(3));
        assert_eq!(code(third.grow(401)), "bodies_full");
        third.grow(400).unwrap();
        assert_eq!(code(other.grow(1)), "bodies_full");
        drop(held);
        other.grow(1).unwrap();
        drop((other, third));
        assert_eq!(memory.taken(), 0);
        assert!(memory.lock().is_empty());
    }

    #[tokio::test]
    async fn memory_for_bodies_holds_at_least_the_largest_body() {
        let memory = BodyMemory::new(10, 100);
        memory.hold(client(1)).grow(100).unwrap();
        assert_eq!(code(memory.hold(client(1)).grow(101)), "bodies_full");
    }

    #[tokio::test]
    async fn slow_bodies_end_in_a_timeout() {
        let memory = BodyMemory::new(1 << 20, 1 << 20);
        let short = Duration::from_millis(20);
        let bounds = BodyBounds { most: 1 << 20, time: short, slow_start: LONG };
        let mut held = memory.hold(client(1));
        assert_eq!(code(read(body(1, 1, false), bounds, &mut held, never()).await), "body_timeout");
        let bounds = BodyBounds { time: LONG, slow_start: short, ..bounds };
        assert_eq!(code(read(body(1, 1, false), bounds, &mut held, never()).await), "body_too_slow");
        // A body that is quick at first may pause for as long as its bytes are enough.
        let quick = read(body(100, 1024, true), bounds, &mut held, never()).await.unwrap();
        assert_eq!(quick.len(), 100 * 1024);
    }

    #[tokio::test]
    async fn shutting_down_waits_for_no_body() {
        let memory = BodyMemory::new(1000, 100);
        let bounds = BodyBounds { most: 100, time: LONG, slow_start: LONG };
        let (sender, closing) = watch::channel(false);
        let mut held = memory.hold(client(1));
        let reading = read(body(1, 1, false), bounds, &mut held, closing.clone());
        let (outcome, _) = tokio::join!(reading, async { sender.send_replace(true) });
        assert_eq!(code(outcome), "shutting_down");
        // A body that is whole is still answered.
        let mut held = memory.hold(client(1));
        assert_eq!(read(body(3, 1, true), bounds, &mut held, closing).await.unwrap(), b"aaa");
    }
}
