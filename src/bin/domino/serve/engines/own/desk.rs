//! Work of the engine's thread: it takes orders, makes passes for all texts, and sends their events.
//!
//! Invariant: a text whose receiver is gone is cancelled before the next pass.

use std::{
    collections::{HashMap, HashSet},
    error::Error,
    sync::{
        Arc,
        mpsc::{Receiver, TryRecvError},
    },
};

use domino::{
    CompiledGrammar,
    decode::{
        BatchDecoder, BatchEvent, DecodeError, DecodeErrorKind, DecodeStats, Logprobs, SequenceId,
        SequenceTurn,
    },
    model::BatchModel,
};
use tokio::sync::mpsc::UnboundedSender;

use super::super::{
    super::{
        bounds::gate::{Places, Pulse},
        problem::Problem,
    },
    engine::{EngineEvent, TextOrder, WrittenToken},
};

/// Texts in the making, on the engine's thread.
pub(super) struct Desk<B: BatchModel> {
    decoder: BatchDecoder<B>,
    ordered: Receiver<(TextOrder, UnboundedSender<EngineEvent>)>,
    running: HashMap<SequenceId, Running>,
    pulse: Arc<Pulse>,
}

/// A text that was ordered.
struct Running {
    events: UnboundedSender<EngineEvent>,
    grammar: Option<CompiledGrammar>,
    /// Tokens that were sent.
    told: usize,
    _places: Arc<Places>,
}

impl<B: BatchModel> Desk<B> {
    pub(super) fn new(
        decoder: BatchDecoder<B>,
        ordered: Receiver<(TextOrder, UnboundedSender<EngineEvent>)>,
        pulse: Arc<Pulse>,
    ) -> Self {
        Self { decoder, ordered, running: HashMap::new(), pulse }
    }

    /// Writes texts until nobody is left who could order one.
    pub(super) fn work(&mut self) {
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
            let texts = self.step();
            self.pulse.pass(texts, self.decoder.prefix_bytes());
        }
    }

    fn add(&mut self, (text, events): (TextOrder, UnboundedSender<EngineEvent>)) {
        let TextOrder { prompt, options, grammar, guesses, client, shared, request, places } = text;
        let constraint = grammar.as_ref().map(CompiledGrammar::constraint);
        let drafter = guesses.filter(|_| constraint.is_some()).map(|guesses| guesses.drafter(shared));
        let turn = SequenceTurn { client: client.0, request, scope: shared.0 };
        let added = self.decoder.add_in_turn(&prompt, constraint, &options, drafter, turn);
        match added {
            Ok(sequence) => {
                let running = Running { events, grammar, told: 0, _places: places };
                self.running.insert(sequence, running);
            }
            Err(error) => drop(events.send(EngineEvent::Failed(Problem::engine(error.to_string())))),
        }
    }

    /// Cancels the texts whose receiver is gone.
    fn drop_unheard(&mut self) {
        let unheard = |running: &Running| running.events.is_closed();
        let gone: Vec<SequenceId> =
            self.running.iter().filter(|(_, running)| unheard(running)).map(|(&id, _)| id).collect();
        for sequence in gone {
            self.running.remove(&sequence);
            self.decoder.cancel(sequence);
        }
    }

    /// Makes a pass for all texts and sends their events. Returns the number of texts that went on.
    fn step(&mut self) -> usize {
        let events = self.decoder.step();
        let mut texts = HashSet::new();
        let ended: HashMap<SequenceId, EndOfText> = events.iter().filter_map(end_of).collect();
        for event in events {
            match event {
                BatchEvent::Token { sequence, step } => {
                    texts.insert(sequence);
                    let ended = ended.get(&sequence).map(|(stats, all)| (stats, all.as_slice()));
                    let so_far = self.decoder.so_far(sequence).or(ended);
                    let stats = so_far.map(|(stats, _)| *stats).unwrap_or_default();
                    let Some(running) = self.running.get_mut(&sequence) else { continue };
                    let bytes = match &running.grammar {
                        Some(grammar) => grammar.text_of(step.token),
                        None => self.decoder.vocabulary().bytes(step.token).unwrap_or_default(),
                    };
                    let logprobs = so_far.and_then(|(_, all)| all.get(running.told)).cloned();
                    let written = WrittenToken { token: step.token, bytes: bytes.to_vec(), logprobs, stats };
                    running.told += 1;
                    running.tell(EngineEvent::Token(written));
                }
                BatchEvent::Prompt { sequence, logprobs } => {
                    let Some(running) = self.running.get(&sequence) else { continue };
                    running.tell(EngineEvent::Prompt(logprobs));
                }
                BatchEvent::Finished { sequence, generation } => {
                    let Some(running) = self.running.remove(&sequence) else { continue };
                    running.tell(EngineEvent::End(generation.finish, generation.stats));
                }
                BatchEvent::Failed { sequence, error, .. } => {
                    let Some(running) = self.running.remove(&sequence) else { continue };
                    running.tell(EngineEvent::Failed(problem(&error)));
                }
                _ => {}
            }
        }
        texts.len()
    }
}

/// Work and log-probabilities of a text that has ended.
type EndOfText = (DecodeStats, Vec<Logprobs>);

/// Returns the work and log-probabilities of a text that the event ends.
fn end_of(event: &BatchEvent) -> Option<(SequenceId, EndOfText)> {
    match event {
        BatchEvent::Finished { sequence, generation } | BatchEvent::Failed { sequence, generation, .. } => {
            Some((*sequence, (generation.stats, generation.logprobs.clone())))
        }
        _ => None,
    }
}

impl Running {
    fn tell(&self, event: EngineEvent) {
        // Whoever does not listen has cancelled.
        let _ = self.events.send(event);
    }
}

/// The problem that a text failed by.
fn problem(error: &DecodeError) -> Problem {
    let mut message = error.to_string();
    if let Some(source) = error.source() {
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
