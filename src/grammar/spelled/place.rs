//! Places of texts in strings that are spelled lazily.

/// The distance of states from which no end can be reached.
pub(super) const NO_END: u32 = u32::MAX;

/// A state over characters, the number of characters so far, and the node inside of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct SpelledPlace {
    pub(crate) state: u32,
    pub(crate) count: u32,
    pub(crate) node: u32,
}

/// A point of a text: in front of the string, inside of it, or behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TextAt {
    Start,
    In(SpelledPlace),
    End,
}
