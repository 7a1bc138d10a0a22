//! Standard output with errors that say what could not be written.

use std::io::{self, IsTerminal, StdoutLock, Write};

/// Standard output, locked.
pub(crate) struct Stdout(StdoutLock<'static>);

/// Locks standard output.
pub(crate) fn lock() -> Stdout {
    Stdout(io::stdout().lock())
}

impl Stdout {
    /// True if a person reads it.
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

/// Adds the name of standard output to an error, whose kind stays.
fn named(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write to standard output: {error}"))
}
