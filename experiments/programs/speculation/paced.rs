//! A model with its own draws but another one's pace: a replay.

use std::{
    num::NonZeroUsize,
    str::FromStr,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use domino::{
    TokenId,
    model::{Kept, Logits, Model, Rows},
};

use crate::delegate::delegate_model;

/// Seconds of passes over n tokens, as measured of a larger model.
#[derive(Debug, Clone)]
pub(crate) struct Pace {
    /// Tokens and seconds in ascending order, beginning with one token.
    points: Vec<(usize, f64)>,
}

impl FromStr for Pace {
    type Err = anyhow::Error;

    /// Parses `1:13.3,2:15.3,4:19.8`: tokens and milliseconds.
    fn from_str(text: &str) -> anyhow::Result<Self> {
        let points = text.split(',').map(|point| {
            let (tokens, milliseconds) = point.split_once(':').context("for example 1:13.3,8:32.5")?;
            Ok((tokens.parse()?, milliseconds.parse::<f64>()? / 1e3))
        });
        let points = points.collect::<anyhow::Result<Vec<_>>>()?;
        ensure!(points.first().is_some_and(|point| point.0 == 1), "passes over 1 token come first");
        ensure!(points.len() > 1, "at least two points are needed");
        ensure!(points.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "tokens and milliseconds ascend");
        Ok(Self { points })
    }
}

impl Pace {
    /// Linear interpolation between the points, extrapolated by the last two.
    fn seconds(&self, tokens: usize) -> f64 {
        let after = self.points.partition_point(|point| point.0 < tokens).clamp(1, self.points.len() - 1);
        let [(n, low), (m, high)] = [after - 1, after].map(|index| self.points[index]);
        low + (high - low) * (tokens as f64 - n as f64) / (m as f64 - n as f64)
    }
}

/// A model at its own pace or at that of another one.
pub(crate) struct Paced<M> {
    model: M,
    pace: Option<Pace>,
}

impl<M: Model> Paced<M> {
    pub(crate) fn new(model: M, pace: Option<Pace>) -> Self {
        Self { model, pace }
    }
}

impl<M: Model> Model for Paced<M> {
    type Error = M::Error;

    delegate_model!(model);

    fn tokens_at_once(&self) -> NonZeroUsize {
        if self.pace.is_some() { NonZeroUsize::MIN } else { self.model.tokens_at_once() }
    }

    fn begin(&mut self, tokens: &[TokenId], rows: Rows<'_>) -> Result<Option<Kept<M::Error>>, M::Error> {
        // Only passes that are waited for can take as long as another model's.
        if self.pace.is_some() { Ok(None) } else { self.model.begin(tokens, rows) }
    }

    fn forward(&mut self, tokens: &[TokenId], rows: Rows<'_>) -> Result<Logits, M::Error> {
        let begun = Instant::now();
        let logits = self.model.forward(tokens, rows)?;
        if let Some(pace) = &self.pace {
            let until = begun + Duration::from_secs_f64(pace.seconds(tokens.len()));
            // Sleeping would end too late.
            while Instant::now() < until {
                std::hint::spin_loop();
            }
        }
        Ok(logits)
    }
}
