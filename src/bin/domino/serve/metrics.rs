//! What the server counts, for Prometheus.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::endpoint::Endpoint;

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: usize) {
        self.0.fetch_add(u64::try_from(more).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Upper ends of the buckets of times, in seconds; the last has none.
const BUCKETS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0];

/// Times, counted in buckets.
#[derive(Debug, Default)]
pub(crate) struct Times {
    buckets: [AtomicU64; BUCKETS.len()],
    count: AtomicU64,
    microseconds: AtomicU64,
}

impl Times {
    pub(crate) fn add(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        for (bucket, end) in self.buckets.iter().zip(BUCKETS) {
            if seconds <= end {
                bucket.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.microseconds.fetch_add(micros, Ordering::Relaxed);
    }
}

/// All that is counted since the start.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Answers by address and status.
    answers: Mutex<BTreeMap<(&'static str, u16), u64>>,
    pub(crate) prompt_tokens: Counter,
    pub(crate) completion_tokens: Counter,
    pub(crate) passes: Counter,
    pub(crate) drafted: Counter,
    pub(crate) accepted: Counter,
    pub(crate) cancelled: Counter,
    pub(crate) grammar_hits: Counter,
    pub(crate) grammar_misses: Counter,
    pub(crate) grammar_evictions: Counter,
    pub(crate) grammar_failures: Counter,
    pub(crate) compile_times: Times,
    pub(crate) first_token_times: Times,
    pub(crate) answer_times: Times,
}

/// What is so at this moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// Texts that are written or wait.
    pub(crate) texts: usize,
    pub(crate) most_texts: usize,
    pub(crate) grammars: usize,
    pub(crate) grammar_bytes: usize,
    /// Has the engine stalled?
    pub(crate) stalled: bool,
    /// Texts that were given up for that, since the start.
    pub(crate) gave_up: u64,
}

impl Metrics {
    /// Counts an answer; of a stream, when it ends.
    pub(crate) fn answered(&self, endpoint: Endpoint, status: u16, time: Duration) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        *answers.entry((endpoint.name(), status)).or_default() += 1;
        drop(answers);
        self.answer_times.add(time);
    }

    /// In Prometheus' text format.
    pub(crate) fn text(&self, now: Moment) -> String {
        let mut page = Page::default();
        page.head("domino_requests_total", "counter", "Answers, by address and status.");
        for ((endpoint, status), count) in &*self.answers.lock().unwrap_or_else(PoisonError::into_inner) {
            page.line(&format!("domino_requests_total{{endpoint=\"{endpoint}\",code=\"{status}\"}}"), count);
        }
        let counters = [
            ("domino_prompt_tokens_total", "Tokens read.", &self.prompt_tokens),
            ("domino_completion_tokens_total", "Tokens written.", &self.completion_tokens),
            ("domino_passes_total", "Passes of the model for texts with a grammar.", &self.passes),
            ("domino_drafted_tokens_total", "Tokens guessed.", &self.drafted),
            ("domino_accepted_tokens_total", "Guessed tokens that were right.", &self.accepted),
            ("domino_cancelled_total", "Requests whose client went away.", &self.cancelled),
            ("domino_grammar_hits_total", "Requests whose grammar was compiled before.", &self.grammar_hits),
            ("domino_grammar_misses_total", "Grammars compiled for a request.", &self.grammar_misses),
            ("domino_grammar_evictions_total", "Compiled grammars dropped.", &self.grammar_evictions),
            ("domino_grammar_failures_total", "Grammars that cannot be compiled.", &self.grammar_failures),
        ];
        for (name, help, counter) in counters {
            page.head(name, "counter", help);
            page.line(name, counter.value());
        }
        let name = "domino_stalled_total";
        page.head(name, "counter", "Texts given up with an error because the engine stalled.");
        page.line(name, now.gave_up);
        let gauges = [
            ("domino_texts", "Texts that are written or wait.", now.texts),
            ("domino_texts_limit", "Texts that may be written or wait.", now.most_texts),
            ("domino_grammars", "Compiled grammars kept.", now.grammars),
            ("domino_grammar_bytes", "Memory of compiled grammars.", now.grammar_bytes),
            (
                "domino_engine_stalled",
                "1 while the engine makes no token though it should.",
                usize::from(now.stalled),
            ),
        ];
        for (name, help, value) in gauges {
            page.head(name, "gauge", help);
            page.line(name, value);
        }
        page.times("domino_grammar_compile_seconds", "Time to compile a grammar.", &self.compile_times);
        page.times(
            "domino_first_token_seconds",
            "Time from a request to its first token.",
            &self.first_token_times,
        );
        page.times(
            "domino_request_seconds",
            "Time from a request to the end of its answer.",
            &self.answer_times,
        );
        page.0
    }
}

/// The text as it grows.
#[derive(Debug, Default)]
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.0, "{name} {value}");
    }

    fn times(&mut self, name: &str, help: &str, times: &Times) {
        self.head(name, "histogram", help);
        // Read before the buckets, which only grow: no bucket is below the count that stands after it.
        let count = times.count.load(Ordering::Relaxed);
        let mut last = 0;
        for (bucket, end) in times.buckets.iter().zip(BUCKETS) {
            last = bucket.load(Ordering::Relaxed).max(last);
            self.line(&format!("{name}_bucket{{le=\"{end}\"}}"), last);
        }
        let count = count.max(last);
        self.line(&format!("{name}_bucket{{le=\"+Inf\"}}"), count);
        let seconds = Duration::from_micros(times.microseconds.load(Ordering::Relaxed)).as_secs_f64();
        self.line(&format!("{name}_sum"), seconds);
        self.line(&format!("{name}_count"), count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_a_head_and_a_number() {
        let metrics = Metrics::default();
        metrics.answered(Endpoint::Chat, 200, Duration::from_millis(30));
        metrics.answered(Endpoint::Chat, 200, Duration::from_secs(100));
        metrics.drafted.add(3);
        let now =
            Moment { texts: 1, most_texts: 2, grammars: 3, grammar_bytes: 4, stalled: false, gave_up: 5 };
        let text = metrics.text(now);
        let mut name = "";
        for line in text.lines() {
            if let Some(head) = line.strip_prefix("# TYPE ") {
                name = head.split(' ').next().unwrap();
            } else if !line.starts_with('#') {
                let (left, value) = line.rsplit_once(' ').unwrap();
                assert!(left.starts_with(name) && value.parse::<f64>().is_ok(), "{line}");
            }
        }
        for line in [
            "domino_requests_total{endpoint=\"chat\",code=\"200\"} 2",
            "domino_drafted_tokens_total 3",
            "domino_stalled_total 5",
            "domino_request_seconds_bucket{le=\"0.025\"} 0",
            "domino_request_seconds_bucket{le=\"0.05\"} 1",
            "domino_request_seconds_bucket{le=\"60\"} 1",
            "domino_request_seconds_bucket{le=\"+Inf\"} 2",
            "domino_request_seconds_sum 100.03",
            "domino_request_seconds_count 2",
            "domino_texts 1",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} is not in\n{text}");
        }
    }
}
