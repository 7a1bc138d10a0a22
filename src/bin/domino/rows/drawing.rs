//! Keys of a row about the drawing of its texts and their ends.

use std::num::NonZeroUsize;

use crate::{
    flags::{
        drawing::{LowMasking, LowOptions, Mask},
        space::Trailing,
    },
    rows::members::ObjectMembers,
    terminal::failure::BadInput,
};

/// Keys under the names of the flags; the flags hold where they are absent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Drawing {
    /// Number of texts of the row, each with a seed of its own.
    pub(crate) texts: Option<NonZeroUsize>,
    temperature: Option<f64>,
    top_k: Option<usize>,
    top_p: Option<f64>,
    min_p: Option<f64>,
    repeat_penalty: Option<f64>,
    repeat_last_n: Option<usize>,
    presence_penalty: Option<f64>,
    frequency_penalty: Option<f64>,
    seed: Option<u64>,
    mask: Option<Mask>,
    max_tokens: Option<usize>,
    stop: Option<Vec<String>>,
    trailing_space: Option<Trailing>,
    finish: Option<bool>,
    logprobs: Option<usize>,
}

impl Drawing {
    /// Takes the keys.
    pub(crate) fn take(members: &mut ObjectMembers<'_>) -> Result<Self, BadInput> {
        Ok(Self {
            texts: members.take("n")?,
            temperature: members.take("temperature")?,
            top_k: members.take("top_k")?,
            top_p: members.take("top_p")?,
            min_p: members.take("min_p")?,
            repeat_penalty: members.take("repeat_penalty")?,
            repeat_last_n: members.take("repeat_last_n")?,
            presence_penalty: members.take("presence_penalty")?,
            frequency_penalty: members.take("frequency_penalty")?,
            seed: members.take("seed")?,
            mask: members.take("mask")?,
            max_tokens: members.take("max_tokens")?,
            stop: members.take("stop")?,
            trailing_space: members.take("trailing_space")?,
            finish: members.take("finish")?,
            logprobs: members.take("logprobs")?,
        })
    }

    /// Changes the flags by what the row says, for its text number `index`, whose seed is that of the row
    /// plus `index`.
    pub(crate) fn options(&self, flags: &LowOptions, index: usize) -> LowOptions {
        let flags = flags.clone();
        let further = u64::try_from(index).unwrap_or_default();
        LowOptions {
            temperature: self.temperature.unwrap_or(flags.temperature),
            top_k: self.top_k.unwrap_or(flags.top_k),
            top_p: self.top_p.unwrap_or(flags.top_p),
            min_p: self.min_p.unwrap_or(flags.min_p),
            repeat_penalty: self.repeat_penalty.unwrap_or(flags.repeat_penalty),
            repeat_last_n: self.repeat_last_n.unwrap_or(flags.repeat_last_n),
            presence_penalty: self.presence_penalty.unwrap_or(flags.presence_penalty),
            frequency_penalty: self.frequency_penalty.unwrap_or(flags.frequency_penalty),
            seed: self.seed.unwrap_or(flags.seed).wrapping_add(further),
            mask: self.mask.map_or(flags.mask, LowMasking::of),
            max_tokens: self.max_tokens.unwrap_or(flags.max_tokens),
            stop: self.stop.clone().unwrap_or(flags.stop),
            trailing_space: self.trailing_space.unwrap_or(flags.trailing_space),
            finish: self.finish.unwrap_or(flags.finish),
            logprobs: self.logprobs.or(flags.logprobs),
        }
    }
}
