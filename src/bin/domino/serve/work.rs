//! Runs long work, such as compiling a grammar, on a pool of workers with a queue for each caller, between
//! whom turns go round (round-robin scheduling).
//!
//! Invariant: one caller never has all workers, where there are several, nor all places to wait, so that it
//! cannot stop the work of others.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicUsize, atomic::Ordering};
use std::{collections::HashMap, collections::VecDeque, time::Duration};

use domino::Cancel;
use tokio::{runtime::Handle, sync::oneshot};

use super::{access::Caller, problem::Problem};

/// Tasks of one caller that may wait.
const MOST_OF_CALLER: usize = 32;

/// Tasks of all callers that may wait.
const MOST_WAITING: usize = 512;

/// Tasks without haste that may wait; more are forgotten.
const MOST_SPARE: usize = 64;

type PoolJob = Box<dyn FnOnce() + Send>;

/// Something to do, once, for whichever of its callers has a turn first.
#[derive(Clone)]
pub(crate) struct PoolTask {
    number: usize,
    job: Arc<Mutex<Option<PoolJob>>>,
}

impl PoolTask {
    /// Has nobody begun it?
    pub(crate) fn waits(&self) -> bool {
        self.lock().is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Option<PoolJob>> {
        self.job.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for PoolTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task").field("number", &self.number).finish_non_exhaustive()
    }
}

/// A pool of workers.
#[derive(Debug)]
pub(crate) struct Pool {
    runtime: Handle,
    workers: usize,
    numbers: AtomicUsize,
    state: Mutex<PoolState>,
}

#[derive(Default)]
struct PoolState {
    /// Busy workers by caller; callers without one are absent.
    running: HashMap<Caller, usize>,
    /// Workers that are busy with tasks without haste.
    running_spare: usize,
    /// Callers with tasks that wait, in the order of their turns.
    queues: VecDeque<(Caller, VecDeque<PoolTask>)>,
    spare: VecDeque<PoolJob>,
}

impl std::fmt::Debug for PoolState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("running", &self.running).field("waiting", &self.waiting()).finish()
    }
}

impl Pool {
    /// A pool of `workers` threads of the runtime that it is made in, at least 2: with one, whoever has it
    /// stops all others.
    pub(crate) fn new(workers: usize) -> Arc<Self> {
        let workers = workers.max(2);
        let (numbers, state) = (AtomicUsize::new(0), Mutex::default());
        Arc::new(Self { runtime: Handle::current(), workers, numbers, state })
    }

    /// Queues `job` for the caller's turn.
    ///
    /// # Errors
    /// If too many tasks wait.
    pub(crate) fn submit(
        self: &Arc<Self>,
        caller: &Caller,
        job: impl FnOnce() + Send + 'static,
    ) -> Result<PoolTask, Problem> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let job: PoolJob = Box::new(job);
        let task = PoolTask { number, job: Arc::new(Mutex::new(Some(job))) };
        self.join(caller, &task)?;
        Ok(task)
    }

    /// Queues a task for this caller's turn too; whichever turn comes first does it.
    ///
    /// # Errors
    /// If too many tasks wait.
    pub(crate) fn join(self: &Arc<Self>, caller: &Caller, task: &PoolTask) -> Result<(), Problem> {
        let mut state = self.lock();
        if !task.waits() || state.has(caller, task) {
            return Ok(());
        }
        let own = state.queue(caller).map_or(0, |queue| queue.len());
        if own >= MOST_OF_CALLER || state.waiting() >= MOST_WAITING {
            return Err(Problem::work_queue_full(own));
        }
        match state.queue(caller) {
            Some(queue) => queue.push_back(task.clone()),
            None => state.queues.push_back((caller.clone(), VecDeque::from([task.clone()]))),
        }
        self.dispatch(state);
        Ok(())
    }

    /// Queues `job` for workers that have nothing else to do. It is dropped if the queue is full.
    pub(crate) fn later(self: &Arc<Self>, job: impl FnOnce() + Send + 'static) {
        let mut state = self.lock();
        if state.spare.len() < MOST_SPARE {
            state.spare.push_back(Box::new(job));
            self.dispatch(state);
        }
    }

    /// Forgets a task that nobody has begun.
    pub(crate) fn withdraw(&self, task: &PoolTask) {
        let job = task.lock().take();
        let mut state = self.lock();
        for (_, queue) in &mut state.queues {
            queue.retain(|other| other.number != task.number);
        }
        state.queues.retain(|(_, queue)| !queue.is_empty());
        drop(state);
        // Dropped without the lock: what the job holds may use the pool.
        drop(job);
    }

    /// Does `work` when it is the caller's turn, and returns its result.
    ///
    /// # Errors
    /// If too many tasks wait, or the work panics.
    pub(crate) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        caller: &Caller,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let (sender, done) = oneshot::channel();
        let job = move || {
            // Whoever waited may have left.
            let _ = sender.send(work());
        };
        let task = self.submit(caller, job)?;
        let _withdrawn = Withdrawn { pool: self, task };
        done.await.map_err(|_| Problem::engine("work for the request failed"))
    }

    /// Does `work` as [`run`](Self::run) does, with a handle that ends it once whoever waits goes away, or
    /// `patience` is over since it was asked for.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub(crate) async fn run_within<T: Send + 'static>(
        self: &Arc<Self>,
        caller: &Caller,
        patience: Duration,
        work: impl FnOnce(&Cancel) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let cancel = Cancel::after(patience);
        let _left = CancelledWhenDropped(cancel.clone());
        self.run(caller, move || work(&cancel)).await
    }

    /// Number of tasks that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().waiting()
    }

    /// Hands the next jobs to free workers.
    fn dispatch(self: &Arc<Self>, mut state: MutexGuard<'_, PoolState>) {
        let mut begun = Vec::new();
        while let Some((caller, job)) = state.next(self.workers) {
            match &caller {
                Some(caller) => *state.running.entry(caller.clone()).or_default() += 1,
                None => state.running_spare += 1,
            }
            begun.push((FreeWorker { pool: Arc::clone(self), caller }, job));
        }
        // A runtime that ends drops what it is given at once, which frees a worker and looks here again.
        drop(state);
        for (free, job) in begun {
            self.runtime.spawn_blocking(move || {
                // Freed whether the job panics or not.
                let _free = free;
                job();
            });
        }
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoolState {
    fn queue(&mut self, caller: &Caller) -> Option<&mut VecDeque<PoolTask>> {
        self.queues.iter_mut().find(|(other, _)| other == caller).map(|(_, queue)| queue)
    }

    fn has(&mut self, caller: &Caller, task: &PoolTask) -> bool {
        let queue = self.queue(caller);
        queue.is_some_and(|queue| queue.iter().any(|other| other.number == task.number))
    }

    fn waiting(&self) -> usize {
        self.queues.iter().map(|(_, queue)| queue.len()).sum()
    }

    /// Takes the next job that one of `workers` can do, with its caller (`None`: a job without haste).
    fn next(&mut self, workers: usize) -> Option<(Option<Caller>, PoolJob)> {
        let busy = self.running.values().sum::<usize>() + self.running_spare;
        if busy >= workers {
            return None;
        }
        // One worker is left for whoever else may come.
        let most_of_one = workers - 1;
        let may = |running: &HashMap<Caller, usize>, caller: &Caller| {
            running.get(caller).is_none_or(|&running| running < most_of_one)
        };
        while let Some(place) = self.queues.iter().position(|(caller, _)| may(&self.running, caller)) {
            let (caller, mut queue) = self.queues.remove(place)?;
            let job = queue.pop_front().and_then(|task| task.lock().take());
            // Its next turn is after all others'.
            if !queue.is_empty() {
                self.queues.push_back((caller.clone(), queue));
            }
            // Another caller may have had it done.
            if let Some(job) = job {
                return Some((Some(caller), job));
            }
        }
        let spare = self.running_spare < most_of_one && busy < most_of_one;
        spare.then(|| self.spare.pop_front()).flatten().map(|job| (None, job))
    }
}

/// Guard of a busy worker; dropping it frees the worker.
struct FreeWorker {
    pool: Arc<Pool>,
    caller: Option<Caller>,
}

impl Drop for FreeWorker {
    fn drop(&mut self) {
        let mut state = self.pool.lock();
        match self.caller.take() {
            None => state.running_spare -= 1,
            Some(caller) => {
                if let Some(running) = state.running.get_mut(&caller) {
                    *running -= 1;
                    if *running == 0 {
                        state.running.remove(&caller);
                    }
                }
            }
        }
        self.pool.dispatch(state);
    }
}

/// A task that is forgotten when whoever waits for it goes away.
struct Withdrawn<'a> {
    pool: &'a Pool,
    task: PoolTask,
}

impl Drop for Withdrawn<'_> {
    fn drop(&mut self) {
        self.pool.withdraw(&self.task);
    }
}

/// Work that is cancelled when whoever waits for it goes away.
struct CancelledWhenDropped(Cancel);

impl Drop for CancelledWhenDropped {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[cfg(test)]
mod tests;
