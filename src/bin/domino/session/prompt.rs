//! The text to go on from, as it was given.

use std::path::PathBuf;

use crate::{
    files::{self, input::Input},
    terminal::{
        failure::{BadInput, note},
        progress,
    },
};

/// The text to go on from.
#[derive(Debug)]
pub(crate) enum PromptSource {
    Text(String),
    From(Input),
}

impl PromptSource {
    /// Reads the two flags of the prompt, of which both take `-` for standard input; without either it is the
    /// empty text.
    pub(crate) fn of(text: Option<String>, file: Option<PathBuf>) -> Self {
        match (text, file) {
            (Some(text), _) if text == "-" => Self::From(Input::Stdin),
            (Some(text), _) => Self::Text(text),
            (None, Some(file)) => Self::From(Input::new(file)),
            (None, None) => Self::Text(String::new()),
        }
    }
}

/// Reads the text of a prompt, and tells a person where there is none.
pub(crate) fn asked_text(prompt: &PromptSource) -> Result<String, BadInput> {
    let text = prompt_text(prompt)?;
    if text.is_empty() && progress::wanted() {
        note!("no prompt is given, so the model is asked for nothing; --prompt says what the text is about");
    }
    Ok(text)
}

/// Reads the text of a prompt.
pub(crate) fn prompt_text(prompt: &PromptSource) -> Result<String, BadInput> {
    match prompt {
        PromptSource::Text(text) => Ok(text.clone()),
        PromptSource::From(input) => files::text(input.read()?, &input.name()),
    }
}
