//! Draws from the model *conditioned* on the language: sequential importance resampling, a particle filter.
//!
//! Masks sample the locally projected distribution: each token is drawn from what its mask keeps, whatever
//! the rest of the text will cost. The model conditioned on the language (arXiv 2405.21047) weighs a text by
//! the product of the probabilities that its masks kept. Here several texts, the particles, are written side
//! by side, each with that product as its weight. If the effective sample size falls under half of their
//! number, they are resampled by weight (systematic resampling). At the end one is drawn by the weights.
//!
//! The weight of a place does not depend on the token drawn there, so particles are resampled before the
//! draw, and copies diverge at once. With one particle the tokens are those of masks with the same seed; the
//! distribution comes nearer to the conditional one with every further particle, and is never quite it.
//!
//! Invariants: tokens, weights and choices are a function of model, prompt, constraint, options and number of
//! particles; a particle of weight zero is never chosen while there is another.

use std::time::Duration;

use super::error::{BuildError, BuildErrorKind, DecodeError};
use super::run::{Finish, Generation};
use super::sampling::noise::{self, PositionNoise};
use super::sampling::sampler::{DrawError, Sampler};
use super::sampling::{choice::possible, logprobs::log_kept};
use super::stats::{DecodeStats, timed};
use super::{decoder::check_size, options::DecodeOptions};
use crate::ids::{TokenId, as_f64, as_u64};
use crate::model::{BatchInput, BatchModel, Logits, Rows};
use crate::{Constraint, Patience};
use crate::{clock::Instant, vocab::TokenSet};

/// Draws texts from a model conditioned on a language, by as many particles as the model has sequences.
#[derive(Debug)]
pub struct ConditionalDecoder<B: BatchModel> {
    model: B,
    /// The constraint before the text.
    start: Constraint,
    options: DecodeOptions,
    /// All tokens that can be generated.
    possible: TokenSet,
}

/// A text that was drawn, and estimates of the distribution.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ConditionalText {
    /// The text. It ends by [`Finish::Stop`], or by [`Finish::Length`] if no particle was in the language at
    /// the limit of length. Passes are shared by all particles; draws and masks are those of all.
    pub generation: Generation,
    /// Time until every particle had its first token.
    pub first: Duration,
    /// Sum of the logs of the probabilities that its masks kept, end of text included.
    pub log_kept: f64,
    /// Estimate of the log of the probability that the model by itself writes a text of the language within
    /// the limit of length. Its exponential is unbiased. `None` if no particle finished.
    pub log_language: Option<f64>,
    /// Effective sample size of the last weights: from 1, if one particle has all the weight, to the number
    /// of particles.
    pub effective: f64,
    /// Number of resamplings.
    pub resamplings: usize,
    /// Number of tokens of all passes: those of copied particles are fed again.
    pub fed: usize,
}

impl<B: BatchModel> ConditionalDecoder<B> {
    /// Creates a decoder with a particle for each sequence of the model, whose texts begin at `constraint`.
    /// One pass over the vocabulary.
    ///
    /// # Errors
    /// If the model has no room for a sequence, the constraint's vocabulary has ids past its rows of logits,
    /// or the options ask for what has no conditional distribution here: greedy draws, top-k, top-p, min-p,
    /// penalties, stop strings, completion, or log-probabilities.
    pub fn new(model: B, constraint: &Constraint, options: &DecodeOptions) -> Result<Self, BuildError> {
        if model.sequences() == 0 {
            return Err(BuildErrorKind::NoSequences.into());
        }
        check_size(constraint.vocabulary(), model.vocabulary_size())?;
        let greedy = options.sampling.is_greedy().then_some("temperature 0");
        if let Some(what) = greedy.or(options.beyond_plain_draws()) {
            return Err(BuildErrorKind::NotConditional(what).into());
        }
        let start = constraint.fork().patient_unless_told(Patience::whole());
        let mut possible = possible(start.vocabulary());
        if start.asks_for_specials() {
            possible = start.with_specials(&possible);
        }
        Ok(Self { model, start, options: options.clone(), possible })
    }

    /// Draws a text that continues `prompt`. `go_on` is called before each pass; if it returns false, the
    /// particles are cut as by length.
    ///
    /// # Errors
    /// If the prompt is empty or does not fit in the context, a pass, a draw or the constraint fails, or no
    /// particle can go on.
    pub fn draw(
        &mut self,
        prompt: &[TokenId],
        go_on: &dyn Fn() -> bool,
    ) -> Result<ConditionalText, DecodeError> {
        let begun = Instant::now();
        let context = self.model.context();
        DecodeError::check_prompt(prompt.len(), context)?;
        let mut filter = Filter {
            particles: Vec::new(),
            held: vec![Vec::new(); self.model.sequences()],
            samplers: (0..self.model.sequences()).map(|place| self.sampler(place)).collect(),
            possible: &self.possible,
            temperature: self.options.sampling.temperature(),
            most: self.options.max_new_tokens.min(context - prompt.len()),
            log_language: 0.0,
            resamplings: 0,
            fed: 0,
            stats: DecodeStats { prompt_tokens: prompt.len(), ..DecodeStats::default() },
        };
        for place in 0..self.model.sequences() {
            self.model.truncate(place, 0).map_err(DecodeError::model)?;
            filter.particles.push(Particle::new(prompt, self.start.fork()));
        }
        let (mut position, mut first) = (prompt.len(), None);
        while filter.is_running() && go_on() {
            let rows = filter.pass(&mut self.model)?;
            filter.weigh(&rows, position)?;
            let resampling = PositionNoise::new(self.options.seed, RESAMPLING);
            let sources = filter.resample(uniform(resampling.bits_of(as_u64(position))));
            filter.draw(&rows, &sources, position)?;
            position += 1;
            first.get_or_insert_with(|| begun.elapsed());
        }
        let choice = uniform(PositionNoise::new(self.options.seed, CHOICE).bits_of(0));
        let mut text = filter.choose(choice);
        text.generation.stats.total_time = begun.elapsed();
        text.first = first.unwrap_or(text.generation.stats.total_time);
        Ok(text)
    }

    /// Returns the sampler of a place: the first one's noise is that of masks with the same seed.
    fn sampler(&self, place: usize) -> Sampler {
        let seed = match place {
            0 => self.options.seed,
            _ => PositionNoise::new(self.options.seed, SEEDS).bits_of(as_u64(place)),
        };
        Sampler::new(self.options.sampling, seed)
    }
}

/// Positions that no token has, whose noise serves other draws.
const SEEDS: u64 = u64::MAX;
const RESAMPLING: u64 = u64::MAX - 1;
const CHOICE: u64 = u64::MAX - 2;

/// Converts random bits to a number in 0..1.
fn uniform(bits: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact in f64")]
    let uniform = (bits >> 11) as f64 / 9_007_199_254_740_992.0;
    uniform
}

/// The state of a particle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParticleState {
    Running,
    /// This end of text was drawn.
    Ended(TokenId),
    /// The limit of length was reached and the text cannot end there, or nothing can follow.
    Cut,
}

/// A particle: one of the texts.
#[derive(Debug)]
struct Particle {
    constraint: Constraint,
    /// Prompt and text.
    sequence: Vec<TokenId>,
    /// The tokens that may follow.
    allowed: TokenSet,
    state: ParticleState,
    /// Log of the weight since the last resampling.
    log_weight: f64,
    /// Sum of the logs of the probabilities that its masks kept.
    log_kept: f64,
}

impl Particle {
    fn new(prompt: &[TokenId], constraint: Constraint) -> Self {
        Self {
            constraint,
            sequence: prompt.to_vec(),
            allowed: TokenSet::empty(0),
            state: ParticleState::Running,
            log_weight: 0.0,
            log_kept: 0.0,
        }
    }

    fn copy(&self) -> Self {
        let (constraint, sequence) = (self.constraint.fork(), self.sequence.clone());
        Self { constraint, sequence, allowed: self.allowed.clone(), ..*self }
    }

    /// Returns the log of its weight among others: zero weight if it was cut.
    fn log_share(&self) -> f64 {
        if self.state == ParticleState::Cut { f64::NEG_INFINITY } else { self.log_weight }
    }
}

/// All particles of one text, by their places in the model.
struct Filter<'a> {
    particles: Vec<Particle>,
    /// The tokens in the model's cache of each place.
    held: Vec<Vec<TokenId>>,
    samplers: Vec<Sampler>,
    /// All tokens that can be generated.
    possible: &'a TokenSet,
    temperature: f64,
    /// Greatest number of tokens of a text.
    most: usize,
    /// Log of the product of mean weights at past resamplings.
    log_language: f64,
    resamplings: usize,
    fed: usize,
    stats: DecodeStats,
}

impl Filter<'_> {
    fn is_running(&self) -> bool {
        self.particles.iter().any(|particle| particle.state == ParticleState::Running)
    }

    /// Makes a pass for all running particles; returns rows by place. The part of a place's cache that agrees
    /// with its particle is kept.
    fn pass<B: BatchModel>(&mut self, model: &mut B) -> Result<Vec<Option<Logits>>, DecodeError> {
        let mut inputs = Vec::new();
        for (place, particle) in self.particles.iter().enumerate() {
            if particle.state != ParticleState::Running {
                continue;
            }
            let held = &self.held[place];
            let common = held.iter().zip(&particle.sequence).take_while(|(one, other)| one == other).count();
            let common = common.min(particle.sequence.len() - 1);
            if common < held.len() {
                model.truncate(place, common).map_err(DecodeError::model)?;
            }
            inputs.push(BatchInput {
                sequence: place,
                tokens: &particle.sequence[common..],
                rows: Rows::Last,
            });
        }
        let passed = timed(&mut self.stats.model_time, || model.forward(&inputs));
        let mut rows = vec![None; self.particles.len()];
        for (input, row) in inputs.iter().zip(passed.map_err(DecodeError::model)?) {
            rows[input.sequence] = Some(row);
            self.fed += input.tokens.len();
        }
        for (held, particle) in self.held.iter_mut().zip(&self.particles) {
            if particle.state == ParticleState::Running {
                held.clone_from(&particle.sequence);
            }
        }
        self.stats.passes += 1;
        Ok(rows)
    }

    /// Multiplies weights by the probability that the masks keep here. At the limit of length only end of
    /// text is kept.
    fn weigh(&mut self, rows: &[Option<Logits>], position: usize) -> Result<(), DecodeError> {
        let full = position - self.stats.prompt_tokens >= self.most;
        let mut why = DrawError::NoneAllowed;
        for ((particle, row), sampler) in self.particles.iter_mut().zip(rows).zip(&self.samplers) {
            let Some(row) = row.as_ref().and_then(Logits::last) else { continue };
            self.stats.masks += 1;
            let mask = timed(&mut self.stats.mask_time, || particle.constraint.mask())?.clone();
            particle.allowed = if full { ends(&mask, &particle.constraint) } else { mask };
            let kept = log_kept(row, &particle.allowed, self.possible, self.temperature);
            if kept.is_nan() {
                sampler.draw_at(row, self.possible, position)?;
            }
            if kept > f64::NEG_INFINITY {
                particle.log_weight += kept;
                particle.log_kept += kept;
                continue;
            }
            particle.state = ParticleState::Cut;
            if !full {
                particle.log_weight = kept;
                why = if particle.allowed.is_empty() { why } else { DrawError::Impossible };
            }
        }
        let is_left = |particle: &Particle| particle.log_weight > f64::NEG_INFINITY;
        if self.particles.iter().any(is_left) { Ok(()) } else { Err(DecodeError::draw(why, position)) }
    }

    /// Resamples particles if their effective sample size is under half of their number; survivors stay at
    /// their places. Returns the former place of the particle at each place.
    fn resample(&mut self, uniform: f64) -> Vec<usize> {
        let count = self.particles.len();
        let mut sources: Vec<usize> = (0..count).collect();
        let (weights, log_mean) = self.weights();
        if log_mean == f64::NEG_INFINITY || !needed(&weights) {
            return sources;
        }
        let offspring = offspring(&weights, uniform);
        let copies = offspring.iter().enumerate().flat_map(|(at, &n)| std::iter::repeat_n(at, n.max(1) - 1));
        let free = offspring.iter().enumerate().filter(|(_, n)| **n == 0).map(|(at, _)| at);
        let moves: Vec<(usize, usize)> = copies.zip(free).collect();
        for (from, to) in moves {
            self.particles[to] = self.particles[from].copy();
            sources[to] = from;
        }
        self.particles.iter_mut().for_each(|particle| particle.log_weight = 0.0);
        self.log_language += log_mean;
        self.resamplings += 1;
        sources
    }

    /// Draws a token for each running particle, from the row of its source, with the noise of its own place.
    fn draw(
        &mut self,
        rows: &[Option<Logits>],
        sources: &[usize],
        position: usize,
    ) -> Result<(), DecodeError> {
        let draws = self.particles.iter_mut().zip(sources).zip(&self.samplers);
        for ((particle, &source), sampler) in draws {
            let row = rows.get(source).and_then(Option::as_ref).and_then(Logits::last);
            let Some(row) = row.filter(|_| particle.state == ParticleState::Running) else { continue };
            let token = sampler.draw_at(row, &particle.allowed, position)?;
            self.stats.draws += 1;
            timed(&mut self.stats.mask_time, || particle.constraint.advance(token))?;
            if particle.constraint.is_ended() {
                particle.state = ParticleState::Ended(token);
            } else {
                particle.sequence.push(token);
            }
        }
        Ok(())
    }

    /// Returns the weights relative to the largest, and the log of their mean.
    fn weights(&self) -> (Vec<f64>, f64) {
        relative(&self.particles.iter().map(Particle::log_share).collect::<Vec<_>>())
    }

    /// Chooses one of the particles by weight; one that was cut only if there is no other.
    fn choose(mut self, uniform: f64) -> ConditionalText {
        let still = |particle: &&mut Particle| particle.state == ParticleState::Running;
        self.particles.iter_mut().filter(still).for_each(|particle| particle.state = ParticleState::Cut);
        let (mut weights, log_mean) = self.weights();
        let finished = log_mean > f64::NEG_INFINITY;
        if !finished {
            let cut: Vec<f64> = self.particles.iter().map(|particle| particle.log_weight).collect();
            weights = relative(&cut).0;
        }
        let effective = effective(&weights);
        let chosen = chosen(&weights, uniform);
        let Particle { constraint, sequence, state, log_kept, .. } = self.particles.swap_remove(chosen);
        let ended = if let ParticleState::Ended(token) = state { Some(token) } else { None };
        let tokens = sequence[self.stats.prompt_tokens..].to_vec();
        self.stats.tokens = tokens.len();
        let text: Vec<u8> = tokens.iter().flat_map(|token| constraint.text_of(*token)).copied().collect();
        let finish = if ended.is_some() { Finish::Stop } else { Finish::Length };
        ConditionalText {
            generation: Generation::of_constraint(&constraint, (tokens, text), finish, ended, self.stats),
            first: Duration::ZERO,
            log_kept,
            log_language: finished.then_some(self.log_language + log_mean),
            effective,
            resamplings: self.resamplings,
            fed: self.fed,
        }
    }
}

/// Returns the tokens of the mask that end the text.
fn ends(mask: &TokenSet, constraint: &Constraint) -> TokenSet {
    let vocabulary = constraint.vocabulary();
    let mut ends = vocabulary.empty_set();
    let allowed = vocabulary.end_of_text().iter().filter(|token| mask.contains(**token));
    allowed.for_each(|token| ends.insert(*token));
    ends
}

/// Returns weights relative to the largest, and the log of their mean; zeros and minus infinity if all are
/// zero.
fn relative(logs: &[f64]) -> (Vec<f64>, f64) {
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return (vec![0.0; logs.len()], largest);
    }
    let weights: Vec<f64> = logs.iter().map(|log| noise::exp(log - largest)).collect();
    let mean = weights.iter().sum::<f64>() / as_f64(logs.len());
    (weights, largest + noise::ln(mean))
}

/// Returns Kish's effective sample size.
fn effective(weights: &[f64]) -> f64 {
    let (sum, squares) = weights.iter().fold((0.0, 0.0), |(sum, squares), w| (sum + w, squares + w * w));
    if squares > 0.0 { sum * sum / squares } else { 0.0 }
}

/// Systematic resampling: returns the number of copies of each particle, keeping their number. Each gets its
/// share, rounded up or down.
fn offspring(weights: &[f64], uniform: f64) -> Vec<usize> {
    let step = weights.iter().sum::<f64>() / as_f64(weights.len());
    let mut copies = vec![0; weights.len()];
    let (mut given, mut sum) = (0, 0.0);
    for (copies, weight) in copies.iter_mut().zip(weights) {
        sum += weight;
        while given < weights.len() && (uniform + as_f64(given)) * step < sum {
            *copies += 1;
            given += 1;
        }
    }
    // Sums are off by rounding.
    if let Some(last) = weights.iter().rposition(|weight| *weight > 0.0) {
        copies[last] += weights.len() - given;
    }
    copies
}

/// Are the weights so uneven that particles should be resampled: is the effective sample size under half of
/// their number?
fn needed(weights: &[f64]) -> bool {
    2.0 * effective(weights) < as_f64(weights.len())
}

/// Returns the index that a number in 0..1 falls on, if each has its weight's share.
fn chosen(weights: &[f64], uniform: f64) -> usize {
    let mut rest = uniform * weights.iter().sum::<f64>();
    let found = weights.iter().position(|weight| {
        rest -= weight;
        rest < 0.0
    });
    // Sums are off by rounding.
    found.or_else(|| weights.iter().rposition(|weight| *weight > 0.0)).unwrap_or(0)
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod resampling_tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// There are as many copies as particles, each share rounded up or down; on average exactly the
        /// share.
        #[test]
        fn copies_are_shares_rounded_up_or_down(
            weights in prop::collection::vec(prop_oneof![1 => Just(0.0), 4 => 1e-6..1.0_f64], 1..30),
            u in 0.0..1.0_f64,
        ) {
            let total: f64 = weights.iter().sum();
            prop_assume!(total > 0.0);
            let count = weights.len();
            let copies = offspring(&weights, u);
            prop_assert_eq!(copies.iter().sum::<usize>(), count);
            for (copies, weight) in copies.iter().zip(&weights) {
                let share = as_f64(count) * weight / total;
                prop_assert!((as_f64(*copies) - share).abs() < 1.0 + 1e-9, "{} {}", copies, share);
                prop_assert!(*weight > 0.0 || *copies == 0);
            }
            let steps = 400;
            let mut sums = vec![0.0; count];
            for step in 0..steps {
                let copies = offspring(&weights, (f64::from(step) + 0.5) / f64::from(steps));
                let mean = |copies| as_f64(copies) / f64::from(steps);
                sums.iter_mut().zip(copies).for_each(|(sum, copies)| *sum += mean(copies));
            }
            for (sum, weight) in sums.iter().zip(&weights) {
                prop_assert!((sum - as_f64(count) * weight / total).abs() < 0.02);
            }
        }
    }

    #[test]
    fn draws_choose_particles_by_weight() {
        let weights = [0.0, 1.0, 3.0, 0.0];
        let places: Vec<usize> = (0..8).map(|eighth| chosen(&weights, f64::from(eighth) / 8.0)).collect();
        assert_eq!(places, [1, 1, 2, 2, 2, 2, 2, 2]);
        assert_eq!((chosen(&weights, 1.0), chosen(&[0.0, 0.0], 0.5)), (2, 0));
    }

    #[test]
    fn weights_are_relative_and_their_evenness_counts() {
        let logs = [-1000.0, f64::NEG_INFINITY, -1000.0 + 3.0_f64.ln()];
        let (weights, log_mean) = relative(&logs);
        assert!((weights[0] - 1.0 / 3.0).abs() < 1e-12 && weights[1] == 0.0 && weights[2] == 1.0);
        assert!((log_mean - (-1000.0 + (4.0_f64 / 3.0).ln())).abs() < 1e-9);
        assert!((effective(&weights) - 1.6).abs() < 1e-12);
        assert_eq!(relative(&[f64::NEG_INFINITY; 2]), (vec![0.0; 2], f64::NEG_INFINITY));
        assert!(needed(&[1.0, 0.1, 0.1, 0.1]) && !needed(&[1.0, 1.0, 0.0, 0.0]) && !needed(&[1.0]));
    }
}
