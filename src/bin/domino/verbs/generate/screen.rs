//! The display of a text as it comes.

use std::io::{self, Write};

use domino::vocab::Utf8Stream;

use crate::terminal::{self, Stdout};

/// Standard output, and the length of the text that it shows.
pub(super) struct Screen {
    out: Stdout,
    people: bool,
    characters: Utf8Stream,
    shown: usize,
}

impl Screen {
    /// Makes a screen that does not show the first `hidden` bytes.
    pub(super) fn new(hidden: usize) -> Self {
        let out = terminal::stdout();
        Self { people: out.is_terminal(), out, characters: Utf8Stream::default(), shown: hidden }
    }

    /// Shows the new part of `text`.
    pub(super) fn show(&mut self, text: &[u8]) -> io::Result<()> {
        // Text that may become a stop string comes later or never.
        let bytes = text.get(self.shown..).unwrap_or_default();
        self.shown = self.shown.max(text.len());
        // A terminal wants whole characters, a file the very bytes.
        if self.people {
            self.out.write_all(self.characters.push(bytes).as_bytes())?;
        } else {
            self.out.write_all(bytes)?;
        }
        self.out.flush()
    }

    /// Ends the display.
    pub(super) fn finish(self) -> io::Result<()> {
        let Self { mut out, people, mut characters, .. } = self;
        if people { writeln!(out, "{}", characters.finish()) } else { Ok(()) }
    }
}
