//! Earley items: a dotted rule and the set in which the rule was predicted, as far as it matters.

use crate::{
    ids::SetId,
    lower::{Cfg, Dot},
};

/// An item `(dotted rule, origin)`.
///
/// The origin is the id of a set, not an input position, and of that set only what can lead to the rule
/// is kept (see `origin`): so equal continuations are equal items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Item {
    pub(super) dot: Dot,
    pub(super) origin: SetId,
}

impl Item {
    /// The item before any text: `start ::= . root`. Its origin is never looked at.
    pub(super) const START: Self = Self { dot: Cfg::START, origin: SetId::new(u32::MAX) };

    /// The item with the dot moved on.
    pub(super) fn next(self) -> Self {
        Self { dot: self.dot.next(), origin: self.origin }
    }
}
