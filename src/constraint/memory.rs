//! What a compiled grammar keeps, in bytes.

/// Memory of a compiled grammar, in bytes: what its sessions share and what [`Limits`](crate::Limits) bounds. A
/// session's own is its [history](crate::Constraint::history_bytes).
///
/// Counted from what is in use; what the allocator holds besides is not in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// Machines that sessions share: one, and those that were replaced while sessions still run on them.
    pub machines: usize,
    /// Earley sets and the moves between them, see [`Limits::parser_bytes`](crate::Limits::parser_bytes).
    pub parser_sets: usize,
    /// Constraint states, see [`Limits::state_bytes`](crate::Limits::state_bytes).
    pub states: usize,
    /// Subterminal trees, see [`Limits::tree_bytes`](crate::Limits::tree_bytes). What other grammars share is
    /// counted too.
    pub trees: usize,
    /// Masks, see [`Limits::mask_bytes`](crate::Limits::mask_bytes), and a memo of the tokens that readers of
    /// keys and items refuse, at most 2 MB.
    pub masks: usize,
}

impl Memory {
    /// All of it, in bytes.
    #[must_use]
    pub fn total(&self) -> usize {
        self.parser_sets + self.states + self.trees + self.masks
    }

    /// With another machine's.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            machines: self.machines + other.machines,
            parser_sets: self.parser_sets + other.parser_sets,
            states: self.states + other.states,
            trees: self.trees + other.trees,
            masks: self.masks + other.masks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_adds_up() {
        let one = Memory { machines: 1, parser_sets: 20, states: 300, trees: 4_000, masks: 50_000 };
        let both =
            one.and(Memory { machines: 2, parser_sets: 30, states: 500, trees: 7_000, masks: 110_000 });
        let expected = Memory { machines: 3, parser_sets: 50, states: 800, trees: 11_000, masks: 160_000 };
        assert_eq!((both, both.total()), (expected, 171_850));
    }
}
