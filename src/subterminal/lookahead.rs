//! The lookahead: how far trees are followed.

/// Bound on the terminals past the current one that a token may reach (the paper's `k`, 3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Lookahead {
    /// At most this many: a token may be refused that the language allows, never the other way round.
    Terminals(u32),
    /// Any number: the mask is exact, the constraint minimally invasive.
    #[default]
    Unbounded,
}
