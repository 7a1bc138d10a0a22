//! The runs of one grammar.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use clap::ValueEnum;
use domino::{
    CompiledGrammar, TokenId,
    decode::{DecodeStats, Decoder, Sampling},
    model::Model,
    proposer::{BestOf, CountProposer, DraftLength, Drafter, Learning, Lookup, PassCost, Prior, Propose},
};

/// A proposer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Which {
    /// Counts by context.
    Counts,
    /// Lookup of repeated text.
    Lookup,
}

/// Settings of the measurements.
#[derive(Debug)]
pub(crate) struct Protocol {
    pub(crate) sampling: Sampling,
    pub(crate) warmups: usize,
    pub(crate) runs: usize,
    pub(crate) tokens: usize,
    pub(crate) proposers: Vec<Which>,
    pub(crate) length: DraftLength,
    /// Stop a grammar's runs after so long.
    pub(crate) seconds: f64,
    /// Are texts with drafts counted where they are others than without, in place of an error?
    pub(crate) counts_differences: bool,
}

/// A grammar and its prompts.
pub(crate) struct Cell<'a> {
    pub(crate) grammar: &'a CompiledGrammar,
    pub(crate) prompts: Vec<Vec<TokenId>>,
    pub(crate) given: Option<Prior>,
}

/// Sums over runs of one kind.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    pub(crate) tokens: usize,
    pub(crate) passes: usize,
    pub(crate) drafted: usize,
    pub(crate) accepted: usize,
    /// Whole time, the prompt's pass included.
    pub(crate) time: Duration,
    /// Time until the first token, which is part of `time`.
    pub(crate) first: Duration,
    pub(crate) model: Duration,
    pub(crate) masks: Duration,
    pub(crate) drafts: Duration,
    pub(crate) runs: usize,
}

/// Measurements of one grammar.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) unconstrained: Sums,
    pub(crate) plain: Sums,
    pub(crate) speculative: Sums,
    /// Number of runs in which the speculative tokens were those of the plain run.
    pub(crate) same: usize,
    pub(crate) cost: PassCost,
}

impl Sums {
    fn add(&mut self, stats: &DecodeStats, first: Duration) {
        self.tokens += stats.tokens;
        self.passes += stats.passes;
        self.drafted += stats.drafted;
        self.accepted += stats.accepted;
        self.time += stats.total_time;
        self.first += first;
        self.model += stats.model_time;
        self.masks += stats.mask_time;
        self.drafts += stats.draft_time;
        self.runs += 1;
    }

    /// Tokens a second, without the prompt's pass and its token.
    pub(crate) fn rate(&self) -> f64 {
        (self.tokens - self.runs.min(self.tokens)) as f64 / (self.time - self.first).as_secs_f64()
    }

    /// Tokens a second, the prompt's pass included.
    pub(crate) fn whole_rate(&self) -> f64 {
        self.tokens as f64 / self.time.as_secs_f64()
    }

    /// Tokens for each pass after the prompt's.
    pub(crate) fn tokens_per_pass(&self) -> f64 {
        (self.tokens - self.runs.min(self.tokens)) as f64 / (self.passes - self.runs).max(1) as f64
    }
}

impl Cell<'_> {
    pub(crate) fn measure<M: Model>(
        &self,
        decoder: &mut Decoder<M>,
        protocol: &Protocol,
    ) -> anyhow::Result<Measured> {
        let prior = self.prior(decoder, protocol)?;
        let mut drafter = Some(Drafter::new(Box::new(Self::proposer(prior, protocol)), protocol.length));
        let mut measured = Measured {
            unconstrained: Sums::default(),
            plain: Sums::default(),
            speculative: Sums::default(),
            same: 0,
            cost: PassCost::default(),
        };
        let begun = Instant::now();
        // The first is not counted: it measures what passes cost, and fills caches.
        for run in 0..=protocol.runs {
            let (prompt, seed) = (&self.prompts[run % self.prompts.len()], run as u64);
            let mut tokens = [Vec::new(), Vec::new(), Vec::new()];
            for turn in 0..3 {
                let kind = (run + turn) % 3;
                decoder.options_mut().seed = seed;
                decoder.set_constraint((kind > 0).then(|| self.grammar.constraint()))?;
                if kind == 2 {
                    decoder.set_drafter(drafter.take());
                    decoder.calibrate()?;
                }
                let (stats, first);
                (tokens[kind], stats, first) = generate(decoder, prompt)?;
                if kind == 2 {
                    drafter = decoder.set_drafter(None);
                }
                if run > 0 {
                    let sums = match kind {
                        0 => &mut measured.unconstrained,
                        1 => &mut measured.plain,
                        _ => &mut measured.speculative,
                    };
                    sums.add(&stats, first);
                }
            }
            let same = tokens[1] == tokens[2];
            ensure!(same || protocol.counts_differences, "run {run}: speculation has changed the text");
            measured.same += usize::from(run > 0 && same);
            if run > 0 && begun.elapsed().as_secs_f64() > protocol.seconds {
                break;
            }
        }
        measured.cost = drafter.context("a drafter")?.pass_cost().clone();
        Ok(measured)
    }

    /// The given prior, or one from warm-ups. Sets the decoder's options.
    pub(crate) fn prior<M: Model>(
        &self,
        decoder: &mut Decoder<M>,
        protocol: &Protocol,
    ) -> anyhow::Result<Prior> {
        let options = decoder.options_mut();
        options.sampling = protocol.sampling;
        options.max_new_tokens = protocol.tokens;
        match &self.given {
            Some(prior) => Ok(prior.clone()),
            None => self.warm(decoder, protocol.warmups),
        }
    }

    /// Learns a prior by warm-ups, with seeds of their own.
    fn warm<M: Model>(&self, decoder: &mut Decoder<M>, warmups: usize) -> anyhow::Result<Prior> {
        let learner = CountProposer::new(Prior::new(self.grammar), Learning::Online);
        let learner = Arc::new(Mutex::new(learner));
        let drafter = Drafter::new(Box::new(Arc::clone(&learner)), DraftLength::up_to(8, 0.5)?);
        decoder.set_drafter(Some(drafter));
        decoder.set_constraint(Some(self.grammar.constraint()))?;
        for run in 0..warmups {
            decoder.options_mut().seed = 1_000_000 + run as u64;
            decoder.generate(&self.prompts[run % self.prompts.len()])?;
        }
        decoder.set_drafter(None);
        let learner = learner.lock().map_err(|_| anyhow::anyhow!("a proposer that panicked"))?;
        Ok(learner.prior().clone())
    }

    fn proposer(prior: Prior, protocol: &Protocol) -> BestOf {
        let proposers = protocol.proposers.iter().map(|which| -> Box<dyn Propose> {
            match which {
                Which::Counts => Box::new(CountProposer::new(prior.clone(), Learning::PerText)),
                Which::Lookup => Box::new(Lookup::default()),
            }
        });
        BestOf::new(proposers.collect())
    }
}

/// Makes a run; returns its tokens, its costs, and the time until the first token.
fn generate<M: Model>(
    decoder: &mut Decoder<M>,
    prompt: &[TokenId],
) -> anyhow::Result<(Vec<TokenId>, DecodeStats, Duration)> {
    let mut steps = decoder.steps(prompt);
    let start = Instant::now();
    let mut first = None;
    for step in steps.by_ref() {
        step?;
        first.get_or_insert_with(|| start.elapsed());
    }
    let first = first.unwrap_or_else(|| start.elapsed());
    Ok((steps.tokens().to_vec(), *steps.stats(), first))
}
