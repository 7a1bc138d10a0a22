//! Parts of the method that cuts the drafts of a batch, which experiments can leave out.

/// Least value of a drafted token relative to its cost, if several sequences share a pass: a further token
/// costs nearly as much there as one without a draft, so a small error of the cost would turn a gain into a
/// loss.
const MARGIN: f64 = 1.1;

/// A part of the method that cuts the drafts of a batch. An experiment can leave it out to see what it
/// brings.
#[cfg(feature = "experiments")]
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchPart {
    /// All drafts of a pass are cut together.
    JointCut,
    /// A drafted token must be worth more than it costs.
    Margin,
}

/// The parts that are in use.
#[derive(Debug, Clone, Copy)]
pub(super) struct CutParts {
    pub(super) joint: bool,
    margin: bool,
}

impl Default for CutParts {
    fn default() -> Self {
        Self { joint: true, margin: true }
    }
}

impl CutParts {
    /// Returns the least value of a drafted token, relative to its cost, in a pass of `sequences`.
    pub(super) fn margin(self, sequences: usize) -> f64 {
        if sequences > 1 && self.margin { MARGIN } else { 1.0 }
    }
}

#[cfg(feature = "experiments")]
impl CutParts {
    /// Returns all parts but one.
    pub(super) fn without(part: Option<BatchPart>) -> Self {
        let is_there = |other| part != Some(other);
        Self { joint: is_there(BatchPart::JointCut), margin: is_there(BatchPart::Margin) }
    }
}
