//! A test run of a few tokens through a pipeline that was just loaded: it must run, as the processor expects.

use std::{
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use mistralrs_core::{
    DefaultSchedulerMethod, MistralRsBuilder, NormalRequest, Pipeline, Request, RequestMessage, Response,
    SamplingParams, SchedulerConfig,
};
use tokio::sync::{Mutex, mpsc::channel};

use super::{
    error::LoadError,
    speculation::{Speculation, SpeculativeRequest},
};
use domino::ids::TokenId;

/// Tokens that the test run makes.
const TOKENS: usize = 3;

/// Makes the test run in an engine of its own, which ends with it. If it hangs, a thread is left behind.
///
/// # Errors
/// If it does not end within `limit`, or not as it should.
pub(super) fn run(
    pipeline: &Arc<Mutex<dyn Pipeline>>,
    speculation: &Speculation,
    limit: Duration,
) -> Result<(), LoadError> {
    let begun = Instant::now();
    let owners = Arc::strong_count(pipeline);
    let (sender, receiver) = mpsc::channel();
    let (shared, handle) = (Arc::clone(pipeline), speculation.clone());
    // A loader may be called from within a runtime or without one; the test has a runtime of its own.
    thread::spawn(move || {
        // After the time limit, nobody receives the result.
        let _ = sender.send(test(shared, &handle));
    });
    match receiver.recv_timeout(limit) {
        Ok(result) => result.map_err(LoadError::SelfTest)?,
        Err(RecvTimeoutError::Timeout) => return Err(LoadError::Hangs(limit)),
        Err(RecvTimeoutError::Disconnected) => {
            return Err(LoadError::SelfTest("its engine panicked".to_owned()));
        }
    }
    // The engine's thread ends soon after by itself; then the pipeline has no more owners than before.
    while Arc::strong_count(pipeline) > owners {
        if begun.elapsed() > limit {
            return Err(LoadError::Hangs(limit));
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn test(pipeline: Arc<Mutex<dyn Pipeline>>, speculation: &Speculation) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("there is no runtime: {error}"))?;
    runtime.block_on(request(pipeline, speculation))
}

async fn request(pipeline: Arc<Mutex<dyn Pipeline>>, speculation: &Speculation) -> Result<(), String> {
    let vocabulary = speculation.vocabulary().map_err(|error| error.to_string())?;
    let method = DefaultSchedulerMethod::Fixed(std::num::NonZeroUsize::MIN);
    let engine = MistralRsBuilder::new(pipeline, SchedulerConfig::DefaultScheduler { method }, false, None)
        .with_no_prefix_cache(true)
        .build()
        .await;
    let (sender, mut receiver) = channel(TOKENS);
    let prompt: Vec<TokenId> = vocabulary.text_tokens().map(|(token, _)| token).take(TOKENS).collect();
    let messages = RequestMessage::CompletionTokens(prompt.into_iter().map(TokenId::raw).collect());
    let params = SamplingParams { max_len: Some(TOKENS), ..SamplingParams::deterministic() };
    let mut request = NormalRequest::new_simple(messages, params, sender, 0, None, None);
    let watch = speculation
        .attach(&mut request, SpeculativeRequest::unconstrained())
        .await
        .map_err(|error| error.to_string())?;
    let requests = engine.get_sender(None).map_err(|error| error.to_string())?;
    requests.send(Request::Normal(Box::new(request))).await.map_err(|error| error.to_string())?;
    match receiver.recv().await {
        Some(Response::CompletionDone(_)) => {}
        Some(Response::InternalError(error) | Response::ValidationError(error)) => {
            return Err(error.to_string());
        }
        Some(Response::CompletionModelError(error, _)) => return Err(error),
        Some(_) => return Err("it gives an answer of another kind".to_owned()),
        None => return Err("its engine has died".to_owned()),
    }
    match (watch.error(), watch.stats().passes) {
        (Some(error), _) => Err(error.to_string()),
        (None, 0) => Err("it does not ask the processor".to_owned()),
        (None, _) => Ok(()),
    }
}
