//! What passes over several new tokens cost, relative to a pass over one: t(n)/t(1), which says how much a
//! draft can gain.
//!
//! Invariant: passes of all lengths go on from the same context, and whoever measures lets them take turns,
//! so that all see the same machine.

use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use super::{
    error::ExperimentError,
    records::{read_list, write_list},
};
use crate::{
    ids::TokenId,
    model::{Model, Rows},
};

/// The file of a folder of records that has the curves of its models.
const FILE: &str = "passes.json";
/// Tokens in the cache before a pass.
const CONTEXT: usize = 128;
/// How often each pass is measured.
const REPEATS: usize = 15;

/// Times of passes, by how many new tokens they are over.
#[derive(Debug, Clone, Default)]
pub struct PassTimes {
    all: BTreeMap<usize, Vec<Duration>>,
}

/// The medians for one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PassCurve {
    /// The model's name in the definition.
    pub model: String,
    /// Tokens in the cache before each pass.
    pub context: usize,
    /// How often each pass was measured.
    pub repeats: usize,
    /// Median seconds of a pass over one new token, two, and so on, with the logits of all.
    pub seconds: Vec<f64>,
}

impl PassTimes {
    /// Makes a pass over `new` tokens, with these rows of logits, and notes its time. The model holds what it
    /// held before.
    ///
    /// # Errors
    /// If the pass fails.
    pub fn pass<M: Model>(&mut self, model: &mut M, new: &[TokenId], rows: Rows<'_>) -> Result<(), M::Error> {
        let position = model.position();
        let begun = Instant::now();
        model.forward(new, rows)?;
        let took = begun.elapsed();
        model.truncate(position)?;
        self.all.entry(new.len()).or_default().push(took);
        Ok(())
    }

    /// The median time of passes over `n` new tokens in seconds; not a number if there was none.
    #[must_use]
    pub fn median(&self, n: usize) -> f64 {
        let mut all = self.of(n).to_vec();
        all.sort_unstable();
        all.get(all.len() / 2).map_or(f64::NAN, Duration::as_secs_f64)
    }

    /// The least time of passes over `n` new tokens in seconds; not a number if there was none.
    #[must_use]
    pub fn least(&self, n: usize) -> f64 {
        self.of(n).iter().min().map_or(f64::NAN, Duration::as_secs_f64)
    }

    fn of(&self, n: usize) -> &[Duration] {
        self.all.get(&n).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Tokens to make passes over: any will do, but the first ones are often special.
#[must_use]
pub fn any_tokens(count: usize, vocabulary_size: usize) -> Vec<TokenId> {
    let token = |index: usize| TokenId::from_index(index.wrapping_mul(7919) % vocabulary_size.max(1));
    (0..count).filter_map(token).collect()
}

/// Measures passes over up to `most` new tokens; fewer where the model's context has no room for them.
pub(super) fn measure<M: Model>(model: &mut M, name: &str, most: usize) -> Result<PassCurve, M::Error> {
    let context = CONTEXT.min(model.context() / 2);
    let most = most.min(model.context() - context);
    let tokens = any_tokens(context + most, model.vocabulary_size());
    let (before, new) = tokens.split_at(context);
    model.truncate(0)?;
    if !before.is_empty() {
        model.forward(before, Rows::Last)?;
    }
    let mut times = PassTimes::default();
    for round in 0..=REPEATS {
        // The first round warms up.
        if round == 1 {
            times = PassTimes::default();
        }
        for n in 1..=most {
            times.pass(model, &new[..n], Rows::All)?;
        }
    }
    let seconds = (1..=most).map(|n| times.median(n)).collect();
    Ok(PassCurve { model: name.to_owned(), context, repeats: REPEATS, seconds })
}

/// The curves of a folder of records; none if it has no such file.
///
/// # Errors
/// If the file cannot be read, or is damaged.
pub fn read_passes(folder: &Path) -> Result<Vec<PassCurve>, ExperimentError> {
    read_list(&folder.join(FILE))
}

/// Writes curves into a folder of records, if there are any.
pub(super) fn write_passes(folder: &Path, curves: &[PassCurve]) -> Result<(), ExperimentError> {
    write_list(&folder.join(FILE), curves)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ScriptedModel;

    #[test]
    fn passes_are_measured_by_their_length() {
        let mut model = ScriptedModel::new(300, 40, 1);
        let curve = measure(&mut model, "small", 64).unwrap();
        assert_eq!((curve.context, curve.seconds.len(), model.position()), (20, 20, 20));
        assert_eq!(model.passes(), 1 + 16 * 20);
        assert!(curve.seconds.iter().all(|seconds| *seconds > 0.0));
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read_passes(folder.path()).unwrap(), []);
        write_passes(folder.path(), std::slice::from_ref(&curve)).unwrap();
        assert_eq!(read_passes(folder.path()).unwrap(), [curve]);
        std::fs::write(folder.path().join(FILE), "[").unwrap();
        assert!(matches!(read_passes(folder.path()), Err(ExperimentError::Damaged { .. })));
    }

    #[test]
    fn medians_and_least_times() {
        let seconds = |all: [u64; 3]| all.map(Duration::from_secs).to_vec();
        let times = PassTimes { all: BTreeMap::from([(1, seconds([3, 1, 2]))]) };
        assert_eq!((times.median(1), times.least(1)), (2.0, 1.0));
        assert!(times.median(2).is_nan() && times.least(3).is_nan() && times.median(0).is_nan());
    }
}
