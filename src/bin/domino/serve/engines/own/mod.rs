//! Our own engine: a thread with a batch decoder, which texts join and leave at any pass. On the CPU it
//! writes many at once, and on a card one after the other.
//!
//! Invariant: the thread ends with its engine; an error in one text ends only that text.

mod desk;

use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};

use anyhow::Context;
use domino::{
    Vocabulary,
    decode::{BatchDecoder, DecodeOptions},
    model::{
        BatchModel, InTurns, Model,
        candle::{CandleBatch, CandleModel, LoadOptions, available_memory, join_threads},
    },
};
use tokio::sync::{
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    oneshot,
};

use self::desk::Desk;
use super::{
    super::{bounds::gate::Pulse, problem::Problem},
    args::EngineArgs,
    engine::{Engine, EngineEvent, TextOrder},
};
use crate::{
    flags::EngineName,
    session::model::{Card, Runner, bad_model, tell_context},
    terminal::failure::BadInput,
};

/// Most tokens of prompts that a pass reads while texts are written; four times that while none is.
const CHUNK: usize = 128;

/// Divisor of the free memory that gives the most that keys and values take by default.
const SHARE: u64 = 2;

/// An order, and the sender of its events.
type Ordered = (TextOrder, UnboundedSender<EngineEvent>);

/// Handle of the engine's thread.
pub(super) struct OwnEngine {
    orders: Sender<Ordered>,
    context: usize,
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
    let job = EngineJob {
        load: args.load.clone(),
        card: args.card,
        threads: args.threads,
        path: path.to_owned(),
        texts: args.texts(EngineName::Domino),
        drafts: args.guesses(EngineName::Domino).is_some(),
        kv_memory: args.kv_memory,
        prefixes: args.prefix_cache,
        vocabulary: vocabulary.clone(),
    };
    let ends = EngineEnds { loaded, ordered, pulse: Arc::clone(pulse) };
    let thread = thread::Builder::new().name("engine".to_owned()).spawn(move || job.work(ends));
    thread.context("cannot start the thread of the engine")?;
    let context = is_loaded.await.context("loading the model failed")??;
    Ok(OwnEngine { orders, context })
}

/// The engine's ends of what its handle and the server hold.
struct EngineEnds {
    /// Sender of the model's context, or of why there is no model.
    loaded: oneshot::Sender<anyhow::Result<usize>>,
    ordered: Receiver<Ordered>,
    pulse: Arc<Pulse>,
}

impl EngineEnds {
    /// Tells how loading has gone, and writes texts until nobody is left who could order one.
    fn work<B: BatchModel>(self, decoder: Result<(BatchDecoder<B>, usize), BadInput>) {
        let Self { loaded, ordered, pulse } = self;
        match decoder {
            Ok((decoder, context)) => {
                let _ = loaded.send(Ok(context));
                Desk::new(decoder, ordered, pulse).work();
            }
            Err(error) => drop(loaded.send(Err(error.into()))),
        }
    }
}

impl OwnEngine {
    /// Tokens of a text, its prompt included.
    pub(super) fn context(&self) -> usize {
        self.context
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
    load: LoadOptions,
    card: Card,
    threads: Option<NonZeroUsize>,
    path: PathBuf,
    texts: NonZeroUsize,
    drafts: bool,
    /// Bytes of keys and values of texts.
    kv_memory: Option<u64>,
    /// Bytes of keys and values of prompts that are kept.
    prefixes: usize,
    vocabulary: Vocabulary,
}

impl EngineJob {
    /// Does all work of the thread. A model on a card has one cache: there texts take turns, each as a whole.
    fn work(self, ends: EngineEnds) {
        // This must come before anything uses the pool.
        join_threads(self.threads);
        match self.card.map(|_| Runner::load(&self.path, &self.load, self.card)) {
            None => ends.work(self.batch()),
            // Prompts are read in one pass, as by `generate`: there the last bits of keys hang on the passes.
            Some(Ok(mut model)) => {
                tell_context(model.context(), model.made_for(), &self.load);
                ends.work(self.decoder(InTurns::new(&mut model, self.texts)));
            }
            Some(Err(error)) => ends.work::<CandleBatch>(Err(bad_model(&error))),
        }
    }

    /// Loads the model for many texts at once, on the CPU.
    fn batch(&self) -> Result<(BatchDecoder<CandleBatch>, usize), BadInput> {
        let (context, tokens) = self.tokens()?;
        let mut load = self.load.clone();
        (load.context, load.tokens) = (Some(context), Some(tokens));
        let model = CandleBatch::load(&self.path, self.texts, &load).map_err(|error| self.bad(&error))?;
        tell_context(context, model.made_for(), &self.load);
        let (decoder, context) = self.decoder(model)?;
        Ok((decoder.prompt_chunk(CHUNK).prefix_cache(self.prefixes).most_tokens(tokens), context))
    }

    /// Makes the decoder of a model, and returns it with the model's context.
    fn decoder<B: BatchModel>(&self, model: B) -> Result<(BatchDecoder<B>, usize), BadInput> {
        let context = model.context();
        let decoder = BatchDecoder::new(model, self.vocabulary.clone());
        let mut decoder = decoder.map_err(|error| self.bad(&error))?;
        if self.drafts {
            decoder.calibrate().map_err(|error| self.bad(&error))?;
        }
        Ok((decoder, context))
    }

    /// Makes an error of the model bad input.
    fn bad(&self, error: &dyn std::fmt::Display) -> BadInput {
        BadInput::new(format!("{}: {error}", self.path.display()))
    }

    /// Tokens that one text may have, and that all together may, by the memory for their keys and values.
    fn tokens(&self) -> Result<(usize, usize), BadInput> {
        let one = CandleModel::estimate(&self.path, &self.load).map_err(|error| self.bad(&error))?;
        let texts = u64::try_from(self.texts.get()).unwrap_or_default();
        let all = one.cache.saturating_mul(texts);
        let free = available_memory().map(|free| free.saturating_sub(one.weights + one.pass) / SHARE);
        let bytes = self.kv_memory.unwrap_or_else(|| free.map_or(all, |free| all.min(free)));
        if self.kv_memory.is_some_and(|bytes| bytes < one.cache) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// An engine whose thread is gone ends the receivers of its texts.
    #[test]
    fn an_engine_whose_thread_is_gone_ends_its_texts() {
        let orders = channel().0;
        let engine = OwnEngine { orders, context: 1 };
        let gate = super::super::super::bounds::gate::Gate::new(1);
        let text = TextOrder {
            prompt: Arc::from([domino::TokenId::new(0)]),
            options: DecodeOptions::default(),
            grammar: None,
            guesses: None,
            client: super::super::client::Client::default(),
            shared: super::super::client::Client::default(),
            request: 0,
            places: Arc::new(gate.enter(1).unwrap()),
        };
        assert!(engine.begin(text).blocking_recv().is_none());
        assert_eq!(gate.taken(), 0);
    }
}
