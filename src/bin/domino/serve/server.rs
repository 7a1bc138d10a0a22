//! Everything that all requests share, the last text that was tried for `/health` among it ([`Health`]).
//!
//! At most one such text is written at a time, however many ask. An answer waits for it for a bounded time:
//! an engine that is busy, with a long prompt say, counts as well until it has made no token for
//! `--stall-timeout`, unless the text before failed.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::{future::Future, time::Duration, time::Instant};

use domino::{Vocabulary, decode::Masking, grammar::tools::Spelling};
use tokio::sync::watch;

use super::asked::{Asked, fields::Endpoint};
use super::bounds::{BodyMemory, Gate, Pulse};
use super::engines::{Engine, kept::PriorKeeper};
use super::{
    access::ApiKeys, access::Visitors, args::SchemaRules, args::ServerLimits, grammars::Registry,
    observe::metrics::Metrics, problem::Problem, prompts::PromptReader, writing::TextMaker,
};
use crate::grammar::compiler::Reach;

/// The model that is served.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) vocabulary: Vocabulary,
    /// The name that clients give in `model`.
    pub(crate) name: String,
    /// Tokens of a text, its prompt included.
    pub(crate) context: usize,
    /// The way in which it writes calls of functions; `None` if no grammar holds it to one.
    pub(crate) spelling: Option<Spelling>,
    /// Seconds since 1970 when it was loaded.
    pub(crate) since: u64,
}

/// Everything that all requests share.
pub(crate) struct Server {
    pub(crate) model: Served,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) prompts: PromptReader,
    pub(crate) registry: Arc<Registry>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) pulse: Arc<Pulse>,
    pub(crate) health: Health,
    pub(crate) visitors: Visitors,
    pub(crate) keys: ApiKeys,
    pub(crate) bodies: Arc<BodyMemory>,
    /// Set when the server ends.
    pub(crate) closing: OnceLock<()>,
    pub(crate) limits: ServerLimits,
    /// `None`: what guesses learn is forgotten at the end.
    pub(crate) priors: Option<PriorKeeper>,
    /// Do all clients share what is kept of prompts and texts?
    pub(crate) share_caches: bool,
    /// Are texts closed that would be cut by their length, unless a request says otherwise?
    pub(crate) finish: bool,
    pub(crate) schemas: Arc<SchemaRules>,
    /// The reach of masks, and the time at which they are made, unless a request says otherwise.
    pub(crate) reach: Reach,
    pub(crate) masking: Masking,
}

impl Server {
    /// Reads the body of a request to one of the addresses that write text.
    pub(crate) fn read(&self, body: &[u8], endpoint: Endpoint) -> Result<Asked, Problem> {
        Asked::read(body, endpoint, self.limits.max_grammar, &self.schemas, self.model.spelling)
    }

    /// Returns what texts need of it.
    pub(crate) fn text_maker(&self) -> TextMaker {
        TextMaker {
            engine: Arc::clone(&self.engine),
            vocabulary: self.model.vocabulary.clone(),
            pulse: Arc::clone(&self.pulse),
            metrics: Arc::clone(&self.metrics),
        }
    }
}

/// The outcome of an attempt to make a text; `None` until it is known.
type TrialResult = watch::Receiver<Option<Result<(), Problem>>>;

/// The last text that was tried.
#[derive(Debug, Default)]
pub(crate) struct Health {
    last: Mutex<Option<Tried>>,
}

#[derive(Debug, Clone)]
struct Tried {
    since: Instant,
    verdict: TrialResult,
    /// The problem of the text before, if that could not be made.
    before: Option<Problem>,
}

impl Health {
    /// Waits for `wait` whether `probe`, or the one that runs already, can make a text.
    pub(super) async fn check<F>(
        &self,
        pulse: &Pulse,
        wait: Duration,
        probe: impl FnOnce() -> F,
    ) -> Result<(), Problem>
    where
        F: Future<Output = Result<(), Problem>> + Send + 'static,
    {
        let mut tried = self.running(probe);
        let known = tokio::time::timeout(wait, tried.verdict.wait_for(Option::is_some)).await;
        match known {
            Ok(Ok(known)) => known.clone().unwrap_or(Ok(())),
            Ok(Err(_)) => Err(panicked()),
            Err(_) if pulse.is_stalled() || pulse.deadline(tried.since) <= Instant::now() => {
                Err(Problem::unavailable("engine_stalled", "the engine makes no tokens"))
            }
            Err(_) => tried.before.map_or(Ok(()), Err),
        }
    }

    /// The probe that runs; `probe` if none does.
    fn running<F>(&self, probe: impl FnOnce() -> F) -> Tried
    where
        F: Future<Output = Result<(), Problem>> + Send + 'static,
    {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match &*last {
            None => None,
            // Whether the task is gone first: what it has said by then is all that it says.
            Some(tried) => match (tried.verdict.has_changed(), tried.verdict.borrow().clone()) {
                (Ok(_), None) => return tried.clone(),
                (Err(_), None) => Some(panicked()),
                (_, Some(known)) => known.err(),
            },
        };
        let (sender, verdict) = watch::channel(None);
        let probe = probe();
        // A task of its own, which those who ask and go away do not end.
        tokio::spawn(async move { sender.send_replace(Some(probe.await)) });
        last.insert(Tried { since: Instant::now(), verdict, before }).clone()
    }
}

/// What to say if the task that was to write the text is gone.
fn panicked() -> Problem {
    Problem::unavailable("engine_gone", "no text can be made: the attempt failed")
}

#[cfg(test)]
mod tests {
    use std::{future::pending, future::ready, sync::atomic::AtomicUsize, sync::atomic::Ordering};

    use axum::http::StatusCode;

    use super::*;

    /// Long enough for tasks that have nothing to wait for.
    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(20);

    fn code(checked: Result<(), Problem>) -> Option<String> {
        let problem = checked.err()?;
        assert_eq!(problem.status(), StatusCode::SERVICE_UNAVAILABLE);
        Some(problem.to_json()["error"]["code"].as_str().unwrap().to_owned())
    }

    #[tokio::test]
    async fn the_health_is_that_of_the_last_text() {
        let (health, pulse) = (Health::default(), Pulse::new(LONG));
        let gone = || ready(Err(Problem::unavailable("engine_gone", "no")));
        assert_eq!(code(health.check(&pulse, LONG, || ready(Ok(()))).await), None);
        assert_eq!(code(health.check(&pulse, LONG, gone).await).as_deref(), Some("engine_gone"));
        assert_eq!(code(health.check(&pulse, LONG, || ready(Ok(()))).await), None);
    }

    #[tokio::test]
    async fn an_engine_is_busy_until_its_time_is_over() {
        let health = Health::default();
        let patience = Duration::from_millis(500);
        let pulse = Pulse::new(patience);
        let tried = AtomicUsize::new(0);
        let hangs = || {
            tried.fetch_add(1, Ordering::Relaxed);
            pending()
        };
        assert_eq!(code(health.check(&pulse, SHORT, hangs).await), None);
        tokio::time::sleep(patience).await;
        assert_eq!(code(health.check(&pulse, SHORT, hangs).await).as_deref(), Some("engine_stalled"));
        // It moves again, for others.
        pulse.beat();
        assert_eq!(code(health.check(&pulse, SHORT, hangs).await), None);
        // Somebody gave up waiting.
        let _ = pulse.stalled();
        assert_eq!(code(health.check(&pulse, SHORT, hangs).await).as_deref(), Some("engine_stalled"));
        assert_eq!(tried.load(Ordering::Relaxed), 1, "one text at a time");
    }

    #[tokio::test]
    async fn a_failure_is_reported_even_if_it_comes_late() {
        let (health, pulse) = (Health::default(), Pulse::new(LONG));
        let late = |outcome: Result<(), Problem>| async move {
            tokio::time::sleep(10 * SHORT).await;
            outcome
        };
        let gone = || late(Err(Problem::unavailable("engine_gone", "no")));
        assert_eq!(code(health.check(&pulse, SHORT, gone).await), None);
        assert_eq!(code(health.check(&pulse, LONG, gone).await).as_deref(), Some("engine_gone"));
        // The next one is not known yet, but the last one is.
        assert_eq!(code(health.check(&pulse, SHORT, || late(Ok(()))).await).as_deref(), Some("engine_gone"));
        assert_eq!(code(health.check(&pulse, LONG, gone).await), None);
        assert_eq!(code(health.check(&pulse, SHORT, gone).await), None);
    }

    #[tokio::test]
    async fn an_attempt_that_panics_is_reported_and_tried_again() {
        async fn panics() -> Result<(), Problem> {
            panic!("as mistral.rs can")
        }
        let (health, pulse) = (Health::default(), Pulse::new(LONG));
        assert_eq!(code(health.check(&pulse, LONG, panics).await).as_deref(), Some("engine_gone"));
        assert_eq!(code(health.check(&pulse, LONG, || ready(Ok(()))).await), None);
    }
}
