//! The results of one engine on one grammar and vocabulary: format `peers-cell-1`, its summary in a few
//! lines, and the resident memory at the moments that the format asks for, where the system tells it.
//!
//! Times are in nanoseconds unless the name says otherwise. If pass 1 was done several times, its times are
//! medians. If no later pass was finished, `mask_ns`, `commit_ns` and `check_commit_ns` are empty.

use std::fmt::{self, Write as _};

use serde::Serialize;
use serde_json::{Value, json};

use super::measure::{Measured, Record, Spread, microseconds};
use super::walk::{Tables, Trees, Walk};
use super::{args::Trace, input::Traces};
use crate::{grammar::compiler, terminal::count, terminal::failure::Paint};

/// A file of results.
#[derive(Debug, Serialize)]
pub(crate) struct Cell {
    format: &'static str,
    engine: &'static str,
    engine_version: &'static str,
    pub(crate) grammar: String,
    pub(crate) vocab: String,
    pub(crate) passes: usize,
    /// Time of reading the vocabulary, the tokenizer included.
    pub(crate) vocab_ms: f64,
    /// Time of the first compilation in this process.
    pub(crate) compile_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rss_kb: Option<MemoryMoments>,
    pub(crate) extra: Extra,
    pub(crate) traces: Vec<Row>,
}

/// Fields that the format leaves free.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Extra {
    /// The file or name of the grammar: one language has several spellings.
    grammar_source: String,
    trees: Trees,
    tables: Tables,
    threads: u32,
    /// The lookahead; `null` if it is unbounded.
    pub(crate) lookahead: Option<u32>,
    terminals: &'static str,
    pub(crate) machine: CellMachine,
    /// Time that reading the clock adds to each measured time.
    clock_ns: u64,
    /// Number of times that pass 1 was done.
    fresh: usize,
    /// Times of compiling before each text of pass 1, for each time that it was done.
    compile_ns: Vec<u64>,
    /// Times from the grammar's text to the first mask, for each time that pass 1 was done.
    text_to_mask_ns: Vec<u64>,
    /// Times of asking whether a token may follow, without a mask, for each text; medians of later passes.
    allows_ns: Vec<Vec<u64>>,
    pub(crate) interrupted: bool,
}

/// The machine of the measurement.
#[derive(Debug, Default, Serialize)]
pub(crate) struct CellMachine {
    cpu: String,
    cores: usize,
    system: String,
    debug_build: bool,
}

/// The results of one text.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) tokens: usize,
    pub(crate) rejected_at: Option<usize>,
    start_first_ns: u64,
    start_ns: u64,
    mask_first_ns: Vec<u64>,
    commit_first_ns: Vec<u64>,
    mask_ns: Vec<u64>,
    commit_ns: Vec<u64>,
    check_commit_ns: Vec<u64>,
    pop: Vec<u64>,
    hash: Vec<String>,
    eos: Vec<u8>,
}

impl Cell {
    /// Puts the measurements together.
    pub(crate) fn new(
        traces: &Traces,
        measured: &Measured,
        vocab_ms: f64,
        memory: &MemoryMoments,
        command: &Trace,
    ) -> Self {
        let records = &measured.records;
        let fresh = || records.iter().flat_map(|record| &record.fresh);
        let compile: Vec<u64> = fresh().map(|fresh| fresh.compile).collect();
        let first_mask = |walk: &Walk| walk.start + walk.masks.first().copied().unwrap_or_default();
        let rows =
            records.iter().zip(&traces.list).map(|(record, trace)| Row::new(record, trace.tokens.len()));
        Self {
            format: "peers-cell-1",
            engine: "domino",
            engine_version: env!("CARGO_PKG_VERSION"),
            grammar: traces.grammar.clone(),
            vocab: traces.vocab.clone(),
            passes: measured.passes,
            vocab_ms,
            compile_ms: milliseconds(measured.first_compile.unwrap_or_default()),
            rss_kb: memory.is_known().then(|| memory.clone()),
            traces: rows.collect(),
            extra: Extra {
                grammar_source: command.grammar.name(),
                trees: command.flags.trees,
                tables: command.flags.tables,
                threads: command.flags.threads,
                lookahead: compiler::lookahead_number(command.reach.lookahead),
                terminals: compiler::terminals_name(command.reach.terminals),
                machine: CellMachine::this(),
                clock_ns: super::walk::clock_cost(),
                allows_ns: records
                    .iter()
                    .map(|record| record.check_medians(|checks| &checks.allows))
                    .collect(),
                interrupted: measured.interrupted,
                fresh: records.iter().map(|record| record.fresh.len()).min().unwrap_or_default(),
                compile_ns: compile,
                text_to_mask_ns: fresh().map(|fresh| fresh.compile + first_mask(&fresh.walk)).collect(),
            },
        }
    }

    /// Writes the content of the file.
    pub(crate) fn to_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string(self)? + "\n")
    }
}

fn milliseconds(nanoseconds: u64) -> f64 {
    std::time::Duration::from_nanos(nanoseconds).as_secs_f64() * 1e3
}

impl Row {
    fn new(record: &Record, tokens: usize) -> Self {
        Self {
            tokens,
            rejected_at: record.rejected_at(),
            start_first_ns: record.fresh_start(),
            start_ns: record.warm_start(),
            mask_first_ns: record.fresh_medians(|walk| &walk.masks),
            commit_first_ns: record.fresh_medians(|walk| &walk.commits),
            mask_ns: record.warm_medians(|walk| &walk.masks),
            commit_ns: record.warm_medians(|walk| &walk.commits),
            check_commit_ns: record.check_medians(|checks| &checks.check_commits),
            pop: record.digests.iter().map(|digest| digest.pop).collect(),
            hash: record.digests.iter().map(|digest| format!("{:016x}", digest.hash)).collect(),
            eos: record.digests.iter().map(|digest| u8::from(digest.eos)).collect(),
        }
    }
}

impl CellMachine {
    /// Describes this machine.
    pub(crate) fn this() -> Self {
        let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cpu = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        Self {
            cpu: cpu.map_or("unknown", |(_, name)| name.trim()).to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            debug_build: cfg!(debug_assertions),
        }
    }
}

/// A summary for people.
#[derive(Debug)]
pub(crate) struct Summary<'a> {
    cell: &'a Cell,
    /// True if the masks were compared with expected ones.
    compared: bool,
    times: Vec<(&'static str, &'static str, Option<Spread>)>,
}

impl<'a> Summary<'a> {
    /// Summarises `cell`, whose masks are the expected ones if they were `compared`.
    pub(crate) fn new(cell: &'a Cell, compared: bool) -> Self {
        let all = |of: fn(&Row) -> &[u64]| Spread::new(cell.traces.iter().flat_map(of).copied());
        let each = |of: fn(&Row) -> u64| Spread::new(cell.traces.iter().map(of));
        let allows = cell.extra.allows_ns.iter().flatten().copied();
        let times = vec![
            ("mask_us", "mask, warm", all(|row| &row.mask_ns)),
            ("mask_first_us", "mask, first visit", all(|row| &row.mask_first_ns)),
            ("commit_us", "commit", all(|row| &row.commit_ns)),
            ("commit_first_us", "commit, first visit", all(|row| &row.commit_first_ns)),
            ("allows_us", "allows, no mask", Spread::new(allows)),
            ("check_commit_us", "allows + commit", all(|row| &row.check_commit_ns)),
            ("start_us", "start of a request", each(|row| row.start_ns)),
            ("compile_us", "compile", Spread::new(cell.extra.compile_ns.iter().copied())),
            (
                "text_to_mask_us",
                "text to first mask",
                Spread::new(cell.extra.text_to_mask_ns.iter().copied()),
            ),
        ];
        Self { cell, compared, times }
    }

    /// Makes an object of JSON.
    pub(crate) fn to_json(&self) -> Value {
        let cell = self.cell;
        let mut object = json!({
            "grammar": cell.grammar, "vocab": cell.vocab, "grammar_source": cell.extra.grammar_source,
            "traces": cell.traces.len(), "masks": self.masks(), "passes": cell.passes,
            "interrupted": cell.extra.interrupted, "rejected": self.rejected(),
            "as_expected": self.compared.then_some(true),
            "vocab_ms": cell.vocab_ms, "compile_ms": cell.compile_ms,
            "clock_us": microseconds(u128::from(cell.extra.clock_ns)), "rss_kb": cell.rss_kb,
        });
        for (key, _, spread) in &self.times {
            object[*key] = spread.map_or(Value::Null, Spread::to_json);
        }
        object
    }

    /// Writes a table.
    pub(crate) fn to_text(&self, paint: Paint) -> String {
        let cell = self.cell;
        let mut text = format!(
            "{}, {}: {}, {}, {}{}\n",
            cell.grammar,
            cell.vocab,
            count(cell.traces.len(), "trace"),
            count(self.masks(), "mask"),
            count(cell.passes, "pass"),
            if self.compared { "; every mask is as expected" } else { "" },
        );
        let _ = writeln!(text, "{:<20}{:>11}{:>11}{:>11}{:>11}  us", "", "mean", "p50", "p99", "max");
        for (_, name, spread) in &self.times {
            if let Some(Spread { mean, p50, p99, max }) = spread {
                let _ = writeln!(text, "{name:<20}{mean:>11.3}{p50:>11.3}{p99:>11.3}{max:>11.3}");
            }
        }
        let _ = writeln!(text, "vocabulary {:.1} ms, first compile {:.2} ms", cell.vocab_ms, cell.compile_ms);
        if let Some(memory) = &cell.rss_kb {
            let _ = writeln!(text, "memory {memory}");
        }
        for rejected in self.rejected() {
            let _ = writeln!(text, "{}", paint.red(&format!("the mask excludes a token: {rejected}")));
        }
        if cell.extra.interrupted {
            let _ = writeln!(text, "{}", paint.red("interrupted: these are the finished traces and passes"));
        }
        text
    }

    fn masks(&self) -> usize {
        self.cell.traces.iter().map(|row| row.mask_first_ns.len()).sum()
    }

    fn rejected(&self) -> Vec<Value> {
        let rows = self.cell.traces.iter().enumerate();
        rows.filter_map(|(trace, row)| Some(json!({ "trace": trace, "token": row.rejected_at? }))).collect()
    }
}

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
    fn is_known(&self) -> bool {
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
