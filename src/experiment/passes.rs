//! The curve of pass costs in a record: the medians of a model's [`PassTimes`], and their file.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{
    error::ExperimentError,
    records::{read_list, write_list},
};
use crate::model::{
    Model, Rows,
    passes::{PassTimes, any_tokens},
};

/// Name of the file with the curves of the models in a folder of records.
const FILE: &str = "passes.json";
/// Number of tokens in the cache before a pass.
const CONTEXT: usize = 128;
/// Number of measurements of each pass.
const REPEATS: usize = 15;

/// The medians for one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PassCurve {
    /// The model's name in the definition.
    pub model: String,
    /// Number of tokens in the cache before each pass.
    pub context: usize,
    /// Number of measurements of each pass.
    pub repeats: usize,
    /// Median seconds of a pass over one new token, two, and so on, with the logits of all.
    pub seconds: Vec<f64>,
}

/// Measures passes over up to `most` new tokens; fewer if the model's context has no room for them.
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

/// Reads the curves of a folder of records; none if it has no such file.
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
}
