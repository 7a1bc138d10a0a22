//! A model of llama.cpp with a cache of several sequences, which [`LlamaCppModel`](crate::LlamaCppModel) and
//! [`LlamaCppBatch`](crate::LlamaCppBatch) share.
//!
//! Invariant: llama.cpp's cache holds of each sequence the positions `0..held`. Whatever fails, this is so
//! again afterwards.

use std::{num::NonZeroU32, num::NonZeroUsize, path::Path};

use domino::{
    TokenId,
    model::{
        BatchInput, Logits,
        candle::{ModelError, ModelErrorKind},
    },
};
use llama_cpp_2::{
    context::{LlamaContext, params::LlamaContextParams},
    llama_batch::LlamaBatch,
    model::{LlamaModel, params::LlamaModelParams},
    token::LlamaToken,
};
use self_cell::self_cell;

use crate::backend::{backend, engine_error, with_reason};

/// Tokens of a context unless one is asked for: caches of the longest contexts would not fit in memory.
const USUAL_CONTEXT: usize = 4096;

/// Tokens of one call of llama.cpp. Its memory for a call grows with them, and longer ones are hardly faster.
const BATCH: usize = 512;

/// True if this build can run models on cards.
#[must_use]
pub const fn has_cards() -> bool {
    let apple = cfg!(all(target_os = "macos", target_arch = "aarch64"));
    cfg!(any(feature = "cuda", feature = "metal", feature = "vulkan")) || apple
}

/// Options for loading a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LlamaCppOptions {
    /// Layers that a card holds, from the last one on; more than there are means all. Default: all in builds
    /// for cards, otherwise none.
    pub gpu_layers: Option<u32>,
    /// Tokens of a text, its prompt included. Default: as many as the model was made for, at most 4096.
    pub context: Option<usize>,
    /// Threads of a pass on the CPU. Default: as many as there are cores.
    pub threads: Option<NonZeroUsize>,
    /// True if in a batch each sequence has passes of its own, and memory of its own for its cache: its rows
    /// do not depend on the others then, bit for bit. Default: sequences share passes.
    pub apart: bool,
}

// A context borrows its model. Both are `Send`, so the pair is.
self_cell!(
    struct Loaded {
        owner: LlamaModel,
        #[covariant]
        dependent: LlamaContext,
    }
);

/// A model with the caches of some sequences.
pub(crate) struct Sequences {
    loaded: Loaded,
    /// The tokens of a call.
    batch: LlamaBatch<'static>,
    /// Number of tokens that the cache holds of each sequence.
    held: Vec<usize>,
    /// Most tokens of a sequence.
    context: usize,
    made_for: usize,
    vocabulary: usize,
    can_roll_back: bool,
    apart: bool,
}

/// A token of a call.
struct Planned {
    /// Number of its input.
    input: usize,
    sequence: usize,
    token: TokenId,
    position: usize,
    /// True if its row is wanted.
    row: bool,
}

impl Sequences {
    /// Loads a GGUF file for this many sequences.
    pub(crate) fn load(path: &Path, count: usize, options: &LlamaCppOptions) -> Result<Self, ModelError> {
        let backend = backend()?;
        if !path.exists() {
            return Err(ModelErrorKind::MissingFile(path.to_owned()).into());
        }
        if path.is_dir() {
            return Err(engine_error(format_args!("{} is a folder, not a GGUF file", path.display())));
        }
        // By default all that a card can hold.
        let mut params = LlamaModelParams::default();
        if let Some(layers) = options.gpu_layers {
            params = params.with_n_gpu_layers(layers);
        }
        let (model, reason) = with_reason(|| LlamaModel::load_from_file(backend, path, &params));
        let model = model.map_err(|error| {
            let reason = reason.unwrap_or_else(|| error.to_string());
            engine_error(format_args!("cannot load {}: {reason}", path.display()))
        })?;
        let architecture = model.meta_val_str("general.architecture").unwrap_or_default();
        if has_encoder(&architecture) {
            return Err(engine_error(format_args!(
                "{architecture} has an encoder, and goes on with no text"
            )));
        }
        let made_for = model.n_ctx_train() as usize;
        let context = options.context.unwrap_or(made_for.min(USUAL_CONTEXT));
        if context == 0 || context > made_for {
            return Err(ModelErrorKind::Context { asked: context, supported: made_for }.into());
        }
        let can_roll_back = !model.is_recurrent() && !model.is_hybrid();
        let params = context_params(context, count, options)?;
        let loaded = Loaded::try_new(model, |model| {
            let (made, reason) = with_reason(|| model.new_context(backend, params));
            made.map_err(|error| {
                let reason = reason.unwrap_or_else(|| error.to_string());
                engine_error(format_args!("no room for {count} times {context} tokens: {reason}"))
            })
        })?;
        let vocabulary = usize::try_from(loaded.borrow_owner().n_vocab()).unwrap_or(0);
        Ok(Self {
            batch: LlamaBatch::new(BATCH, 1),
            held: vec![0; count],
            context,
            made_for,
            vocabulary,
            can_roll_back,
            apart: options.apart,
            loaded,
        })
    }

    /// Number of sequences.
    pub(crate) fn count(&self) -> usize {
        self.held.len()
    }

    /// Tokens that the cache holds of a sequence; 0 if there is no such sequence.
    pub(crate) fn position(&self, sequence: usize) -> usize {
        self.held.get(sequence).copied().unwrap_or(0)
    }

    /// Most tokens of a sequence.
    pub(crate) fn context(&self) -> usize {
        self.context
    }

    /// Tokens that the model was made for.
    pub(crate) fn made_for(&self) -> usize {
        self.made_for
    }

    /// Length of a row of logits.
    pub(crate) fn vocabulary_size(&self) -> usize {
        self.vocabulary
    }

    /// Can the cache forget the last tokens of a sequence?
    pub(crate) fn can_roll_back(&self) -> bool {
        self.can_roll_back
    }

    /// The model.
    pub(crate) fn model(&self) -> &LlamaModel {
        self.loaded.borrow_owner()
    }

    /// The architecture, as the file names it; empty if it does not.
    pub(crate) fn architecture(&self) -> String {
        self.model().meta_val_str("general.architecture").unwrap_or_default()
    }

    /// Appends tokens to sequences; see [`BatchModel::forward`](domino::model::BatchModel::forward).
    pub(crate) fn forward(&mut self, inputs: &[BatchInput<'_>]) -> Result<Vec<Logits>, ModelError> {
        for (index, input) in inputs.iter().enumerate() {
            self.check(input)?;
            if inputs[..index].iter().any(|before| before.sequence == input.sequence) {
                return Err(ModelErrorKind::SequenceTwice(input.sequence).into());
            }
        }
        let count = |input: &BatchInput<'_>| input.rows.count(input.tokens.len());
        let room = |input| Vec::with_capacity(count(input) * self.vocabulary);
        let mut values: Vec<Vec<f32>> = inputs.iter().map(room).collect();
        let planned: Vec<Planned> = inputs
            .iter()
            .enumerate()
            .flat_map(|(number, input)| plan(number, input, self.held[input.sequence]))
            .collect();
        let same = |one: &Planned, other: &Planned| !self.apart || one.input == other.input;
        let calls: Vec<&[Planned]> = planned.chunk_by(same).flat_map(|part| part.chunks(BATCH)).collect();
        for call in calls {
            if let Err(error) = self.call(call, &mut values) {
                return Err(self.undo(inputs).err().unwrap_or(error));
            }
        }
        for input in inputs {
            self.held[input.sequence] += input.tokens.len();
        }
        Ok(values.into_iter().map(|values| Logits::new(values, self.vocabulary)).collect())
    }

    /// Can this input be appended?
    fn check(&self, input: &BatchInput<'_>) -> Result<(), ModelError> {
        let Some(&position) = self.held.get(input.sequence) else {
            return Err(ModelErrorKind::NoSuchSequence(input.sequence).into());
        };
        let (tokens, context, vocabulary) = (input.tokens.len(), self.context, self.vocabulary);
        if tokens == 0 {
            return Err(ModelErrorKind::NoTokens.into());
        }
        if let Some(&token) = input.tokens.iter().find(|token| token.index() >= vocabulary) {
            return Err(ModelErrorKind::UnknownToken { token, vocabulary }.into());
        }
        if tokens > context - position {
            return Err(ModelErrorKind::TooLong { position, tokens, context }.into());
        }
        Ok(())
    }

    /// Calls llama.cpp with these tokens, at most [`BATCH`], and adds the wanted rows to those of their
    /// inputs.
    fn call(&mut self, tokens: &[Planned], values: &mut [Vec<f32>]) -> Result<(), ModelError> {
        let batch = &mut self.batch;
        batch.clear();
        for Planned { sequence, token, position, row, .. } in tokens {
            let (token, position) = (number(token.index())?, number(*position)?);
            batch.add(LlamaToken::new(token), position, &[number(*sequence)?], *row).map_err(engine_error)?;
        }
        self.loaded.with_dependent_mut(|_, context| {
            context.decode(batch).map_err(engine_error)?;
            for (place, planned) in tokens.iter().enumerate().filter(|(_, planned)| planned.row) {
                values[planned.input].extend_from_slice(context.get_logits_ith(number(place)?));
            }
            Ok(())
        })
    }

    /// Removes from the cache what calls have added to the sequences of these inputs. Where llama.cpp cannot
    /// remove a part, the whole sequence is removed.
    fn undo(&mut self, inputs: &[BatchInput<'_>]) -> Result<(), ModelError> {
        for input in inputs {
            let held = self.held[input.sequence];
            if !self.can_roll_back && held > 0 {
                self.cut(input.sequence, 0)?;
                self.held[input.sequence] = 0;
            } else {
                self.cut(input.sequence, held)?;
            }
        }
        Ok(())
    }

    /// Forgets the tokens of a sequence from `position` on.
    pub(crate) fn truncate(&mut self, sequence: usize, position: usize) -> Result<(), ModelError> {
        let held = *self.held.get(sequence).ok_or(ModelErrorKind::NoSuchSequence(sequence))?;
        if position > held {
            return Err(ModelErrorKind::PastEnd { asked: position, position: held }.into());
        }
        if position == held {
            return Ok(());
        }
        if !self.can_roll_back && position > 0 {
            let reason =
                "a recurrent model cannot forget a part of a text, as drafts and some constraints need";
            return Err(engine_error(reason));
        }
        self.cut(sequence, position)?;
        self.held[sequence] = position;
        Ok(())
    }

    /// Removes the positions of a sequence from `position` on from llama.cpp's cache.
    fn cut(&mut self, sequence: usize, position: usize) -> Result<(), ModelError> {
        let (sequence, position) = (number(sequence)?, number::<u32>(position)?);
        // A removal of everything is one of recurrent memory too, which keeps no part.
        let from = Some(position).filter(|position| *position > 0);
        self.loaded
            .with_dependent_mut(|_, context| context.kv_cache_seq_rm(sequence, from, None))
            .map_err(engine_error)
    }
}

/// The tokens of an input, of a sequence with `held` tokens.
fn plan(number: usize, input: &BatchInput<'_>, held: usize) -> impl Iterator<Item = Planned> {
    let first = input.tokens.len() - input.rows.count(input.tokens.len());
    let sequence = input.sequence;
    input.tokens.iter().enumerate().map(move |(index, &token)| Planned {
        input: number,
        sequence,
        token,
        position: held + index,
        row: index >= first,
    })
}

/// Is this the name of an architecture that reads a text as a whole first? llama.cpp has those of T5 and
/// BERT.
fn has_encoder(architecture: &str) -> bool {
    architecture.starts_with("t5") || architecture.contains("bert")
}

/// Parameters of a context.
fn context_params(
    context: usize,
    count: usize,
    options: &LlamaCppOptions,
) -> Result<LlamaContextParams, ModelError> {
    let all: u32 = number(context.saturating_mul(count))?;
    let threads = options.threads.or_else(|| std::thread::available_parallelism().ok());
    let (threads, batch) = (number(threads.map_or(1, NonZeroUsize::get))?, number(BATCH)?);
    Ok(LlamaContextParams::default()
        .with_n_ctx(NonZeroU32::new(all))
        .with_n_batch(batch)
        .with_n_ubatch(batch)
        .with_n_seq_max(number(count)?)
        // With one pool of memory, sequences with different numbers of tokens share a pass.
        .with_kv_unified(!options.apart)
        .with_n_threads(threads)
        .with_n_threads_batch(threads))
}

/// A number in llama.cpp's width.
fn number<T: TryFrom<usize>>(number: usize) -> Result<T, ModelError> {
    T::try_from(number).map_err(|_| engine_error(format_args!("{number} is too large a number")))
}

#[cfg(test)]
mod tests {
    use super::has_encoder;

    #[test]
    fn architectures_with_an_encoder_are_known_by_name() {
        assert!(["bert", "nomic-bert-moe", "eurobert", "t5", "t5encoder"].into_iter().all(has_encoder));
        assert!(!["llama", "gemma3", "qwen35", "mamba", ""].into_iter().any(has_encoder));
    }
}
