//! Bounds the texts at once ([`Gate`]), and watches whether the engine moves ([`Pulse`]).

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use super::super::{observe::metrics::Metrics, problem::Problem};

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
pub(crate) struct Pulse {
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
    pub(crate) fn new(patience: Duration) -> Self {
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
                metrics.batch_sizes.add(texts);
            }
            metrics.prefix_bytes.set(prefix_bytes);
        }
        self.beat();
    }

    /// Time after which an engine that makes no token has stalled.
    #[cfg_attr(
        not(feature = "mistralrs-speculation"),
        expect(dead_code, reason = "our own engine needs no test")
    )]
    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// Notes that the engine made progress.
    pub(crate) fn beat(&self) {
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
mod tests {
    use super::*;

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
}
