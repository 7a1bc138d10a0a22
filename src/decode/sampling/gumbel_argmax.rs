//! Argmax over a whole row of logits, with Gumbel noise (Gumbel-max sampling) or without.
//!
//! Invariant: both give the result of comparing all candidates one by one. Words of 64 tokens are processed
//! in wide registers, only to find those that an upper bound rules out; the rest are compared one by one.

use std::cmp::Ordering;

use super::{
    noise::{self, PositionNoise},
    wide::{Loop, dispatch},
};
use crate::{
    ids::TokenId,
    vocab::{Contents, TokenSet},
};

/// Number of tokens in a word of a set.
const WORD: usize = 64;
/// Number of tokens of a word up to which they are compared one by one.
const FEW: u32 = 6;

/// A token that may be drawn, and its logit over the temperature.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) score: f64,
    pub(super) token: TokenId,
}

impl Candidate {
    pub(super) fn new(token: TokenId, logit: f32, temperature: f64) -> Self {
        // Adding zero makes minus zero zero, so that the two are equal in the order below.
        Self { score: f64::from(logit) / temperature + 0.0, token }
    }

    /// Compares candidates: likelier ones first, ties by lower id. Scores are never NaN.
    pub(super) fn likelier(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.token.cmp(&other.token))
    }
}

/// The Gumbel-max so far: the candidate with the largest score plus noise.
#[derive(Debug)]
pub(super) struct GumbelArgmax {
    noise: PositionNoise,
    winner: Candidate,
    /// Score plus noise of the winner.
    total: f64,
}

impl GumbelArgmax {
    pub(super) fn new(noise: PositionNoise, first: Candidate) -> Self {
        let total = first.score + noise::gumbel(noise.bits(first.token));
        Self { noise, winner: first, total }
    }

    /// The winner.
    pub(super) fn winner(&self) -> TokenId {
        self.winner.token
    }

    /// Enters a candidate: the larger total wins, ties by lower id, in whatever order they enter.
    pub(super) fn enter(&mut self, candidate: Candidate) {
        let bits = self.noise.bits(candidate.token);
        if candidate.score + noise::gumbel_bound(bits) < self.total {
            return;
        }
        let total = candidate.score + noise::gumbel(bits);
        if total > self.total || total == self.total && candidate.token < self.winner.token {
            self.winner = candidate;
            self.total = total;
        }
    }

    /// Enters all allowed tokens, whose logits must be numbers and not plus infinity.
    pub(super) fn enter_all(&mut self, row: &[f32], allowed: &TokenSet, temperature: f64) {
        match allowed.contents() {
            Contents::Listed(tokens) => for_each_listed(row, tokens, |token, logit| {
                self.enter(Candidate::new(token, logit, temperature));
            }),
            Contents::Bits(words) => dispatch(All { race: self, row, words, temperature }),
        }
    }

    /// Bit mask of the 64 tokens from `first` on whose upper bound reaches the winner's total; no false
    /// negatives.
    #[inline(always)]
    fn contenders(&self, logits: &[f32; WORD], first: u64, inverse: f64) -> u64 {
        // Products with the inverse are off by less than this, as no score is far above the winner's.
        let least = self.total - 1e-9 * (self.total.abs() + 64.0);
        if !(least.is_finite() && inverse.is_finite()) {
            return u64::MAX;
        }
        let mut most = [0.0; WORD];
        let mut any = false;
        for (index, (most, &logit)) in (first..).zip(most.iter_mut().zip(logits)) {
            *most = f64::from(logit) * inverse + noise::gumbel_bound(self.noise.bits_of(index));
            any |= *most >= least;
        }
        if !any {
            return 0;
        }
        most.iter().enumerate().fold(0, |found, (at, &most)| found | u64::from(most >= least) << at)
    }
}

struct All<'a> {
    race: &'a mut GumbelArgmax,
    row: &'a [f32],
    words: &'a [u64],
    temperature: f64,
}

impl Loop for All<'_> {
    type Found = ();

    #[inline(always)]
    fn run(self) {
        let Self { race, row, words, temperature } = self;
        let inverse = 1.0 / temperature;
        let mut first = 0_u32;
        for (logits, &word) in row.chunks(WORD).zip(words) {
            let rest = match logits.first_chunk() {
                Some(logits) if word.count_ones() > FEW => {
                    word & race.contenders(logits, u64::from(first), inverse)
                }
                _ => word,
            };
            for_each_bit(rest, logits, |bit, logit| {
                race.enter(Candidate::new(TokenId::new(first + bit), logit, temperature));
            });
            first += 64;
        }
    }
}

/// Calls `each` with the places of a word's bits and the logits there, the lowest first.
fn for_each_bit(mut word: u64, logits: &[f32], mut each: impl FnMut(u32, f32)) {
    while word != 0 {
        let bit = word.trailing_zeros();
        if let Some(&logit) = usize::try_from(bit).ok().and_then(|bit| logits.get(bit)) {
            each(bit, logit);
        }
        word &= word - 1;
    }
}

/// Calls `each` with these tokens and their logits, as far as they have any.
fn for_each_listed(row: &[f32], tokens: &[TokenId], mut each: impl FnMut(TokenId, f32)) {
    for &token in tokens {
        if let Some(&logit) = row.get(token.index()) {
            each(token, logit);
        }
    }
}

/// Calls `each` with the allowed tokens and their logits, lowest id first.
pub(super) fn for_each_logit(row: &[f32], allowed: &TokenSet, mut each: impl FnMut(TokenId, f32)) {
    match allowed.contents() {
        Contents::Listed(tokens) => for_each_listed(row, tokens, each),
        Contents::Bits(words) => {
            let mut first = 0_u32;
            for (logits, &word) in row.chunks(WORD).zip(words) {
                for_each_bit(word, logits, |bit, logit| each(TokenId::new(first + bit), logit));
                first += 64;
            }
        }
    }
}

/// Returns the largest allowed logit of each word of 64 tokens, minus infinity if there is none. No logit is
/// NaN. One pass over the words that have allowed tokens.
pub(super) fn tops(row: &[f32], allowed: &TokenSet) -> Vec<f32> {
    match allowed.contents() {
        Contents::Listed(tokens) => {
            let mut tops = vec![f32::NEG_INFINITY; row.len().min(allowed.size()).div_ceil(WORD)];
            for_each_listed(row, tokens, |token, logit| {
                let top = &mut tops[token.index() / WORD];
                *top = larger(*top, logit);
            });
            tops
        }
        Contents::Bits(words) => dispatch(Tops { row, words }),
    }
}

/// Returns the allowed token with the largest logit, and the logit; ties by lower id. No logit is NaN.
pub(super) fn likeliest(row: &[f32], allowed: &TokenSet) -> Option<(TokenId, f32)> {
    match allowed.contents() {
        Contents::Listed(tokens) => {
            let mut best: Option<(TokenId, f32)> = None;
            for_each_listed(row, tokens, |token, logit| {
                if best.is_none_or(|(_, top)| logit > top) {
                    best = Some((token, logit));
                }
            });
            best
        }
        Contents::Bits(words) => likeliest_of(row, words),
    }
}

/// Finds the likeliest allowed token: the best logit of each 64 tokens, then the first token with the best.
fn likeliest_of(row: &[f32], words: &[u64]) -> Option<(TokenId, f32)> {
    let tops = dispatch(Tops { row, words });
    let top = tops.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    // A word without allowed tokens has the same top as one whose allowed tokens are all impossible.
    let words = row.chunks(WORD).zip(words).zip(&tops).enumerate();
    for (index, ((logits, &word), _)) in words.filter(|(_, (_, other))| **other == top) {
        let mut found = None;
        for_each_bit(word, logits, |bit, logit| {
            if logit == top && found.is_none() {
                found = Some(bit);
            }
        });
        let token = found.zip(u32::try_from(index * WORD).ok()).map(|(bit, first)| TokenId::new(first + bit));
        if let Some(token) = token {
            return Some((token, top));
        }
    }
    None
}

struct Tops<'a> {
    row: &'a [f32],
    words: &'a [u64],
}

impl Loop for Tops<'_> {
    type Found = Vec<f32>;

    #[inline(always)]
    fn run(self) -> Vec<f32> {
        let mut tops = Vec::with_capacity(self.words.len());
        for (logits, &word) in self.row.chunks(WORD).zip(self.words) {
            let top = match logits.first_chunk() {
                Some(logits) if word.count_ones() > FEW => top_of(logits, word),
                _ => {
                    let mut top = f32::NEG_INFINITY;
                    for_each_bit(word, logits, |_, logit| top = larger(top, logit));
                    top
                }
            };
            tops.push(top);
        }
        tops
    }
}

#[inline(always)]
fn larger(one: f32, other: f32) -> f32 {
    if other > one { other } else { one }
}

/// Returns the largest of a word's allowed logits: in lanes, which the compiler turns into wide registers.
#[inline(always)]
fn top_of(logits: &[f32; WORD], word: u64) -> f32 {
    const LANES: usize = 16;
    let mut lanes = [f32::NEG_INFINITY; LANES];
    for (part, logits) in logits.as_chunks::<LANES>().0.iter().enumerate() {
        let bits = word >> (part * LANES);
        for (at, lane) in lanes.iter_mut().enumerate() {
            let logit = if bits >> at & 1 == 1 { logits[at] } else { f32::NEG_INFINITY };
            *lane = larger(*lane, logit);
        }
    }
    lanes.into_iter().fold(f32::NEG_INFINITY, larger)
}

/// Finds the first number that is NaN or plus infinity. One pass.
pub(super) fn first_not_finite(row: &[f32]) -> Option<usize> {
    dispatch(NotFinite { row })
}

struct NotFinite<'a> {
    row: &'a [f32],
}

impl Loop for NotFinite<'_> {
    type Found = Option<usize>;

    #[inline(always)]
    fn run(self) -> Option<usize> {
        let bad = |logit: f32| logit.is_nan() || logit == f32::INFINITY;
        for (index, block) in self.row.chunks(256).enumerate() {
            // Without a branch per number.
            let mut fine = true;
            for &logit in block {
                fine &= logit < f32::INFINITY;
            }
            if !fine {
                return block.iter().position(|&logit| bad(logit)).map(|offset| index * 256 + offset);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
