//! Earley items: a dotted rule and the set in which the rule was predicted, as far as it matters.
//!
//! ```text
//! grammar  s ::= "(" s ")" | "x"       text so far  ((
//!
//! set 0    s ::= . "(" s ")"                         predicted here, as is  s ::= . "x"
//! set 1    s ::= "(" . s ")" , origin 0              after (
//! set 2    s ::= "(" . s ")" , origin 1              after ((
//! ```
//!
//! Origins link the sets to a stack: completing the item of set 2 moves on those of set 1 that wait for `s`.
//! Sets are hash-consed, so a set's id stands for the whole stack.

use crate::{
    ids::SetId,
    lower::{Cfg, DottedRule},
};

/// An item `(dotted rule, origin)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Item {
    /// The dotted rule: a production, and how much of it has come.
    pub(super) dot: DottedRule,
    /// The set in which the rule was predicted, not an input position. Only what can lead to the rule is kept
    /// of that set (see `origin`), so equal continuations are equal items.
    pub(super) origin: SetId,
}

impl Item {
    /// The item before any text: `start ::= . root`. Its origin is never looked at.
    pub(super) const START: Self = Self { dot: Cfg::START, origin: SetId::new(u32::MAX) };

    /// Moves the dot over one symbol.
    pub(super) fn next(self) -> Self {
        Self { dot: self.dot.next(), origin: self.origin }
    }
}
