//! Grammar text, spans into it, and how an error shows them.
//!
//! A [`Span`] is a range of bytes of the text; line and column are worked out only for display.

/// A range of bytes of a grammar text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// A grammar text with its line starts.
#[derive(Debug, Clone)]
pub struct Source {}
