//! The model that a command runs, as it is stored on the CPU or as tensors on a device; how it and its
//! tokenizer are loaded, and their errors as commands tell them.

use std::{num::NonZeroUsize, path::Path};

use domino::decode::{DecodeError, DecodeErrorKind};
use domino::model::candle::{
    CandleModel, LoadOptions, ModelDescription, ModelError, Placement, RandomModel, TensorModel,
};
use domino::model::{Kept, Logits, Model, Rows};
use domino::{TokenId, vocab::Tokenizer};

use crate::terminal::failure::{BadInput, Paint, note};
use crate::terminal::progress;

/// The device and the precision of a model that runs as tensors; `None` for the CPU with our own products.
pub(crate) type Card = Option<Placement>;

/// Warns where `--quantize` has changed nothing: matrices that are quantised already, as those of most GGUF
/// files are, stay as they are. Reads the heads of the weights once more.
pub(crate) fn tell_idle_quantising(path: &Path, options: &LoadOptions) {
    let Some(format) = options.quantize else { return };
    let mut plain = options.clone();
    plain.quantize = None;
    let sizes = [options, &plain].map(|options| CandleModel::estimate(path, options));
    // The same number of bytes means the same formats, since blocks of any format are smaller than floats.
    if let [Ok(quantised), Ok(stored)] = sizes
        && quantised.weights == stored.weights
    {
        let paint = Paint::for_stderr();
        let (path, warning) = (path.display(), paint.cyan("warning:"));
        note!("{warning} --quantize {format} changes nothing: the matrices of {path} are quantised already");
        note!("{} leave it out, or name a model in floats", paint.cyan("hint:"));
    }
}

/// Says that a text may have fewer tokens than the model was made for, where nobody has asked for that.
pub(crate) fn tell_context(context: usize, made_for: usize, options: &LoadOptions) {
    if options.context.is_none() && context < made_for {
        let note = Paint::for_stderr().cyan("note:");
        note!("{note} room for {context} tokens, the model was made for {made_for}; --context asks for more");
    }
}

/// Says once what quantised weights take where the card's kernels have them unpacked. Reads the heads of the
/// weights once more.
fn tell_unpacking(path: &Path, place: Placement) {
    let Ok(model) = ModelDescription::of_model(path) else { return };
    if let Some(bytes) = place.unpacked(&model) {
        let (paint, megabytes) = (Paint::for_stderr(), bytes.div_ceil(1_000_000));
        let precision = place.precision;
        note!("{} quantised weights become {precision}: {megabytes} MB on the card", paint.cyan("note:"));
        note!("{} --card blocks keeps them as they are; drafts may change texts then", paint.cyan("hint:"));
    }
}

/// A loaded model.
#[derive(Debug)]
pub(crate) enum Runner {
    Own(Box<CandleModel>),
    Tensors(Box<TensorModel>),
}

impl Runner {
    pub(crate) fn load(path: &Path, options: &LoadOptions, card: Card) -> Result<Self, ModelError> {
        match card {
            None => CandleModel::load(path, options).map(|model| Self::Own(Box::new(model))),
            Some(place) => {
                tell_unpacking(path, place);
                TensorModel::load(path, options, place).map(|model| Self::Tensors(Box::new(model)))
            }
        }
    }

    /// Tokens that the model was made for.
    pub(crate) fn made_for(&self) -> usize {
        match self {
            Self::Own(model) => model.made_for(),
            Self::Tensors(model) => model.made_for(),
        }
    }

    pub(crate) fn random(model: &RandomModel, options: &LoadOptions, card: Card) -> Result<Self, ModelError> {
        match card {
            None => CandleModel::random(model, options).map(|model| Self::Own(Box::new(model))),
            Some(place) => {
                TensorModel::random(model, options, place).map(|model| Self::Tensors(Box::new(model)))
            }
        }
    }
}

impl Model for Runner {
    type Error = ModelError;

    fn position(&self) -> usize {
        match self {
            Self::Own(model) => model.position(),
            Self::Tensors(model) => model.position(),
        }
    }

    fn context(&self) -> usize {
        match self {
            Self::Own(model) => model.context(),
            Self::Tensors(model) => model.context(),
        }
    }

    fn vocabulary_size(&self) -> usize {
        match self {
            Self::Own(model) => model.vocabulary_size(),
            Self::Tensors(model) => model.vocabulary_size(),
        }
    }

    fn tokens_at_once(&self) -> NonZeroUsize {
        match self {
            Self::Own(model) => model.tokens_at_once(),
            Self::Tensors(model) => model.tokens_at_once(),
        }
    }

    fn forward(&mut self, tokens: &[TokenId], rows: Rows) -> Result<Logits, ModelError> {
        match self {
            Self::Own(model) => model.forward(tokens, rows),
            Self::Tensors(model) => model.forward(tokens, rows),
        }
    }

    fn begin(&mut self, tokens: &[TokenId], rows: Rows<'_>) -> Result<Option<Kept<ModelError>>, ModelError> {
        match self {
            Self::Own(model) => model.begin(tokens, rows),
            Self::Tensors(model) => model.begin(tokens, rows),
        }
    }

    fn truncate(&mut self, position: usize) -> Result<(), ModelError> {
        match self {
            Self::Own(model) => model.truncate(position),
            Self::Tensors(model) => model.truncate(position),
        }
    }
}

/// Makes the error of a prompt that is too long bad input of the user's.
pub(crate) fn step_error(error: DecodeError) -> anyhow::Error {
    match error.kind() {
        DecodeErrorKind::PromptTooLong { .. } => BadInput::new(error.to_string())
            .hint("--context asks for more room, up to what the model was made for (`domino model`)")
            .into(),
        _ => error.into(),
    }
}

/// Loads the model of a folder.
pub(crate) fn load(folder: &Path, options: &LoadOptions, card: Card) -> Result<Runner, BadInput> {
    let runner =
        progress::during(format!("loading {}", folder.display()), || Runner::load(folder, options, card))
            .map_err(|error| bad_model(&error))?;
    tell_idle_quantising(folder, options);
    tell_context(runner.context(), runner.made_for(), options);
    Ok(runner)
}

/// Makes the error of a model that cannot be used bad input.
pub(crate) fn bad_model(error: &dyn std::error::Error) -> BadInput {
    BadInput::new(error.to_string())
}

/// Reads the tokenizer of a model, and shows that it takes time.
pub(crate) fn read_tokenizer(folder: &Path) -> Result<Tokenizer, BadInput> {
    progress::during("reading the tokenizer", || Tokenizer::from_tokenizer_file(folder))
        .map_err(|error| bad_model(&error))
}
