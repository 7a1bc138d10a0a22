//! The two addresses that write text. The engine's order is made of what a request asks for, its grammar
//! compiled and its prompts as tokens, and the answer tells of its grammar beside its texts, where that says
//! anything.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::{collections::VecDeque, convert::Infallible, pin::Pin, sync::Arc, time::Duration, time::Instant};

use axum::response::{IntoResponse, Response, Sse, sse::Event, sse::KeepAlive};
use axum::{Json, extract::Request};
use domino::decode::DecodeOptions;
use domino::grammar::{Reasoning, Thought};
use domino::{Cancel, TokenId, Vocabulary};
use futures_core::Stream;
use serde_json::{Map, Value};

use super::super::answers::blocks::{Blocks, NamedEvent};
use super::super::answers::{Chance, Form, News, Spent, ToolCall, with_said};
use super::super::asked::{
    self, Asked, CapturesAsked, fields::Endpoint, grammar::GrammarAsked, tools::ToolsAsked,
};
use super::super::engines::{Client, kept};
use super::super::writing::{
    self, GrammarOrder, Order, Piece, Pieces, PromptOrder, captured::Captured, captured::GrammarFinder,
};
use super::super::{
    access::Caller, grammars::Prepared, problem::Problem, prompts::PromptAsked, server::Server,
};
use crate::grammar::warned::{self, Reports};
use crate::grammar::{compiler, notation::Notation, notation::relaxed_as_json};
use crate::grammar::{compiler::Reach, thinking::Thinking, thinking::tail};

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
        problem.answer(self.endpoint)
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
    /// The answer in the making, where it is one of blocks.
    blocks: Option<Blocks>,
    first: (usize, Piece),
    pieces: Pieces,
    choices: usize,
    stream: bool,
    include_usage: bool,
    include_passes: bool,
    /// Are log-probabilities of the tokens part of the answer?
    logprobs: bool,
}

/// Begins the texts and waits for the first piece, since only until then an error can have a status of its
/// own.
async fn begin(server: &Arc<Server>, endpoint: Endpoint, request: Request) -> Result<Begun, Problem> {
    let caller = Caller::of(request.extensions());
    let read = |body: &[u8]| server.read(body, endpoint);
    let mut asked = asked::read(request, &server.limits, &server.bodies, read).await?;
    let shape = std::mem::take(&mut asked.shape);
    let (stream, (include_usage, include_passes)) = (asked.stream, asked.include);
    let logprobs = asked.drawing.options.logprobs.is_some();
    let report = schema_report(server, &asked, &caller).await?;
    let order = order(server, asked, &caller).await;
    let order = order.map_err(|problem| problem.renamed(endpoint.words()))?;
    let choices = order.texts();
    let told = told_of_grammar(order.grammar.as_ref(), report);
    let prompt = order.prompts.first().map_or(0, |prompt| prompt.tokens.len());
    let mut pieces = writing::begin(&server.text_maker(), order);
    let form = Form::new(endpoint, &server.model.name, told);
    let of_blocks = matches!(endpoint, Endpoint::Responses | Endpoint::Messages);
    let blocks = of_blocks.then(|| Blocks::new(form.clone(), shape, prompt));
    match pieces.recv().await {
        Some((_, Piece::Failed(problem))) => Err(problem),
        Some(first) => Ok(Begun {
            form,
            blocks,
            first,
            pieces,
            choices,
            stream,
            include_usage,
            include_passes,
            logprobs,
        }),
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
    let Begun { form, blocks, first, mut pieces, choices, logprobs, .. } = begun;
    if let Some(blocks) = blocks {
        return collect_blocks(blocks, first.1, pieces).await;
    }
    let mut texts: Vec<Text> = (0..choices).map(|_| Text::default()).collect();
    let mut spent = Spent::default();
    let mut open = choices;
    let mut next = Some(first);
    while let Some((index, piece)) = next {
        let text = &mut texts[index];
        match piece {
            Piece::Text(more, chances, _) => {
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

/// Waits for the end of an answer of blocks.
async fn collect_blocks(
    mut blocks: Blocks,
    first: Piece,
    mut pieces: Pieces,
) -> Result<(Value, usize), Problem> {
    let mut next = Some(first);
    while let Some(piece) = next {
        let end = match &piece {
            Piece::Failed(problem) => return Err(problem.clone()),
            Piece::End(_, spent, _) => Some(spent.completion),
            _ => None,
        };
        blocks.take(piece);
        if let Some(tokens) = end {
            return Ok((blocks.into_whole(), tokens));
        }
        next = pieces.recv().await.map(|(_, piece)| piece);
    }
    Err(Problem::engine("a text did not end"))
}

/// An answer as a stream of events.
struct Events {
    form: Form,
    blocks: Option<Blocks>,
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
    include_passes: bool,
    logprobs: bool,
    ended: bool,
    receipt: Receipt,
}

impl Events {
    fn new(begun: Begun, receipt: Receipt) -> Self {
        let (form, told) = begun.form.in_parts();
        let mut events = Self {
            form,
            blocks: begun.blocks,
            told,
            pieces: begun.pieces,
            ready: VecDeque::new(),
            begun: vec![false; begun.choices],
            open: begun.choices,
            spent: Spent::default(),
            include_usage: begun.include_usage,
            include_passes: begun.include_passes,
            logprobs: begun.logprobs,
            ended: false,
            receipt,
        };
        let (index, piece) = begun.first;
        let begin = events.blocks.as_mut().map(Blocks::begin);
        events.name(begin.unwrap_or_default());
        events.take(index, piece);
        events
    }

    /// Says events that have names.
    fn name(&mut self, events: Vec<NamedEvent>) {
        let event = |(name, object): NamedEvent| Event::default().event(name).data(object.to_string());
        self.ready.extend(events.into_iter().map(event));
    }

    /// Takes a piece of an answer of blocks.
    fn take_block(&mut self, piece: Piece) {
        let end = match &piece {
            Piece::Failed(problem) => Some((problem.status().as_u16(), None)),
            Piece::End(_, spent, _) => Some((200, Some(spent.completion))),
            _ => None,
        };
        let told = self.blocks.as_mut().map(|blocks| blocks.take(piece));
        self.name(told.unwrap_or_default());
        if let Some((status, tokens)) = end {
            tokens.into_iter().for_each(|tokens| self.receipt.written(tokens));
            (self.receipt.status, self.ended) = (status, true);
        }
    }

    fn take(&mut self, index: usize, piece: Piece) {
        if self.blocks.is_some() {
            return self.take_block(piece);
        }
        let first = !std::mem::replace(&mut self.begun[index], true);
        match piece {
            Piece::Text(text, chances, passes) => {
                let chances = self.logprobs.then_some(chances.as_slice());
                let mut choice = self.form.piece(&text, chances, first, None);
                if self.include_passes {
                    choice["domino"]["passes"] = passes.into();
                }
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
        if self.blocks.is_some() {
            return self.take_block(Piece::Failed(problem.clone()));
        }
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

/// The name that any server's model has beside its own.
pub(super) const DEFAULT_MODEL: &str = "default";

/// Makes the engine's order of a request. The request holds its places until the order is dropped.
pub(super) async fn order(server: &Arc<Server>, asked: Asked, caller: &Caller) -> Result<Order, Problem> {
    static REQUESTS: AtomicU64 = AtomicU64::new(0);
    check_model(server, asked.model.as_deref())?;
    let mut options = asked.drawing.options.clone();
    options.masking = asked.reach.masking.unwrap_or(server.masking);
    if let Some(least) = asked.drawing.least {
        options.bias = options.bias.held_back(server.model.vocabulary.end_of_text(), least);
    }
    let reach = asked.reach.reach(server.reach);
    check_drawing(server, &options, asked.tools.is_some())?;
    let places = Arc::new(server.gate.enter(asked.prompts.len().saturating_mul(asked.choices))?);
    let closed = asked.prompts.iter().any(PromptAsked::closes_thoughts);
    let chat = asked.prompts.iter().any(|prompt| matches!(prompt, PromptAsked::Chat(_)));
    let prompts = prompt_orders(server, caller, asked.prompts, (asked.echo, asked.drawing.most)).await?;
    let order = (asked.grammar.as_ref(), asked.tools.as_ref());
    let thought = thought(server, &asked.thinking, order, &prompts, (chat, closed));
    let grammar = match (asked.grammar, &asked.tools) {
        (Some(grammar), _) => {
            let grammar = GrammarAsked { reach, ..grammar };
            Some(grammar_order(server, caller, (grammar, thought.clone()), asked.captures).await?)
        }
        (None, Some(tools)) => Some(tools_order(server, caller, (tools, reach), thought.clone()).await?),
        (None, None) => None,
    };
    let client = Client(caller.number());
    let shared = if server.share_caches { Client::default() } else { client };
    if let Some(grammar) = &grammar {
        read_counts(server, caller, shared, &grammar.grammar).await;
    }
    // Set for each text.
    options.seed = 0;
    options.prompt_logprobs = asked.echo && options.logprobs.is_some();
    Ok(Order {
        prompts,
        choices: asked.choices,
        options,
        seed: asked.seed.unwrap_or_else(random),
        stops: asked.drawing.stops,
        finish: asked.finish.unwrap_or(server.finish),
        grammar,
        thought,
        client,
        shared,
        request: REQUESTS.fetch_add(1, Ordering::Relaxed),
        places,
    })
}

/// Refuses what the engine cannot draw, and tokens that the model does not have.
fn check_drawing(server: &Server, options: &DecodeOptions, calls: bool) -> Result<(), Problem> {
    server.engine.check(options)?;
    let size = server.model.vocabulary.size();
    if let Some(token) = options.bias.tokens().find(|token| token.index() >= size) {
        let message = format!("`logit_bias`: there is no token {token}; the model has {size}");
        return Err(Problem::invalid("logit_bias", message));
    }
    if calls && options.logprobs.is_some() {
        let message = "log-probabilities of an answer that may call functions are not served";
        return Err(Problem::unsupported("logprobs", message));
    }
    Ok(())
}

/// Tokenises the prompts of a request, whose answers begin with them if it `echoes`, and have `most` tokens.
async fn prompt_orders(
    server: &Server,
    caller: &Caller,
    asked: Vec<PromptAsked>,
    (echoes, most): (bool, Option<usize>),
) -> Result<Vec<PromptOrder>, Problem> {
    let mut prompts = Vec::with_capacity(asked.len());
    for prompt in asked {
        let text = match &prompt {
            PromptAsked::Text(text) if echoes => Some(text.clone()),
            _ => None,
        };
        let tokens = server.prompts.read(server.registry.pool(), caller, prompt).await?;
        // Past its context the model has no room.
        let left = server.model.context.saturating_sub(tokens.len());
        let most = most.map_or(left, |most| most.min(left));
        let echo = echoes.then(|| text.unwrap_or_else(|| text_of(&server.model.vocabulary, &tokens)));
        prompts.push(PromptOrder { tokens, most, echo });
    }
    Ok(prompts)
}

/// Finds the thought before the answers, if one may come. Prompts of a `chat` are in the template, and
/// `closed` says that the model shall not think.
fn thought(
    server: &Server,
    thinking: &Thinking,
    (grammar, tools): (Option<&GrammarAsked>, Option<&ToolsAsked>),
    prompts: &[PromptOrder],
    (chat, closed): (bool, bool),
) -> Option<Thought> {
    let vocabulary = &server.model.vocabulary;
    let first = prompts.first().map_or(&[][..], |prompt| &prompt.tokens);
    let tail = tail(vocabulary, first);
    let (marks, reasoning) = thinking.decide(server.prompts.template(), Some(&tail), chat)?;
    let spelling = tools.map(ToolsAsked::spelling);
    let text = grammar.map_or("", GrammarAsked::text);
    if closed && reasoning == Reasoning::Optional || thinking.is_in(spelling, text, &marks) {
        return None;
    }
    Some(Thought::new(&marks, reasoning, vocabulary.special_tokens().map(|(_, name)| name)))
}

/// Makes the part of an order that is about its grammar, and the parts of that whose texts are listed.
async fn grammar_order(
    server: &Server,
    caller: &Caller,
    (asked, thought): (GrammarAsked, Option<Thought>),
    captures: CapturesAsked,
) -> Result<GrammarOrder, Problem> {
    let grammar = server.registry.get(caller, GrammarAsked { thought, ..asked.clone() }).await?;
    let pool = Arc::clone(server.registry.pool());
    let capturing = match captures {
        CapturesAsked::Off => None,
        CapturesAsked::Marked => grammar.captures.clone(),
        CapturesAsked::Rules(rules) => {
            let (named, schemas) = (server.registry.named().clone(), Arc::clone(&server.schemas));
            let finder = GrammarFinder {
                named,
                schemas,
                pool: Arc::clone(&pool),
                patience: server.limits.compile_timeout,
            };
            Some(finder.capturing(caller, asked, rules).await?)
        }
    };
    let captured = capturing.map(|capturing| Captured { capturing, pool, caller: caller.clone() });
    Ok(GrammarOrder { grammar, calls: None, captured })
}

/// Makes the same of an answer to a prompt that may call functions. A mistake in a schema of a function is
/// told with its place in the list of functions, which is looked for in the caller's turn.
async fn tools_order(
    server: &Server,
    caller: &Caller,
    (tools, reach): (&ToolsAsked, Option<Reach>),
    thought: Option<Thought>,
) -> Result<GrammarOrder, Problem> {
    let (tags, reader) = tools.tags()?;
    match server.registry.get(caller, GrammarAsked { reach, thought, ..tools.grammar(tags) }).await {
        Ok(grammar) => Ok(GrammarOrder { grammar, calls: Some(reader), captured: None }),
        Err(problem) if !problem.status().is_client_error() => Err(problem),
        Err(problem) => {
            let tools = tools.clone();
            let look = move |cancel: &Cancel| tools.mistake(&compiler::limits().cancelled_by(cancel));
            let mistake =
                server.registry.pool().run_within(caller, server.limits.compile_timeout, look).await;
            Err(mistake.ok().flatten().unwrap_or(problem))
        }
    }
}

/// Reads what texts of the grammar have taught before this run, if that is kept and was not read yet.
async fn read_counts(server: &Server, caller: &Caller, shared: Client, grammar: &Prepared) {
    let Some(guesses) = grammar.guesses.clone().filter(|guesses| guesses.are_on_disk(shared)) else { return };
    let name = if server.share_caches { Some("shared".to_owned()) } else { caller.lasting() };
    let Some(name) = name.map(|name| kept::plain(&name)) else { return };
    let grammar = grammar.grammar.clone();
    // Without them the texts are the same.
    let _ = tokio::task::spawn_blocking(move || guesses.read(shared, &name, &grammar)).await;
}

/// The text of a prompt of tokens, without special ones.
pub(super) fn text_of(vocabulary: &Vocabulary, tokens: &[TokenId]) -> String {
    let bytes = tokens.iter().flat_map(|&token| vocabulary.bytes(token).unwrap_or_default());
    String::from_utf8_lossy(&bytes.copied().collect::<Vec<u8>>()).into_owned()
}

/// Refuses the name of another model.
fn check_model(server: &Server, asked: Option<&str>) -> Result<(), Problem> {
    let name = &server.model.name;
    match asked {
        Some(asked) if asked != name && asked != DEFAULT_MODEL => {
            let message =
                format!("there is no model {asked:?}; this server's is {name:?}, or \"{DEFAULT_MODEL}\"");
            Err(Problem::not_found("model_not_found", message).param("model"))
        }
        _ => Ok(()),
    }
}

/// Makes a seed for a request that names none.
fn random() -> u64 {
    RandomState::new().hash_one(Instant::now())
}

/// Makes the fields `relaxed`, `grammar_warnings` and `schema_report`.
fn told_of_grammar(order: Option<&GrammarOrder>, report: Option<Value>) -> Map<String, Value> {
    let mut told = Map::new();
    if let Some(GrammarOrder { grammar, calls, .. }) = order {
        if !grammar.relaxed.is_empty() {
            told.insert("relaxed".to_owned(), relaxed_as_json(&grammar.relaxed).into());
        }
        let warnings = grammar.grammar.grammar_warnings();
        if !warnings.is_empty() {
            let mut list = warned::list(warnings);
            // Those of tools have places in the tags that were made of them, which nobody has seen.
            if calls.is_some() {
                list.as_array_mut().into_iter().flatten().for_each(without_place);
            }
            told.insert("grammar_warnings".to_owned(), list);
        }
    }
    told.extend(report.map(|report| ("schema_report".to_owned(), report)));
    told
}

fn without_place(warning: &mut Value) {
    if let Value::Object(warning) = warning {
        warning.retain(|key, _| key != "line" && key != "column");
    }
}

/// Reports what becomes of the keywords of the schema, or of those of the functions, if the request asks for
/// that and they can be read in the time that a grammar may take. Reads them once more, in the caller's turn.
///
/// # Errors
/// If too much work waits.
async fn schema_report(server: &Server, asked: &Asked, caller: &Caller) -> Result<Option<Value>, Problem> {
    if !asked.schema_report {
        return Ok(None);
    }
    let (grammar, tools) = (asked.grammar.clone(), asked.tools.clone());
    let (schemas, named) = (Arc::clone(&server.schemas), server.registry.named().clone());
    let work = move |cancel: &Cancel| -> Option<Reports> {
        let limits = compiler::limits().cancelled_by(cancel);
        let Some(grammar) = grammar else { return tools?.reports(&limits) };
        let source = named.find(&grammar).ok().filter(|source| source.notation == Notation::JsonSchema)?;
        let report = schemas.report(&source.text, &source.options, &limits).ok()?;
        Some(Reports { list: vec![(None, report)] })
    };
    let made = server.registry.pool().run_within(caller, server.limits.compile_timeout, work).await?;
    Ok(made.map(|reports| Value::Object(reports.fields())))
}
