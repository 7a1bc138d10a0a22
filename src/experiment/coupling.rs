//! Compares the acceptance of guesses by counts with its upper bound.
//!
//! Two draws, one from the counts' distribution q and one from the model's p under its mask, can be made so
//! that they agree with probability `sum of min(p, q)` = 1 - TV, and no more often: maximal coupling, which
//! speculative sampling by rejection reaches. Guesses here share the noise of the draw instead (Gumbel
//! coupling), which needs to know neither distribution when it verifies, and agree a little less often: at
//! least (1 - TV) / (1 + TV).
//!
//! Invariant: it looks at a text after it was written, position by position, and changes nothing.

use crate::{
    decode::{DecodeError, Sampler, likely, log_sum},
    ids::TokenId,
    proposer::{CountProposer, Propose, Seen, Site},
    session::Constraint,
};

/// The result for a text.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Coupling {
    /// Number of tokens that were looked at.
    pub(super) positions: usize,
    /// Sum of 1 - TV over them.
    pub(super) overlap: f64,
    /// Number of guesses that were the token that came.
    pub(super) guessed: usize,
}

/// Follows a text with the counts that drafted it.
#[derive(Debug)]
pub(super) struct Coupled {
    counts: CountProposer,
    sampler: Sampler,
    /// Prompt and text so far.
    tokens: Vec<TokenId>,
    pub(super) found: Coupling,
}

impl Coupled {
    /// Follows a text behind `prompt` that `sampler` drew. `counts` are those from before the text.
    pub(super) fn new(counts: CountProposer, sampler: Sampler, prompt: &[TokenId]) -> Self {
        Self { counts, sampler, tokens: prompt.to_vec(), found: Coupling::default() }
    }

    /// Compares at the place where `token` came from `row`, under `constraint`. One pass over the mask.
    pub(super) fn see(
        &mut self,
        row: &[f32],
        constraint: &mut Constraint,
        token: TokenId,
    ) -> Result<(), DecodeError> {
        let temperature = self.sampler.sampling().temperature();
        let mask = constraint.mask()?.clone();
        let noise = |position, token| self.sampler.noise(position, token);
        let mut site = Site::new(Some(constraint), &mut self.tokens, temperature, &noise);
        let guess = self.counts.guess(&mut site);
        let shares = tempered(self.counts.shares(&mut site), temperature);
        let logit = |token: TokenId| row.get(token.index()).copied().unwrap_or(f32::NEG_INFINITY);
        let logits: Vec<f32> = mask.iter().map(logit).collect();
        let all = log_sum(logits.into_iter(), temperature);
        let model = |token: TokenId| (f64::from(logit(token)) / temperature - all).exp();
        self.found.positions += 1;
        self.found.overlap += shares.iter().map(|&(token, share)| share.min(model(token))).sum::<f64>();
        self.found.guessed += usize::from(guess.is_some_and(|guess| guess.token == token));
        if self.counts.learns() {
            let thought = self.counts.wants_likely().then(|| likely(row, &mask));
            self.counts.observe(&mut site, Seen::new(token, thought.as_deref()));
        }
        drop(site);
        self.tokens.push(token);
        Ok(())
    }
}

/// Applies a temperature to probabilities at temperature 1.
fn tempered(mut shares: Vec<(TokenId, f64)>, temperature: f64) -> Vec<(TokenId, f64)> {
    let largest = shares.iter().map(|(_, share)| *share).fold(0.0, f64::max);
    shares.iter_mut().for_each(|(_, share)| *share = (*share / largest).powf(1.0 / temperature));
    let sum: f64 = shares.iter().map(|(_, share)| *share).sum();
    shares.iter_mut().for_each(|(_, share)| *share /= sum);
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Compiler, Grammar, Limits, Syntax, Vocabulary,
        decode::Sampling,
        proposer::{Counting, Learning, Prior},
    };

    const LETTERS: [u32; 4] = [97, 98, 99, 100];

    fn token(id: u32) -> TokenId {
        TokenId::new(id)
    }

    /// Counts of letters that came so often before, at the only place there is.
    fn counts(start: &Constraint, prior: Prior, came: [usize; 4]) -> CountProposer {
        let counting = Counting { tokens_before: false, soft: false, coupled: true };
        let mut counts = CountProposer::new(prior, Learning::Online).counting(counting);
        for (letter, times) in LETTERS.into_iter().zip(came) {
            for _ in 0..times {
                let mut tokens = vec![token(120)];
                let mut site = Site::new(Some(start), &mut tokens, 1.0, &|_, _| 0.0);
                counts.observe(&mut site, Seen::new(token(letter), None));
            }
        }
        let frozen = counts.prior().clone();
        CountProposer::new(frozen, Learning::Fixed).counting(counting)
    }

    /// Tests one place with known distributions: the overlap is the sum of the lesser probabilities, draws
    /// with the same noise agree between the lower bound and it, and draws with other noise less often.
    #[test]
    fn gumbel_coupling_is_close_to_maximal() {
        let vocabulary = Vocabulary::builder().all_bytes().end_of_text(token(256)).build().unwrap();
        let grammar = Grammar::parse(Syntax::Gbnf, "root ::= [a-d]+ \"!\"", &Limits::default()).unwrap();
        let compiled = Compiler::new(vocabulary).compile(&grammar).unwrap();
        for (temperature, logits) in [(1.0, [0.0_f32, 1.0, -1.0, 0.5]), (0.5, [0.7, 0.0, 0.2, -2.0])] {
            let start = compiled.constraint();
            let counts = counts(&start, Prior::new(&compiled), [8, 4, 2, 2]);
            let mut row = [20.0_f32; 257];
            LETTERS.iter().zip(logits).for_each(|(id, logit)| row[token(*id).index()] = logit);
            let shares = |weights: [f64; 4]| {
                let powered = weights.map(|weight| weight.powf(1.0 / temperature));
                powered.map(|weight| weight / powered.iter().sum::<f64>())
            };
            let p = shares(logits.map(|logit| f64::from(logit).exp()));
            let q = shares([8.0, 4.0, 2.0, 2.0]);
            let overlap: f64 = p.iter().zip(q).map(|(p, q)| p.min(q)).sum();
            let (mut agreed, mut apart) = (0.0, 0.0);
            let draws = 4000;
            for seed in 0..draws {
                let sampling = Sampling::with_temperature(temperature).unwrap();
                let sampler = Sampler::new(sampling, seed);
                let mut constraint = start.fork();
                let drawn = |sampler: &Sampler| {
                    let mask = start.clone().mask().unwrap().clone();
                    sampler.draw(&row, &mask, 1).unwrap()
                };
                let mut see = |token| {
                    let mut coupled = Coupled::new(counts.another(), sampler.clone(), &[TokenId::new(120)]);
                    coupled.see(&row, &mut constraint, token).unwrap();
                    assert_eq!(coupled.found.positions, 1);
                    assert!((coupled.found.overlap - overlap).abs() < 1e-6, "{:?} {overlap}", coupled.found);
                    f64::from(u32::try_from(coupled.found.guessed).unwrap()) / 4000.0
                };
                agreed += see(drawn(&sampler));
                apart += see(drawn(&Sampler::new(sampling, seed + draws)));
            }
            let least = overlap / (2.0 - overlap);
            assert!(agreed < overlap + 0.03 && agreed > least - 0.03, "{agreed} {overlap} {least}");
            assert!(apart < agreed - 0.1, "{apart} {agreed}");
        }
    }

    #[test]
    fn tempering_no_counts_gives_no_distribution() {
        assert!(tempered(Vec::new(), 1.0).is_empty());
    }
}
