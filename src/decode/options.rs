//! The options of one run.
//!
//! Invariant: any value of any field is legal; a field with a range has a type that keeps it.

use super::sampling::Sampling;
use super::sampling::penalties::{LogitBias, Penalties};
use super::stop::StopStrings;
use crate::{TrailingSpace, limits::DEFAULT_NEW_TOKENS};

/// The time at which the mask of allowed tokens is computed. The generated tokens are always the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Masking {
    /// Before the model's pass, which then need not compute logits of other tokens; see
    /// [`Rows::Among`](crate::model::Rows::Among). The model's own choice is not known then, so interventions
    /// are not counted. With log-probabilities it works like [`Always`](Self::Always).
    #[default]
    Ahead,
    /// Masks are computed at every step, after the model's pass and its own choice.
    Always,
    /// Only after the model's own choice was refused (the paper's opportunistic masking). With top-k, top-p
    /// or min-p the mask is still made at every step, since there the result would differ.
    Opportunistic,
}

/// The options of draws, and of the end of a run.
///
/// # Examples
/// ```
/// use domino::decode::{DecodeOptions, Sampling, StopStrings};
/// let mut options = DecodeOptions::default();
/// options.sampling = Sampling::with_temperature(0.7)?;
/// options.stop = StopStrings::new(["\n\n"])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DecodeOptions {
    /// The way tokens are drawn. Default: greedy.
    pub sampling: Sampling,
    /// Key of the random numbers. Default: 0.
    pub seed: u64,
    /// Most tokens of one run, end of text not counted. Default: 512.
    pub max_new_tokens: usize,
    /// The time at which masks are computed. Default: [`Masking::Ahead`].
    pub masking: Masking,
    /// Most tokens of a thought, its opening mark included, before it is closed, if the grammar has
    /// [one](crate::Grammar::after_thought). They count as new tokens, too. Default: what the constraint
    /// [says](crate::Constraint::reasoning_tokens).
    pub reasoning_tokens: Option<usize>,
    /// Penalties on tokens that occurred before. Default: none.
    pub penalties: Penalties,
    /// Amounts that are added to the logits of some tokens. Default: none.
    pub bias: LogitBias,
    /// Strings that end a run. Default: none.
    pub stop: StopStrings,
    /// The fate of white space behind a complete text, if there is a constraint; it takes the place of the
    /// constraint's [own](crate::Constraint::trailing_space). Default: the text ends where only white space
    /// can follow. [`ConditionalDecoder`](super::ConditionalDecoder) does not ask: there the end is drawn.
    pub trailing_space: TrailingSpace,
    /// Complete a text that was cut (by a limit of length or a stop string) by the shortest text of the
    /// constraint's language; see
    /// [`Constraint::shortest_completion`](crate::Constraint::shortest_completion). Default: no.
    pub close: bool,
    /// Log-probabilities of the tokens, with this number of alternatives each. They cost a mask at every
    /// step, and change no token. Default: `None`.
    pub logprobs: Option<usize>,
    /// Log-probabilities of the prompt's tokens too, where [`logprobs`](Self::logprobs) asks for some: a
    /// [`BatchDecoder`](super::BatchDecoder) sends them as a
    /// [`BatchEvent::Prompt`](super::BatchEvent::Prompt), and reads the prompt without its cache, in passes
    /// with whole rows. Other decoders do not look at it; [`Decoder::replay`](super::Decoder::replay) has
    /// those of any text. Default: no.
    pub prompt_logprobs: bool,
}

impl DecodeOptions {
    /// Are the masks of constrained runs known before passes?
    pub(super) fn is_ahead(&self) -> bool {
        self.masking == Masking::Ahead && self.logprobs.is_none()
    }

    /// Returns the first option that is set and that only the ordinary decoder supports: others draw by
    /// temperature alone and end texts by length.
    pub(super) fn beyond_plain_draws(&self) -> Option<&'static str> {
        let set = [
            (self.sampling.cuts(), "top-k, top-p or min-p"),
            (!self.penalties.is_none(), "penalties"),
            (!self.bias.is_none(), "a bias"),
            (!self.stop.is_empty(), "stop strings"),
            (self.close, "completion"),
            (self.logprobs.is_some(), "log-probabilities"),
        ];
        set.into_iter().find(|(set, _)| *set).map(|(_, what)| what)
    }
}

impl Default for DecodeOptions {
    fn default() -> Self {
        Self {
            sampling: Sampling::default(),
            seed: 0,
            max_new_tokens: DEFAULT_NEW_TOKENS,
            masking: Masking::default(),
            reasoning_tokens: None,
            penalties: Penalties::default(),
            bias: LogitBias::default(),
            stop: StopStrings::default(),
            trailing_space: TrailingSpace::default(),
            close: false,
            logprobs: None,
            prompt_logprobs: false,
        }
    }
}
