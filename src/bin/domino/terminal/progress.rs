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

/// A bar on standard error for work of `length` parts, or a counter where their number is not known, if
/// standard error is a terminal. It has no thread of its own: it is drawn when a part is done, and cleared
/// when it is dropped.
pub(crate) fn bar(message: impl Into<String>, length: impl Into<Option<usize>>) -> ProgressBar {
    let length = length.into();
    let quiet = failure::is_quiet();
    let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let style = match length {
        Some(_) => "{msg} {wide_bar} {pos}/{len}, {eta} left",
        None => "{spinner} {msg} {pos} in {elapsed}",
    };
    let bar = ProgressBar::with_draw_target(length.map(|length| length as u64), target);
    let bar = bar.with_message(message.into());
    ProgressStyle::with_template(style).map_or(bar.clone(), |style| bar.with_style(style))
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
