//! Drafts of a text in mistral.rs's engine.

use std::path::PathBuf;

use domino::{
    CompiledGrammar, Constraint, TokenId,
    decode::{DecodeOptions, Generation},
    mistralrs::{EngineDrafts, EngineRunner, GoOn, Guesses, RunnerError},
    vocab::Tokenizer,
};

use crate::files::Output;

/// Makes the guessers for texts of a grammar.
type GuessMaker = Box<dyn FnOnce(&CompiledGrammar, &Tokenizer) -> Guesses>;

/// Drafts of one text, or none.
#[derive(Default)]
pub(super) struct TextDrafts {
    /// Most tokens of a draft, and what makes its guesses once the engine is there.
    wanted: Option<(usize, GuessMaker)>,
    guesses: Option<Guesses>,
    /// The file for what is learnt.
    file: Option<PathBuf>,
}

impl TextDrafts {
    /// Drafts up to `most` tokens, by the guessers that `make` makes.
    pub(super) fn new(most: usize, file: Option<PathBuf>, make: GuessMaker) -> Self {
        Self { wanted: Some((most, make)), guesses: None, file }
    }

    /// Chooses the rows of the engine's passes.
    pub(super) fn rows(&self) -> EngineDrafts {
        // The last row's token has no successor, so it needs no draft.
        self.wanted.as_ref().map_or(EngineDrafts::None, |(most, _)| EngineDrafts::Rows(most + 1))
    }

    /// Makes the guessers, once the engine is there.
    pub(super) fn begin(&mut self, grammar: Option<&CompiledGrammar>, runner: &EngineRunner) {
        let made = grammar.zip(self.wanted.take());
        self.guesses = made.map(|(grammar, (_, make))| make(grammar, runner.tokenizer()));
    }

    /// Generates the text.
    pub(super) fn write(
        &self,
        runner: &EngineRunner,
        prompt: &[TokenId],
        constraint: Option<&Constraint>,
        options: &DecodeOptions,
        progress: impl FnMut(&[TokenId]) -> GoOn,
    ) -> Result<Generation, RunnerError> {
        match (constraint, &self.guesses) {
            (Some(constraint), Some(guesses)) => {
                runner.generate_with_guesses(prompt, constraint, guesses, options, progress)
            }
            (constraint, _) => runner.generate(prompt, constraint, options, progress),
        }
    }

    /// Writes what was learnt to its file, if there is one.
    pub(super) fn keep(&self) -> anyhow::Result<()> {
        match self.file.as_ref().zip(self.guesses.as_ref()) {
            Some((file, guesses)) => Output::prepare(file)?.write(&guesses.prior().to_bytes()),
            None => Ok(()),
        }
    }

    /// Are drafts made?
    pub(super) fn are_made(&self) -> bool {
        self.guesses.is_some()
    }
}
