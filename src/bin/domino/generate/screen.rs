//! Shows a text as it comes.

use std::io::{self, Write};

use domino::vocab::Utf8Stream;

use crate::stdout::{self, Stdout};

/// Standard output, and how much of a text it shows.
pub(super) struct Screen {
    out: Stdout,
    people: bool,
    characters: Utf8Stream,
    shown: usize,
}

impl Screen {
    pub(super) fn new() -> Self {
        let out = stdout::lock();
        Self { people: out.is_terminal(), out, characters: Utf8Stream::default(), shown: 0 }
    }

    /// Shows what is new of `text`.
    pub(super) fn show(&mut self, text: &[u8]) -> io::Result<()> {
        // What may become a stop string comes later or never.
        let bytes = &text[self.shown..];
        self.shown = text.len();
        // A terminal wants whole characters, a file the very bytes.
        if self.people {
            self.out.write_all(self.characters.push(bytes).as_bytes())?;
        } else {
            self.out.write_all(bytes)?;
        }
        self.out.flush()
    }

    /// Shows that there is no more.
    pub(super) fn finish(self) -> io::Result<()> {
        let Self { mut out, people, mut characters, .. } = self;
        if people { writeln!(out, "{}", characters.finish()) } else { Ok(()) }
    }
}
