//! Memory counts of compiled grammars and compilers, in bytes.

/// Memory of a compiled grammar, in bytes: everything its sessions share and [`Limits`](crate::Limits)
/// bounds. A session's own is its [history](crate::Constraint::history_bytes).
///
/// Counts the contents in use, without the allocator's overhead.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// The lowered grammar: productions, names and places of the source, and data computed from them.
    pub grammar: usize,
    /// Automata of terminals, and what they do to the tokens of the vocabulary, where no other grammar uses
    /// them; see [`Limits::terminal_bytes`](crate::Limits::terminal_bytes) and
    /// [`Compiler::memory`](crate::Compiler::memory).
    pub terminals: usize,
    /// Machines that sessions share: one, and those that were replaced while sessions still run on them.
    pub machines: usize,
    /// Earley sets and the moves between them, see [`Limits::parser_bytes`](crate::Limits::parser_bytes).
    pub parser_sets: usize,
    /// Constraint states, see [`Limits::state_bytes`](crate::Limits::state_bytes).
    pub states: usize,
    /// Subterminal trees, see [`Limits::tree_bytes`](crate::Limits::tree_bytes), without what terminals have
    /// as well, which that limit counts.
    pub trees: usize,
    /// Masks, see [`Limits::mask_bytes`](crate::Limits::mask_bytes), and a memo of the tokens that readers of
    /// keys and items refuse, at most 2 MB.
    pub masks: usize,
}

/// Memory of a compiler, in bytes: what its grammars share, and what it keeps for later ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompilerMemory {
    /// Automata of terminals of all grammars, and their effect on the tokens of the vocabulary.
    pub terminals: usize,
    /// The part of `terminals` that no grammar or notation uses now. It is kept for the next grammar as long
    /// as all terminals take no more than [`TABLE_BYTES`](crate::limits::TABLE_BYTES).
    pub unused: usize,
    /// The part of `terminals` that several grammars use, without what all grammars of a notation have in
    /// common.
    pub shared: usize,
    /// [Automata of schemas](crate::AutomataCache).
    pub automata: usize,
    /// Vocabularies with special tokens spelled out, beside the one that was given.
    pub vocabularies: usize,
}

impl CompilerMemory {
    /// All of it, in bytes.
    #[must_use]
    pub fn total(&self) -> usize {
        self.terminals + self.automata + self.vocabularies
    }
}

impl Memory {
    /// All of it, in bytes.
    #[must_use]
    pub fn total(&self) -> usize {
        self.own() + self.terminals
    }

    /// All but the terminals, which are the compiler's as well: this of all grammars and the
    /// [memory of their compiler](crate::Compiler::memory) are all that is kept, in bytes.
    #[must_use]
    pub fn own(&self) -> usize {
        self.grammar + self.parser_sets + self.states + self.trees + self.masks
    }

    /// Creates the count of one machine that keeps nothing.
    pub(super) fn of_a_machine() -> Self {
        Self { machines: 1, ..Self::default() }
    }

    /// Adds the counts of another machine.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            grammar: self.grammar + other.grammar,
            terminals: self.terminals + other.terminals,
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
    fn memory_counts_add_up() {
        let memory = |machines, [grammar, terminals, parser_sets, states, trees, masks]: [usize; 6]| Memory {
            machines,
            grammar,
            terminals,
            parser_sets,
            states,
            trees,
            masks,
        };
        let one = memory(1, [1, 2, 20, 300, 4_000, 50_000]);
        let both = one.and(memory(2, [2, 5, 30, 500, 7_000, 110_000]));
        assert_eq!(both, memory(3, [3, 7, 50, 800, 11_000, 160_000]));
        assert_eq!((both.own(), both.total()), (171_853, 171_860));
    }
}
