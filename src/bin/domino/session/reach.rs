//! The reach of masks: how many terminals a token may begin, and what counts as one.

use domino::{Compiler, Lookahead, Terminals, Vocabulary, store::CacheFolder};

/// The lookahead of masks, and the terminals that it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Reach {
    pub(crate) lookahead: Lookahead,
    pub(crate) terminals: Terminals,
}

impl Reach {
    /// Makes the compiler of grammars.
    pub(crate) fn compiler(self, vocabulary: Vocabulary, cache: &CacheFolder) -> Compiler {
        self.of(crate::grammar::budgets::compiler(vocabulary)).cache(cache.clone())
    }

    /// Gives a compiler this reach.
    pub(crate) fn of(self, compiler: Compiler) -> Compiler {
        compiler.lookahead(self.lookahead).terminals(self.terminals)
    }
}

/// Reads the value of `--lookahead`.
pub(crate) fn lookahead(text: &str) -> Result<Lookahead, String> {
    match text {
        "infinite" | "infinity" | "inf" => Ok(Lookahead::Unbounded),
        _ => {
            let terminals = text.parse().map_err(|_| "expected a number of terminals, or infinite")?;
            Ok(Lookahead::Terminals(terminals))
        }
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
