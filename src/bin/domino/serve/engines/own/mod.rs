//! Our own engine: a thread with a batch decoder, which texts join and leave at any pass.
//!
//! Invariant: the thread ends with its engine; an error in one text ends only that text.

mod desk;

use std::{
    path::Path,
    sync::{
        Arc,
        mpsc::{Sender, channel},
    },
    thread,
};

use anyhow::Context;
use domino::{
    Vocabulary,
    decode::{BatchDecoder, DecodeOptions},
    model::{
        BatchModel,
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
    args::{EngineArgs, EngineName},
    engine::{Engine, EngineEvent, TextOrder},
};
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
        path: path.to_owned(),
        texts: args.texts(EngineName::Domino),
        drafts: args.guesses(EngineName::Domino).is_some(),
        kv_memory: args.kv_memory,
        prefixes: args.prefix_cache,
        vocabulary: vocabulary.clone(),
    };
    let pulse = Arc::clone(pulse);
    let work = move || match job.decoder() {
        Ok((decoder, context)) => {
            let _ = loaded.send(Ok(context));
            Desk::new(decoder, ordered, pulse).work();
        }
        Err(error) => drop(loaded.send(Err(error))),
    };
    let thread = thread::Builder::new().name("engine".to_owned()).spawn(work);
    thread.context("cannot start the thread of the engine")?;
    let context = is_loaded.await.context("loading the model failed")??;
    Ok(OwnEngine { orders, context })
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
    path: std::path::PathBuf,
    texts: std::num::NonZeroUsize,
    drafts: bool,
    /// Bytes of keys and values of texts.
    kv_memory: Option<u64>,
    /// Bytes of keys and values of prompts that are kept.
    prefixes: usize,
    vocabulary: Vocabulary,
}

impl EngineJob {
    /// Loads the model into a decoder, and returns it with the model's context.
    fn decoder(mut self) -> anyhow::Result<(BatchDecoder<CandleBatch>, usize)> {
        // This must come before anything uses the pool.
        join_threads(None);
        let path = self.path.display().to_string();
        let bad = |error: &dyn std::fmt::Display| BadInput::new(format!("{path}: {error}"));
        let tokens = self.tokens(&bad)?;
        self.load.tokens = Some(tokens);
        let model = CandleBatch::load(&self.path, self.texts, &self.load).map_err(|error| bad(&error))?;
        let context = model.context();
        let decoder = BatchDecoder::new(model, self.vocabulary).map_err(|error| bad(&error))?;
        let mut decoder = decoder.prompt_chunk(CHUNK).prefix_cache(self.prefixes).most_tokens(tokens);
        if self.drafts {
            decoder.calibrate().map_err(|error| bad(&error))?;
        }
        Ok((decoder, context))
    }

    /// Tokens that all texts together may have, by the memory for their keys and values.
    fn tokens(&self, bad: &dyn Fn(&dyn std::fmt::Display) -> BadInput) -> Result<usize, BadInput> {
        let one = CandleModel::estimate(&self.path, &self.load).map_err(|error| bad(&error))?;
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
        Ok(usize::try_from(tokens).map_or(one.context, |tokens| tokens.max(one.context)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An engine whose thread is gone ends the receivers of its texts.
    #[test]
    fn an_engine_that_is_gone_tells_its_texts() {
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
