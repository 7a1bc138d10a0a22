//! A handle that ends work on grammars from another thread, or after a time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::exceeded::{Budget, LimitExceeded};
use crate::clock::Instant;

/// A handle that ends the reading and compiling of grammars from another thread, or once a time is over.
///
/// It is given to the work by [`Limits::cancel`](crate::Limits::cancel) or by
/// [`Compiler::cancelled_by`](crate::Compiler::cancelled_by), and ends it in an error of
/// [`Budget::Cancelled`] or [`Budget::CompileTime`]. The work looks at it once for each expression, automaton
/// and terminal, and before each pass over a grammar; these take up to some tenths of a second for the
/// largest grammars within the default budgets. Work that was given a handle that is cancelled already always
/// ends in that error. What is cancelled stays cancelled: new work takes a new handle. Caches keep only what
/// was finished, so a compiler goes on as if the work had never been asked for.
///
/// Clones are the same handle. It is `Send` and `Sync`; a look costs a nanosecond, and some 30 with a time.
///
/// # Example
/// ```
/// use domino::{Budget, Cancel, Compiler, Syntax, TokenId, Vocabulary};
///
/// let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build()?;
/// let compiler = Compiler::new(vocabulary);
/// let cancel = Cancel::new();
/// let handle = cancel.clone();
/// std::thread::spawn(move || handle.cancel()).join().expect("a thread");
/// let error = compiler.cancelled_by(&cancel).parse(Syntax::Regex, "[a-z]+").unwrap_err();
/// assert!(error.is_cancelled());
/// // The compiler itself has no handle.
/// compiler.compile(&compiler.parse(Syntax::Regex, "[a-z]+")?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<CancelFlag>);

#[derive(Debug, Default)]
struct CancelFlag {
    cancelled: AtomicBool,
    /// The time limit, if there is one: the moment at which it began, and how long it lasts.
    time: Option<(Instant, Duration)>,
    /// The looks taken, and the one that cancels.
    #[cfg(test)]
    looks: (std::sync::atomic::AtomicUsize, Option<usize>),
}

impl PartialEq for Cancel {
    /// Compares whether both are the same handle.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Cancel {}

impl Cancel {
    /// Makes a handle that is not cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a handle that is cancelled by itself once this time is over, counted from now on, if nobody
    /// cancels it before. On `wasm32-unknown-unknown`, where there is no clock, the time is never over.
    #[must_use]
    pub fn after(time: Duration) -> Self {
        Self(Arc::new(CancelFlag { time: Some((Instant::now(), time)), ..CancelFlag::default() }))
    }

    /// Ends all work that has this handle, now and later. It does not wait for the work to end.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    /// True once [`cancel`](Self::cancel) was called or the time is over.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.look().is_err()
    }

    /// Checks that the work may go on.
    ///
    /// # Errors
    /// If it may not.
    pub(crate) fn look(&self) -> Result<(), LimitExceeded> {
        #[cfg(test)]
        self.count_look();
        if self.0.cancelled.load(Ordering::Relaxed) {
            return Err(LimitExceeded::new(Budget::Cancelled, "looks at the handle", 0));
        }
        match self.0.time {
            Some((start, time)) if start.elapsed() >= time => {
                Err(LimitExceeded::of_time(Budget::CompileTime, "milliseconds of work on a grammar", time))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
impl Cancel {
    /// Makes a handle that is cancelled by the look after `looks` others: the same place on every machine.
    pub(crate) fn at_look(looks: usize) -> Self {
        Self(Arc::new(CancelFlag { looks: (0.into(), Some(looks)), ..CancelFlag::default() }))
    }

    /// Number of looks that were taken.
    pub(crate) fn looks(&self) -> usize {
        self.0.looks.0.load(Ordering::Relaxed)
    }

    fn count_look(&self) {
        let (taken, last) = &self.0.looks;
        if Some(taken.fetch_add(1, Ordering::Relaxed)) == *last {
            self.cancel();
        }
    }
}
