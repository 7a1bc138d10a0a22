//! Budgets of a grammar, and a compiler that keeps to them.

use std::{sync::OnceLock, time::Duration};

use domino::{AutomataCache, Compiler, Limits, Patience, Vocabulary};

use crate::terminal::interrupt;

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
pub(crate) fn set(step_time: Option<Duration>, memory: Option<usize>) {
    let _ = BUDGETS.set(Budgets { step_time, memory });
}

/// Makes the limits of this run, for reading and compiling grammars, which Ctrl-C ends.
pub(crate) fn limits() -> Limits {
    let budgets = BUDGETS.get().cloned().unwrap_or_default();
    let mut limits = Limits::default().cancelled_by(interrupt::cancel());
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
#[cfg(feature = "serve")]
pub(crate) fn shared_compiler(vocabulary: Vocabulary, step_time: Duration, text_time: Duration) -> Compiler {
    let flag = BUDGETS.get().and_then(|budgets| budgets.step_time);
    let patience = Patience::whole().step_time(flag.unwrap_or(step_time)).text_time(text_time);
    Compiler::new(vocabulary).limits(limits()).patience(patience).share_automata(automata().clone())
}
