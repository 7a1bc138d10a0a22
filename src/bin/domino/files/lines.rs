//! Lines of JSON.

/// The byte order mark that some editors and shells put before a text, in UTF-8.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// The content of a line, without a byte order mark before it and white space around it.
pub(crate) fn content(line: &[u8]) -> &[u8] {
    line.strip_prefix(MARK).unwrap_or(line).trim_ascii()
}
