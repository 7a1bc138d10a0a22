//! Budgets of a grammar: the flags for them, and a compiler that keeps to them.

use std::{sync::OnceLock, time::Duration};

use clap::Args;
use domino::{AutomataCache, Compiler, Limits, Patience, Vocabulary};

use crate::{failure::BadInput, interrupt};

/// How long a step may take, and how much memory a grammar. For all commands that compile grammars.
#[derive(Debug, Args)]
pub(crate) struct LowBudgetFlags {
    /// Give a step (a mask, or a token of text) this many seconds before it ends in an error.
    ///
    /// Default: a fixed amount of work, the same on every machine, which takes one or two seconds; `serve`
    /// gives a step 2 s and the long steps of a text 30 s besides.
    #[arg(long, global = true, value_name = "SECONDS")]
    max_step_seconds: Option<f64>,
    /// Let a grammar take this much memory. Default: 432 MiB.
    ///
    /// It is that of its automata, and of what its texts share (parser sets, states, trees, masks).
    #[arg(long, global = true, value_name = "MIB")]
    max_memory: Option<u64>,
}

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

/// Least memory that a grammar can be compiled with, in MiB.
const LEAST_MIB: u64 = 4;

impl LowBudgetFlags {
    /// Takes the flags for this run.
    pub(crate) fn install(&self) -> Result<(), BadInput> {
        let step_time = match self.max_step_seconds {
            None => None,
            Some(seconds) => {
                Some(Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero()).ok_or_else(
                    || {
                        BadInput::new(format!(
                            "--max-step-seconds {seconds}: a number of seconds above 0 is wanted"
                        ))
                    },
                )?)
            }
        };
        let memory = match self.max_memory {
            None => None,
            Some(mib) if mib < LEAST_MIB => {
                return Err(BadInput::new(format!(
                    "--max-memory {mib}: at least {LEAST_MIB} MiB are needed"
                )));
            }
            Some(mib) => Some(usize::try_from(mib).unwrap_or(usize::MAX).saturating_mul(1 << 20)),
        };
        // Flags are read once.
        let _ = BUDGETS.set(Budgets { step_time, memory });
        Ok(())
    }
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
