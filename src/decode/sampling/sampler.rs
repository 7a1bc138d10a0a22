//! Draws one token from a row of logits (Gumbel-max sampling).
//!
//! Invariant: a draw is a pure function of (row, allowed tokens, sampling, seed, position). Without cuts the
//! score of a token does not depend on which others are allowed, so a token that wins among many wins among
//! any subset with it: this is what makes opportunistic masking exact.

use super::Sampling;
use super::noise::{self, Candidate, GumbelArgmax, PositionNoise, for_each_logit};
use crate::decode::error::DecodeError;
use crate::ids::{TokenId, as_u64};
use crate::model::{GumbelDraw, KeptRows, RowChoice};
use crate::vocab::TokenSet;

/// Draws tokens; each draw is keyed by seed, position and token, not by how often anything was called.
///
/// The position of a token is its index in the whole sequence, prompt included: the first token after a
/// prompt of `n` tokens has position `n`. A loop that counts so writes the same text by the same seed as a
/// [`Decoder`](crate::decode::Decoder) and as a [`BatchDecoder`](crate::decode::BatchDecoder).
#[derive(Debug, Clone, PartialEq)]
pub struct Sampler {
    sampling: Sampling,
    seed: u64,
}

/// The reason why no token can be drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum DrawError {
    /// A logit of the row is not a number, or infinite: the first such token.
    #[error("the logit of token {0} is not a number or is infinite")]
    NotFinite(TokenId),
    /// The row gives every allowed token probability zero.
    #[error("the model gives every allowed token probability zero")]
    Impossible,
    /// No token is allowed.
    #[error("no token is allowed")]
    NoneAllowed,
}

/// The reason why no token can be drawn from rows that are where the model computed them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeptDrawError<E> {
    /// The draw fails as from any row.
    #[error(transparent)]
    Draw(DrawError),
    /// The rows cannot be read.
    #[error("the logits cannot be read")]
    Rows(#[source] E),
}

impl Sampler {
    /// Creates a sampler that draws by `sampling`, with the random numbers of `seed`.
    #[must_use]
    pub fn new(sampling: Sampling, seed: u64) -> Self {
        Self { sampling, seed }
    }

    /// The sampling settings.
    #[must_use]
    pub fn sampling(&self) -> Sampling {
        self.sampling
    }

    /// Returns what a draw adds to the logit over the temperature of `token` at `position` (its index in the
    /// whole sequence, prompt included); zero when greedy.
    #[must_use]
    pub fn noise(&self, position: usize, token: TokenId) -> f64 {
        if self.sampling.is_greedy() {
            return 0.0;
        }
        let noise = PositionNoise::new(self.seed, as_u64(position));
        noise::gumbel(noise.bits(token))
    }

    /// Returns the Gumbel score of a draw at `position`: the logit over the temperature plus the noise, or
    /// the logit when greedy. Minus infinity if the row has no entry.
    pub(super) fn score(&self, row: &[f32], token: TokenId, position: usize) -> f64 {
        let logit = row.get(token.index()).copied().map_or(f64::NEG_INFINITY, f64::from);
        if self.sampling.is_greedy() {
            return logit;
        }
        logit / self.sampling.temperature() + self.noise(position, token)
    }

    /// Draws the token at `position` (its index in the whole sequence, prompt included) from `row`, whose
    /// entry `i` is the logit of token `i`, among the `allowed` tokens. Entries past the allowed set's size
    /// (padding) are never drawn.
    ///
    /// One pass over the row, and one over the allowed tokens unless greedy; with top-p a sort of the
    /// likelier ones.
    ///
    /// # Errors
    /// If a logit is NaN or plus infinity (allowed or not, padding apart), no token is allowed, or all
    /// allowed ones are at minus infinity.
    pub fn draw(&self, row: &[f32], allowed: &TokenSet, position: usize) -> Result<TokenId, DrawError> {
        let row = &row[..row.len().min(allowed.size())];
        check(row)?;
        let best = likeliest(row, allowed)?;
        if self.sampling.is_greedy() {
            return Ok(best);
        }
        let noise = PositionNoise::new(self.seed, as_u64(position));
        let temperature = self.sampling.temperature();
        let largest = row.get(best.index()).copied().unwrap_or(f32::NEG_INFINITY);
        let mut race = GumbelArgmax::new(noise, Candidate::new(best, largest, temperature));
        if self.sampling.cuts() {
            self.kept(row, allowed).into_iter().for_each(|candidate| race.enter(candidate));
        } else {
            race.enter_all(row, allowed, temperature);
        }
        Ok(race.winner())
    }

    /// [`draw`](Self::draw) with the error of a run.
    pub(in crate::decode) fn draw_at(
        &self,
        row: &[f32],
        allowed: &TokenSet,
        position: usize,
    ) -> Result<TokenId, DecodeError> {
        self.draw(row, allowed, position).map_err(|error| DecodeError::draw(error, position))
    }

    /// Draws like [`draw`](Self::draw), from row `index` of rows that are still where the model computed
    /// them. Where the rows can [choose](KeptRows::choose) only the token comes back, unless tokens are cut
    /// off; elsewhere the row does. The token is the same either way.
    ///
    /// # Errors
    /// All of [`draw`](Self::draw), and if the rows cannot be read.
    pub fn draw_kept<R: KeptRows + ?Sized>(
        &self,
        rows: &R,
        index: usize,
        allowed: &TokenSet,
        position: usize,
    ) -> Result<TokenId, KeptDrawError<R::Error>> {
        if let Some(choice) = self.choice(allowed, position)
            && let Some(answers) = rows.choose(index, &[choice]).map_err(KeptDrawError::Rows)?
            && let Some(token) = answers.first().and_then(|answer| answer.token)
        {
            return Ok(token);
        }
        // Without a token the row says why.
        let row = rows.row(index).map_err(KeptDrawError::Rows)?;
        self.draw(&row, allowed, position).map_err(KeptDrawError::Draw)
    }

    /// Returns the choice that [rows on a device](KeptRows::choose) are to make at `position` among the
    /// `allowed` tokens: the one that [`draw`](Self::draw) makes. `None` if tokens are cut off, which takes
    /// the numbers of the row.
    #[must_use]
    pub fn choice<'a>(&self, allowed: &'a TokenSet, position: usize) -> Option<RowChoice<'a>> {
        if self.sampling.cuts() {
            return None;
        }
        if self.sampling.is_greedy() {
            return Some(RowChoice { allowed, draw: None, near: None });
        }
        let key = PositionNoise::new(self.seed, as_u64(position)).key();
        let draw = GumbelDraw { key, temperature: self.sampling.temperature() };
        Some(RowChoice { allowed, draw: Some(draw), near: None })
    }

    /// Returns the allowed tokens that top-k, top-p and min-p leave; the likeliest is always among them.
    fn kept(&self, row: &[f32], allowed: &TokenSet) -> Vec<Candidate> {
        let temperature = self.sampling.temperature();
        let mut kept = Vec::new();
        for_each_logit(row, allowed, |token, logit| {
            if logit > f32::NEG_INFINITY {
                kept.push(Candidate::new(token, logit, temperature));
            }
        });
        let largest = kept.iter().map(|candidate| candidate.score).fold(f64::NEG_INFINITY, f64::max);
        let weight = |candidate: &Candidate| noise::exp(candidate.score - largest);
        if let Some(k) = self.sampling.top_k.filter(|&k| k < kept.len()) {
            kept.select_nth_unstable_by(k, Candidate::likelier);
            kept.truncate(k);
            // Back in a fixed order, so that sums of weights do not depend on how selection works.
            kept.sort_unstable_by_key(|candidate| candidate.token);
        }
        if self.sampling.top_p < 1.0 {
            cut_to_nucleus(&mut kept, self.sampling.top_p, weight);
        }
        if self.sampling.min_p > 0.0 {
            kept.retain(|candidate| weight(candidate) >= self.sampling.min_p);
        }
        kept
    }
}

/// Keeps the fewest likeliest candidates with `share` of the weight or more (top-p, nucleus sampling).
fn cut_to_nucleus(kept: &mut Vec<Candidate>, share: f64, weight: impl Fn(&Candidate) -> f64) {
    let weights: Vec<f64> = kept.iter().map(&weight).collect();
    let total: f64 = weights.iter().sum();
    #[expect(clippy::cast_precision_loss, reason = "vocabularies are far below 2^53")]
    let count = kept.len() as f64;
    // All candidates lighter than this have less than half of the weight that may be cut, together; so the
    // nucleus is reached before the first of them, and only the others need sorting.
    let light = 0.5 * (1.0 - share) * total / count;
    let mut weights = weights.into_iter();
    kept.retain(|_| weights.next().is_some_and(|weight| weight >= light));
    // Sorted part by part, likelier parts first, until the nucleus is reached: most often it is small.
    let (mut sorted, mut sum) = (0, 0.0);
    while sorted < kept.len() {
        let end = (4 * sorted).max(64).min(kept.len());
        let part = &mut kept[sorted..];
        if end - sorted < part.len() {
            part.select_nth_unstable_by(end - sorted, Candidate::likelier);
        }
        kept[sorted..end].sort_unstable_by(Candidate::likelier);
        for index in sorted..end {
            sum += weight(&kept[index]);
            if sum >= share * total {
                kept.truncate(index + 1);
                return;
            }
        }
        sorted = end;
    }
}

/// Refuses NaN and plus infinity.
fn check(row: &[f32]) -> Result<(), DrawError> {
    // Entries past the last id belong to no token.
    let token = noise::first_not_finite(row).and_then(TokenId::from_index);
    token.map_or(Ok(()), |token| Err(DrawError::NotFinite(token)))
}

/// Returns the allowed token with the largest logit; ties by lower id.
fn likeliest(row: &[f32], allowed: &TokenSet) -> Result<TokenId, DrawError> {
    match noise::likeliest(row, allowed) {
        None => Err(DrawError::NoneAllowed),
        Some((_, f32::NEG_INFINITY)) => Err(DrawError::Impossible),
        Some((token, _)) => Ok(token),
    }
}
