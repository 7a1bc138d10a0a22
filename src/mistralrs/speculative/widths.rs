//! Numbers of rows (widths) of speculative passes, changed between two steps.
//!
//! Upstream's pipeline has a fixed width. So there is a pipeline for each width, all of the same two models,
//! and they change places in the engine's mutex between two steps. A processor, which runs within a step,
//! queues for the mutex that the engine holds, ahead of the engine's next step; it gets the mutex on the
//! engine's thread when the step ends.

use std::{
    fmt,
    future::Future,
    mem,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Wake, Waker},
};

use tokio::sync::OwnedMutexGuard;

/// Pipelines of one engine by width; their type is `P`. Cloning shares them.
pub(super) struct Widths<P> {
    inner: Arc<Inner<P>>,
}

struct Inner<P> {
    engine: Weak<tokio::sync::Mutex<P>>,
    pipelines: Mutex<Pipelines<P>>,
}

struct Pipelines<P> {
    /// Pipelines with their widths, narrowest first; `None` is the one in the engine.
    all: Vec<(usize, Option<P>)>,
    /// Index of the one in the engine.
    current: usize,
}

impl<P: Send + 'static> Widths<P> {
    /// The widths from 1 to `most`: each of the narrow ones, and steps of about a third from there on.
    pub(super) fn up_to(most: usize) -> Vec<usize> {
        let next =
            |&width: &usize| Some((width + 1).max(width * 4 / 3).min(most)).filter(|&next| next > width);
        std::iter::successors(Some(1), next).collect()
    }

    /// Takes the first of the pipelines, which the engine has, and the others, with their widths and
    /// narrowest first.
    pub(super) fn new(engine: &Arc<tokio::sync::Mutex<P>>, first: usize, others: Vec<(usize, P)>) -> Self {
        let others = others.into_iter().map(|(width, pipeline)| (width, Some(pipeline)));
        let all = std::iter::once((first, None)).chain(others).collect();
        let pipelines = Mutex::new(Pipelines { all, current: 0 });
        Self { inner: Arc::new(Inner { engine: Arc::downgrade(engine), pipelines }) }
    }

    /// Gives the next step at least `rows` rows, if a pipeline is so wide. Must be called within a step, or
    /// while there is none; the last call before a step counts.
    pub(super) fn set(&self, rows: usize) {
        let Some(engine) = self.inner.engine.upgrade() else { return };
        let lock = Box::pin(tokio::task::unconstrained(engine.lock_owned()));
        let change = WidthChange { inner: Arc::clone(&self.inner), rows, lock: Mutex::new(Some(lock)) };
        Arc::new(change).go_on();
    }
}

impl<P> Pipelines<P> {
    fn change(&mut self, engine: &mut P, rows: usize) {
        let fits = self.all.iter().position(|(width, _)| *width >= rows);
        let next = fits.unwrap_or(self.all.len().saturating_sub(1));
        // The current pipeline is in the engine already: there is nothing to take.
        if let Some(pipeline) = self.all.get_mut(next).and_then(|(_, pipeline)| pipeline.take()) {
            self.all[self.current].1 = Some(mem::replace(engine, pipeline));
            self.current = next;
        }
    }
}

type Lock<P> = Pin<Box<dyn Future<Output = OwnedMutexGuard<P>> + Send>>;

/// A change that waits for the mutex. Its waker makes it at once on the thread that releases the mutex: if
/// another thread had to, the engine would spin until that runs.
struct WidthChange<P> {
    inner: Arc<Inner<P>>,
    rows: usize,
    lock: Mutex<Option<Lock<P>>>,
}

impl<P: Send + 'static> WidthChange<P> {
    fn go_on(self: Arc<Self>) {
        let waker = Waker::from(Arc::clone(&self));
        let mut waiting = held(&self.lock);
        let Some(lock) = waiting.as_mut() else { return };
        if let Poll::Ready(mut engine) = lock.as_mut().poll(&mut Context::from_waker(&waker)) {
            *waiting = None;
            held(&self.inner.pipelines).change(&mut engine, self.rows);
        }
    }
}

impl<P: Send + 'static> Wake for WidthChange<P> {
    fn wake(self: Arc<Self>) {
        self.go_on();
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<P> Clone for Widths<P> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<P> fmt::Debug for Widths<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pipelines = held(&self.inner.pipelines);
        let widths: Vec<usize> = pipelines.all.iter().map(|(width, _)| *width).collect();
        f.debug_struct("Widths").field("widths", &widths).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Engine = Arc<tokio::sync::Mutex<usize>>;

    /// Pipelines that are numbers, their own widths.
    fn widths(most: usize) -> (Engine, Widths<usize>) {
        let all = Widths::<usize>::up_to(most);
        let engine = Arc::new(tokio::sync::Mutex::new(all[0]));
        let others = all[1..].iter().map(|&width| (width, width)).collect();
        let widths = Widths::new(&engine, all[0], others);
        (engine, widths)
    }

    #[test]
    fn all_narrow_widths_have_a_pipeline() {
        assert_eq!(Widths::<usize>::up_to(1), [1]);
        assert_eq!(Widths::<usize>::up_to(8), [1, 2, 3, 4, 5, 6, 8]);
        assert_eq!(Widths::<usize>::up_to(64), [1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 22, 29, 38, 50, 64]);
    }

    #[test]
    fn the_width_of_a_free_engine_changes_at_once() {
        let (engine, widths) = widths(8);
        for (rows, width) in [(1, 1), (4, 4), (4, 4), (7, 8), (0, 1), (9, 8), (2, 2), (1, 1)] {
            widths.set(rows);
            assert_eq!(*engine.try_lock().unwrap(), width, "{rows}");
        }
        drop(engine);
        widths.set(3);
    }

    #[test]
    fn the_width_asked_for_last_applies_after_the_step() {
        let (engine, widths) = widths(8);
        let step = engine.try_lock().unwrap();
        widths.set(5);
        widths.set(3);
        assert_eq!(*step, 1);
        drop(step);
        // The engine locks this way, without waiting in the queue.
        assert_eq!(*engine.try_lock().unwrap(), 3);
    }

    #[test]
    fn the_width_changes_within_tasks_out_of_budget() {
        let (engine, widths) = widths(8);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            for round in 0..1_000 {
                let step = engine.try_lock().unwrap();
                widths.set(round % 7 + 1);
                drop(step);
                assert!(*engine.try_lock().unwrap() > round % 7, "{round}");
            }
        });
    }

    #[test]
    fn the_width_can_be_set_by_several_threads() {
        let (engine, widths) = widths(8);
        std::thread::scope(|scope| {
            for thread in 1..=4 {
                let (engine, widths) = (&engine, &widths);
                scope.spawn(move || {
                    for _ in 0..500 {
                        let step = loop {
                            match engine.try_lock() {
                                Ok(step) => break step,
                                Err(_) => std::thread::yield_now(),
                            }
                        };
                        widths.set(thread);
                        drop(step);
                        widths.set(thread + 4);
                    }
                });
            }
        });
        let width = *engine.try_lock().unwrap();
        assert!(width > 4, "{width}");
        let spare: Vec<usize> =
            held(&widths.inner.pipelines).all.iter().filter_map(|(_, spare)| *spare).collect();
        assert_eq!(spare.len(), 6);
        assert!(!spare.contains(&width));
    }
}
