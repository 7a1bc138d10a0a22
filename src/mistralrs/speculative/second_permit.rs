//! Workaround for a deadlock of mistral.rs 0.8.0 and 0.8.1, so that its speculative pipeline runs at all.
//!
//! `SpeculativePipeline::step` has statements that lock one `tokio::sync::Mutex` twice: `process_inputs(..,
//! self.draft.get_metadata().sliding_window, .., self.draft.device_mapper())`. Each guard lives to the end of
//! the statement, so the second lock waits for the first for ever. Both guards only read.
//!
//! Safe code cannot avoid it: the mutex is tokio's, the statement is upstream's, and its `Pipeline` cannot be
//! implemented outside of it. Patching the crate (`[patch.crates-io]`) would burden each program that uses
//! this one. So the mutex is made to admit two guards at once. The version of mistral.rs is pinned in
//! `Cargo.toml`, and a test run at each loading of a model shows whether it works.

use std::{
    ptr,
    sync::{Arc, Weak},
};

use tokio::sync::Mutex;

/// A mutex that is locked by nothing but the pipelines it was made for.
#[derive(Debug)]
pub(super) struct Sole<T: ?Sized>(Weak<Mutex<T>>);

/// Error: the pipeline has another owner, which may lock it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Owned;

impl<T: ?Sized> Sole<T> {
    /// Takes note of a mutex whose one owner, the caller, gives it away.
    pub(super) fn of(mutex: &Arc<Mutex<T>>) -> Self {
        Self(Arc::downgrade(mutex))
    }

    /// Lets the mutex admit two guards at once. Must be called after the caller has given its `Arc` away to
    /// `pipelines` speculative pipelines, of which one at a time will run, and before any does.
    ///
    /// # Errors
    /// If the mutex has other owners than these.
    pub(super) fn admit_two(self, pipelines: usize) -> Result<(), Owned> {
        let Some(mutex) = self.0.upgrade() else { return Err(Owned) };
        // Owners are the pipelines and the one upgraded just now; the only weak one is this.
        if Arc::strong_count(&mutex) != pipelines + 1 || Arc::weak_count(&mutex) != 1 {
            return Err(Owned);
        }
        let Ok(guard) = mutex.try_lock() else { return Err(Owned) };
        release_twice(guard);
        Ok(())
    }
}

/// Releases two permits for the one that the guard holds.
#[expect(
    unsafe_code,
    reason = "the mutex of upstream's pipeline must admit the two guards that it takes in one statement"
)]
fn release_twice<T: ?Sized>(guard: tokio::sync::MutexGuard<'_, T>) {
    // SAFETY: A guard is a reference to its mutex (and a span, in builds of tokio with `tokio_unstable` and
    // its feature `tracing`, which only shared builds of the whole program could turn on; a span is then
    // dropped once more than it was made, which its collector must bear). To copy it bitwise is sound; to
    // drop the copy adds a permit to the mutex's semaphore, which counts and nothing more. What remains to be
    // shown is that two guards at once do no harm. Then there would have to be a `&mut` to the pipeline
    // beside another reference. Guards of this mutex are taken by its owners only, `SpeculativePipeline`s
    // (`admit_two` has made sure, and no `Weak` is left that could be upgraded). One of them is behind the
    // engine's mutex, and its methods run one after the other on the thread that holds that; the others
    // (`Widths`) are moved in and out under that same mutex and not called while they are out. In
    // mistralrs-core 0.8.1, to which the version is pinned, its methods hold two guards of one pipeline only
    // in calls of `process_inputs` (`pipeline/speculative.rs`, four of them), where both guards are used for
    // `get_metadata` and `device_mapper`, which take `&self`; what needs `&mut` (`forward_inputs`,
    // `re_isq_model`) is a statement of its own with one guard.
    let copy = unsafe { ptr::read(&raw const guard) };
    drop(copy);
    drop(guard);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_guards_are_admitted_and_no_more() {
        let mutex: Arc<Mutex<dyn std::fmt::Debug + Send + Sync>> = Arc::new(Mutex::new(7));
        assert!(mutex.try_lock().is_ok());
        Sole::of(&mutex).admit_two(1).unwrap();
        for _ in 0..3 {
            let (first, second) = (mutex.try_lock().unwrap(), mutex.try_lock().unwrap());
            assert_eq!(
                (format!("{:?}", &*first), format!("{:?}", &*second)),
                ("7".to_owned(), "7".to_owned())
            );
            assert!(mutex.try_lock().is_err());
        }
    }

    #[test]
    fn a_mutex_that_others_may_lock_is_left_alone() {
        let mutex = Arc::new(Mutex::new(7));
        let other = Arc::clone(&mutex);
        assert_eq!(Sole::of(&mutex).admit_two(1), Err(Owned));
        drop(other);
        let weak = Arc::downgrade(&mutex);
        assert_eq!(Sole::of(&mutex).admit_two(1), Err(Owned));
        drop(weak);
        let held = mutex.try_lock().unwrap();
        assert_eq!(Sole::of(&mutex).admit_two(1), Err(Owned));
        drop(held);
        let one = mutex.try_lock().unwrap();
        assert!(mutex.try_lock().is_err(), "there is one permit still");
        drop(one);
        let second = Arc::clone(&mutex);
        assert_eq!(Sole::of(&mutex).admit_two(3), Err(Owned));
        Sole::of(&mutex).admit_two(2).unwrap();
        let _two = (second.try_lock().unwrap(), mutex.try_lock().unwrap());
    }

    #[test]
    fn a_dropped_mutex_admits_no_guards() {
        let mutex = Arc::new(Mutex::new(7));
        let sole = Sole::of(&mutex);
        drop(mutex);
        assert_eq!(sole.admit_two(1), Err(Owned));
    }
}
