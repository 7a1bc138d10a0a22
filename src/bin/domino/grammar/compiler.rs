//! The compiler that all commands have in common: the budgets that it keeps to, the vocabulary of a grammar
//! without a tokenizer, which is the 256 bytes, and the reach of masks.
//!
//! The reach is how many terminals a token may begin, and what counts as one.

use std::{sync::OnceLock, time::Duration};

use domino::{
    AutomataCache, Compiler, Limits, Lookahead, Patience, Terminals, TokenId, Vocabulary, VocabularyError,
    store::CacheFolder,
};

use crate::terminal::progress;

/// The budgets of this run.
#[derive(Debug, Clone, Default)]
struct Budgets {
    step_time: Option<Duration>,
    memory: Option<usize>,
}

/// The cache of automata for all schemas that this run reads.
static AUTOMATA: OnceLock<AutomataCache> = OnceLock::new();

/// The budgets of this run, set once from the flags before any command runs.
static BUDGETS: OnceLock<Budgets> = OnceLock::new();

/// Sets the budgets of this run: the time of a step, and the bytes of memory of a grammar. The first call
/// counts, since flags are read once.
pub(crate) fn set_budgets(step_time: Option<Duration>, memory: Option<usize>) {
    let _ = BUDGETS.set(Budgets { step_time, memory });
}

/// Makes the limits of this run, for reading and compiling grammars, which Ctrl-C ends.
pub(crate) fn limits() -> Limits {
    let budgets = BUDGETS.get().cloned().unwrap_or_default();
    let mut limits = Limits::default().cancelled_by(progress::cancel());
    if let Some(memory) = budgets.memory {
        limits = limits.memory(memory);
    }
    if budgets.step_time.is_some() {
        (limits.step_units, limits.text_units) = (usize::MAX, usize::MAX);
    }
    limits
}

/// The cache of automata that all compilers of this run have in common.
pub(crate) fn automata() -> &'static AutomataCache {
    AUTOMATA.get_or_init(AutomataCache::new)
}

/// Makes a compiler within the limits of this run, whose sessions go on until a step is done.
pub(crate) fn compiler(vocabulary: Vocabulary) -> Compiler {
    let patience = Patience::whole();
    let step_time = BUDGETS.get().and_then(|budgets| budgets.step_time);
    let patience = step_time.map_or(patience, |time| patience.step_time(time));
    Compiler::new(vocabulary).limits(limits()).patience(patience).share_automata(automata().clone())
}

/// Makes a compiler as [`compiler`] does, for sessions that make others wait: a step gets `step_time` unless
/// a flag says otherwise, and the long steps of a text together get `text_time`.
pub(crate) fn shared_compiler(vocabulary: Vocabulary, step_time: Duration, text_time: Duration) -> Compiler {
    let flag = BUDGETS.get().and_then(|budgets| budgets.step_time);
    let patience = Patience::whole().step_time(flag.unwrap_or(step_time)).text_time(text_time);
    Compiler::new(vocabulary).limits(limits()).patience(patience).share_automata(automata().clone())
}

/// Makes a vocabulary of the 256 bytes.
pub(crate) fn byte_vocabulary() -> Result<Vocabulary, VocabularyError> {
    let end = TokenId::new(256);
    Vocabulary::builder().all_bytes().special(end, "<end of text>").end_of_text(end).build()
}

/// The lookahead of masks, and the terminals that it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Reach {
    pub(crate) lookahead: Lookahead,
    pub(crate) terminals: Terminals,
}

impl Reach {
    /// Makes the compiler of grammars.
    pub(crate) fn compiler(self, vocabulary: Vocabulary, cache: &CacheFolder) -> Compiler {
        self.of(crate::grammar::compiler::compiler(vocabulary)).cache(cache.clone())
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
pub(crate) fn reach_in_words(lookahead: Lookahead, terminals: Terminals) -> String {
    let terminals = terminals_name(terminals);
    match lookahead_number(lookahead) {
        Some(k) => format!("lookahead {k} over {terminals} terminals"),
        None => format!("unbounded lookahead over {terminals} terminals"),
    }
}
