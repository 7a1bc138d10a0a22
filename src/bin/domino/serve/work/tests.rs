//! Tests of turns, with jobs that end on command.

use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;

const LONG: Duration = Duration::from_secs(60);

fn caller(name: &str) -> Caller {
    Caller::Key(name.into())
}

/// Tells when jobs begin, and lets them end.
struct Workplace {
    pool: Arc<Pool>,
    begun: Receiver<&'static str>,
    sender: Sender<&'static str>,
}

impl Workplace {
    fn new(workers: usize) -> Self {
        let (sender, begun) = channel();
        Self { pool: Pool::new(workers), begun, sender }
    }

    /// A job that says its name, and goes on until what is returned is dropped.
    fn job(&self, name: &'static str) -> (impl FnOnce() + Send + 'static, Sender<()>) {
        let (end, ended) = channel();
        let sender = self.sender.clone();
        let job = move || {
            sender.send(name).unwrap();
            let _ = ended.recv();
        };
        (job, end)
    }

    fn submit(&self, of: &str, name: &'static str) -> (PoolTask, Sender<()>) {
        let (job, end) = self.job(name);
        (self.pool.submit(&caller(of), job).unwrap(), end)
    }

    fn next(&self) -> &'static str {
        self.begun.recv_timeout(LONG).unwrap()
    }

    fn none(&self) {
        assert_eq!(self.begun.recv_timeout(Duration::from_millis(50)).ok(), None);
    }
}

#[tokio::test]
async fn one_caller_never_has_all_workers() {
    for workers in [0, 1, 2, 3, 5] {
        let stage = Workplace::new(workers);
        let most = workers.max(2) - 1;
        let ends: Vec<_> = (0..10).map(|_| stage.submit("a", "a")).collect();
        (0..most).for_each(|_| assert_eq!(stage.next(), "a"));
        stage.none();
        // Whoever else comes need not wait.
        let other = stage.submit("b", "b");
        assert_eq!(stage.next(), "b");
        drop(ends);
        (most..10).for_each(|_| assert_eq!(stage.next(), "a"));
        drop(other);
    }
}

#[test]
fn callers_take_turns_round_robin() {
    let mut state = PoolState::default();
    for (name, tasks) in [("a", 3), ("b", 1), ("c", 2)] {
        let job = || Some(Box::new(|| ()) as PoolJob);
        let task = |number| PoolTask { number, job: Arc::new(Mutex::new(job())) };
        state.queues.push_back((caller(name), (0..tasks).map(task).collect()));
    }
    assert_eq!(state.waiting(), 6);
    // As if each had ended at once.
    let turns = std::iter::from_fn(|| state.next(2)).map(|(caller, _)| caller.unwrap().to_string());
    assert_eq!(turns.collect::<Vec<_>>(), ["a", "b", "c", "a", "c", "a"].map(|name| format!("key {name}")));
    assert_eq!(state.waiting(), 0);
}

#[tokio::test]
async fn one_caller_never_has_all_places() {
    let stage = Workplace::new(2);
    let mut held = vec![stage.submit("a", "a")];
    held.extend((0..MOST_OF_CALLER).map(|_| stage.submit("a", "a")));
    let problem = stage.pool.submit(&caller("a"), || ()).unwrap_err();
    assert_eq!(problem.to_json()["error"]["code"], "work_queue_full");
    held.push(stage.submit("b", "b"));
    // A task that is withdrawn makes room.
    let (task, _end) = held.remove(5);
    stage.pool.withdraw(&task);
    stage.pool.withdraw(&task);
    stage.pool.submit(&caller("a"), || ()).unwrap();
    assert!(stage.pool.submit(&caller("a"), || ()).is_err());
}

#[tokio::test]
async fn a_task_of_several_callers_runs_once_at_the_first_turn() {
    let stage = Workplace::new(2);
    let (_, busy) = stage.submit("a", "busy");
    assert_eq!(stage.next(), "busy");
    let (task, end) = stage.submit("a", "shared");
    stage.none();
    // Caller b has a worker left.
    stage.pool.join(&caller("b"), &task).unwrap();
    assert_eq!(stage.next(), "shared");
    assert!(!task.waits());
    stage.pool.join(&caller("c"), &task).unwrap();
    drop((end, busy));
    stage.none();
    assert_eq!(stage.pool.waiting(), 0);
}

#[tokio::test]
async fn deferred_jobs_wait_for_callers_jobs() {
    let stage = Workplace::new(2);
    let (_, a) = stage.submit("a", "a");
    let (_, b) = stage.submit("b", "b");
    let _ = [stage.next(), stage.next()];
    let (spare, end) = stage.job("spare");
    stage.pool.later(spare);
    let (_, c) = stage.submit("c", "c");
    drop(a);
    assert_eq!(stage.next(), "c");
    stage.none();
    drop((b, c));
    assert_eq!(stage.next(), "spare");
    // And leaves a worker to them.
    let (_, d) = stage.submit("d", "d");
    assert_eq!(stage.next(), "d");
    drop((d, end));
}

/// Work is cancelled when its caller leaves, and when it has taken longer than the caller waits.
#[tokio::test]
async fn a_caller_who_leaves_cancels_the_work() {
    let pool = Pool::new(2);
    let until_cancelled = |begin: Sender<()>, end: Sender<()>| {
        move |cancel: &Cancel| {
            let _ = begin.send(());
            while !cancel.is_cancelled() {
                std::thread::yield_now();
            }
            let _ = end.send(());
        }
    };
    let ((begin, begun), (end, ended)) = (channel(), channel());
    let me = caller("a");
    let mut waits = Box::pin(pool.run_within(&me, LONG, until_cancelled(begin, end)));
    while begun.try_recv().is_err() {
        assert!(tokio::time::timeout(Duration::from_millis(1), &mut waits).await.is_err());
    }
    assert!(ended.try_recv().is_err());
    drop(waits);
    ended.recv_timeout(LONG).unwrap();
    // A time that is over ends it too, and whoever waits has its result.
    let ((begin, _begun), (end, ended)) = (channel(), channel());
    pool.run_within(&me, Duration::from_millis(1), until_cancelled(begin, end)).await.unwrap();
    ended.recv_timeout(LONG).unwrap();
    assert!(!pool.run_within(&me, LONG, Cancel::is_cancelled).await.unwrap());
}

#[tokio::test]
async fn panics_and_callers_who_leave_free_workers_and_places() {
    let pool = Pool::new(2);
    for _ in 0..5 {
        let outcome = pool.run(&caller("a"), || panic!("as a job can")).await;
        assert_eq!(outcome.map(|(): ()| ()).unwrap_err().to_json()["error"]["code"], "engine_error");
    }
    assert_eq!(pool.run(&caller("a"), || 7).await.unwrap(), 7);
    let stage = Workplace::new(2);
    let (_, busy) = stage.submit("a", "busy");
    assert_eq!(stage.next(), "busy");
    let (job, _end) = stage.job("left");
    let left = caller("a");
    let waits = stage.pool.run(&left, job);
    assert!(tokio::time::timeout(Duration::from_millis(20), waits).await.is_err());
    assert_eq!(stage.pool.waiting(), 0);
    drop(busy);
    stage.none();
}
