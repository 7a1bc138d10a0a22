//! The writing of a text, with a record of its passes.

use domino::TokenId;
use domino::decode::{Decoder, Generation};

use crate::session::runner::{Runner, step_error};
use crate::terminal::progress;

/// A pass of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObservedPass {
    /// Index of the first token that was drawn from it.
    pub(super) first: usize,
    /// Tokens of the draft that it verified.
    pub(super) drafted: Vec<TokenId>,
    /// Number of tokens of the draft that were drawn as well.
    pub(super) accepted: usize,
}

/// A text and the passes that wrote it.
pub(super) struct Watched {
    pub(super) generation: Generation,
    pub(super) passes: Vec<ObservedPass>,
    /// True if Ctrl-C ended it.
    pub(super) interrupted: bool,
}

/// Writes the text behind a prompt, to its end or to Ctrl-C.
pub(super) fn write(decoder: &mut Decoder<Runner>, prompt: &[TokenId]) -> anyhow::Result<Watched> {
    let close = decoder.options_mut().close;
    let mut steps = decoder.steps(prompt);
    let mut passes: Vec<ObservedPass> = Vec::new();
    let mut before = *steps.stats();
    while !progress::interrupted() {
        let first = steps.tokens().len();
        let step = steps.next();
        let stats = *steps.stats();
        if stats.passes > before.passes {
            passes.push(ObservedPass { first, drafted: steps.drafted().to_vec(), accepted: 0 });
        }
        if let Some(pass) = passes.last_mut() {
            pass.accepted += stats.accepted - before.accepted;
        }
        before = stats;
        match step {
            None => break,
            Some(step) => step.map_err(step_error)?,
        };
    }
    let interrupted = steps.finish().is_none();
    if interrupted && close {
        steps.close()?;
    }
    Ok(Watched { generation: steps.into_generation(), passes, interrupted })
}
