//! What a machine runs: a lowered grammar for a vocabulary.

use crate::{limits::Limits, lower::Lowered, subterminal::Lookahead, vocab::Vocabulary};

/// What all sessions of a grammar read and none changes.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) lowered: Lowered,
    pub(crate) vocabulary: Vocabulary,
    pub(crate) lookahead: Lookahead,
    pub(crate) limits: Limits,
}
