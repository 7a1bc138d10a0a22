//! Runs a text over and over, to see what a repetition costs.

use std::collections::HashSet;

use super::yields::MAX_TEXT;
use crate::{
    ids::{StateId, as_u64},
    limits::Work,
    machine::StateAutomaton,
    program::Program,
};

/// Numbers of repetitions after which constant costs end the run, and after which growth is believed.
const ROUNDS: [usize; 2] = [16, 64];
/// Number of bytes that all runs together step over. About 0.1 us each, and the parser's work.
const MAX_BYTES: usize = 200_000;
/// Numbers of items that all runs together, and one of them, let the parser handle. About 0.1 us each.
const MAX_WORK: [u64; 2] = [3_000_000, 300_000];
/// Work of one run, in the units of a step's: a bound for a single repetition that goes far past what a run
/// may cost.
const MAX_UNITS: usize = 5_000_000;
/// Least growth of a repetition's cost between the second and the last quarter, in threads and items.
const LEAST_GROWTH: u64 = 8;

/// The outcome of repetitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RepetitionVerdict {
    /// A state came back: further repetitions cost lookups only.
    Rest,
    /// Repetitions cost about the same each, or more and more slowly.
    Steady,
    /// Each costs more than the last.
    Grows,
}

/// Repetitions that were run.
#[derive(Debug, Clone)]
pub(super) struct RunOutcome {
    pub(super) verdict: RepetitionVerdict,
    /// Items and threads of one repetition, in the second and the last quarter.
    pub(super) cost: (u64, u64),
    /// Greatest number of threads after a repetition.
    pub(super) threads: usize,
}

/// A text that was run: what comes first, what is repeated after it, and what that costs.
#[derive(Debug, Clone)]
pub(super) struct ShownText {
    pub(super) before: Vec<u8>,
    pub(super) repeated: Vec<u8>,
    pub(super) run: RunOutcome,
}

/// Runs texts, each on a machine of its own that has nothing cached, within a budget for all.
#[derive(Debug)]
pub(super) struct TextRunner<'g> {
    program: &'g Program,
    bytes: usize,
    work: u64,
}

impl<'g> TextRunner<'g> {
    pub(super) fn new(program: &'g Program) -> Self {
        Self { program, bytes: MAX_BYTES, work: MAX_WORK[0] }
    }

    /// Repeats a text after another. `None` if these texts are too long, or cannot follow, or the budget ends
    /// before anything is known.
    pub(super) fn run(&mut self, before: &[u8], repeated: &[u8]) -> Option<RunOutcome> {
        if before.len() + repeated.len() * ROUNDS[1] > MAX_TEXT * 4 || self.work == 0 {
            return None;
        }
        let mut machine = StateAutomaton::new(self.program).ok()?;
        let work = &mut Work::new(MAX_UNITS);
        let mut state = machine.start();
        for &byte in before {
            state = machine.step(self.program, state, byte, work).ok()??;
        }
        let mut done = machine.parser().effort();
        self.spend(before.len(), done)?;
        let most = done.saturating_add(MAX_WORK[1]);
        let mut seen: HashSet<StateId> = HashSet::new();
        let (mut costs, mut threads) = (Vec::new(), 0);
        let mut verdict = RepetitionVerdict::Steady;
        'rounds: for &rounds in &ROUNDS {
            while costs.len() < rounds && done < most {
                let mut alive = 0;
                for &byte in repeated {
                    // Where so few repetitions use up a budget that is made for whole texts, they grow.
                    let Ok(next) = machine.step(self.program, state, byte, work) else { break 'rounds };
                    state = next?;
                    alive += machine.threads(state).len();
                }
                threads = threads.max(machine.threads(state).len());
                let work = machine.parser().effort() - done;
                done += work;
                self.spend(repeated.len(), work)?;
                costs.push(work + as_u64(alive));
                if !seen.insert(state) {
                    verdict = RepetitionVerdict::Rest;
                    break 'rounds;
                }
            }
            if !grows(&costs) {
                break;
            }
            if costs.len() == ROUNDS[1] || done >= most {
                verdict = RepetitionVerdict::Grows;
                break;
            }
        }
        let quarter = (costs.len() / 4).max(1);
        let mean = |part: &[u64]| part.iter().sum::<u64>() / u64::try_from(part.len()).unwrap_or(1).max(1);
        let early = mean(costs.get(quarter..2 * quarter).unwrap_or(&costs));
        let late = mean(&costs[costs.len().saturating_sub(quarter)..]);
        Some(RunOutcome { verdict, cost: (early, late), threads })
    }

    fn spend(&mut self, bytes: usize, work: u64) -> Option<()> {
        self.work = self.work.saturating_sub(work);
        self.bytes = self.bytes.checked_sub(bytes)?;
        Some(())
    }
}

/// Does the cost of a repetition grow from quarter to quarter, and not ever more slowly?
fn grows(costs: &[u64]) -> bool {
    let quarter = costs.len() / 4;
    if quarter == 0 {
        return false;
    }
    let sum = |n: usize| costs[n * quarter..(n + 1) * quarter].iter().sum::<u64>();
    let (second, third, fourth) = (sum(1), sum(2), sum(3));
    let length = u64::try_from(quarter).unwrap_or(1);
    // In proportion to the repetitions between the quarters, so that few rounds need not grow as much as
    // many.
    let least = LEAST_GROWTH * length * u64::try_from(costs.len()).unwrap_or(0)
        / u64::try_from(ROUNDS[1]).unwrap_or(1);
    fourth > third && third > second && fourth - second >= least && 2 * (fourth - third) >= third - second
}

#[cfg(test)]
mod tests {
    use super::grows;

    #[test]
    fn only_steady_growth_counts() {
        let costs = |cost: &dyn Fn(u64) -> u64| (0..64).map(cost).collect::<Vec<_>>();
        assert!(grows(&costs(&|n| 10 + n)));
        assert!(grows(&costs(&|n| n * n)));
        assert!(grows(&costs(&|n| 1000 + n + 5 * (n % 2))));
        assert!(!grows(&costs(&|_| 100)));
        assert!(!grows(&costs(&|n| 100 + n % 4)));
        assert!(!grows(&costs(&|n| n.min(20))), "it comes to rest");
        assert!(!grows(&costs(&|n| 200 - n)));
        assert!(!grows(&costs(&|n| n / 16)), "too little to matter");
        assert!(!grows(&[1, 2, 3]));
    }
}
