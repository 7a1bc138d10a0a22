//! The results of one engine on one grammar and vocabulary: format `peers-cell-1`.
//!
//! Times are in nanoseconds unless the name says otherwise. If pass 1 was done several times, its times are
//! medians. If no later pass was finished, `mask_ns`, `commit_ns` and `check_commit_ns` are empty.

use serde::Serialize;

use super::engine::{Tables, Trees};
use super::measure::{Measured, Record};
use super::{args::Trace, input::Traces, memory::MemoryMoments, walk::Walk};
use crate::grammar::compiler;

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
    pub(crate) rss_kb: Option<MemoryMoments>,
    pub(crate) extra: Extra,
    pub(crate) traces: Vec<Row>,
}

/// Fields that the format leaves free.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Extra {
    /// The file or name of the grammar: one language has several spellings.
    pub(crate) grammar_source: String,
    trees: Trees,
    tables: Tables,
    threads: usize,
    /// The lookahead; `null` if it is unbounded.
    pub(crate) lookahead: Option<u32>,
    terminals: &'static str,
    pub(crate) machine: CellMachine,
    /// Time that reading the clock adds to each measured time.
    pub(crate) clock_ns: u64,
    /// Number of times that pass 1 was done.
    fresh: usize,
    /// Times of compiling before each text of pass 1, for each time that it was done.
    pub(crate) compile_ns: Vec<u64>,
    /// Times from the grammar's text to the first mask, for each time that pass 1 was done.
    pub(crate) text_to_mask_ns: Vec<u64>,
    /// Times of asking whether a token may follow, without a mask, for each text; medians of later passes.
    pub(crate) allows_ns: Vec<Vec<u64>>,
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
    pub(crate) start_first_ns: u64,
    pub(crate) start_ns: u64,
    pub(crate) mask_first_ns: Vec<u64>,
    pub(crate) commit_first_ns: Vec<u64>,
    pub(crate) mask_ns: Vec<u64>,
    pub(crate) commit_ns: Vec<u64>,
    pub(crate) check_commit_ns: Vec<u64>,
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
                trees: command.trees,
                tables: command.tables,
                threads: command.threads,
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
