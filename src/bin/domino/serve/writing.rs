//! One text of an answer: a task that asks the engine for it and hears it out.
//!
//! Invariant: the engine's receiver lives until the engine has let go of the request. Dropped earlier, the receiver of a
//! whole answer panics the engine's thread, and of a stream any failed step does.

use std::{future::Future, sync::Arc, time::Instant};

use domino::{
    CompiledGrammar, Vocabulary,
    decode::{Sampler, Sampling},
    grammar::tools::calls,
    mistralrs::{AttachError, GrammarLogitsProcessor, RequestError, RequestWatch, SpeculativeRequest},
};
use mistralrs_core::{Constraint, CustomLogitsProcessor, NormalRequest, Request, RequestMessage, Response};
use mistralrs_server_core::handler_core::send_request;
use serde_json::Value;
use tokio::sync::{
    OwnedSemaphorePermit,
    mpsc::{self, Receiver, UnboundedReceiver, UnboundedSender},
};

use super::{
    answer::{GrammarSpent, Spent},
    gate::{Places, Pulse},
    problem::Problem,
    recorder::{Cancel, Guard, Recorder},
    registry::Prepared,
    server::Server,
    shown::Shown,
    tool_calls::{Growing, News},
};

/// What becomes of a text, piece by piece.
#[derive(Debug)]
pub(crate) enum Piece {
    /// More of the text of a grammar.
    Text(String),
    /// More of an answer that may call functions.
    News(News),
    /// More of another text, as a choice of a chunk.
    Chunk(Value),
    /// All of another text, as a choice.
    Whole(Value),
    /// The end. `None`: the last chunk, or the whole, said why.
    End(Option<&'static str>, Spent),
    Failed(Problem),
}

/// Pieces with the number of their text.
pub(crate) type Pieces = UnboundedReceiver<(usize, Piece)>;

/// Where the pieces of one text go.
#[derive(Debug, Clone)]
pub(crate) struct Out {
    index: usize,
    sender: UnboundedSender<(usize, Piece)>,
}

impl Out {
    fn send(&self, piece: Piece) {
        // A client who has gone is noticed elsewhere.
        let _ = self.sender.send((self.index, piece));
    }
}

/// What the texts of an answer have in common.
pub(crate) struct Order {
    /// For mistral.rs; its response and processors are put in for each text.
    pub(crate) request: NormalRequest,
    /// Tokens of the prompt.
    pub(crate) prompt: Vec<u32>,
    /// Tokens of a text at most.
    pub(crate) most: usize,
    /// `None`: any text.
    pub(crate) grammar: Option<GrammarOrder>,
    /// Held until the engine has let go of all texts.
    pub(crate) _places: Places,
}

/// How to write texts of a grammar.
pub(crate) struct GrammarOrder {
    pub(crate) grammar: Prepared,
    pub(crate) sampling: Sampling,
    pub(crate) seed: u64,
    pub(crate) stops: Vec<String>,
    /// What reads calls of functions, if it may have some.
    pub(crate) calls: Option<calls::Reader>,
}

/// Begins to write `choices` texts.
pub(crate) fn begin(server: &Arc<Server>, order: Order, choices: usize) -> Pieces {
    let (sender, pieces) = mpsc::unbounded_channel();
    let order = Arc::new(order);
    for index in 0..choices {
        let out = Out { index, sender: sender.clone() };
        let (server, order) = (Arc::clone(server), Arc::clone(&order));
        tokio::spawn(async move {
            match &order.grammar {
                Some(grammar) => write_grammar(&server, &order, grammar, &out).await,
                None => write_any(&server, &order, &out).await,
            }
        });
    }
    pieces
}

/// Waits for the engine, but not for ever.
pub(crate) async fn patiently<T>(pulse: &Pulse, work: impl Future<Output = T>) -> Result<T, Problem> {
    let since = Instant::now();
    tokio::pin!(work);
    loop {
        let deadline = pulse.deadline(since);
        if let Ok(done) = tokio::time::timeout_at(deadline.into(), &mut work).await {
            return Ok(done);
        }
        // It may have moved for another request meanwhile.
        if pulse.deadline(since) <= Instant::now() {
            return Err(pulse.stalled());
        }
    }
}

/// Why a text is over.
enum Over {
    /// By this, unless the last chunk, or the whole, said why.
    End(Option<&'static str>),
    Failed(Problem),
    /// The client has gone.
    Gone,
}

async fn write_grammar(server: &Arc<Server>, order: &Order, grammar: &GrammarOrder, out: &Out) {
    let (taken, tokens) = mpsc::unbounded_channel();
    let (sender, responses) = mpsc::channel(4);
    let mut request = order.request.clone();
    request.messages = RequestMessage::CompletionTokens(order.prompt.clone());
    request.is_streaming = false;
    request.sampling_params.stop_toks = None;
    // The prompt has shown them. The engine would end the text where it takes it for a call.
    (request.tools, request.tool_choice) = (None, None);
    let begun = tokio::select! {
        biased;
        () = out.sender.closed() => return server.metrics.cancelled.add(1),
        begun = async {
            let turn = turn(server).await?;
            Ok((constrain(server, &mut request, order, grammar, out.index).await?, turn))
        } => begun,
    };
    let (watch, _turn) = match begun {
        Ok(begun) => begun,
        Err(problem) => return out.send(Piece::Failed(problem)),
    };
    let recorder = Recorder::new(taken, Arc::clone(&server.pulse), server.engine.speculation.is_some());
    beside(&mut request, Arc::new(recorder));
    let mut responses = match ask(server, request, sender, responses).await {
        Ok(responses) => responses,
        Err(problem) => return out.send(Piece::Failed(problem)),
    };
    let mut hearing = Hearing {
        server,
        order,
        grammar: &grammar.grammar.grammar,
        tokens,
        count: 0,
        shown: Shown::new(&grammar.stops),
        growing: grammar.calls.clone().map(Growing::new),
    };
    let over = tokio::select! {
        biased;
        () = out.sender.closed() => Over::Gone,
        over = hearing.hear(&mut responses, &watch, out) => over,
    };
    let stats = watch.stats();
    let spent = Spent {
        prompt: order.prompt.len(),
        completion: hearing.count,
        grammar: Some(GrammarSpent {
            passes: stats.passes,
            drafted: stats.drafted,
            accepted: stats.accepted,
            mask_micros: u64::try_from(stats.mask_time.as_micros()).unwrap_or(u64::MAX),
        }),
    };
    count(server, spent);
    match over {
        Over::End(finish) => out.send(Piece::End(finish, spent)),
        Over::Failed(problem) => out.send(Piece::Failed(problem)),
        Over::Gone => server.metrics.cancelled.add(1),
    }
    hear_out(&watch, &mut responses).await;
}

/// Waits for a text's turn, which it has until the engine has let go of it.
async fn turn(server: &Server) -> Result<OwnedSemaphorePermit, Problem> {
    let turn = patiently(&server.pulse, Arc::clone(&server.turns).acquire_owned()).await?;
    turn.map_err(|_| Problem::unavailable("shutting_down", "the server is ending"))
}

/// Gives a request the processor of its grammar; with speculation, when it is its turn.
async fn constrain(
    server: &Server,
    request: &mut NormalRequest,
    order: &Order,
    asked: &GrammarOrder,
    index: usize,
) -> Result<RequestWatch, Problem> {
    let constraint = asked.grammar.grammar.constraint();
    let seed = asked.seed.wrapping_add(u64::try_from(index).unwrap_or_default());
    let (sampler, first) = (Sampler::new(asked.sampling, seed), order.prompt.len());
    let params = &mut request.sampling_params;
    let Some(speculation) = &server.engine.speculation else {
        let processor = GrammarLogitsProcessor::new(constraint).draw_by(sampler, first);
        let watch = processor.watch();
        request.logits_processors = Some(vec![Arc::new(processor)]);
        // What is left of the engine's own sampling: the row has one token.
        (params.temperature, params.top_k, params.top_p, params.min_p) = (Some(0.0), None, None, None);
        return Ok(watch);
    };
    params.top_n_logprobs = 0;
    let mut what = SpeculativeRequest::new(constraint).draw_by(sampler, first);
    if let Some(guesses) = &asked.grammar.guesses {
        what = what.guesses(guesses);
    }
    patiently(&server.pulse, speculation.attach(request, what)).await?.map_err(|error| attach_error(&error))
}

/// Puts a processor beside those that a request has.
fn beside(request: &mut NormalRequest, processor: Arc<dyn CustomLogitsProcessor>) {
    request.logits_processors.get_or_insert_default().push(processor);
}

/// Takes the tokens of a text of a grammar.
struct Hearing<'a> {
    server: &'a Server,
    order: &'a Order,
    grammar: &'a CompiledGrammar,
    tokens: UnboundedReceiver<u32>,
    count: usize,
    shown: Shown,
    /// What may call functions.
    growing: Option<Growing>,
}

impl Hearing<'_> {
    async fn hear(&mut self, responses: &mut Receiver<Response>, watch: &RequestWatch, out: &Out) -> Over {
        let vocabulary: &Vocabulary = &self.server.engine.vocabulary;
        loop {
            let token = match patiently(&self.server.pulse, self.tokens.recv()).await {
                Ok(Some(token)) => token,
                // The engine let go of the request, and may have said why.
                Ok(None) => return Over::Failed(told(responses.recv().await)),
                Err(problem) => return Over::Failed(problem),
            };
            self.count += 1;
            if let Some(error) = watch.error() {
                return Over::Failed(request_error(&error));
            }
            let token = domino::TokenId::new(token);
            if vocabulary.end_of_text().contains(&token) {
                let rest = self.shown.finish();
                return self.end(rest, if watch.is_full() { "length" } else { "stop" }, out);
            }
            let (mut text, stopped) = self.shown.push(self.grammar.text_of(token));
            if stopped {
                return self.end(text, "stop", out);
            }
            if self.count >= self.order.most {
                text += &self.shown.finish();
                return self.end(text, "length", out);
            }
            self.tell(text, out);
        }
    }

    fn tell(&mut self, text: String, out: &Out) {
        match &mut self.growing {
            Some(growing) => growing.push(&text).into_iter().for_each(|news| out.send(Piece::News(news))),
            None if text.is_empty() => {}
            None => out.send(Piece::Text(text)),
        }
    }

    fn end(&mut self, rest: String, finish: &'static str, out: &Out) -> Over {
        self.tell(rest, out);
        let Some(growing) = &mut self.growing else { return Over::End(Some(finish)) };
        growing.finish().into_iter().for_each(|news| out.send(Piece::News(news)));
        Over::End(Some(if finish == "stop" && growing.calls() { "tool_calls" } else { finish }))
    }
}

/// Ends any text, with speculation or without.
struct AnyText {
    guard: Guard,
    watch: Option<RequestWatch>,
}

impl Cancel for AnyText {
    fn cancel(&self) {
        match &self.watch {
            Some(watch) => watch.cancel(),
            None => self.guard.cancel(),
        }
    }
}

impl AnyText {
    /// Tokens drawn.
    fn tokens(&self) -> usize {
        self.watch.as_ref().map_or_else(|| self.guard.drawn(), |watch| watch.stats().tokens)
    }
}

async fn write_any(server: &Arc<Server>, order: &Order, out: &Out) {
    let end = server.engine.vocabulary.end_of_text().first().map_or(0, |token| token.raw());
    // The engine waits for whoever does not read: nobody is to make it wait.
    let (sender, responses) = mpsc::channel(order.most.saturating_add(16));
    let mut request = order.request.clone();
    let mut text = AnyText { guard: Guard::new(end, Arc::clone(&server.pulse)), watch: None };
    let turn = tokio::select! {
        biased;
        () = out.sender.closed() => return server.metrics.cancelled.add(1),
        turn = turn(server) => turn,
    };
    let _turn = match turn {
        Ok(turn) => turn,
        Err(problem) => return out.send(Piece::Failed(problem)),
    };
    if let Some(speculation) = &server.engine.speculation {
        if !request.return_logprobs {
            request.sampling_params.top_n_logprobs = 0;
        }
        let what = SpeculativeRequest::unconstrained();
        let attached = tokio::select! {
            biased;
            () = out.sender.closed() => return server.metrics.cancelled.add(1),
            attached = patiently(&server.pulse, speculation.attach(&mut request, what)) => attached,
        };
        match attached {
            Ok(Ok(watch)) => text.watch = Some(watch),
            Ok(Err(error)) => return out.send(Piece::Failed(attach_error(&error))),
            Err(problem) => return out.send(Piece::Failed(problem)),
        }
    }
    beside(&mut request, Arc::new(text.guard.clone()));
    let mut responses = match ask(server, request, sender, responses).await {
        Ok(responses) => responses,
        Err(problem) => return out.send(Piece::Failed(problem)),
    };
    let mut spent = Spent { prompt: order.prompt.len(), ..Spent::default() };
    let over = tokio::select! {
        biased;
        () = out.sender.closed() => Over::Gone,
        over = pass_on(server, order, &text, &mut responses, &mut spent, out) => over,
    };
    if spent.completion == 0 {
        spent.completion = text.tokens();
    }
    count(server, spent);
    match over {
        Over::End(finish) => out.send(Piece::End(finish, spent)),
        Over::Failed(problem) => out.send(Piece::Failed(problem)),
        Over::Gone => server.metrics.cancelled.add(1),
    }
    hear_out(&text, &mut responses).await;
}

/// Passes the engine's own text on until its end.
async fn pass_on(
    server: &Server,
    order: &Order,
    text: &AnyText,
    responses: &mut Receiver<Response>,
    spent: &mut Spent,
    out: &Out,
) -> Over {
    loop {
        let response = match patiently(&server.pulse, responses.recv()).await {
            Ok(response) => response,
            Err(problem) => return Over::Failed(problem),
        };
        let (choice, usage, whole) = match response {
            Some(Response::Chunk(mut chunk)) => {
                (chunk.choices.pop().map(serde_json::to_value), chunk.usage, false)
            }
            Some(Response::CompletionChunk(mut chunk)) => {
                (chunk.choices.pop().map(serde_json::to_value), None, false)
            }
            Some(Response::Done(mut done)) => {
                (done.choices.pop().map(serde_json::to_value), Some(done.usage), true)
            }
            Some(Response::CompletionDone(mut done)) => {
                (done.choices.pop().map(serde_json::to_value), Some(done.usage), true)
            }
            // A text that is cut within a character has no last chunk.
            None if order.request.is_streaming && text.tokens() >= order.most => {
                return Over::End(Some("length"));
            }
            other => return Over::Failed(told(other)),
        };
        if let Some(usage) = usage {
            spent.completion = usage.completion_tokens;
        }
        let Some(Ok(choice)) = choice else {
            return Over::Failed(Problem::engine("the engine gave an answer without a text"));
        };
        let ended = whole || choice.get("finish_reason").is_some_and(|reason| !reason.is_null());
        out.send(if whole { Piece::Whole(choice) } else { Piece::Chunk(choice) });
        if ended {
            return Over::End(None);
        }
    }
}

/// Sends a request for one text, and gives back where its answer comes.
async fn ask(
    server: &Server,
    mut request: NormalRequest,
    sender: mpsc::Sender<Response>,
    responses: Receiver<Response>,
) -> Result<Receiver<Response>, Problem> {
    request.id = server.engine.state.next_request_id();
    request.response = sender;
    request.constraint = Constraint::None;
    request.sampling_params.n_choices = 1;
    let sent = send_request(&server.engine.state, Request::Normal(Box::new(request)));
    match patiently(&server.pulse, sent).await? {
        Ok(()) => Ok(responses),
        Err(error) => Err(Problem::engine(format!("the engine takes no request: {error:#}"))),
    }
}

/// Ends a text if it goes on, and waits until the engine has let go of it.
async fn hear_out(text: &impl Cancel, responses: &mut Receiver<Response>) {
    text.cancel();
    while responses.recv().await.is_some() {}
}

/// What the engine says instead of a text.
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

/// Why a request cannot be had with speculation.
fn attach_error(error: &AttachError) -> Problem {
    match error {
        AttachError::Logprobs => Problem::unsupported("logprobs", error.to_string()),
        AttachError::Sampling(_) => Problem::bad_request("invalid_value", error.to_string()),
        _ => Problem::engine(error.to_string()),
    }
}

/// What a grammar's text failed by.
fn request_error(error: &RequestError) -> Problem {
    match error {
        RequestError::Constraint(_) | RequestError::NothingAllowed => {
            Problem::bad_request("grammar_failed", error.to_string()).param("grammar")
        }
        _ => Problem::engine(error.to_string()),
    }
}

fn count(server: &Server, spent: Spent) {
    let metrics = &server.metrics;
    metrics.prompt_tokens.add(spent.prompt);
    metrics.completion_tokens.add(spent.completion);
    if let Some(spent) = spent.grammar {
        metrics.passes.add(spent.passes);
        metrics.drafted.add(spent.drafted);
        metrics.accepted.add(spent.accepted);
    }
}
