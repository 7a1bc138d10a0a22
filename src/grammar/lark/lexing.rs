//! The two ways to read a grammar of Lark, which split texts into terminals differently.

/// The rule by which a text is split into terminals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::grammar) enum Lexing {
    /// Every way to split it is followed.
    EveryWay,
    /// A terminal goes on as long as any terminal that may stand there can.
    Greedy,
}
