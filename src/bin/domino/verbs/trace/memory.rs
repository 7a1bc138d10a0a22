//! Resident memory of this process at the moments that the format asks for, where the system tells it.

use std::fmt;

use serde::Serialize;

/// Memory at each moment, in KiB.
#[derive(Debug, Default, Clone, Serialize)]
pub(crate) struct MemoryMoments {
    start: u64,
    vocab: u64,
    compiled: u64,
    end: u64,
    peak: u64,
}

impl MemoryMoments {
    /// Notes the memory before anything is read.
    pub(crate) fn at_start() -> Self {
        Self { start: now("VmRSS"), ..Self::default() }
    }

    pub(crate) fn vocabulary_is_there(&mut self) {
        self.vocab = now("VmRSS");
    }

    /// Notes the memory after the first compiled grammar; later calls change nothing.
    pub(crate) fn grammar_is_compiled(&mut self) {
        if self.compiled == 0 {
            self.compiled = now("VmRSS");
        }
    }

    pub(crate) fn all_is_done(&mut self) {
        self.end = now("VmRSS");
        self.peak = now("VmHWM");
    }

    /// True if the system tells it.
    pub(crate) fn is_known(&self) -> bool {
        self.start > 0
    }
}

impl fmt::Display for MemoryMoments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { start, vocab, compiled, end, peak } = self;
        write!(
            f,
            "{start} KiB at the start, {vocab} with the vocabulary, {compiled} compiled, {end} at the end, \
             peak {peak}"
        )
    }
}

/// Reads the number of `field` in this process's status; 0 if there is none.
fn now(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    kibibytes(&status, field).unwrap_or(0)
}

fn kibibytes(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::kibibytes;

    #[test]
    fn memory_fields_of_proc_status_are_read_by_whole_names() {
        let status = "Name:\tdomino\nVmHWM:\t    1024 kB\nVmRSS:\t     512 kB\nThreads:\t1\n";
        assert_eq!(kibibytes(status, "VmRSS"), Some(512));
        assert_eq!(kibibytes(status, "VmHWM"), Some(1024));
        assert_eq!((kibibytes(status, "Vm"), kibibytes(status, "Threads")), (None, None));
    }
}
