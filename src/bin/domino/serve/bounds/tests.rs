//! Tests of the bounds on bodies and texts.

use std::{convert::Infallible, task::Context, task::Poll};

use futures_core::Stream;

use super::*;

const LONG: Duration = Duration::from_secs(60);

/// Pieces of a body, which ends after them or never.
struct BodyPieces {
    left: usize,
    size: usize,
    ends: bool,
}

impl Stream for BodyPieces {
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
    Body::from_stream(BodyPieces { left, size, ends })
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
        let whole = read_body(body(pieces, size, true), bounds, &mut held, never()).await.unwrap();
        assert_eq!((whole.len(), memory.taken()), (length, length));
    }
    for (pieces, size) in [(1, 101), (101, 1), (1000, 1000)] {
        let mut held = memory.hold(client(1));
        // Reading stops at the first byte past the bound.
        let outcome = read_body(body(pieces, size, false), bounds, &mut held, never()).await;
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
    assert_eq!(code(read_body(body(1, 1, false), bounds, &mut held, never()).await), "body_timeout");
    let bounds = BodyBounds { time: LONG, slow_start: short, ..bounds };
    assert_eq!(code(read_body(body(1, 1, false), bounds, &mut held, never()).await), "body_too_slow");
    // A body that is quick at first may pause for as long as its bytes are enough.
    let quick = read_body(body(100, 1024, true), bounds, &mut held, never()).await.unwrap();
    assert_eq!(quick.len(), 100 * 1024);
}

#[tokio::test]
async fn shutting_down_waits_for_no_body() {
    let memory = BodyMemory::new(1000, 100);
    let bounds = BodyBounds { most: 100, time: LONG, slow_start: LONG };
    let (sender, closing) = watch::channel(false);
    let mut held = memory.hold(client(1));
    let reading = read_body(body(1, 1, false), bounds, &mut held, closing.clone());
    let (outcome, _) = tokio::join!(reading, async { sender.send_replace(true) });
    assert_eq!(code(outcome), "shutting_down");
    // A body that is whole is still answered.
    let mut held = memory.hold(client(1));
    assert_eq!(read_body(body(3, 1, true), bounds, &mut held, closing).await.unwrap(), b"aaa");
}

#[test]
fn dropped_permits_give_their_places_back() {
    let gate = Gate::new(3);
    let two = gate.enter(2).unwrap();
    assert!(gate.enter(2).is_err());
    let one = gate.enter(1).unwrap();
    assert_eq!((gate.taken(), gate.places()), (3, 3));
    drop(two);
    assert!(gate.enter(3).is_err());
    drop(one);
    assert!(gate.enter(3).is_ok());
}

#[test]
fn more_texts_than_places_are_a_bad_request() {
    for places in [1, 3, 16] {
        let gate = Gate::new(places);
        for count in [places + 1, places + 7, usize::MAX] {
            let error = gate.enter(count).unwrap_err().to_json()["error"].clone();
            assert_eq!((&error["param"], &error["code"]), (&"n".into(), &"invalid_value".into()));
        }
        let all = gate.enter(places).unwrap();
        let error = gate.enter(1).unwrap_err().to_json()["error"].clone();
        assert_eq!(error["code"], "queue_full");
        drop(all);
    }
}

#[test]
fn a_beat_of_the_engine_moves_the_deadline_of_waiters() {
    let patience = Duration::from_secs(5);
    let mut pulse = Pulse::new(patience);
    let since = pulse.start;
    assert_eq!(pulse.deadline(since), since + patience);
    // As if the start were a while ago.
    pulse.last = AtomicU64::new(2000);
    assert_eq!(pulse.deadline(since), since + patience + Duration::from_secs(2));
    assert_eq!(pulse.deadline(since + Duration::from_secs(3)), since + patience + Duration::from_secs(3));
    pulse.beat();
    assert!(pulse.deadline(since) >= since + patience + Duration::from_secs(2));
}

#[test]
fn a_beat_of_the_engine_is_fresh_for_a_while() {
    let pulse = Pulse::new(Duration::from_secs(5));
    assert!(!pulse.beat_within(Duration::from_secs(60)));
    pulse.beat();
    assert!(pulse.beat_within(Duration::from_secs(60)));
    std::thread::sleep(Duration::from_millis(5));
    assert!(!pulse.beat_within(Duration::from_millis(1)));
}
