//! Methods of generating a text, behind one trait, so that they take turns in one process on one model.
//!
//! Invariant: all of them draw with the same noise for a seed, position and token. So methods with the same
//! mask give the same tokens, and differences between two methods are not luck. Methods that draw from
//! another distribution are the exception: templates, and particles but for the first one. Engines that run
//! the model themselves draw with it too, from rows whose last bits differ.

mod drafted;
mod external_engine;
mod name;
mod program;
mod rejection;
mod templates;

use std::time::{Duration, Instant};
use std::{fmt, path::Path};

pub(super) use external_engine::{ByExternalEngine, ByPeer};
pub use external_engine::{
    ExternalEngine, ExternalJob, ExternalWay, ExternalWriter, Peer, PeerGrammar, PeerText,
};
pub use name::{MethodName, Refinement, Refinements, Second, UnknownMethod};
pub use program::Programs;

use self::drafted::{Canonical, Conditional, Drafted};
use self::rejection::{Online, Rejection};
use self::templates::Templates;
pub use super::error::PeerError;
use super::{definition::Variant, error::ExperimentError, row::K};
use crate::decode::single::{self, Choose};
use crate::decode::{DecodeError, DecodeStats, Decoder, DraftMask, DraftModel, Finish, Generation, Masking};
use crate::proposer::{CountProposer, DraftLength, Prior, Propose};
use crate::{CompiledGrammar, Terminals, ids::TokenId, model::Model, vocab::Tokenizer};

/// The inputs of a method: a decoder whose sampling and limits are set, and a grammar.
pub struct Stage<'a, M: Model> {
    /// The decoder. Methods set its constraint, its masking and its drafter for each run.
    pub decoder: &'a mut Decoder<M>,
    /// The grammar, compiled for the lookahead and the terminals of the method; `None` for an unconstrained
    /// one.
    pub grammar: Option<&'a CompiledGrammar>,
    /// The tokenizer of the decoder's vocabulary.
    pub tokenizer: &'a Tokenizer,
}

/// A text that a method generated.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Outcome {
    /// The text's tokens, without prompt and end of text.
    pub tokens: Vec<TokenId>,
    /// The bytes of the tokens.
    pub text: Vec<u8>,
    /// The reason for its end.
    pub finish: Finish,
    /// Is it in the language? Without a constraint: has it ended other than by length?
    pub complete: bool,
    /// The cost of the run.
    pub stats: DecodeStats,
    /// Time until the first token was there.
    pub first: Duration,
    /// Processor time behind the first token, of the whole process; `None` where it is not known.
    pub processor: Option<Duration>,
    /// Draws after a refused one, for a method that draws again.
    pub redraws: Option<usize>,
    /// Tokens that were not drawn, for a method that inserts some.
    pub inserted: Option<usize>,
}

impl Outcome {
    /// Creates the outcome of a text that was drawn token by token.
    fn new(generation: Generation, first: Duration) -> Self {
        Self {
            tokens: generation.tokens,
            text: generation.text,
            finish: generation.finish,
            complete: generation.complete,
            stats: generation.stats,
            first,
            processor: None,
            redraws: None,
            inserted: None,
        }
    }
}

/// A way to generate a text.
pub trait Method<M: Model>: fmt::Debug {
    /// Prepares for timed runs: measures the cost of passes, if that is needed later.
    ///
    /// # Errors
    /// If a pass fails.
    fn prepare(&mut self, _stage: &mut Stage<'_, M>) -> Result<(), MethodError> {
        Ok(())
    }

    /// Continues `prompt` until the text ends.
    ///
    /// # Errors
    /// If a pass, a draw or the constraint fails.
    fn generate(&mut self, stage: &mut Stage<'_, M>, prompt: &[TokenId]) -> Result<Outcome, MethodError>;
}

/// A method that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MethodError {
    /// The run failed.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The inputs do not fit together.
    #[error(transparent)]
    Build(#[from] crate::decode::BuildError),
}

/// The lessons of a method before timed runs; equal lessons share their priors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Lessons {
    /// The method learns nothing.
    None,
    /// The method learns from warm-ups, counting as these refinements do.
    WarmUps(Refinements),
    /// The method takes the prior that comes with the model.
    Shipped,
}

impl Variant {
    /// Returns the terminals for which its grammar is compiled. A finite `k` counts the paper's.
    pub(super) fn terminals(&self) -> Terminals {
        let written = match &self.method {
            MethodName::Naive => true,
            MethodName::Paper(refinements) => !refinements.has(Refinement::Folded),
            _ => self.k.is_some_and(|k| k != K::Infinite),
        };
        if written { Terminals::Written } else { Terminals::Folded }
    }

    /// Returns the method's lessons.
    pub(super) fn lessons(&self) -> Lessons {
        match &self.method {
            MethodName::Paper(refinements) => Lessons::WarmUps(refinements.of_counting()),
            MethodName::Ours
            | MethodName::DraftModel(Second::Joint)
            | MethodName::Mistralrs(ExternalWay::Drafts) => {
                Lessons::WarmUps(Refinements::all().of_counting())
            }
            MethodName::Shipped => Lessons::Shipped,
            _ => Lessons::None,
        }
    }

    /// Returns the counts that it drafts by, if it does. `prior` is what it has learnt.
    pub(super) fn counts(&self, grammar: &CompiledGrammar, prior: Option<&Prior>) -> Option<CountProposer> {
        let refinements = self.method.refinements()?;
        let prior = prior.cloned().unwrap_or_else(|| Prior::new(grammar));
        Some(drafted::counts(prior, refinements))
    }

    /// Creates the method, ready to generate. `prior` is what it has learnt, `draft` the second model, if it
    /// has one.
    pub(super) fn method<M: Model + 'static>(
        &self,
        grammar: Option<&CompiledGrammar>,
        tokenizer: &Tokenizer,
        prior: Option<Prior>,
        draft: Option<DraftModel<M>>,
    ) -> Result<Box<dyn Method<M>>, crate::proposer::DraftLengthError> {
        let length = match (self.s, self.threshold) {
            (Some(s), Some(threshold)) => DraftLength::up_to(s, threshold)?,
            _ => DraftLength::Auto,
        };
        let plain = |masking| Box::new(Drafted::plain(masking));
        let mask = match &self.method {
            MethodName::DraftModel(Second::Unmasked) => DraftMask::Off,
            _ => DraftMask::On,
        };
        let second = draft.map(|draft| -> Box<dyn Propose> { Box::new(draft.mask(mask)) });
        Ok(match (&self.method, grammar) {
            (MethodName::Rejection, _) => Box::new(Rejection::default()),
            (MethodName::Online, _) => Box::new(Online::default()),
            (MethodName::Conditional { particles }, _) => Box::new(Conditional { particles: *particles }),
            (MethodName::Always | MethodName::Naive, _) => plain(Masking::Always),
            (MethodName::Opportunistic, _) => plain(Masking::Opportunistic),
            (MethodName::Canonical, _) => Box::new(Canonical),
            (MethodName::Templates { flexible, healed }, Some(grammar)) => {
                Box::new(Templates::new(tokenizer, grammar.vocabulary(), *flexible, *healed))
            }
            (MethodName::Forced, Some(grammar)) => Box::new(Drafted::forced(grammar, tokenizer)),
            (method, Some(grammar)) if let Some(refinements) = method.refinements() => {
                Box::new(Drafted::by_counts(grammar, tokenizer, prior, refinements, length, second))
            }
            (MethodName::DraftModel(_), Some(_)) if let Some(second) = second => {
                Box::new(Drafted::by(second, length))
            }
            _ => plain(Masking::Ahead),
        })
    }
}

/// Loads the prior that comes with the model in `folder` for a grammar: that of its name, or of the paper's
/// grammar of that name, which a definition may mean.
pub(super) fn shipped_prior(
    folder: Option<&Path>,
    name: &str,
    grammar: &CompiledGrammar,
) -> Result<Option<Prior>, ExperimentError> {
    let Some(folder) = folder else { return Ok(None) };
    let paths = [folder.join("paper"), folder.to_path_buf()].map(|folder| folder.join(name));
    let mut unfit = None;
    for path in paths.map(|path| path.with_extension("prior")).into_iter().filter(|path| path.is_file()) {
        let bytes = std::fs::read(&path).map_err(ExperimentError::io("read", &path))?;
        match Prior::from_bytes(&bytes, grammar) {
            Ok(prior) => return Ok(Some(prior)),
            Err(source) => unfit = Some(ExperimentError::Prior { path, source }),
        }
    }
    unfit.map_or(Ok(None), Err)
}

/// The processor time of this process so far, of all its threads; `None` where the system does not say.
fn processor_time() -> Option<Duration> {
    #[cfg(unix)]
    return rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime).try_into().ok();
    #[cfg(not(unix))]
    None
}

/// Runs a decoder that is set up, and times the first token and the processor behind it.
fn decoded<M: Model>(decoder: &mut Decoder<M>, prompt: &[TokenId]) -> Result<Outcome, DecodeError> {
    let mut steps = decoder.steps(prompt);
    let start = Instant::now();
    let mut first = None;
    for step in steps.by_ref() {
        step?;
        first.get_or_insert_with(|| (start.elapsed(), processor_time()));
    }
    let (first, before) = first.unwrap_or_else(|| (start.elapsed(), None));
    let processor = processor_time().zip(before).and_then(|(now, before)| now.checked_sub(before));
    Ok(Outcome { processor, ..Outcome::new(steps.into_generation(), first) })
}

/// Writes a text whose tokens `choose` chooses, one a pass; by the decoder if there is no grammar.
fn chosen<M: Model>(
    stage: &mut Stage<'_, M>,
    prompt: &[TokenId],
    choose: &mut dyn Choose,
) -> Result<Outcome, MethodError> {
    let Some(grammar) = stage.grammar else { return Ok(decoded(stage.decoder, prompt)?) };
    let options = stage.decoder.options_mut().clone();
    let (model, start) = (stage.decoder.model_mut(), grammar.constraint());
    let written = single::write(model, start, &options, prompt, choose, &|| true)?;
    let inserted = Some(written.inserted).filter(|inserted| *inserted > 0);
    Ok(Outcome { inserted, ..Outcome::new(written.generation, written.first) })
}

impl<M: Model> fmt::Debug for Stage<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage").field("grammar", &self.grammar.is_some()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod external_engine_tests;

#[cfg(test)]
mod inversion_tests;

#[cfg(test)]
mod peer_tests;

#[cfg(test)]
mod program_tests;

#[cfg(test)]
mod tests;
