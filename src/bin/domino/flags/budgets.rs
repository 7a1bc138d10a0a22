//! Flags of budgets.

use std::time::Duration;

use clap::Args;

use crate::{grammar::budgets, terminal::failure::BadInput};

/// Flags of all commands that compile grammars: the time of a step, and the memory of a grammar.
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
    max_memory: Option<usize>,
}

/// Least memory that a grammar can be compiled with, in MiB.
const LEAST_MIB: usize = 4;

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
            Some(mib) => Some(mib.saturating_mul(1 << 20)),
        };
        budgets::set(step_time, memory);
        Ok(())
    }
}
