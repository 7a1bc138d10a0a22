//! The two addresses that write text.

use std::{
    collections::VecDeque,
    convert::Infallible,
    hash::{BuildHasher, RandomState},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use axum::{
    Json,
    extract::Request,
    response::{
        IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use domino::decode::{Sampling, SamplingError};
use futures_core::Stream;
use mistralrs_core::{
    NormalRequest, Request as EngineRequest, RequestMessage, SamplingParams, StopTokens, TokenizationRequest,
};
use mistralrs_server_core::{chat_completion, completions, handler_core::send_request, openai};
use rayon::iter::Either;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::{
    answer::{Form, Spent},
    asked_grammar::GrammarAsked,
    asked_tools::reasoning,
    body,
    problem::Problem,
    request::{Asked, Endpoint},
    server::Server,
    told,
    tool_calls::{News, ToolCall},
    writing::{self, GrammarOrder, Order, Piece, Pieces, patiently},
};

/// Between signs of life in a stream without tokens.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Texts that end an answer, at most.
const MOST_STOPS: usize = 16;

/// Answers a request.
pub(crate) async fn answer(server: Arc<Server>, endpoint: Endpoint, request: Request) -> Response {
    let mut receipt = Receipt { server: Arc::clone(&server), endpoint, begun: Instant::now(), status: 499 };
    let begun = match begin(&server, endpoint, request).await {
        Ok(begun) => begun,
        Err(problem) => return receipt.refuse(problem),
    };
    server.metrics.first_token_times.add(receipt.begun.elapsed());
    if begun.stream {
        let events = Events::new(begun, receipt);
        return Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
    }
    match collect(begun).await {
        Ok(whole) => {
            receipt.status = 200;
            Json(whole).into_response()
        }
        Err(problem) => receipt.refuse(problem),
    }
}

/// Counts an answer when it has ended; as 499, as others do, if its client went away before that.
struct Receipt {
    server: Arc<Server>,
    endpoint: Endpoint,
    begun: Instant,
    status: u16,
}

impl Receipt {
    fn refuse(&mut self, problem: Problem) -> Response {
        self.status = problem.status().as_u16();
        problem.into_response()
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        self.server.metrics.answered(self.endpoint, self.status, self.begun.elapsed());
    }
}

/// An answer whose first piece is there.
struct Begun {
    form: Form,
    first: (usize, Piece),
    pieces: Pieces,
    choices: usize,
    stream: bool,
    include_usage: bool,
}

/// Has the texts begun, and waits for the first piece: until then an error has a status of its own.
async fn begin(server: &Arc<Server>, endpoint: Endpoint, request: Request) -> Result<Begun, Problem> {
    let asked =
        body::read(request, endpoint, &server.limits, &server.schemas, server.engine.spelling).await?;
    let (stream, include_usage, choices) = (asked.stream, asked.include_usage, asked.choices);
    let report = told::report(server, &asked).await;
    let order = order(server, endpoint, asked).await?;
    let told = told::of_grammar(order.grammar.as_ref(), report);
    let mut pieces = writing::begin(server, order, choices);
    let form = Form::new(endpoint, &server.engine.name, told);
    match pieces.recv().await {
        Some((_, Piece::Failed(problem))) => Err(problem),
        Some(first) => Ok(Begun { form, first, pieces, choices, stream, include_usage }),
        None => Err(Problem::engine("no text came")),
    }
}

/// What the engine is to do for a request. The request has its places from here on.
pub(crate) async fn order(server: &Arc<Server>, endpoint: Endpoint, asked: Asked) -> Result<Order, Problem> {
    let places = server.gate.enter(asked.choices)?;
    let constrained = asked.grammar.is_some() || asked.tools.is_some();
    let mut grammar = match asked.grammar {
        Some(grammar) => Some(server.registry.get(grammar).await?),
        None => None,
    };
    let mut request = normal(server, endpoint, asked.rest, constrained).await?;
    request.is_streaming = asked.stream;
    let stops = stops(&request.sampling_params)?;
    let prompt = tokenize(server, &request).await?;
    let mut calls = None;
    if let Some(tools) = &asked.tools {
        let engine = &server.engine;
        let (tags, reader) = tools.tags(reasoning(&engine.vocabulary, &prompt, engine.thinks))?;
        let found = server.registry.get(GrammarAsked::Tools(tags)).await;
        grammar = Some(match found {
            Ok(found) => found,
            Err(problem) => {
                let tools = tools.clone();
                let mistake = tokio::task::spawn_blocking(move || tools.mistake()).await;
                return Err(mistake.ok().flatten().unwrap_or(problem));
            }
        });
        calls = Some(reader);
    }
    let context = server.engine.context;
    let left = context.saturating_sub(prompt.len());
    if left == 0 || prompt.is_empty() {
        let message = format!(
            "the prompt has {} tokens; with a text after it the model takes from 1 to {}",
            prompt.len(),
            context.saturating_sub(1)
        );
        return Err(Problem::bad_request("context_length_exceeded", message));
    }
    // Past its context the model fails, and with it all texts of the same step.
    let most = request.sampling_params.max_len.unwrap_or(usize::MAX).min(left);
    request.sampling_params.max_len = Some(most);
    let grammar = match grammar {
        Some(grammar) => Some(GrammarOrder {
            grammar,
            sampling: sampling(&request.sampling_params)?,
            seed: asked.seed.unwrap_or_else(random),
            stops,
            calls,
        }),
        None => None,
    };
    Ok(Order { request, prompt, most, grammar, _places: places })
}

/// The request as mistral.rs's own server would make it.
async fn normal(
    server: &Server,
    endpoint: Endpoint,
    rest: Value,
    constrained: bool,
) -> Result<NormalRequest, Problem> {
    let state = Arc::clone(&server.engine.state);
    let wrong = |error: serde_json::Error| Problem::bad_request("invalid_value", error.to_string());
    // Put in for each text.
    let (sender, _) = mpsc::channel(1);
    let (parsed, model, biased, logprobs) = match endpoint {
        Endpoint::Chat => {
            let request: openai::ChatCompletionRequest = serde_json::from_value(rest).map_err(wrong)?;
            let (model, biased) = (request.model.clone(), is_some(request.logit_bias.as_ref()));
            let logprobs = request.logprobs || request.top_logprobs.is_some();
            (chat_completion::parse_request(request, state, sender).await, model, biased, logprobs)
        }
        Endpoint::Completions => {
            let request: openai::CompletionRequest = serde_json::from_value(rest).map_err(wrong)?;
            let (model, biased) = (request.model.clone(), is_some(request.logit_bias.as_ref()));
            let logprobs = request.logprobs.is_some();
            (completions::parse_request(request, state, sender), model, biased, logprobs)
        }
    };
    if biased {
        return Err(Problem::unsupported("logit_bias", "mistral.rs does not apply `logit_bias`"));
    }
    if constrained && logprobs {
        let message = "log-probabilities of texts with a grammar are not served";
        return Err(Problem::unsupported("logprobs", message));
    }
    match parsed {
        Ok((EngineRequest::Normal(request), _)) => Ok(*request),
        Ok(_) => Err(Problem::engine("mistral.rs made another request of it")),
        Err(_) if !server.engine.state.model_exists(&model).unwrap_or(true) && model != "default" => {
            let message = format!(
                "there is no model {model:?}; this server's is {:?}, or \"default\"",
                server.engine.name
            );
            Err(Problem::not_found("model_not_found", message).param("model"))
        }
        Err(error) => Err(Problem::bad_request("invalid_value", format!("{error:#}"))),
    }
}

fn is_some(bias: Option<&std::collections::HashMap<u32, f32>>) -> bool {
    bias.is_some_and(|bias| !bias.is_empty())
}

/// The tokens of the prompt, made as mistral.rs makes them.
async fn tokenize(server: &Arc<Server>, request: &NormalRequest) -> Result<Vec<u32>, Problem> {
    let (text, enable_thinking, reasoning_effort) = match &request.messages {
        RequestMessage::Chat { messages, enable_thinking, reasoning_effort } => {
            (Either::Left(messages.clone()), *enable_thinking, *reasoning_effort)
        }
        RequestMessage::Completion { text, .. } => (Either::Right(text.clone()), None, None),
        _ => return Err(Problem::unsupported("messages", "only text is served")),
    };
    let (response, mut tokens) = mpsc::channel(1);
    let tools = request.tools.clone();
    let request = TokenizationRequest {
        text,
        tools,
        add_generation_prompt: true,
        add_special_tokens: true,
        enable_thinking,
        reasoning_effort,
        response,
    };
    let state = Arc::clone(&server.engine.state);
    // A task of its own: the engine's thread panics if nobody is there to hear the answer.
    let asked = tokio::spawn(async move {
        send_request(&state, EngineRequest::Tokenize(request)).await?;
        tokens.recv().await.unwrap_or_else(|| Err(anyhow::anyhow!("the engine ended")))
    });
    match patiently(&server.pulse, asked).await? {
        Ok(Ok(tokens)) => Ok(tokens),
        Ok(Err(error)) => {
            Err(Problem::bad_request("invalid_value", format!("the prompt cannot be read: {error:#}")))
        }
        Err(_) => Err(Problem::engine("reading the prompt failed")),
    }
}

/// How texts of a grammar are drawn.
fn sampling(asked: &SamplingParams) -> Result<Sampling, Problem> {
    let wrong = |error: SamplingError| Problem::bad_request("invalid_value", error.to_string());
    let mut sampling = Sampling::with_temperature(asked.temperature.unwrap_or(1.0)).map_err(wrong)?;
    if let Some(k) = asked.top_k {
        sampling = sampling.top_k(k).map_err(wrong)?;
    }
    if let Some(p) = asked.top_p {
        sampling = sampling.top_p(p).map_err(wrong)?;
    }
    if let Some(p) = asked.min_p {
        sampling = sampling.min_p(p).map_err(wrong)?;
    }
    Ok(sampling)
}

/// The strings that end a text.
fn stops(asked: &SamplingParams) -> Result<Vec<String>, Problem> {
    let stops = match &asked.stop_toks {
        Some(StopTokens::Seqs(stops)) => stops.clone(),
        _ => Vec::new(),
    };
    if stops.len() > MOST_STOPS || stops.iter().any(String::is_empty) {
        let message = format!("`stop` takes up to {MOST_STOPS} strings, none of them empty");
        return Err(Problem::invalid("stop", message));
    }
    Ok(stops)
}

/// A seed for who asks for none.
fn random() -> u64 {
    RandomState::new().hash_one(Instant::now())
}

/// What a whole answer is made of.
#[derive(Default)]
struct Text {
    text: String,
    reasoning: String,
    calls: Vec<ToolCall>,
    choice: Option<Value>,
}

impl Text {
    fn add(&mut self, news: News) {
        match news {
            News::Content(text) => self.text += &text,
            News::Reasoning(text) => self.reasoning += &text,
            News::Begin(_, call) => self.calls.push(call),
            News::Arguments(index, text) => {
                self.calls.iter_mut().skip(index).take(1).for_each(|call| call.extend(&text));
            }
        }
    }

    /// The message of a chat, or the text.
    fn end(&mut self, form: &Form, finish: &str) -> Value {
        let mut choice = form.choice(std::mem::take(&mut self.text), finish);
        if !self.calls.is_empty() {
            let message = &mut choice["message"];
            if message["content"] == "" {
                message["content"] = Value::Null;
            }
            message["tool_calls"] = self.calls.iter().map(ToolCall::to_json).collect();
        }
        if !self.reasoning.is_empty() {
            choice["message"]["reasoning_content"] = std::mem::take(&mut self.reasoning).into();
        }
        choice
    }
}

/// Waits for all texts.
async fn collect(begun: Begun) -> Result<Value, Problem> {
    let Begun { form, first, mut pieces, choices, .. } = begun;
    let mut texts: Vec<Text> = (0..choices).map(|_| Text::default()).collect();
    let mut spent = Spent::default();
    let mut open = choices;
    let mut next = Some(first);
    while let Some((index, piece)) = next {
        let text = &mut texts[index];
        match piece {
            Piece::Text(more) => text.text += &more,
            Piece::News(news) => text.add(news),
            Piece::Whole(choice) | Piece::Chunk(choice) => text.choice = Some(choice),
            Piece::End(finish, more) => {
                if let Some(finish) = finish {
                    text.choice = Some(text.end(&form, finish));
                }
                spent = spent.and(more);
                open -= 1;
            }
            Piece::Failed(problem) => return Err(problem),
        }
        if open == 0 {
            let choices = texts.into_iter().filter_map(|text| text.choice).collect();
            return Ok(form.whole(choices, spent));
        }
        next = pieces.recv().await;
    }
    Err(Problem::engine("a text did not end"))
}

/// An answer as a stream of events.
struct Events {
    form: Form,
    /// What the next event says beside its piece.
    told: Map<String, Value>,
    pieces: Pieces,
    ready: VecDeque<Event>,
    /// For each text whether something of it was sent.
    begun: Vec<bool>,
    /// Texts that have not ended.
    open: usize,
    spent: Spent,
    include_usage: bool,
    ended: bool,
    receipt: Receipt,
}

impl Events {
    fn new(begun: Begun, receipt: Receipt) -> Self {
        let (form, told) = begun.form.in_parts();
        let mut events = Self {
            form,
            told,
            pieces: begun.pieces,
            ready: VecDeque::new(),
            begun: vec![false; begun.choices],
            open: begun.choices,
            spent: Spent::default(),
            include_usage: begun.include_usage,
            ended: false,
            receipt,
        };
        let (index, piece) = begun.first;
        events.take(index, piece);
        events
    }

    fn take(&mut self, index: usize, piece: Piece) {
        let first = !std::mem::replace(&mut self.begun[index], true);
        match piece {
            Piece::Text(text) => {
                let choice = self.form.piece(&text, first, None);
                self.say(self.form.chunk(index, choice));
            }
            Piece::News(news) => {
                let choice = self.form.delta(news.delta(), first);
                self.say(self.form.chunk(index, choice));
            }
            Piece::Chunk(choice) | Piece::Whole(choice) => self.say(self.form.chunk(index, choice)),
            Piece::End(finish, spent) => {
                if finish.is_some() {
                    let choice = self.form.piece("", first, finish);
                    self.say(self.form.chunk(index, choice));
                }
                self.spent = self.spent.and(spent);
                self.open -= 1;
                if self.open == 0 {
                    if self.include_usage {
                        self.say(self.form.usage_chunk(self.spent));
                    }
                    self.end(200);
                }
            }
            Piece::Failed(problem) => self.fail(&problem),
        }
    }

    fn fail(&mut self, problem: &Problem) {
        self.say(problem.to_json());
        self.end(problem.status().as_u16());
    }

    fn say(&mut self, mut object: Value) {
        if let Value::Object(fields) = &mut object {
            fields.extend(std::mem::take(&mut self.told));
        }
        self.ready.push_back(Event::default().data(object.to_string()));
    }

    fn end(&mut self, status: u16) {
        self.ready.push_back(Event::default().data("[DONE]"));
        self.receipt.status = status;
        self.ended = true;
    }
}

impl Stream for Events {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(event)));
            }
            if self.ended {
                return Poll::Ready(None);
            }
            match self.pieces.poll_recv(context) {
                Poll::Ready(Some((index, piece))) => self.take(index, piece),
                Poll::Ready(None) => self.fail(&Problem::engine("a text did not end")),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}
