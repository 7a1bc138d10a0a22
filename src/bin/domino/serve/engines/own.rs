//! Our own engine: a thread with a batch decoder, which texts join and leave at any pass.
//!
//! Invariants: the thread ends with its engine, and nothing that a text does ends it; a text that nobody
//! hears any more is dropped before the next pass.

use std::{
    collections::HashMap,
    path::Path,
    sync::{
        Arc,
        mpsc::{self, Receiver, Sender, TryRecvError},
    },
    thread,
};

use anyhow::Context;
use domino::{
    CompiledGrammar, Vocabulary,
    decode::{BatchDecoder, BatchEvent, DecodeError, DecodeErrorKind, DecodeOptions, Logprobs, SequenceId},
    model::{BatchModel, candle::CandleBatch},
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{
    super::{
        gate::{Places, Pulse},
        problem::Problem,
    },
    args::{EngineArgs, EngineName},
    engine::{Engine, Event, TextOrder, Took, Written},
};
use crate::failure::BadInput;

/// The engine's end of its thread.
pub(super) struct OwnEngine {
    orders: Sender<(TextOrder, UnboundedSender<Event>)>,
    context: usize,
}

/// Loads the model and starts the thread.
pub(super) fn load(
    args: &EngineArgs,
    path: &Path,
    vocabulary: &Vocabulary,
    pulse: &Arc<Pulse>,
) -> anyhow::Result<OwnEngine> {
    let texts = args.texts(EngineName::Domino);
    let bad = |error: &dyn std::fmt::Display| BadInput::new(format!("{}: {error}", path.display()));
    let model = CandleBatch::load(path, texts, &args.load).map_err(|error| bad(&error))?;
    let context = model.context();
    let mut decoder = BatchDecoder::new(model, vocabulary.clone()).map_err(|error| bad(&error))?;
    if args.guesses(EngineName::Domino).is_some() {
        decoder.calibrate().map_err(|error| bad(&error))?;
    }
    start(decoder, context, Arc::clone(pulse))
}

/// Starts the thread.
fn start<B>(decoder: BatchDecoder<B>, context: usize, pulse: Arc<Pulse>) -> anyhow::Result<OwnEngine>
where
    B: BatchModel + 'static,
{
    let (orders, ordered) = mpsc::channel();
    let mut desk = Desk { decoder, ordered, running: HashMap::new(), pulse };
    thread::Builder::new()
        .name("engine".to_owned())
        .spawn(move || desk.work())
        .context("cannot start the thread of the engine")?;
    Ok(OwnEngine { orders, context })
}

impl OwnEngine {
    /// Tokens of a text, its prompt included.
    pub(super) fn context(&self) -> usize {
        self.context
    }
}

impl Engine for OwnEngine {
    fn begin(&self, text: TextOrder) -> UnboundedReceiver<Event> {
        let (sender, events) = unbounded_channel();
        // Where the thread is gone the sender goes too, which tells whoever hears.
        let _ = self.orders.send((text, sender));
        events
    }

    fn check(&self, _options: &DecodeOptions) -> Result<(), Problem> {
        Ok(())
    }
}

/// Texts in the making, on the engine's thread.
struct Desk<B: BatchModel> {
    decoder: BatchDecoder<B>,
    ordered: Receiver<(TextOrder, UnboundedSender<Event>)>,
    running: HashMap<SequenceId, Running>,
    pulse: Arc<Pulse>,
}

/// A text that was ordered.
struct Running {
    events: UnboundedSender<Event>,
    grammar: Option<CompiledGrammar>,
    /// Tokens told.
    told: usize,
    _places: Arc<Places>,
}

impl<B: BatchModel> Desk<B> {
    /// Writes texts until there is nobody who could order one.
    fn work(&mut self) {
        loop {
            if self.running.is_empty() {
                match self.ordered.recv() {
                    Ok(order) => self.add(order),
                    Err(_) => return,
                }
            }
            loop {
                match self.ordered.try_recv() {
                    Ok(order) => self.add(order),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return,
                }
            }
            self.drop_unheard();
            self.step();
            self.pulse.beat();
        }
    }

    fn add(&mut self, (text, events): (TextOrder, UnboundedSender<Event>)) {
        let TextOrder { prompt, options, grammar, guesses, client, places, .. } = text;
        let constraint = grammar.as_ref().map(CompiledGrammar::constraint);
        let added = match guesses {
            Some(guesses) if constraint.is_some() => {
                self.decoder.add_with_drafter(&prompt, constraint, &options, guesses.drafter(client))
            }
            _ => self.decoder.add(&prompt, constraint, &options),
        };
        match added {
            Ok(sequence) => {
                let running = Running { events, grammar, told: 0, _places: places };
                self.running.insert(sequence, running);
            }
            Err(error) => drop(events.send(Event::Failed(Problem::engine(error.to_string())))),
        }
    }

    /// Cancels the texts that nobody hears.
    fn drop_unheard(&mut self) {
        let unheard = |running: &Running| running.events.is_closed();
        let gone: Vec<SequenceId> =
            self.running.iter().filter(|(_, running)| unheard(running)).map(|(&id, _)| id).collect();
        for sequence in gone {
            self.running.remove(&sequence);
            self.decoder.cancel(sequence);
        }
    }

    /// Makes a pass for all texts, and tells them what came of it.
    fn step(&mut self) {
        let events = self.decoder.step();
        let ended: HashMap<SequenceId, Vec<Logprobs>> = events.iter().filter_map(logprobs_of).collect();
        for event in events {
            match event {
                BatchEvent::Token { sequence, step } => {
                    let all = self.decoder.logprobs(sequence).or(ended.get(&sequence).map(Vec::as_slice));
                    let Some(running) = self.running.get_mut(&sequence) else { continue };
                    let bytes = match &running.grammar {
                        Some(grammar) => grammar.text_of(step.token),
                        None => self.decoder.vocabulary().bytes(step.token).unwrap_or_default(),
                    };
                    let logprobs = all.and_then(|all| all.get(running.told)).cloned();
                    let written = Written { bytes: bytes.to_vec(), logprobs };
                    running.told += 1;
                    running.tell(Event::Token(written));
                }
                BatchEvent::Finished { sequence, generation } => {
                    let Some(running) = self.running.remove(&sequence) else { continue };
                    let took = Took { stats: generation.stats, cached: 0 };
                    running.tell(Event::End(generation.finish, took));
                }
                BatchEvent::Failed { sequence, error, .. } => {
                    let Some(running) = self.running.remove(&sequence) else { continue };
                    running.tell(Event::Failed(problem(&error)));
                }
                _ => {}
            }
        }
    }
}

/// Log-probabilities of a text that has ended.
fn logprobs_of(event: &BatchEvent) -> Option<(SequenceId, Vec<Logprobs>)> {
    match event {
        BatchEvent::Finished { sequence, generation } | BatchEvent::Failed { sequence, generation, .. } => {
            Some((*sequence, generation.logprobs.clone()))
        }
        _ => None,
    }
}

impl Running {
    fn tell(&self, event: Event) {
        // Whoever does not listen has cancelled.
        let _ = self.events.send(event);
    }
}

/// The problem that a text failed by.
fn problem(error: &DecodeError) -> Problem {
    let mut message = error.to_string();
    if let Some(source) = std::error::Error::source(error) {
        message = format!("{message}: {source}");
    }
    match error.kind() {
        DecodeErrorKind::Constraint | DecodeErrorKind::NothingAllowed { .. } => {
            Problem::bad_request("grammar_failed", message).param("grammar")
        }
        DecodeErrorKind::EmptyPrompt
        | DecodeErrorKind::PromptTooLong { .. }
        | DecodeErrorKind::TextTooLong { .. } => Problem::bad_request("context_length_exceeded", message),
        _ => Problem::engine(message),
    }
}
