//! The handling of Ctrl-C.
//!
//! While someone watches, the first Ctrl-C only raises a flag, so that what there is can be printed. The
//! second one, or any that nobody watches for, ends the program at once.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::terminal::failure::Exit;

static WATCHED: AtomicBool = AtomicBool::new(false);
static PRESSED: AtomicUsize = AtomicUsize::new(0);

/// Takes Ctrl-C over from the system.
pub(crate) fn install() {
    let handler = || {
        let before = PRESSED.fetch_add(1, Ordering::SeqCst);
        if before > 0 || !WATCHED.load(Ordering::SeqCst) {
            std::process::exit(i32::from(Exit::Interrupted.code()));
        }
    };
    if let Err(error) = ctrlc::set_handler(handler) {
        tracing::warn!("Ctrl-C is left to the system: {error}");
    }
}

/// Promises that [`pressed`] is looked at often from now on.
pub(crate) fn watch() {
    WATCHED.store(true, Ordering::SeqCst);
}

/// True if Ctrl-C was pressed.
pub(crate) fn pressed() -> bool {
    PRESSED.load(Ordering::SeqCst) > 0
}
