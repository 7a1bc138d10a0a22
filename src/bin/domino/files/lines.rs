//! Lines of JSON.

use std::io::{self, BufRead};

/// The byte order mark that some editors and shells put before a text, in UTF-8.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// The content of a line, without a byte order mark before it and white space around it.
pub(crate) fn content(line: &[u8]) -> &[u8] {
    line.strip_prefix(MARK).unwrap_or(line).trim_ascii()
}

/// The lines of an input that are not blank, each with its number from 1 and with the line feed at its end.
pub(crate) fn numbered(mut input: impl BufRead) -> impl Iterator<Item = io::Result<(usize, Vec<u8>)>> {
    let lines = (1..).map_while(move |number| {
        let mut line = Vec::new();
        let length = input.read_until(b'\n', &mut line);
        (!matches!(length, Ok(0))).then(|| length.map(|_| (number, line)))
    });
    lines.filter(|line| !line.as_ref().is_ok_and(|(_, line)| content(line).is_empty()))
}
