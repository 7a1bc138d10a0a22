//! Switches of the draft controller's parts, for the ablation (`experiments/ablation`).

/// A part that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
#[doc(hidden)]
pub enum Part {
    Rest,
    Effort,
    Correction,
    Kinds,
    Calibration,
    Curve,
    Isotonic,
    Medians,
    Rows,
    MachinePace,
    TextPace,
    Bound,
    Joint,
    Blocks,
    Margin,
}

/// Parts that are left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[doc(hidden)]
pub struct Without(u32);

impl Without {
    /// And without this one.
    #[must_use]
    pub fn and(self, part: Part) -> Self {
        Self(self.0 | 1 << part as u32)
    }

    /// Is it left out?
    #[must_use]
    pub(crate) fn is(self, part: Part) -> bool {
        self.0 & (1 << part as u32) != 0
    }
}
