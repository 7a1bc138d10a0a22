//! The handling of Ctrl-C.
//!
//! While someone watches, the first Ctrl-C only raises a flag, so that what there is can be printed, and
//! cancels the reading and compiling of grammars. The second one, or any that nobody watches for, ends the
//! program at once.

use std::sync::{
    LazyLock,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use domino::Cancel;

use crate::terminal::failure::Exit;

static WATCHED: AtomicBool = AtomicBool::new(false);
static PRESSED: AtomicUsize = AtomicUsize::new(0);
static CANCEL: LazyLock<Cancel> = LazyLock::new(Cancel::new);

/// Takes Ctrl-C over from the system, for commands that do not take signals themselves.
pub(crate) fn install() {
    let handler = || {
        press();
        CANCEL.cancel();
    };
    if let Err(error) = ctrlc::set_handler(handler) {
        tracing::warn!("Ctrl-C is left to the system: {error}");
    }
}

/// Does what a Ctrl-C does, but for grammars.
pub(crate) fn press() {
    let before = PRESSED.fetch_add(1, Ordering::SeqCst);
    if before > 0 || !WATCHED.load(Ordering::SeqCst) {
        std::process::exit(i32::from(Exit::Interrupted.code()));
    }
}

/// The handle that Ctrl-C cancels: the reading and compiling of grammars, which may take seconds, does not
/// look at [`pressed`].
pub(crate) fn cancel() -> &'static Cancel {
    &CANCEL
}

/// Promises that [`pressed`] is looked at often from now on.
pub(crate) fn watch() {
    WATCHED.store(true, Ordering::SeqCst);
}

/// True if Ctrl-C was pressed.
pub(crate) fn pressed() -> bool {
    PRESSED.load(Ordering::SeqCst) > 0
}
