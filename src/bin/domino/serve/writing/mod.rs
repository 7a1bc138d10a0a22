//! Writes the texts of an answer: one task for each orders it from the engine and follows its events.
//!
//! Texts may be closed before their limit cuts them ([`Closing`]): by the shortest completion, whose tokens
//! count towards the limit. Invariant: the tokens sent and the completion at hand are together no more than
//! the limit. So a token is sent only if the text can be closed after it as well.

pub(crate) mod captured;

use std::{future::Future, sync::Arc, time::Duration, time::Instant};

use domino::decode::{DecodeOptions, DecodeStats, Finish, Logprobs, StopStrings};
use domino::{CompiledGrammar, Constraint, TokenId, Vocabulary, grammar::Thought, grammar::tools::calls};
use serde_json::{Map, Value};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use self::captured::Captured;
use super::answers::{Chance, GrammarSpent, Growing, News, Shown, Spelt, Spent, blocks::STOP, characters};
use super::engines::{Client, Engine, EngineEvent, TextOrder, WrittenToken};
use super::{bounds::Places, bounds::Pulse, grammars::Prepared, observe::metrics::Metrics, problem::Problem};

/// A piece of a text, to be sent to the client.
#[derive(Debug)]
pub(crate) enum Piece {
    /// More of the text, its tokens if they were asked for, and the passes of the model so far.
    Text(String, Vec<Chance>, usize),
    /// More of an answer that may call functions.
    News(News),
    /// End of the text, with the reason, the work it took, and what is said of the text besides.
    End(&'static str, Spent, Map<String, Value>),
    Failed(Problem),
}

/// Pieces with the number of their text.
pub(crate) type Pieces = UnboundedReceiver<(usize, Piece)>;

/// Destination of the pieces of one text.
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

/// A prompt, and the most tokens of a text after it.
#[derive(Debug, Clone)]
pub(crate) struct PromptOrder {
    pub(crate) tokens: Arc<[TokenId]>,
    pub(crate) most: usize,
    /// Text that the answer begins with, if it begins with its prompt.
    pub(crate) echo: Option<String>,
}

/// Everything that the texts of an answer have in common.
pub(crate) struct Order {
    pub(crate) prompts: Vec<PromptOrder>,
    /// Texts of each prompt.
    pub(crate) choices: usize,
    pub(crate) options: DecodeOptions,
    /// Seed of the first text of a prompt.
    pub(crate) seed: u64,
    pub(crate) stops: StopStrings,
    /// Are texts of a grammar closed that would be cut by their length?
    pub(crate) finish: bool,
    /// The grammar of the texts; `None`: any text.
    pub(crate) grammar: Option<GrammarOrder>,
    /// The thought before the answers.
    pub(crate) thought: Option<Thought>,
    pub(crate) client: Client,
    /// The client with whom caches are shared.
    pub(crate) shared: Client,
    /// Number of the request.
    pub(crate) request: u64,
    /// Held until the engine has let go of all texts.
    pub(crate) places: Arc<Places>,
}

/// A grammar that texts are of.
pub(crate) struct GrammarOrder {
    pub(crate) grammar: Prepared,
    /// Reader of calls of functions, if there may be some.
    pub(crate) calls: Option<calls::Reader>,
    /// `None`: no parts of the texts are listed.
    pub(crate) captured: Option<Captured>,
}

impl Order {
    /// Texts in all.
    pub(crate) fn texts(&self) -> usize {
        self.prompts.len() * self.choices
    }

    /// One of the texts, for the engine.
    fn text(&self, prompt: &PromptOrder, choice: usize) -> TextOrder {
        let mut options = self.options.clone();
        options.bias = options.bias.behind(prompt.tokens.len());
        options.seed = self.seed.wrapping_add(u64::try_from(choice).unwrap_or_default());
        // Without a token there would be no pass that reads the prompt to its end.
        options.max_new_tokens = prompt.most.max(1);
        let prepared = self.grammar.as_ref().map(|grammar| &grammar.grammar);
        TextOrder {
            prompt: Arc::clone(&prompt.tokens),
            options,
            grammar: prepared.map(|prepared| prepared.grammar.clone()),
            guesses: prepared.and_then(|prepared| prepared.guesses.clone()),
            client: self.client,
            shared: self.shared,
            request: self.request,
            places: Arc::clone(&self.places),
        }
    }
}

/// The parts of the server that texts need.
#[derive(Clone)]
pub(crate) struct TextMaker {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) vocabulary: Vocabulary,
    pub(crate) pulse: Arc<Pulse>,
    pub(crate) metrics: Arc<Metrics>,
}

/// Begins to write all texts of an order.
pub(crate) fn begin(maker: &TextMaker, order: Order) -> Pieces {
    let (sender, pieces) = mpsc::unbounded_channel();
    let order = Arc::new(order);
    for index in 0..order.texts() {
        let out = Out { index, sender: sender.clone() };
        let (maker, order) = (maker.clone(), Arc::clone(&order));
        tokio::spawn(async move { write(&maker, &order, &out).await });
    }
    pieces
}

/// Waits for the engine until it has stalled.
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

/// Ends of a text.
enum Over {
    End(&'static str),
    Failed(Problem),
    /// The client has gone.
    Gone,
}

async fn write(maker: &TextMaker, order: &Order, out: &Out) {
    let (number, choice) = (out.index / order.choices, out.index % order.choices);
    let Some(prompt) = order.prompts.get(number) else { return };
    if let Some(echo) = prompt.echo.as_ref().filter(|_| !order.options.prompt_logprobs) {
        out.send(Piece::Text(echo.clone(), Vec::new(), 0));
    }
    let begun = Instant::now();
    let mut events = maker.engine.begin(order.text(prompt, choice));
    let mut hearing = Hearing::new(maker, order, prompt);
    let over = match hearing.may_close() {
        Err(problem) => Over::Failed(problem),
        Ok(()) => tokio::select! {
            biased;
            () = out.sender.closed() => Over::Gone,
            over = hearing.hear(&mut events, out) => over,
        },
    };
    // The prompt of several texts is counted once.
    let read = if choice == 0 { prompt.tokens.len() } else { 0 };
    let spent = hearing.spent(read);
    // Texts by which the server tests itself do not count.
    if order.client != Client::default() {
        count(maker, spent);
        // The text has waited for as long as the engine did not work on it.
        let worked = hearing.stats.total_time;
        if !worked.is_zero() {
            maker.metrics.queue_times.add(begun.elapsed().saturating_sub(worked));
        }
    }
    // Whatever the engine still writes of it is not heard.
    drop(events);
    let stopped = hearing.stopped.take();
    let (over, mut captures) = match (over, hearing.captured()) {
        (Over::End(finish), Some((captured, text))) => tokio::select! {
            biased;
            () = out.sender.closed() => (Over::Gone, Map::new()),
            captures = captured.fields(text) => (Over::End(finish), captures),
        },
        (over, _) => (over, Map::new()),
    };
    captures.extend(stopped.map(|stop| (STOP.to_owned(), stop.into())));
    match over {
        Over::End(finish) => out.send(Piece::End(finish, spent, captures)),
        Over::Failed(problem) => out.send(Piece::Failed(problem)),
        Over::Gone => maker.metrics.cancelled.add(1),
    }
}

/// A text in the making, as its events come.
struct Hearing<'a> {
    maker: &'a TextMaker,
    order: &'a Order,
    prompt: &'a PromptOrder,
    /// Are the tokens of the prompt yet to be sent, since the answer begins with them?
    echoes: bool,
    count: usize,
    stats: DecodeStats,
    shown: Shown,
    /// Reader of thoughts and of calls of functions.
    growing: Option<Growing>,
    /// The stop string that ended the text.
    stopped: Option<String>,
    /// Keeper of the text's shortest end, if it is to be closed.
    closing: Option<Closing>,
    closed: bool,
    /// Log-probabilities of tokens that are yet to be sent.
    chances: Vec<Chance>,
    /// Characters of the text whose first byte was written.
    characters: usize,
    /// Bytes of the text, if parts of it are listed.
    bytes: Vec<u8>,
}

impl<'a> Hearing<'a> {
    fn new(maker: &'a TextMaker, order: &'a Order, prompt: &'a PromptOrder) -> Self {
        Self {
            maker,
            order,
            prompt,
            echoes: order.options.prompt_logprobs,
            count: 0,
            stats: DecodeStats::default(),
            shown: Shown::new(&order.stops),
            growing: Growing::of(order.grammar.as_ref(), order.thought.as_ref(), &maker.vocabulary),
            stopped: None,
            closing: None,
            closed: false,
            chances: Vec::new(),
            characters: prompt.echo.as_ref().map_or(0, |echo| echo.chars().count()),
            bytes: Vec::new(),
        }
    }

    /// Prepares to close a text at its most tokens, if the request wants that.
    fn may_close(&mut self) -> Result<(), Problem> {
        if let Some(grammar) = self.order.grammar.as_ref().filter(|_| self.order.finish) {
            let grammar = &grammar.grammar.grammar;
            self.closing = Some(tokio::task::block_in_place(|| Closing::new(grammar, self.prompt.most))?);
        }
        Ok(())
    }

    async fn hear(&mut self, events: &mut UnboundedReceiver<EngineEvent>, out: &Out) -> Over {
        loop {
            match patiently(&self.maker.pulse, events.recv()).await {
                Ok(Some(EngineEvent::Prompt(logprobs))) => self.echo(&logprobs, out),
                Ok(Some(EngineEvent::Token(_))) if self.prompt.most == 0 => {
                    return self.end(String::new(), "length", out);
                }
                Ok(Some(EngineEvent::Token(written))) => {
                    if let Some(over) = self.token(written, out) {
                        return over;
                    }
                }
                Ok(Some(EngineEvent::End(finish, stats))) => {
                    self.stats = stats;
                    let rest = self.shown.finish();
                    let by_length = matches!(finish, Finish::Length | Finish::Thought);
                    let cut = self.prompt.most == 0 || by_length && !self.is_whole();
                    return self.end(rest, if cut { "length" } else { "stop" }, out);
                }
                Ok(Some(EngineEvent::Failed(problem))) | Err(problem) => return Over::Failed(problem),
                Ok(None) => return Over::Failed(Problem::engine("the engine ended without an answer")),
            }
        }
    }

    /// Sends the prompt with the log-probabilities of its tokens but the first.
    fn echo(&mut self, logprobs: &[Logprobs], out: &Out) {
        self.echoes = false;
        let text = self.prompt.echo.clone().unwrap_or_default();
        let (tokens, vocabulary) = (&self.prompt.tokens, &self.maker.vocabulary);
        let chances = Chance::of_prompt(tokens, logprobs, vocabulary, &text);
        out.send(Piece::Text(text, chances, 0));
    }

    /// Takes a token. Returns the end of the text if a stop string is complete, or the text is closed or
    /// failed.
    fn token(&mut self, written: WrittenToken, out: &Out) -> Option<Over> {
        if let Some(closing) = &mut self.closing {
            match tokio::task::block_in_place(|| closing.take(written.token)) {
                Ok(true) => {}
                Ok(false) => return Some(self.close(out)),
                Err(problem) => return Some(Over::Failed(problem)),
            }
        }
        self.count += 1;
        self.stats = written.stats;
        if let Some(logprobs) = &written.logprobs {
            let spelt = match &self.order.grammar {
                Some(grammar) => Spelt::Of(&grammar.grammar.grammar),
                None => Spelt::By(&self.maker.vocabulary),
            };
            self.chances.push(Chance::new(logprobs, &spelt, self.characters));
        }
        self.characters += characters(&written.bytes);
        if let Some(growing) = &mut self.growing {
            growing.note(written.token, &written.bytes);
        }
        self.keep(&written.bytes);
        let (text, stopped) = self.shown.push(&written.bytes);
        if stopped.is_some() {
            self.stopped = stopped;
            return Some(self.end(text, "stop", out));
        }
        self.tell(text, out);
        None
    }

    /// Is the text complete within its limit, so that nothing is left to close?
    fn is_whole(&self) -> bool {
        self.closing.as_ref().is_some_and(|closing| closing.rest().is_empty())
    }

    /// Ends the text by its shortest completion.
    fn close(&mut self, out: &Out) -> Over {
        let (Some(closing), Some(grammar)) = (self.closing.take(), &self.order.grammar) else {
            return Over::Failed(Problem::engine("there is nothing that would close the text"));
        };
        let rest = closing.rest().iter();
        let bytes: Vec<u8> =
            rest.flat_map(|&token| grammar.grammar.grammar.text_of(token)).copied().collect();
        self.count += closing.rest().len();
        self.closed = true;
        if let Some(growing) = &mut self.growing {
            growing.note_bytes(&bytes);
        }
        self.keep(&bytes);
        let (mut text, stopped) = self.shown.push(&bytes);
        match stopped {
            Some(_) => self.stopped = stopped,
            None => text += &self.shown.finish(),
        }
        self.end(text, "stop", out)
    }

    /// How parts of the text are found, if they are listed.
    fn listed(&self) -> Option<&'a Captured> {
        self.order.grammar.as_ref().and_then(|grammar| grammar.captured.as_ref())
    }

    /// Keeps bytes of the text if parts of it are listed.
    fn keep(&mut self, bytes: &[u8]) {
        if self.listed().is_some() {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// Takes the text that was shown, and what finds its parts, if these are listed.
    fn captured(&mut self) -> Option<(&'a Captured, Vec<u8>)> {
        let captured = self.listed()?;
        let mut text = std::mem::take(&mut self.bytes);
        text.truncate(self.order.stops.find(&text).unwrap_or(text.len()));
        if let Some(growing) = &self.growing {
            text = growing.answer(&text).to_vec();
        }
        Some((captured, text))
    }

    fn tell(&mut self, text: String, out: &Out) {
        if self.echoes {
            // A prompt of one token has no log-probabilities.
            self.echo(&[], out);
        }
        match &mut self.growing {
            Some(growing) => growing.push(&text).into_iter().for_each(|news| out.send(Piece::News(news))),
            None if text.is_empty() => {}
            None => out.send(Piece::Text(text, std::mem::take(&mut self.chances), self.stats.passes)),
        }
    }

    fn end(&mut self, rest: String, finish: &'static str, out: &Out) -> Over {
        self.tell(rest, out);
        // Tokens without text are left, such as the one that ends the text.
        if !self.chances.is_empty() {
            out.send(Piece::Text(String::new(), std::mem::take(&mut self.chances), self.stats.passes));
        }
        let Some(growing) = &mut self.growing else { return Over::End(finish) };
        growing.finish().into_iter().for_each(|news| out.send(Piece::News(news)));
        Over::End(if finish == "stop" && growing.calls() { "tool_calls" } else { finish })
    }

    /// Sums up the work of the text; `read` tokens of its prompt count.
    fn spent(&self, read: usize) -> Spent {
        let stats = &self.stats;
        let grammar = self.order.grammar.as_ref().map(|_| GrammarSpent {
            passes: stats.passes,
            drafted: stats.drafted,
            accepted: stats.accepted,
            mask_micros: u64::try_from(stats.mask_time.as_micros()).unwrap_or_default(),
            closed: usize::from(self.closed),
        });
        let thought = self.growing.as_ref().and_then(Growing::thought_tokens);
        Spent {
            prompt: read,
            cached: stats.cached_tokens.min(read),
            completion: self.count,
            thought,
            grammar,
        }
    }
}

fn count(maker: &TextMaker, spent: Spent) {
    let metrics = &maker.metrics;
    metrics.prompt_tokens.add(spent.prompt);
    metrics.cached_tokens.add(spent.cached);
    metrics.completion_tokens.add(spent.completion);
    if let Some(spent) = spent.grammar {
        metrics.passes.add(spent.passes);
        metrics.drafted.add(spent.drafted);
        metrics.accepted.add(spent.accepted);
        metrics.mask_time.add(Duration::from_micros(spent.mask_micros));
    }
}

/// A text that can be closed at any time.
struct Closing {
    constraint: Constraint,
    /// Tokens of the shortest completion.
    rest: Vec<TokenId>,
    /// Tokens of the text so far.
    count: usize,
    /// Most tokens of the text with its completion.
    most: usize,
}

impl Closing {
    /// An empty text of a grammar that may have `most` tokens.
    ///
    /// # Errors
    /// If every text of the grammar is longer, or its budgets do not suffice to find out.
    fn new(grammar: &CompiledGrammar, most: usize) -> Result<Self, Problem> {
        let mut constraint = grammar.constraint();
        let rest = rest(&mut constraint)?;
        if rest.len() > most {
            let least = rest.len();
            let message =
                format!("the shortest text of the grammar has {least} tokens, and {most} are allowed");
            return Err(Problem::invalid("max_tokens", message)
                .with("hint", "allow more tokens, or leave `finish` out to have the text cut"));
        }
        Ok(Self { constraint, rest, count: 0, most })
    }

    /// Goes on by a token if the text can still be closed after it. Returns whether it did.
    ///
    /// # Errors
    /// If the budgets of the grammar do not suffice to find out.
    fn take(&mut self, token: TokenId) -> Result<bool, Problem> {
        let mut next = self.constraint.fork();
        next.advance(token).map_err(|error| failed(&error))?;
        let rest = rest(&mut next)?;
        if self.count + 1 + rest.len() > self.most {
            return Ok(false);
        }
        (self.constraint, self.rest) = (next, rest);
        self.count += 1;
        Ok(true)
    }

    /// Tokens that close the text.
    fn rest(&self) -> &[TokenId] {
        &self.rest
    }
}

/// Tokens of the shortest completion.
fn rest(constraint: &mut Constraint) -> Result<Vec<TokenId>, Problem> {
    let completion = constraint.shortest_completion().map_err(|error| failed(&error))?;
    completion.tokens.ok_or_else(|| {
        let message = "the vocabulary lacks tokens that would close the text";
        Problem::bad_request("grammar_failed", message).param("grammar")
    })
}

fn failed(error: &dyn std::error::Error) -> Problem {
    let message = format!("the text cannot be closed: {error}");
    Problem::bad_request("grammar_failed", message).param("grammar")
}

#[cfg(test)]
mod tests {
    use domino::{Compiler, Grammar, Limits, Syntax};
    use proptest::prelude::*;

    use super::*;
    use crate::grammar::compiler::byte_vocabulary;

    /// Lists of lists, whose completions grow by each bracket.
    fn lists() -> CompiledGrammar {
        let text = r#"root ::= "[" (root ("," root)*)? "]""#;
        let grammar = Grammar::parse(Syntax::Gbnf, text, &Limits::default()).unwrap();
        Compiler::new(byte_vocabulary().unwrap()).compile(&grammar).unwrap()
    }

    proptest! {
        /// Every text that is drawn, with the tokens that close it, is of the grammar and within the limit.
        #[test]
        fn every_text_is_closed_within_its_limit(
            most in 2..30_usize, draws in prop::collection::vec(0..3_usize, 40),
        ) {
            let grammar = lists();
            let mut closing = Closing::new(&grammar, most).unwrap();
            let mut text = Vec::new();
            for draw in draws {
                let allowed: Vec<TokenId> = closing.constraint.mask().unwrap().iter()
                    .filter(|&token| !grammar.vocabulary().is_end_of_text(token)).collect();
                let Some(&token) = allowed.get(draw % allowed.len().max(1)) else { break };
                if !closing.take(token).unwrap() {
                    break;
                }
                text.push(token);
            }
            text.extend(closing.rest());
            prop_assert!(text.len() <= most);
            let mut constraint = grammar.constraint();
            for &token in &text {
                constraint.advance(token).unwrap();
            }
            prop_assert!(constraint.is_complete());
        }
    }

    #[test]
    fn a_limit_below_every_text_is_refused() {
        let problem = Closing::new(&lists(), 1).err().unwrap().to_json();
        assert_eq!(problem["error"]["param"], "max_tokens");
        assert!(Closing::new(&lists(), 2).is_ok());
    }
}
