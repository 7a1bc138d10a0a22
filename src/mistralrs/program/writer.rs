//! Writes texts with mistral.rs, one at a time.
//!
//! They are drawn by processors of ours, by seed and position, and heard by a recorder beside them. The
//! engine's own text has the white space at its beginning cut off and U+2581 replaced, so it is not used.

use std::sync::Arc;

use domino::{
    TokenId, Vocabulary,
    decode::{DecodeOptions, Finish, Sampler},
};
use domino_cli::texts::{Engine, EngineEvent, Problem, Pulse, TextOrder, WrittenToken};
use domino_mistralrs::{FreeLogitsProcessor, GrammarLogitsProcessor, RequestError, RequestWatch};
use mistralrs_core::{
    Constraint, MistralRs, NormalRequest, Request, RequestMessage, Response, SamplingParams,
};
use tokio::sync::{
    Semaphore,
    mpsc::{self, Receiver, UnboundedReceiver, UnboundedSender, unbounded_channel},
};

use super::{drafting::RequestDrafts, recorder::Recorder};

/// A model that mistral.rs runs.
#[derive(Clone)]
pub(super) struct MistralEngine {
    pub(super) state: Arc<MistralRs>,
    pub(super) vocabulary: Vocabulary,
    /// Drafts, if several tokens are verified in a pass.
    pub(super) drafting: RequestDrafts,
    /// Turns of requests.
    pub(super) turns: Arc<Semaphore>,
    pub(super) pulse: Arc<Pulse>,
}

impl Engine for MistralEngine {
    fn begin(&self, text: TextOrder) -> UnboundedReceiver<EngineEvent> {
        let (sender, events) = unbounded_channel();
        let engine = self.clone();
        tokio::spawn(async move { engine.write(text, &sender).await });
        events
    }

    fn check(&self, options: &DecodeOptions) -> Result<(), Problem> {
        if options.logprobs.is_some() {
            let message = "the engine mistralrs tells no log-probabilities; the engine domino does";
            return Err(Problem::unsupported("logprobs", message));
        }
        if !options.bias.is_none() {
            let message = "the engine mistralrs takes no `logit_bias`; the engine domino does";
            return Err(Problem::unsupported("logit_bias", message));
        }
        Ok(())
    }
}

impl MistralEngine {
    /// Writes a text.
    ///
    /// Invariant: the engine's receiver lives until the engine has let go of the request. Dropped earlier,
    /// the receiver of a whole answer panics the engine's thread.
    async fn write(&self, text: TextOrder, events: &UnboundedSender<EngineEvent>) {
        let (taken, tokens) = unbounded_channel();
        let (sender, mut responses) = mpsc::channel(4);
        let mut request = request(&text, sender);
        request.id = self.state.next_request_id();
        let begun = tokio::select! {
            biased;
            () = events.closed() => return,
            begun = async {
                // The semaphore is never closed.
                let turn = self.turns.acquire().await;
                Ok::<_, Problem>((self.constrain(&mut request, &text).await?, turn))
            } => begun,
        };
        let (watch, _turn) = match begun {
            Ok(begun) => begun,
            Err(problem) => return say(events, EngineEvent::Failed(problem)),
        };
        let recorder = Recorder::new(taken, Arc::clone(&self.pulse), self.drafting.is_on());
        request.logits_processors.get_or_insert_default().push(Arc::new(recorder));
        if let Err(problem) = self.send(request).await {
            return say(events, EngineEvent::Failed(problem));
        }
        tokio::select! {
            biased;
            () = events.closed() => {}
            () = self.hear(&text, tokens, &mut responses, &watch, events) => {}
        }
        // Ends the text if it goes on, and waits until the engine has let go of it.
        watch.cancel();
        while responses.recv().await.is_some() {}
    }

    /// Gives a request its processor; with speculation, when it is its turn.
    async fn constrain(
        &self,
        request: &mut NormalRequest,
        text: &TextOrder,
    ) -> Result<RequestWatch, Problem> {
        if let Some(attached) = self.drafting.attach(request, text).await {
            return attached;
        }
        let (sampler, first) = (Sampler::new(text.options.sampling, text.options.seed), text.prompt.len());
        let watch = match text.constraint() {
            Some(constraint) => {
                let processor = GrammarLogitsProcessor::new(constraint).draw_by(sampler, first);
                let processor = processor.masking(text.options.masking);
                let watch = processor.watch();
                request.logits_processors = Some(vec![Arc::new(processor)]);
                watch
            }
            None => {
                let processor = FreeLogitsProcessor::new(sampler, first, &self.vocabulary);
                let watch = processor.watch();
                request.logits_processors = Some(vec![Arc::new(processor)]);
                watch
            }
        };
        Ok(watch)
    }

    async fn send(&self, request: NormalRequest) -> Result<(), Problem> {
        let closed = |error: String| Problem::engine(format!("the engine takes no request: {error}"));
        let sender = self.state.get_sender(None).map_err(|error| closed(error.to_string()))?;
        let sent = sender.send(Request::Normal(Box::new(request))).await;
        sent.map_err(|error| closed(error.to_string()))
    }

    /// Passes the tokens of a text on until its end.
    async fn hear(
        &self,
        text: &TextOrder,
        mut tokens: UnboundedReceiver<u32>,
        responses: &mut Receiver<Response>,
        watch: &RequestWatch,
        events: &UnboundedSender<EngineEvent>,
    ) {
        let mut count = 0;
        let took = || watch.stats();
        loop {
            // Where the engine let go of the request it may have said why.
            let Some(token) = tokens.recv().await else {
                return say(events, EngineEvent::Failed(told(responses.recv().await)));
            };
            if let Some(error) = watch.error() {
                return say(events, EngineEvent::Failed(request_error(&error)));
            }
            let token = TokenId::new(token);
            if self.vocabulary.is_end_of_text(token) {
                let finish = if watch.is_full() { Finish::Length } else { Finish::Stop };
                return say(events, EngineEvent::End(finish, took()));
            }
            count += 1;
            let bytes = match &text.grammar {
                Some(grammar) => grammar.text_of(token),
                None => self.vocabulary.bytes(token).unwrap_or_default(),
            };
            say(
                events,
                EngineEvent::Token(WrittenToken {
                    token,
                    bytes: bytes.to_vec(),
                    logprobs: None,
                    stats: watch.stats(),
                }),
            );
            if count >= text.options.max_new_tokens {
                return say(events, EngineEvent::End(Finish::Length, took()));
            }
        }
    }
}

/// A request for a text.
fn request(text: &TextOrder, sender: mpsc::Sender<Response>) -> NormalRequest {
    let prompt = text.prompt.iter().map(|token| token.raw()).collect();
    // What is left of the engine's own sampling: the row has one token.
    let mut params = SamplingParams {
        temperature: Some(0.0),
        max_len: Some(text.options.max_new_tokens),
        ..SamplingParams::deterministic()
    };
    let [repeat, presence, frequency] = text.options.penalties.amounts();
    let changed = |amount: f64, neutral: f64| (amount != neutral).then_some(amount);
    #[expect(clippy::cast_possible_truncation, reason = "to the nearest of the engine's own type")]
    let single = |amount: f64| amount as f32;
    params.repetition_penalty = changed(repeat, 1.0).map(single);
    params.presence_penalty = changed(presence, 0.0).map(single);
    params.frequency_penalty = changed(frequency, 0.0).map(single);
    let mut request =
        NormalRequest::new_simple(RequestMessage::CompletionTokens(prompt), params, sender, 0, None, None);
    request.constraint = Constraint::None;
    request
}

fn say(events: &UnboundedSender<EngineEvent>, event: EngineEvent) {
    // Whoever does not listen has cancelled.
    let _ = events.send(event);
}

/// Converts the engine's answer in place of a text to an error.
fn told(response: Option<Response>) -> Problem {
    match response {
        Some(Response::ValidationError(error)) => Problem::bad_request("invalid_value", error.to_string()),
        Some(Response::InternalError(error)) => Problem::engine(error.to_string()),
        Some(Response::ModelError(message, _) | Response::CompletionModelError(message, _)) => {
            Problem::engine(message)
        }
        Some(_) => Problem::engine("the engine ended the text without a reason"),
        None => {
            Problem::engine("the engine ended without an answer; it is started again for the next request")
        }
    }
}

/// The problem that a text failed by.
fn request_error(error: &RequestError) -> Problem {
    match error {
        RequestError::Constraint(_) | RequestError::NothingAllowed => {
            Problem::bad_request("grammar_failed", error.to_string()).param("grammar")
        }
        _ => Problem::engine(error.to_string()),
    }
}
