//! One token's path at finite lookahead (opportunistic masking; paper, 3.5).
//!
//! A breadth-first search over the token's bytes, in which each thread carries the least number of terminals that the
//! token has begun past the first one it touches. Unlike in `Machine::step` the parser sets in which a terminal
//! may have ended are not merged: they may have been reached at different counts.

use hashbrown::HashMap;

use super::{machine::Machine, program::Program, thread::Thread};
use crate::{
    ids::StateId,
    limits::{LimitExceeded, Work},
};

impl Machine {
    /// May a token of these bytes (at least one) follow, begun past its first at most `most` terminals? Takes one step
    /// for each byte and thread, and a look at the terminals that follow where a thread may end.
    pub(super) fn reaches(
        &mut self,
        shared: &Program,
        state: StateId,
        bytes: &[u8],
        most: u32,
        work: &mut Work,
    ) -> Result<bool, LimitExceeded> {
        let (scanner, cfg) = (&shared.lowered.scanner, &shared.lowered.cfg);
        let mut threads: HashMap<Thread, u32> =
            self.threads(state).iter().map(|&thread| (thread, 0)).collect();
        if let Some(set) = self.boundary(state) {
            let starts = self.parser().accepts(set).iter();
            threads.extend(starts.map(|&terminal| (Thread { set, scan: scanner.start(terminal) }, 0)));
        }
        for (at, &byte) in bytes.iter().enumerate() {
            let mut next: HashMap<Thread, u32> = HashMap::new();
            let mut reach = |set, scan, further| {
                let Some(scan) = scanner.step(scan, byte) else { return };
                let least = next.entry(Thread { set, scan }).or_insert(further);
                *least = further.min(*least);
            };
            for (Thread { set, scan }, further) in threads {
                work.spend(4)?;
                reach(set, scan, further);
                // Before the first byte the terminals that may come next are threads already.
                if at == 0 || further == most || !scanner.accepts(scan) {
                    continue;
                }
                let Some(set) = self.parser_mut().shift(cfg, set, scanner.terminal(scan), work)? else {
                    continue;
                };
                let starts = self.parser().accepts(set);
                work.spend(2 * starts.len())?;
                starts.iter().for_each(|&terminal| reach(set, scanner.start(terminal), further + 1));
            }
            if next.is_empty() {
                return Ok(false);
            }
            threads = next;
        }
        Ok(true)
    }
}
