//! Models and their tokenizers, loaded; their errors as commands tell them.

use std::path::Path;

use domino::{
    decode::{DecodeError, DecodeErrorKind},
    model::{Model, candle::LoadOptions},
    vocab::Tokenizer,
};

use crate::{
    session::runner::{self, Card, Runner},
    terminal::{failure::BadInput, progress},
};

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
    runner::tell_idle_quantising(folder, options);
    runner::tell_context(runner.context(), runner.made_for(), options);
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
