//! The two addresses that write text.

use std::{
    collections::VecDeque,
    convert::Infallible,
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
use futures_core::Stream;
use serde_json::{Map, Value};

use super::{
    super::{
        access::caller::Caller,
        answers::{
            form::{Form, Spent, with_said},
            told,
            tool_calls::{News, ToolCall},
        },
        asked::body,
        endpoint::Endpoint,
        problem::Problem,
        server::Server,
        writing::{self, Piece, Pieces, chances::Chance},
    },
    order::order,
};

/// Time between signs of life in a stream without tokens.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Answers a request.
pub(crate) async fn answer(server: Arc<Server>, endpoint: Endpoint, request: Request) -> Response {
    server.metrics.begun();
    let mut receipt =
        Receipt { server: Arc::clone(&server), endpoint, begun: Instant::now(), first: None, status: 499 };
    let begun = match begin(&server, endpoint, request).await {
        Ok(begun) => begun,
        Err(problem) => return receipt.refuse(problem),
    };
    server.metrics.first_token_times.add(receipt.begun.elapsed());
    receipt.first = Some(Instant::now()).filter(|_| begun.choices == 1);
    if begun.stream {
        let events = Events::new(begun, receipt);
        return Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
    }
    match collect(begun).await {
        Ok((whole, tokens)) => {
            receipt.written(tokens);
            receipt.status = 200;
            Json(whole).into_response()
        }
        Err(problem) => receipt.refuse(problem),
    }
}

/// Counts an answer when it has ended. If its client went away before that it counts as 499, nginx's status.
struct Receipt {
    server: Arc<Server>,
    endpoint: Endpoint,
    begun: Instant,
    /// Arrival of the first piece, for answers of one text.
    first: Option<Instant>,
    status: u16,
}

impl Receipt {
    /// Counts the mean time of a token after the first, of a text that has ended after `tokens`.
    fn written(&self, tokens: usize) {
        let after_first = tokens.checked_sub(1).and_then(|more| u32::try_from(more).ok());
        if let (Some(first), Some(more @ 1..)) = (self.first, after_first) {
            self.server.metrics.token_times.add(first.elapsed() / more);
        }
    }

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
    /// Are log-probabilities of the tokens part of the answer?
    logprobs: bool,
}

/// Begins the texts and waits for the first piece, since only until then an error can have a status of its
/// own.
async fn begin(server: &Arc<Server>, endpoint: Endpoint, request: Request) -> Result<Begun, Problem> {
    let caller = Caller::of(request.extensions());
    let (limits, spelling) = (&server.limits, server.model.spelling);
    let asked = body::read(request, endpoint, limits, &server.bodies, &server.schemas, spelling).await?;
    let (stream, include_usage) = (asked.stream, asked.include_usage);
    let logprobs = asked.drawing.options.logprobs.is_some();
    let report = told::report(server, &asked, &caller).await?;
    let order = order(server, asked, &caller).await?;
    let choices = order.texts();
    let told = told::of_grammar(order.grammar.as_ref(), report);
    let mut pieces = writing::begin(&server.text_maker(), order);
    let form = Form::new(endpoint, &server.model.name, told);
    match pieces.recv().await {
        Some((_, Piece::Failed(problem))) => Err(problem),
        Some(first) => Ok(Begun { form, first, pieces, choices, stream, include_usage, logprobs }),
        None => Err(Problem::engine("no text came")),
    }
}

/// One text of an answer that is sent as a whole.
#[derive(Default)]
struct Text {
    text: String,
    reasoning: String,
    calls: Vec<ToolCall>,
    chances: Vec<Chance>,
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
    fn end(&mut self, form: &Form, logprobs: bool, finish: &str) -> Value {
        let chances = logprobs.then_some(self.chances.as_slice());
        let mut choice = form.choice(std::mem::take(&mut self.text), chances, finish);
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

/// Waits for all texts, and gives the answer with its number of tokens.
async fn collect(begun: Begun) -> Result<(Value, usize), Problem> {
    let Begun { form, first, mut pieces, choices, logprobs, .. } = begun;
    let mut texts: Vec<Text> = (0..choices).map(|_| Text::default()).collect();
    let mut spent = Spent::default();
    let mut open = choices;
    let mut next = Some(first);
    while let Some((index, piece)) = next {
        let text = &mut texts[index];
        match piece {
            Piece::Text(more, chances) => {
                text.text += &more;
                text.chances.extend(chances);
            }
            Piece::News(news) => text.add(news),
            Piece::End(finish, more, said) => {
                text.choice = Some(with_said(text.end(&form, logprobs, finish), said));
                spent = spent.and(more);
                open -= 1;
            }
            Piece::Failed(problem) => return Err(problem),
        }
        if open == 0 {
            let choices = texts.into_iter().filter_map(|text| text.choice).collect();
            return Ok((form.whole(choices, spent), spent.completion));
        }
        next = pieces.recv().await;
    }
    Err(Problem::engine("a text did not end"))
}

/// An answer as a stream of events.
struct Events {
    form: Form,
    /// Fields that the next event carries beside its piece.
    told: Map<String, Value>,
    pieces: Pieces,
    ready: VecDeque<Event>,
    /// Tells by text whether something of it was sent.
    begun: Vec<bool>,
    /// Texts that have not ended.
    open: usize,
    spent: Spent,
    include_usage: bool,
    logprobs: bool,
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
            logprobs: begun.logprobs,
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
            Piece::Text(text, chances) => {
                let chances = self.logprobs.then_some(chances.as_slice());
                let choice = self.form.piece(&text, chances, first, None);
                self.say(self.form.chunk(index, choice));
            }
            Piece::News(news) => {
                let choice = self.form.delta(news.delta(), first);
                self.say(self.form.chunk(index, choice));
            }
            Piece::End(finish, spent, said) => {
                let choice = with_said(self.form.piece("", None, first, Some(finish)), said);
                self.say(self.form.chunk(index, choice));
                self.spent = self.spent.and(spent);
                self.open -= 1;
                if self.open == 0 {
                    if self.include_usage {
                        self.say(self.form.usage_chunk(self.spent));
                    }
                    self.receipt.written(self.spent.completion);
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
