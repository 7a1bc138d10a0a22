//! The engine of models: a thread with a batch decoder, which texts join and leave at any pass. The thread's
//! [`Desk`] takes orders, makes passes for all texts, and sends their events.
//!
//! Invariants: the thread ends with its engine; an error in one text ends only that text; a text whose
//! receiver is gone is cancelled before the next pass.

use std::collections::{HashMap, HashSet};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::{error::Error, path::Path, path::PathBuf, sync::Arc, thread};

use anyhow::Context;
use domino::decode::{
    BatchDecoder, BatchEvent, DecodeError, DecodeErrorKind, DecodeOptions, DecodeStats, Logprobs, SequenceId,
    SequenceTurn,
};
use domino::model::candle::{CandleBatch, CandleModel, available_memory, join_threads};
use domino::{CompiledGrammar, Vocabulary, model::BatchModel};
use tokio::sync::{mpsc::UnboundedReceiver, mpsc::UnboundedSender, mpsc::unbounded_channel, oneshot};

use super::super::{args::EngineArgs, bounds::Places, bounds::Pulse, problem::Problem};
use super::{Engine, EngineEvent, TextOrder, WrittenToken};
use crate::session::model::{AnyBatch, BatchRunner, RunBy, tell_context};
use crate::terminal::failure::BadInput;

/// Most tokens of prompts that a pass reads while texts are written; four times that while none is.
const CHUNK: usize = 128;

/// Divisor of the free memory that gives the most that keys and values take by default.
const SHARE: u64 = 2;

/// An order, and the sender of its events.
type Ordered = (TextOrder, UnboundedSender<EngineEvent>);

/// Handle of the engine's thread.
pub(super) struct OwnEngine {
    orders: Sender<Ordered>,
    pub(super) facts: RunningFacts,
}

/// Facts about a model that is loaded.
#[derive(Debug, Clone)]
pub(super) struct RunningFacts {
    /// Tokens of a text, its prompt included.
    pub(super) context: usize,
    /// The reason why nothing may be drafted; `None`: drafts may be made.
    pub(super) no_drafts: Option<String>,
}

/// Starts the thread, which loads the model, and waits until it has.
pub(super) async fn load(
    args: &EngineArgs,
    path: &Path,
    vocabulary: &Vocabulary,
    pulse: &Arc<Pulse>,
) -> anyhow::Result<OwnEngine> {
    let (orders, ordered) = channel();
    let (loaded, is_loaded) = oneshot::channel();
    let job = EngineJob { args: args.clone(), path: path.to_owned(), vocabulary: vocabulary.clone() };
    let ends = EngineEnds { loaded, ordered, pulse: Arc::clone(pulse) };
    let thread = thread::Builder::new().name("engine".to_owned()).spawn(move || job.work(ends));
    thread.context("cannot start the thread of the engine")?;
    let facts = is_loaded.await.context("loading the model failed")??;
    Ok(OwnEngine { orders, facts })
}

/// The engine's ends of what its handle and the server hold.
struct EngineEnds {
    /// Sender of what the model is like, or of why there is no model.
    loaded: oneshot::Sender<anyhow::Result<RunningFacts>>,
    ordered: Receiver<Ordered>,
    pulse: Arc<Pulse>,
}

impl EngineEnds {
    /// Tells how loading has gone, and writes texts until nobody is left who could order one.
    fn work<B: BatchModel>(self, decoder: Result<(BatchDecoder<B>, RunningFacts), BadInput>) {
        let Self { loaded, ordered, pulse } = self;
        match decoder {
            Ok((decoder, facts)) => {
                let _ = loaded.send(Ok(facts));
                Desk::new(decoder, ordered, pulse).work();
            }
            Err(error) => drop(loaded.send(Err(error.into()))),
        }
    }
}

impl Engine for OwnEngine {
    fn begin(&self, text: TextOrder) -> UnboundedReceiver<EngineEvent> {
        let (sender, events) = unbounded_channel();
        // If the thread is gone the sender is dropped, which ends the receiver.
        let _ = self.orders.send((text, sender));
        events
    }

    fn check(&self, _options: &DecodeOptions) -> Result<(), Problem> {
        Ok(())
    }
}

/// Everything that the thread needs to load the model.
struct EngineJob {
    args: EngineArgs,
    path: PathBuf,
    vocabulary: Vocabulary,
}

impl EngineJob {
    /// Does all work of the thread.
    fn work(self, ends: EngineEnds) {
        // This must come before anything uses the pool.
        join_threads(self.args.flags.device.threads);
        match self.args.by {
            RunBy::Stored => ends.work(self.batch()),
            RunBy::Other { .. } | RunBy::Tensors(_) => ends.work(self.other()),
        }
    }

    /// Loads the model for many texts at once in the program's other engine, or as tensors.
    fn other(&self) -> Result<(BatchDecoder<AnyBatch>, RunningFacts), BadInput> {
        let EngineArgs { load, by, .. } = &self.args;
        let model = BatchRunner::load(&self.path, self.args.texts(), load, *by)?;
        let (context, tensors) = (model.model.context(), by.tensors().is_some());
        tell_context(context, if tensors { model.traits.made_for } else { context }, load);
        let (decoder, facts) = self.decoder(model.model, model.traits.no_drafts)?;
        // On tensors prompts are read in one pass, as by `generate`: last bits of keys hang on the passes.
        Ok((if tensors { decoder } else { decoder.prompt_chunk(CHUNK) }, facts))
    }

    /// Loads the model for many texts at once, on the CPU.
    fn batch(&self) -> Result<(BatchDecoder<CandleBatch>, RunningFacts), BadInput> {
        let (context, tokens) = self.tokens()?;
        let mut load = self.args.load.clone();
        (load.context, load.tokens) = (Some(context), Some(tokens));
        let model =
            CandleBatch::load(&self.path, self.args.texts(), &load).map_err(|error| self.bad(&error))?;
        tell_context(context, model.made_for(), &self.args.load);
        let (decoder, facts) = self.decoder(model, None)?;
        Ok((
            decoder.prompt_chunk(CHUNK).prefix_cache(self.args.flags.prefix_cache).most_tokens(tokens),
            facts,
        ))
    }

    /// Makes the decoder of a model with which drafts may be made, or may not for some reason.
    fn decoder<B: BatchModel>(
        &self,
        model: B,
        no_drafts: Option<String>,
    ) -> Result<(BatchDecoder<B>, RunningFacts), BadInput> {
        let context = model.context();
        let decoder = BatchDecoder::new(model, self.vocabulary.clone());
        let mut decoder = decoder.map_err(|error| self.bad(&error))?;
        if self.args.guesses().is_some() && no_drafts.is_none() {
            decoder.calibrate().map_err(|error| self.bad(&error))?;
        }
        Ok((decoder, RunningFacts { context, no_drafts }))
    }

    /// Makes an error of the model bad input.
    fn bad(&self, error: &dyn std::fmt::Display) -> BadInput {
        BadInput::new(format!("{}: {error}", self.path.display()))
    }

    /// Tokens that one text may have, and that all together may, by the memory for their keys and values.
    fn tokens(&self) -> Result<(usize, usize), BadInput> {
        let one = CandleModel::estimate(&self.path, &self.args.load).map_err(|error| self.bad(&error))?;
        let texts = u64::try_from(self.args.texts().get()).unwrap_or_default();
        let all = one.cache.saturating_mul(texts);
        let free = available_memory().map(|free| free.saturating_sub(one.weights + one.pass) / SHARE);
        let given = self.args.flags.kv_memory.map(|bytes| bytes as u64);
        let bytes = given.unwrap_or_else(|| free.map_or(all, |free| all.min(free)));
        if given.is_some_and(|bytes| bytes < one.cache) {
            let need = one.cache.div_ceil(1 << 20);
            return Err(BadInput::new(format!(
                "--kv-memory: one text of {} tokens takes {need} MiB",
                one.context
            ))
            .hint("give it more, or texts fewer tokens by --context"));
        }
        let context = u64::try_from(one.context).unwrap_or_default();
        let tokens = u128::from(bytes) * u128::from(context) / u128::from(one.cache.max(1));
        Ok((one.context, usize::try_from(tokens).map_or(one.context, |tokens| tokens.max(one.context))))
    }
}

/// Texts in the making, on the engine's thread.
struct Desk<B: BatchModel> {
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
    fn new(
        decoder: BatchDecoder<B>,
        ordered: Receiver<(TextOrder, UnboundedSender<EngineEvent>)>,
        pulse: Arc<Pulse>,
    ) -> Self {
        Self { decoder, ordered, running: HashMap::new(), pulse }
    }

    /// Writes texts until nobody is left who could order one.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// An engine whose thread is gone ends the receivers of its texts.
    #[test]
    fn an_engine_whose_thread_is_gone_ends_its_texts() {
        let orders = channel().0;
        let engine = OwnEngine { orders, facts: RunningFacts { context: 1, no_drafts: None } };
        let gate = crate::serve::bounds::Gate::new(1);
        let text = TextOrder {
            prompt: Arc::from([domino::TokenId::new(0)]),
            options: DecodeOptions::default(),
            grammar: None,
            guesses: None,
            client: super::super::Client::default(),
            shared: super::super::Client::default(),
            request: 0,
            places: Arc::new(gate.enter(1).unwrap()),
        };
        assert!(engine.begin(text).blocking_recv().is_none());
        assert_eq!(gate.taken(), 0);
    }
}
