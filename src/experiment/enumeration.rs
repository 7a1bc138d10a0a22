//! The whole distribution over the texts of a small language: the probability of each text under the model
//! conditioned on the language, and under masks.
//!
//! Masks remove the tokens that no text of the language goes on with, and leave the model's other
//! probabilities. So they draw from the locally projected distribution, which is not the model conditioned on
//! the language (Park et al., "Grammar-Aligned Decoding", 2024, arXiv 2405.21047). Where all sequences of
//! tokens can be listed, both are known exactly, and so is their total variation.
//!
//! Invariant: a text can be written by several sequences of tokens, which are listed one by one. Sequences
//! longer than the limit of tokens are not; the conditional probabilities of those that are add up to 1.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{
    error::ExperimentError,
    records::{read_list, write_list},
};
use crate::{
    Constraint, Patience,
    decode::{DecodeError, log_mass, possible},
    ids::{TokenId, as_f64},
    model::{Model, Rows},
    vocab::TokenSet,
};

/// Name of the file with the distributions in a folder of records.
const FILE: &str = "distributions.json";

/// All sequences of tokens of a grammar behind a prompt, with their probabilities.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// The model's name in the definition.
    pub model: String,
    /// The grammar's name.
    pub grammar: String,
    /// Index of the grammar's prompt, from 0.
    pub prompt: usize,
    /// Temperature of the draws.
    pub temperature: f64,
    /// The sequences of at most as many tokens as the definition allows.
    pub sequences: Vec<Sequence>,
}

/// One sequence of tokens, without prompt and end of text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sequence {
    /// The tokens.
    pub tokens: Vec<u32>,
    /// Probability under the model conditioned on the language, end of text included.
    pub conditional: f64,
    /// Probability if each token is drawn under a mask.
    pub masked: f64,
}

impl Distribution {
    /// Has it this model, grammar, prompt and temperature?
    #[must_use]
    pub fn is_of(&self, model: &str, grammar: &str, prompt: usize, temperature: f64) -> bool {
        let bits = (self.prompt, self.temperature.to_bits());
        self.model == model && self.grammar == grammar && bits == (prompt, temperature.to_bits())
    }

    /// Returns half the sum of the differences between the conditional probabilities and these, which are in
    /// the order of the sequences. What they lack of 1 counts as the probability of sequences that are not
    /// listed.
    #[must_use]
    pub fn variation(&self, other: &[f64]) -> f64 {
        let apart: f64 = self
            .sequences
            .iter()
            .zip(other)
            .map(|(sequence, other)| (sequence.conditional - other).abs())
            .sum();
        0.5 * (apart + (1.0 - other.iter().sum::<f64>()).max(0.0))
    }

    /// Returns the total variation between the conditional distribution and that of masks.
    #[must_use]
    pub fn variation_of_masks(&self) -> f64 {
        let masked: Vec<f64> = self.sequences.iter().map(|sequence| sequence.masked).collect();
        self.variation(&masked)
    }

    /// Returns the expected total variation between the conditional distribution and the shares of `draws`
    /// independent draws from it. A perfect method would show this value, as draws are finitely many.
    #[must_use]
    pub fn variation_of_draws(&self, draws: usize) -> f64 {
        let deviation = |sequence: &Sequence| mean_deviation(draws, sequence.conditional);
        0.5 * self.sequences.iter().map(deviation).sum::<f64>()
    }
}

/// Returns the mean absolute deviation of the share of successes in `draws` draws of probability `p`, by De
/// Moivre's formula: `2 m C(n, m) p^m q^(n - m + 1) / n`, where `m` is the least integer above `n p`.
fn mean_deviation(draws: usize, p: f64) -> f64 {
    let q = 1.0 - p;
    if draws == 0 || p <= 0.0 || q <= 0.0 {
        return 0.0;
    }
    // `C(n, m) p^m q^(n - m)` factor by factor, so that no part of it leaves the range of floats.
    let n = as_f64(draws);
    let (mut above, mut log) = (0.0, n * q.ln());
    while above <= n * p {
        above += 1.0;
        log += ((n - above + 1.0) / above * (p / q)).ln();
    }
    2.0 * above * q * log.exp() / n
}

/// A node of the listing: the tokens so far, the constraint, and the logs of both probabilities.
struct Partial {
    tokens: Vec<TokenId>,
    constraint: Constraint,
    own: f64,
    masked: f64,
}

/// Lists all sequences of at most `longest` tokens behind `prompt`, at a temperature above 0 (depth-first
/// search); `None` if that takes more than `most` passes, one for each prefix of a sequence.
///
/// # Errors
/// If a pass or a mask fails.
pub(super) fn enumerate<M: Model>(
    model: &mut M,
    prompt: &[TokenId],
    start: &Constraint,
    temperature: f64,
    (longest, most): (usize, usize),
) -> Result<Option<Vec<Sequence>>, DecodeError> {
    let vocabulary = start.vocabulary().clone();
    let possible = possible(&vocabulary);
    let mut found: Vec<(Vec<u32>, f64, f64)> = Vec::new();
    let constraint = start.clone().patient(Patience::whole());
    let mut open = vec![Partial { tokens: Vec::new(), constraint, own: 0.0, masked: 0.0 }];
    let mut passes = 0;
    while let Some(Partial { tokens, mut constraint, own, masked }) = open.pop() {
        passes += 1;
        if passes > most {
            return Ok(None);
        }
        // The last place of the stack goes on from what the model holds, but for its last token.
        let new = match tokens.split_last() {
            Some((last, before)) => {
                model.truncate(prompt.len() + before.len()).map_err(DecodeError::model)?;
                std::slice::from_ref(last)
            }
            None => {
                model.truncate(0).map_err(DecodeError::model)?;
                prompt
            }
        };
        let logits = model.forward(new, Rows::Last).map_err(DecodeError::model)?;
        let row = logits.last().unwrap_or_default();
        let mask = constraint.mask()?.clone();
        let sum = |tokens: &TokenSet| log_mass(row, tokens, temperature);
        let (all, kept) = (sum(&possible), sum(&mask));
        let mut ends = vocabulary.empty_set();
        let mut next = Vec::new();
        // Each of these will take a pass at least.
        if tokens.len() < longest && passes + open.len() + mask.len() > most + vocabulary.end_of_text().len()
        {
            return Ok(None);
        }
        for token in mask.iter() {
            if vocabulary.is_end_of_text(token) {
                ends.insert(token);
            } else if tokens.len() < longest {
                let log = f64::from(logit(row, token)) / temperature;
                let mut constraint = constraint.clone();
                constraint.advance(token)?;
                let tokens = [&tokens[..], &[token]].concat();
                next.push(Partial { tokens, constraint, own: own + log - all, masked: masked + log - kept });
            }
        }
        if !ends.is_empty() {
            let log = sum(&ends);
            let raw = tokens.iter().map(|token| token.raw()).collect();
            found.push((raw, own + log - all, masked + log - kept));
        }
        open.extend(next.into_iter().rev());
    }
    let all = found.iter().fold(f64::NEG_INFINITY, |most, (_, own, _)| most.max(*own));
    let all = all + found.iter().map(|(_, own, _)| (own - all).exp()).sum::<f64>().ln();
    let sequence = |(tokens, own, masked): (_, f64, f64)| Sequence {
        tokens,
        conditional: (own - all).exp(),
        masked: masked.exp(),
    };
    Ok(Some(found.into_iter().map(sequence).collect()))
}

fn logit(row: &[f32], token: TokenId) -> f32 {
    row.get(token.index()).copied().unwrap_or(f32::NEG_INFINITY)
}

/// Reads the distributions of a folder of records; none if it has no such file.
///
/// # Errors
/// If the file cannot be read, or is damaged.
pub fn read_distributions(folder: &Path) -> Result<Vec<Distribution>, ExperimentError> {
    read_list(&folder.join(FILE))
}

/// Writes distributions into a folder of records, if there are any.
pub(super) fn write_distributions(folder: &Path, all: &[Distribution]) -> Result<(), ExperimentError> {
    write_list(&folder.join(FILE), all)
}

#[cfg(test)]
mod tests;
