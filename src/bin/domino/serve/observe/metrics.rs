//! Counters and histograms of the server, as a page for Prometheus (OpenMetrics text).
//!
//! Invariant: requests started are those finished, cancelled, failed and running, at any moment. The server's
//! own tests of its health are none of them, nor do their tokens count.

use std::sync::{Mutex, MutexGuard, PoisonError, atomic::AtomicU64};
use std::time::Duration;

use prometheus_client::metrics::{counter, family::Family, gauge, histogram::Histogram};
use prometheus_client::registry::{self, Registry};
use prometheus_client::{encoding::EncodeLabelSet, encoding::text::encode};

use super::super::asked::fields::Endpoint;

/// Media type of the page.
pub(crate) const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Upper ends of the buckets of times, in seconds; the last has none.
const SECONDS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0];

/// Upper ends of the buckets of texts in a pass.
const TEXTS: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];

/// A counter, a gauge or a histogram of the page; cloning shares it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Metric<M>(M);

/// A number that only grows.
pub(crate) type Counter = Metric<counter::Counter>;

/// Time that only grows.
pub(crate) type SpentTime = Metric<counter::Counter<f64, AtomicU64>>;

/// A number that goes up and down.
pub(crate) type MetricLevel = Metric<gauge::Gauge>;

/// Times, or numbers of texts, counted in buckets.
pub(crate) type Buckets = Metric<Histogram>;

impl Counter {
    pub(crate) fn add(&self, more: usize) {
        self.0.inc_by(u64::try_from(more).unwrap_or_default());
    }
}

impl SpentTime {
    pub(crate) fn add(&self, time: Duration) {
        self.0.inc_by(time.as_secs_f64());
    }
}

impl MetricLevel {
    pub(crate) fn set(&self, value: usize) {
        self.0.set(i64::try_from(value).unwrap_or_default());
    }
}

impl Buckets {
    pub(crate) fn add(&self, time: Duration) {
        self.0.observe(time.as_secs_f64());
    }

    pub(crate) fn add_size(&self, size: usize) {
        // No batch has 2^32 texts.
        self.0.observe(u32::try_from(size).map_or(f64::INFINITY, f64::from));
    }
}

/// Labels of an answer: its endpoint and its status.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AnswerLabels {
    endpoint: &'static str,
    code: u16,
}

/// Requests by their end. They are counted under one lock, so that they add up on every page.
#[derive(Debug, Default)]
struct Requests {
    running: MetricLevel,
    started: Counter,
    finished: Counter,
    cancelled: Counter,
    failed: Counter,
    /// Number of requests that are running.
    count: Mutex<usize>,
}

/// All metrics since the start.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    answers: Family<AnswerLabels, counter::Counter>,
    requests: Requests,
    pub(crate) prompt_tokens: Counter,
    /// Tokens of prompts that were read before, for another text.
    pub(crate) cached_tokens: Counter,
    pub(crate) completion_tokens: Counter,
    pub(crate) passes: Counter,
    pub(crate) drafted: Counter,
    pub(crate) accepted: Counter,
    pub(crate) mask_time: SpentTime,
    pub(crate) cancelled: Counter,
    pub(crate) grammar_hits: Counter,
    pub(crate) grammar_misses: Counter,
    pub(crate) grammar_evictions: Counter,
    pub(crate) grammar_failures: Counter,
    pub(crate) grammar_cancelled: Counter,
    pub(crate) compile_times: Buckets,
    pub(crate) queue_times: Buckets,
    pub(crate) first_token_times: Buckets,
    pub(crate) token_times: Buckets,
    pub(crate) answer_times: Buckets,
    pub(crate) batch_sizes: Buckets,
    pub(crate) prefix_bytes: MetricLevel,
    /// Levels that are read when a page is made.
    pub(crate) moment: MomentLevels,
}

/// Levels that are set when a page is made.
#[derive(Debug)]
pub(crate) struct MomentLevels {
    /// Texts that are written or wait.
    pub(crate) texts: MetricLevel,
    pub(crate) most_texts: MetricLevel,
    pub(crate) grammars: MetricLevel,
    pub(crate) grammar_bytes: MetricLevel,
    /// Grammars and long prompts that wait for a worker.
    pub(crate) work_waiting: MetricLevel,
    /// Memory of bodies that are being read.
    pub(crate) body_bytes: MetricLevel,
    /// 1 if the engine has stalled.
    pub(crate) stalled: MetricLevel,
    /// Texts that were given up for that, since the start.
    gave_up: Counter,
}

/// Kinds of ends of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestEnd {
    Finished,
    Cancelled,
    Failed,
}

impl RequestEnd {
    /// Classifies the status of an answer; 499 stands for a client who went away.
    pub(crate) fn of(status: u16) -> Self {
        match status {
            499 => Self::Cancelled,
            200..=299 => Self::Finished,
            _ => Self::Failed,
        }
    }
}

impl Requests {
    fn count(&self) -> MutexGuard<'_, usize> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self) {
        let mut running = self.count();
        *running += 1;
        self.running.set(*running);
        self.started.add(1);
    }

    fn end(&self, end: RequestEnd) {
        let mut running = self.count();
        *running = running.saturating_sub(1);
        self.running.set(*running);
        match end {
            RequestEnd::Finished => &self.finished,
            RequestEnd::Cancelled => &self.cancelled,
            RequestEnd::Failed => &self.failed,
        }
        .add(1);
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Metrics that have counted nothing.
    pub(crate) fn new() -> Self {
        let mut page = Page::default();
        let answers = Family::default();
        page.0.register("domino_requests", "Answers, by address and status", answers.clone());
        let requests = Requests {
            running: page.level("domino_requests_running", "Requests that are being answered"),
            started: page.counter("domino_requests_started", "Requests begun"),
            finished: page.counter("domino_requests_finished", "Requests answered to the end"),
            cancelled: page.counter("domino_requests_cancelled", "Requests whose client went away"),
            failed: page.counter("domino_requests_failed", "Requests answered with an error"),
            count: Mutex::default(),
        };
        let moment = MomentLevels::on(&mut page);
        Self {
            answers,
            requests,
            moment,
            prompt_tokens: page.counter("domino_prompt_tokens", "Tokens of prompts"),
            cached_tokens: page.counter("domino_cached_tokens", "Tokens of prompts that were read before"),
            completion_tokens: page.counter("domino_completion_tokens", "Tokens written"),
            passes: page.counter("domino_passes", "Passes of the model for texts with a grammar"),
            drafted: page.counter("domino_drafted_tokens", "Tokens guessed"),
            accepted: page.counter("domino_accepted_tokens", "Guessed tokens that were right"),
            mask_time: page.add("domino_mask_seconds", "Time to make masks", counter::Counter::default()),
            cancelled: page.counter("domino_cancelled", "Texts whose client went away"),
            grammar_hits: page.counter("domino_grammar_hits", "Requests whose grammar was known"),
            grammar_misses: page.counter("domino_grammar_misses", "Grammars compiled for a request"),
            grammar_evictions: page.counter("domino_grammar_evictions", "Compiled grammars dropped"),
            grammar_failures: page.counter("domino_grammar_failures", "Grammars that cannot be compiled"),
            grammar_cancelled: page.counter("domino_grammar_cancelled", "Grammars that were given up"),
            compile_times: page.times("domino_grammar_compile_seconds", "Time to compile a grammar"),
            queue_times: page.times("domino_queue_seconds", "Time that a text waits for the engine"),
            first_token_times: page
                .times("domino_first_token_seconds", "Time from a request to its first token"),
            token_times: page.times("domino_token_seconds", "Mean time of a token after a text's first"),
            answer_times: page.times("domino_request_seconds", "Time from a request to its answer's end"),
            batch_sizes: page.add(
                "domino_batch_size",
                "Texts that a pass of the model goes on with",
                Histogram::new(TEXTS),
            ),
            prefix_bytes: page.level("domino_prefix_bytes", "Memory of keys and values that are kept"),
            registry: page.0,
        }
    }

    /// Counts a request as begun.
    pub(crate) fn begun(&self) {
        self.requests.start();
    }

    /// Counts an answer to a request that was [begun](Self::begun); of a stream, when it ends.
    pub(crate) fn answered(&self, endpoint: Endpoint, status: u16, time: Duration) {
        self.answers.get_or_create(&AnswerLabels { endpoint: endpoint.name(), code: status }).inc();
        self.requests.end(RequestEnd::of(status));
        self.answer_times.add(time);
    }

    /// Writes all metrics as a page, after `set` has set the levels of the moment.
    pub(crate) fn text(&self, set: impl FnOnce(&MomentLevels)) -> String {
        let mut text = String::new();
        // The lock keeps requests from changing while the page is written, so that they add up.
        let _still = self.requests.count();
        set(&self.moment);
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

impl MomentLevels {
    fn on(page: &mut Page) -> Self {
        Self {
            texts: page.level("domino_texts", "Texts that are written or wait"),
            most_texts: page.level("domino_texts_limit", "Texts that may be written or wait"),
            grammars: page.level("domino_grammars", "Compiled grammars kept"),
            grammar_bytes: page.level("domino_grammar_bytes", "Memory of compiled grammars"),
            work_waiting: page.level("domino_work_waiting", "Grammars and long prompts that wait"),
            body_bytes: page.level("domino_body_bytes", "Memory of bodies that are being read"),
            stalled: page
                .level("domino_engine_stalled", "1 while the engine makes no token though it should"),
            gave_up: page.counter("domino_stalled", "Texts given up because the engine stalled"),
        }
    }

    /// Raises the number of texts that were given up to this.
    pub(crate) fn set_gave_up(&self, gave_up: u64) {
        self.gave_up.0.inc_by(gave_up.saturating_sub(self.gave_up.0.get()));
    }
}

/// The page in the making: names and help texts.
#[derive(Debug, Default)]
struct Page(Registry);

impl Page {
    fn add<M: registry::Metric + Clone>(&mut self, name: &str, help: &str, metric: M) -> Metric<M> {
        self.0.register(name, help, metric.clone());
        Metric(metric)
    }

    fn counter(&mut self, name: &str, help: &str) -> Counter {
        self.add(name, help, counter::Counter::default())
    }

    fn level(&mut self, name: &str, help: &str) -> MetricLevel {
        self.add(name, help, gauge::Gauge::default())
    }

    fn times(&mut self, name: &str, help: &str) -> Buckets {
        self.add(name, help, Histogram::new(SECONDS))
    }
}

#[cfg(test)]
mod tests;
