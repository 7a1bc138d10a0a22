//! The reach of masks: how many terminals a token may begin, and what counts as one.

use domino::{Compiler, Lookahead, Terminals, Vocabulary, store::CacheFolder};

/// The lookahead of masks, and the terminals that it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reach {
    pub(crate) lookahead: Lookahead,
    pub(crate) terminals: Terminals,
}

impl Reach {
    /// Makes the compiler of grammars.
    pub(crate) fn compiler(self, vocabulary: Vocabulary, cache: &CacheFolder) -> Compiler {
        crate::grammar::budgets::compiler(vocabulary)
            .lookahead(self.lookahead)
            .terminals(self.terminals)
            .cache(cache.clone())
    }
}

/// The value of `--terminals` for these terminals.
pub(crate) fn terminals_name(terminals: Terminals) -> &'static str {
    match terminals {
        Terminals::Written => "written",
        _ => "folded",
    }
}

/// The value of `--lookahead` for this lookahead; `None` if it is unbounded.
pub(crate) fn lookahead_number(lookahead: Lookahead) -> Option<u32> {
    match lookahead {
        Lookahead::Terminals(terminals) => Some(terminals),
        _ => None,
    }
}

/// Describes lookahead and terminals in words.
pub(crate) fn in_words(lookahead: Lookahead, terminals: Terminals) -> String {
    let terminals = terminals_name(terminals);
    match lookahead_number(lookahead) {
        Some(k) => format!("lookahead {k} over {terminals} terminals"),
        None => format!("unbounded lookahead over {terminals} terminals"),
    }
}
