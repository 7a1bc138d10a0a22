//! Signs of life for work that takes long, shown to people only.

use std::{
    io::{self, IsTerminal},
    sync::mpsc::{self, RecvTimeoutError},
    thread::JoinHandle,
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::terminal::failure;

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
pub(crate) fn bar(length: usize, message: &'static str) -> ProgressBar {
    let target = match wanted() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    ProgressBar::with_draw_target(u64::try_from(length).ok(), target).with_message(message)
}
