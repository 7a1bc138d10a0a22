//! Work that takes long: signs of life, shown to people only, and Ctrl-C, which ends it.
//!
//! While someone watches, the first Ctrl-C only raises a flag, so that what there is can be printed, and
//! cancels the reading and compiling of grammars. The second one, or any that nobody watches for, ends the
//! program at once.

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::{sync::LazyLock, thread::JoinHandle, time::Duration};

use domino::Cancel;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::terminal::failure::{self, Exit};

/// Time before anything is shown.
const PATIENCE: Duration = Duration::from_millis(400);

/// True if a person reads standard error and wants more than errors.
pub(crate) fn wanted() -> bool {
    io::stderr().is_terminal() && !failure::is_quiet()
}

/// Shows `message` with a spinner on standard error while `work` runs, if it runs long and standard error
/// is a terminal.
pub(crate) fn during<T>(message: impl Into<String>, work: impl FnOnce() -> T) -> T {
    let message = message.into();
    tracing::debug!("{message}");
    let spinner = wanted().then(|| Spinner::start(message));
    let result = work();
    drop(spinner);
    result
}

/// A bar on standard error for work of known length, if standard error is a terminal. It has no thread of its
/// own: it is drawn when a part is done.
pub(crate) struct StepBar {
    bar: ProgressBar,
}

impl StepBar {
    /// Starts a bar for `length` parts.
    pub(crate) fn start(message: impl Into<String>, length: usize) -> Self {
        let bar = ProgressBar::with_draw_target(Some(length as u64), target());
        let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len}, {eta} left");
        let bar = bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar: bar.with_message(message.into()) }
    }

    /// Starts a counter for an unknown number of parts.
    pub(crate) fn without_end(message: impl Into<String>) -> Self {
        let bar = ProgressBar::with_draw_target(None, target());
        let style = ProgressStyle::with_template("{spinner} {msg} {pos} in {elapsed}");
        let bar = bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        Self { bar: bar.with_message(message.into()) }
    }

    /// Runs `work` while the bar is hidden, so that it can print on the same terminal.
    pub(crate) fn beside<T>(&self, work: impl FnOnce() -> T) -> T {
        self.bar.suspend(work)
    }

    /// Counts `parts` as done before; the estimate of the time left ignores them.
    pub(crate) fn skip(&self, parts: usize) {
        self.bar.set_position(parts as u64);
        self.bar.reset_eta();
    }

    /// Shows the message of another part that begins.
    pub(crate) fn say(&self, message: String) {
        self.bar.set_message(message);
    }

    /// Counts one more part as done.
    pub(crate) fn one_more(&self) {
        self.bar.inc(1);
    }
}

impl Drop for StepBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn target() -> ProgressDrawTarget {
    if failure::is_quiet() { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() }
}

struct Spinner {
    done: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Spinner {
    fn start(message: String) -> Self {
        let (done, waiting) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            if waiting.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_message(message);
            while waiting.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
                bar.tick();
            }
            bar.finish_and_clear();
        });
        Self { done: Some(done), thread: Some(thread) }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        drop(self.done.take());
        if let Some(thread) = self.thread.take() {
            // A spinner that failed is not worth an error.
            let _ = thread.join();
        }
    }
}

/// Makes a bar of `length` steps on standard error, if people read that.
#[cfg_attr(not(feature = "experiments"), expect(dead_code, reason = "for commands that measure"))]
pub(crate) fn bar(length: usize, message: &'static str) -> ProgressBar {
    let target = match wanted() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    ProgressBar::with_draw_target(u64::try_from(length).ok(), target).with_message(message)
}

static WATCHED: AtomicBool = AtomicBool::new(false);
static PRESSED: AtomicUsize = AtomicUsize::new(0);
static CANCEL: LazyLock<Cancel> = LazyLock::new(Cancel::new);

/// Takes Ctrl-C over from the system, for commands that do not take signals themselves.
pub(crate) fn catch_interrupts() {
    let handler = || {
        interrupt();
        CANCEL.cancel();
    };
    if let Err(error) = ctrlc::set_handler(handler) {
        tracing::warn!("Ctrl-C is left to the system: {error}");
    }
}

/// Does what a Ctrl-C does, but for grammars.
pub(crate) fn interrupt() {
    let before = PRESSED.fetch_add(1, Ordering::SeqCst);
    if before > 0 || !WATCHED.load(Ordering::SeqCst) {
        std::process::exit(i32::from(Exit::Interrupted.code()));
    }
}

/// The handle that Ctrl-C cancels: the reading and compiling of grammars, which may take seconds, does not
/// look at [`interrupted`].
pub(crate) fn cancel() -> &'static Cancel {
    &CANCEL
}

/// Promises that [`interrupted`] is looked at often from now on.
pub(crate) fn watch_interrupts() {
    WATCHED.store(true, Ordering::SeqCst);
}

/// True if Ctrl-C was pressed.
pub(crate) fn interrupted() -> bool {
    PRESSED.load(Ordering::SeqCst) > 0
}
