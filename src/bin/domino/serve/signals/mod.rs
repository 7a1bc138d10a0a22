//! Signals of the server: Ctrl-C and SIGTERM end it, SIGHUP has it look at the file of keys again.
//!
//! They are taken here instead of in `interrupt`, which takes SIGHUP for one more Ctrl-C.

use std::io;

use crate::terminal::progress;

/// The hangups (SIGHUP) that come from now on. Where the system knows none, none come.
pub(crate) struct Hangups(#[cfg(unix)] tokio::signal::unix::Signal);

/// Takes the signals over from the system, in a runtime.
///
/// # Errors
/// If the system refuses.
#[cfg(unix)]
pub(crate) fn install() -> io::Result<Hangups> {
    use tokio::signal::unix::{SignalKind, signal};
    for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
        let mut ends = signal(kind)?;
        tokio::spawn(async move {
            while ends.recv().await.is_some() {
                progress::interrupt();
            }
        });
    }
    signal(SignalKind::hangup()).map(Hangups)
}

/// Takes Ctrl-C over from the system, in a runtime.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub(crate) fn install() -> io::Result<Hangups> {
    tokio::spawn(async {
        while tokio::signal::ctrl_c().await.is_ok() {
            progress::interrupt();
        }
    });
    Ok(Hangups())
}

impl Hangups {
    /// Has `act` called at each of them.
    #[cfg_attr(not(unix), expect(unused_variables, reason = "none come"))]
    pub(crate) fn each(self, act: impl Fn() + Send + 'static) {
        #[cfg(unix)]
        tokio::spawn(async move {
            let Self(mut hangups) = self;
            while hangups.recv().await.is_some() {
                act();
            }
        });
    }
}
