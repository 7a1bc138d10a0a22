//! Standard output, whose errors say what could not be written.

use std::io::{self, IsTerminal, StdoutLock, Write};

/// Standard output, locked.
pub(crate) struct Stdout(StdoutLock<'static>);

/// Locks it.
pub(crate) fn lock() -> Stdout {
    Stdout(io::stdout().lock())
}

impl Stdout {
    /// Does a person read it?
    pub(crate) fn is_terminal(&self) -> bool {
        self.0.is_terminal()
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(named)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(named)
    }
}

/// The same kind of error, with the name of what it is about.
fn named(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write to standard output: {error}"))
}
