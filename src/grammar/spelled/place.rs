//! Places of texts in strings that are spelled as texts come to them.

/// A distance of states that lead to no end.
pub(super) const NO_END: u32 = u32::MAX;

/// A state of characters, how many of them have come, and where in the next one the text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Place {
    pub(crate) state: u32,
    pub(crate) count: u32,
    pub(crate) node: u32,
}

/// A point of a text: in front of the string, inside of it, or behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TextAt {
    Start,
    In(Place),
    End,
}
