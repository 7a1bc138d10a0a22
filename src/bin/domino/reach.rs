//! Flags of lookahead: how many terminals a token may begin, and what counts as one.

use clap::{Args, ValueEnum};
use domino::{Compiler, Lookahead, Terminals, Vocabulary, store::CacheFolder};

/// How far masks look ahead.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct LowReach {
    /// How many terminals past the current one a token may reach. Fewer allow fewer tokens and bend the model more; which
    /// parts of the grammar are terminals is said by --terminals. Default: any number, which bends it least.
    #[arg(short = 'k', long, value_name = "K")]
    lookahead: Option<u32>,
    #[command(flatten)]
    terminals: LowTerminals,
}

/// Which parts of a grammar are terminals.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct LowTerminals {
    /// Which parts of the grammar are terminals: the largest regular ones (folded), or those that a lexer written for
    /// it would have (written): literals, classes, and token-like rules such as string, number, name and ws. Without
    /// --lookahead the text is the same, and folded is faster; with it only written counts as the DOMINO paper does.
    /// `domino inspect terminals` lists them.
    #[arg(long, value_name = "WHICH", value_enum, default_value_t)]
    terminals: Which,
}

/// `--terminals`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Which {
    /// The largest regular parts.
    #[default]
    Folded,
    /// Those of a lexer.
    Written,
}

/// How far masks look ahead, over which terminals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reach {
    pub(crate) lookahead: Lookahead,
    pub(crate) terminals: Terminals,
}

impl LowReach {
    /// What was asked for.
    pub(crate) fn resolve(self) -> Reach {
        let lookahead = self.lookahead.map_or(Lookahead::Unbounded, Lookahead::Terminals);
        Reach { lookahead, terminals: self.terminals.resolve() }
    }
}

impl LowTerminals {
    /// What was asked for.
    pub(crate) fn resolve(self) -> Terminals {
        match self.terminals {
            Which::Folded => Terminals::Folded,
            Which::Written => Terminals::Written,
        }
    }
}

impl Reach {
    /// What grammars are compiled with.
    pub(crate) fn compiler(self, vocabulary: Vocabulary, cache: &CacheFolder) -> Compiler {
        crate::budgets::compiler(vocabulary)
            .lookahead(self.lookahead)
            .terminals(self.terminals)
            .cache(cache.clone())
    }
}

/// The flag's value for these terminals.
pub(crate) fn terminals_name(terminals: Terminals) -> &'static str {
    match terminals {
        Terminals::Written => "written",
        _ => "folded",
    }
}

/// The flag's value for this lookahead; `None` where it is unbounded.
pub(crate) fn lookahead_number(lookahead: Lookahead) -> Option<u32> {
    match lookahead {
        Lookahead::Terminals(terminals) => Some(terminals),
        _ => None,
    }
}

/// The two in words.
pub(crate) fn in_words(lookahead: Lookahead, terminals: Terminals) -> String {
    let terminals = terminals_name(terminals);
    match lookahead_number(lookahead) {
        Some(k) => format!("lookahead {k} over {terminals} terminals"),
        None => format!("unbounded lookahead over {terminals} terminals"),
    }
}
